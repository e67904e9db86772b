import { Answers, type Call } from '@ambit/bus';
import { mcpBroker, type Parsed } from '@ambit/contracts';
import { Controller, Inject } from '@nestjs/common';
import { HeldToolService } from './held-tool.service.js';

@Controller()
export class HeldToolHandlers {
  constructor(@Inject(HeldToolService) private readonly held: HeldToolService) {}

  @Answers(mcpBroker.getHeldTool) get(input: Parsed<typeof mcpBroker.getHeldTool>) {
    return this.held.get(input);
  }
  @Answers(mcpBroker.acceptTool) accept(input: Parsed<typeof mcpBroker.acceptTool>, call: Call) {
    return this.held.accept(input, call);
  }
}
