import { Answers, type Call } from '@ambit/bus';
import { sessionService, type Parsed } from '@ambit/contracts';
import { Controller } from '@nestjs/common';
import { ExplainService } from './explain.service.js';
import { InteractionService } from './interaction.service.js';
import { Snapshots } from './snapshot.service.js';

@Controller()
export class InteractionHandlers {
  constructor(
    private readonly interactions: InteractionService,
    private readonly snapshots: Snapshots,
    private readonly explanations: ExplainService,
  ) {}

  @Answers(sessionService.requestInteractions) request(input: Parsed<typeof sessionService.requestInteractions>) {
    return this.interactions.request(input);
  }
  @Answers(sessionService.withdrawInteraction) withdraw(input: Parsed<typeof sessionService.withdrawInteraction>) {
    return this.interactions.withdraw(input);
  }
  @Answers(sessionService.getInteraction) get(input: Parsed<typeof sessionService.getInteraction>) {
    return this.interactions.get(input.id);
  }
  @Answers(sessionService.listInteractions) list(input: Parsed<typeof sessionService.listInteractions>) {
    return this.interactions.list(input);
  }
  @Answers(sessionService.decideInteraction) decide(input: Parsed<typeof sessionService.decideInteraction>, call: Call) {
    return this.interactions.decide(input, call);
  }
  @Answers(sessionService.settleInteraction) settle(input: Parsed<typeof sessionService.settleInteraction>) {
    return this.interactions.settle(input);
  }
  @Answers(sessionService.readSnapshot) readSnapshot(input: Parsed<typeof sessionService.readSnapshot>) {
    return this.snapshots.read(input);
  }
  @Answers(sessionService.listSnapshots) listSnapshots(input: Parsed<typeof sessionService.listSnapshots>) {
    return this.snapshots.list(input);
  }
  @Answers(sessionService.listCommands) commands(input: Parsed<typeof sessionService.listCommands>, call: Call) {
    return this.explanations.commands(input.sessionId, call);
  }
  @Answers(sessionService.explain) explain(input: Parsed<typeof sessionService.explain>, call: Call) {
    return this.explanations.explain(input, call);
  }
}
