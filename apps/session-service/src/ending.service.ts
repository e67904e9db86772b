import type { RunStatus } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { refusedResult } from './domain/decision.js';
import { interactionSettled } from './domain/facts.js';
import type { FaultIn, RunRecord } from './domain/run-state.js';
import { resultEntry } from './domain/tape.js';
import { interactions, type InteractionRecord } from './interaction.repository.js';
import { runs } from './run.repository.js';
import { tape } from './tape.repository.js';
import type { Unit } from './transactions.repository.js';

export interface Ending {
  readonly status: Extract<RunStatus, 'completed' | 'failed' | 'cancelled' | 'parked'>;
  readonly fault?: FaultIn;
  readonly reason?: string;
}

const CANCELLED: FaultIn = { code: 'CANCELLED', message: 'The run ended before anybody decided' };

/** Ends runs, and what waits with them. Everything here happens in a session that the caller has locked. */
@Injectable()
export class Endings {
  async end(unit: Unit, run: RunRecord, { status, fault, reason }: Ending): Promise<RunRecord> {
    await runs.closeAttempts(unit, run.id);
    for (const interaction of await interactions.unsettledOf(unit.sql, run.id))
      await this.withdraw(unit, interaction, { status: 'cancelled', fault: CANCELLED });
    return runs.move(unit, run, { status, ...(fault === undefined ? {} : { fault }), ...(reason === undefined ? {} : { reason }) });
  }

  /** Settles an interaction that nobody will answer any more, with the fault that its call ends with. */
  async withdraw(
    unit: Unit,
    interaction: InteractionRecord,
    how: { readonly status: 'cancelled' | 'expired'; readonly fault: FaultIn },
  ): Promise<void> {
    const { id, runId, originRunId, sessionId, callId, step } = interaction;
    const settled = await interactions.update(unit, id, { status: how.status, settled: true });
    await tape.append(unit, sessionId, [resultEntry(refusedResult(callId, how.fault), step, { runId, originRunId })]);
    unit.tell(interactionSettled(settled, unit.now));
  }
}
