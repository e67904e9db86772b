import { Answers, type Call } from '@ambit/bus';
import { mcpBroker, type Parsed } from '@ambit/contracts';
import { Controller, Inject } from '@nestjs/common';
import { AuthorizationService } from './authorization.service.js';
import { FlowService } from './flow.service.js';

@Controller()
export class AuthorizationHandlers {
  constructor(
    @Inject(FlowService) private readonly flows: FlowService,
    @Inject(AuthorizationService) private readonly authorizations: AuthorizationService,
  ) {}

  @Answers(mcpBroker.startAuthorization) start(input: Parsed<typeof mcpBroker.startAuthorization>, call: Call) {
    return this.flows.start(input, call);
  }
  @Answers(mcpBroker.describeAuthorization) describe(input: Parsed<typeof mcpBroker.describeAuthorization>) {
    return this.flows.describe(input);
  }
  @Answers(mcpBroker.finishAuthorization) finish(input: Parsed<typeof mcpBroker.finishAuthorization>, call: Call) {
    return this.flows.finish(input, call);
  }
  @Answers(mcpBroker.listAuthorizations) list(input: Parsed<typeof mcpBroker.listAuthorizations>) {
    return this.authorizations.list(input);
  }
  @Answers(mcpBroker.removeAuthorization) remove(input: Parsed<typeof mcpBroker.removeAuthorization>, call: Call) {
    return this.authorizations.remove(input, call);
  }
  @Answers(mcpBroker.erasePrincipal) erase(input: Parsed<typeof mcpBroker.erasePrincipal>, call: Call) {
    return this.authorizations.erase(input, call);
  }
}
