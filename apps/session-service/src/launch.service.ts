import type { Agent } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { runJob } from './domain/facts.js';
import type { RunRecord } from './domain/run-state.js';
import { uuidV7 } from './ids.js';
import { Instructions } from './instruction.service.js';
import { newRun, type Beginning } from './new-run.js';
import { runs } from './run.repository.js';
import type { SessionRecord } from './session.repository.js';
import { Snapshots } from './snapshot.service.js';
import type { Unit } from './transactions.repository.js';

export interface Launch extends Beginning {
  readonly roles: readonly string[];
  readonly replyTo: string | null;
  readonly traceparent?: string | undefined;
  /** The suspended run that this one goes on with, and the id that it therefore has. */
  readonly resumes?: { readonly run: RunRecord; readonly id: string };
}

/** What the job of a run carries of its agent and session, as they are when it is offered. */
export const jobOf = (agent: Agent, session: Pick<SessionRecord, 'workspaceId'>, run: Pick<RunRecord, 'degraded'>) => ({
  model: agent.model,
  limits: agent.policy.limits,
  workspaceId: session.workspaceId,
  degraded: run.degraded,
});

/** Makes a run in a locked session: the row, its first state, its mapping and its job, in the caller's transaction. */
@Injectable()
export class Launcher {
  constructor(
    private readonly snapshots: Snapshots,
    private readonly instructions: Instructions,
  ) {}

  /** The run; undefined where the suspended run is gone on with already. */
  async launch(
    unit: Unit,
    { agent, session, prepared, principal, roles, replyTo, traceparent, resumes }: Launch,
  ): Promise<RunRecord | undefined> {
    const id = resumes?.id ?? uuidV7(unit.now.getTime());
    const run = newRun({ agent, session, prepared, principal }, unit.now, {
      id,
      kind: 'worker',
      status: 'queued',
      originRunId: resumes?.run.originRunId ?? id,
      roles,
      replyTo,
      resumes: resumes?.run.id ?? null,
    });
    if (!(await runs.create(unit, run))) return undefined;
    await this.snapshots.give(unit, session.id, prepared);
    const instructions = await this.instructions.of(unit.sql, agent, run.fingerprint);
    unit.tell(runJob(run, { ...jobOf(agent, session, run), instructions }, traceparent));
    return run;
  }
}
