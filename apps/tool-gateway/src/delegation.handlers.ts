import { Hears } from '@ambit/bus';
import { sessionService } from '@ambit/contracts';
import { Controller, Inject } from '@nestjs/common';
import type { z } from 'zod';
import { DelegationWaits } from './delegation.waits.js';

@Controller()
export class DelegationHandlers {
  constructor(@Inject(DelegationWaits) private readonly waits: DelegationWaits) {}

  // Each replica has calls of its own that wait.
  @Hears(sessionService.delegationChanged, { everyReplica: true })
  changed({ delegationId }: z.output<typeof sessionService.delegationChanged.payload>): void {
    this.waits.changed(delegationId);
  }
}
