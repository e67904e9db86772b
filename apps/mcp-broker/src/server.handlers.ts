import { Answers, type Call } from '@ambit/bus';
import { mcpBroker, type Parsed } from '@ambit/contracts';
import { Controller, Inject } from '@nestjs/common';
import { CatalogueService } from './catalogue.service.js';
import { ServerService } from './server.service.js';

@Controller()
export class ServerHandlers {
  constructor(
    @Inject(ServerService) private readonly servers: ServerService,
    @Inject(CatalogueService) private readonly catalogues: CatalogueService,
  ) {}

  @Answers(mcpBroker.putServer) put(input: Parsed<typeof mcpBroker.putServer>, call: Call) {
    return this.servers.put(input, call);
  }
  @Answers(mcpBroker.getServer) get(input: Parsed<typeof mcpBroker.getServer>) {
    return this.servers.get(input);
  }
  @Answers(mcpBroker.listServers) list(input: Parsed<typeof mcpBroker.listServers>) {
    return this.servers.list(input);
  }
  @Answers(mcpBroker.deleteServer) delete(input: Parsed<typeof mcpBroker.deleteServer>, call: Call) {
    return this.servers.delete(input, call);
  }
  @Answers(mcpBroker.testServer) test(input: Parsed<typeof mcpBroker.testServer>) {
    return this.servers.test(input);
  }
  @Answers(mcpBroker.switchServer) switch(input: Parsed<typeof mcpBroker.switchServer>, call: Call) {
    return this.servers.switch(input, call);
  }
  @Answers(mcpBroker.revokeOwner) revokeOwner(input: Parsed<typeof mcpBroker.revokeOwner>, call: Call) {
    return this.servers.revokeOwner(input, call);
  }
  @Answers(mcpBroker.catalogueHeads) heads(input: Parsed<typeof mcpBroker.catalogueHeads>) {
    return this.catalogues.heads(input);
  }
  @Answers(mcpBroker.cataloguePage) page(input: Parsed<typeof mcpBroker.cataloguePage>) {
    return this.catalogues.page(input);
  }
}
