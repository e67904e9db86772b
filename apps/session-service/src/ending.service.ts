import type { RunStatus } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { refusedResult } from './domain/decision.js';
import { interactionSettled } from './domain/facts.js';
import { hasEnded, type FaultIn, type RunRecord } from './domain/run-state.js';
import { resultEntry, saidText } from './domain/tape.js';
import { delegations } from './delegation.repository.js';
import { interactions, type InteractionRecord } from './interaction.repository.js';
import { Narrowing } from './narrowing.service.js';
import { runs } from './run.repository.js';
import { sessions } from './session.repository.js';
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
  constructor(private readonly narrowing: Narrowing) {}

  /** Cancels an open run, and tells whoever works for it once that is committed; undefined where it has ended. */
  async cancel(unit: Unit, runId: string, reason: string): Promise<RunRecord | undefined> {
    const run = await runs.lock(unit.sql, runId);
    if (run === undefined || hasEnded(run)) return undefined;
    const workerId = (await runs.attempts(unit.sql, runId)).at(-1)?.workerId ?? null;
    const ended = await this.end(unit, run, { status: 'cancelled', reason, fault: { code: 'CANCELLED', message: reason } });
    unit.after(() => {
      this.narrowing.hint([runId], { abort: true, reason });
      this.narrowing.hintWorker(run, workerId, reason);
    });
    return ended;
  }

  /** A run ends what it delegated, but what is in the background only where it did not complete; a subagent's tells its parent how it ended. */
  async end(unit: Unit, run: RunRecord, { status, fault, reason }: Ending): Promise<RunRecord> {
    await runs.closeAttempts(unit, run.id);
    for (const interaction of await interactions.unsettledOf(unit.sql, run.id))
      await this.withdraw(unit, interaction, { status: 'cancelled', fault: CANCELLED });
    const ended = await runs.move(unit, run, {
      status,
      ...(fault === undefined ? {} : { fault }),
      ...(reason === undefined ? {} : { reason }),
    });
    const delegated = await delegations.openOf(unit.sql, run.originRunId, { withBackground: status !== 'completed' });
    for (const id of delegated)
      await this.endDelegation(unit, id, { status: 'cancelled', reason: reason ?? 'the run that delegated it ended' });
    await this.#report(unit, ended);
    return ended;
  }

  /** Ends one delegation before its time, and its children's runs. Sessions are locked before delegations, the parent's before its children's. */
  async endDelegation(unit: Unit, id: string, how: { readonly status: 'cancelled' | 'timed_out'; readonly reason: string }): Promise<void> {
    const children = await delegations.childSessions(unit.sql, id);
    for (const child of [...children].sort()) await sessions.lock(unit.sql, child);
    const open = await delegations.lock(unit.sql, id);
    if (open === undefined || open.status !== 'running') return;
    await delegations.close(unit, open, how.status);
    for (const runId of await runs.openIds(unit.sql, { sessionIds: children })) await this.cancel(unit, runId, how.reason);
  }

  /** Notes the end of a subagent's run with its task. */
  async #report(unit: Unit, run: RunRecord): Promise<void> {
    const found = await delegations.ofChild(unit.sql, run.sessionId);
    if (found === undefined) return;
    const delegation = await delegations.lock(unit.sql, found);
    if (delegation === undefined) return;
    const said = await tape.lastSaid(unit.sql, run.originRunId);
    await delegations.taskEnded(unit, delegation, { sessionId: run.sessionId, status: run.status, fault: run.fault, said: saidText(said) });
  }

  /** Settles an interaction that nobody will answer any more, with the fault that its call ends with. */
  async withdraw(
    unit: Unit,
    interaction: InteractionRecord,
    how: { readonly status: 'cancelled' | 'expired'; readonly fault: FaultIn },
  ): Promise<void> {
    const { id, runId, originRunId, sessionId, callId, step } = interaction;
    const settled = await interactions.update(unit, id, { status: how.status, settled: true });
    if (!interaction.isLive)
      await tape.append(unit, sessionId, [resultEntry(refusedResult(callId, how.fault), step, { runId, originRunId })]);
    unit.tell(interactionSettled(settled, unit.now));
  }
}
