import { Hears, Listens } from '@ambit/bus';
import { sessionService, toolGateway } from '@ambit/contracts';
import { Controller, Inject } from '@nestjs/common';
import type { z } from 'zod';
import { EdgeCalls } from './edge.calls.js';
import { InteractionWaits } from './interaction.waits.js';
import { OpenCalls } from './open-calls.js';

@Controller()
export class AskBackHandlers {
  constructor(
    @Inject(InteractionWaits) private readonly waits: InteractionWaits,
    @Inject(OpenCalls) private readonly open: OpenCalls,
    @Inject(EdgeCalls) private readonly edge: EdgeCalls,
  ) {}

  // Each replica has calls of its own that wait.
  @Hears(sessionService.interactionSettled, { everyReplica: true })
  settled({ interactionId }: z.output<typeof sessionService.interactionSettled.payload>): void {
    this.waits.settled(interactionId);
  }

  @Listens(toolGateway.callLogged)
  logged({ operationId, ...log }: z.output<typeof toolGateway.callLogged.payload>): void {
    this.open.logged(operationId, log);
    this.edge.logged(operationId, log);
  }
}
