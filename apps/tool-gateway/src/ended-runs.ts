import { Bus } from '@ambit/bus';
import { Fault, sessionService } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import type { z } from 'zod';
import { CallRepository } from './call.repository.js';
import { UnheardRepository } from './unheard.repository.js';

type RunChanged = z.output<typeof sessionService.runChanged.payload>;

const AT_ONCE = 200;
const FIRST = '00000000-0000-0000-0000-000000000000';
const OVER: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled', 'parked']);

/** Notes which runs are over. A suspended run is not: the run that resumes it ends the chain. */
@Injectable()
export class EndedRuns {
  #lookedAt = FIRST;

  constructor(
    @Inject(CallRepository) private readonly repository: CallRepository,
    @Inject(UnheardRepository) private readonly unheard: UnheardRepository,
    @Inject(Bus) private readonly bus: Bus,
  ) {}

  /** Runs whose end was told and not heard: their owner says how they stand. The next ones each time, and the first again after the last. */
  async unnoticed(before: Date): Promise<void> {
    const some = await this.unheard.some(before, { after: this.#lookedAt, limit: AT_ONCE });
    this.#lookedAt = some.length < AT_ONCE ? FIRST : (some.at(-1)?.originRunId ?? FIRST);
    for (const { originRunId, runId } of some) {
      const status = await this.bus.call(sessionService.getAuthority, { runId }).then(
        (authority) => authority.status,
        (error: unknown) => (error instanceof Fault && error.code === 'TOOL_NOT_IN_SNAPSHOT' ? 'completed' : undefined),
      );
      if (status === undefined || !OVER.has(status)) continue;
      await this.repository.runEnded(originRunId, new Date());
    }
  }

  async runChanged({ originRunId, status, at }: RunChanged): Promise<void> {
    if (OVER.has(status)) await this.repository.runEnded(originRunId, new Date(at));
  }
}
