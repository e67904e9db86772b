import type { sessionService } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import type { z } from 'zod';
import { CallRepository } from './call.repository.js';

type RunChanged = z.output<typeof sessionService.runChanged.payload>;

const OVER: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled', 'parked']);

/** Notes which runs are over. A suspended run is not: the run that resumes it ends the chain. */
@Injectable()
export class EndedRuns {
  constructor(@Inject(CallRepository) private readonly repository: CallRepository) {}

  async runChanged({ originRunId, status, at }: RunChanged): Promise<void> {
    if (OVER.has(status)) await this.repository.runEnded(originRunId, new Date(at));
  }
}
