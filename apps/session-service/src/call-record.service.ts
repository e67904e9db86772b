import type { Output, Parsed, sessionService } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { resultEntry } from './domain/tape.js';
import { runs } from './run.repository.js';
import { tape } from './tape.repository.js';
import { Transactions } from './transactions.repository.js';

/** Puts results on the tape that no journal fact tells: refusals. */
@Injectable()
export class CallRecordService {
  constructor(private readonly transactions: Transactions) {}

  async record({
    runId,
    originRunId,
    sessionId,
    step,
    results,
  }: Parsed<typeof sessionService.recordResults>): Promise<Output<typeof sessionService.recordResults>> {
    const recorded = await this.transactions.run(async (unit) => {
      const run = await runs.lock(unit.sql, runId);
      if (run === undefined || run.originRunId !== originRunId || run.sessionId !== sessionId) return 0;
      // Only what the stored step asked for can have a result.
      const asked = new Set((await tape.calls(unit.sql, { originRunId, step })).map(({ callId }) => callId));
      const entries = results.filter(({ callId }) => asked.has(callId)).map((result) => resultEntry(result, step, { runId, originRunId }));
      return (await tape.append(unit, sessionId, entries)).length;
    });
    return { recorded };
  }
}
