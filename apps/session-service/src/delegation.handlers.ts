import { Answers, type Call } from '@ambit/bus';
import { sessionService, type Parsed } from '@ambit/contracts';
import { Controller } from '@nestjs/common';
import { DelegationService } from './delegation.service.js';

@Controller()
export class DelegationHandlers {
  constructor(private readonly delegations: DelegationService) {}

  @Answers(sessionService.startDelegation) start(input: Parsed<typeof sessionService.startDelegation>, call: Call) {
    return this.delegations.start(input, call);
  }
  @Answers(sessionService.listDelegations) list(input: Parsed<typeof sessionService.listDelegations>) {
    return this.delegations.list(input.sessionId);
  }
  @Answers(sessionService.getDelegation) get(input: Parsed<typeof sessionService.getDelegation>) {
    return this.delegations.get(input);
  }
  @Answers(sessionService.delegationLog) log(input: Parsed<typeof sessionService.delegationLog>) {
    return this.delegations.log(input);
  }
  @Answers(sessionService.killDelegation) kill(input: Parsed<typeof sessionService.killDelegation>, call: Call) {
    return this.delegations.kill(input, call);
  }
}
