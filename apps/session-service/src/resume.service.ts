import { resumeRunId } from '@ambit/capability';
import { Injectable } from '@nestjs/common';
import { withFresh } from './agent.repository.js';
import { userVisible } from './domain/faults.js';
import { hasEnded } from './domain/run-state.js';
import { handoffEntry } from './domain/tape.js';
import { Endings } from './ending.service.js';
import { interactions } from './interaction.repository.js';
import { Launcher } from './launch.service.js';
import { runs } from './run.repository.js';
import { sessions } from './session.repository.js';
import { Snapshots } from './snapshot.service.js';
import { tape } from './tape.repository.js';
import { Transactions } from './transactions.repository.js';
import { WhoseReader } from './whose.service.js';

/** Makes the one run that goes on with a suspended run, once nothing of it waits any more. */
@Injectable()
export class Resumes {
  constructor(
    private readonly transactions: Transactions,
    private readonly snapshots: Snapshots,
    private readonly launcher: Launcher,
    private readonly whose: WhoseReader,
    private readonly endings: Endings,
  ) {}

  /** The id of the resume run, made now or before; null while the run is not suspended or something waits. Safe to ask any number of times, from anywhere. */
  async resume(runId: string): Promise<string | null> {
    return withFresh(() => this.#resume(runId));
  }

  async #resume(runId: string): Promise<string | null> {
    const db = this.transactions.read;
    const made = await runs.resumeOf(db, runId);
    if (made !== undefined) return made;
    if (!(await this.#isDue(runId))) return null;
    const whose = await this.whose.ofRun(runId);
    if (whose === undefined) return null;
    const { agent } = whose;
    const prepared = agent.enabled ? await this.snapshots.prepare(whose) : undefined;
    return this.transactions.run(async (unit) => {
      await this.whose.hold(unit, whose);
      const run = await runs.lock(unit.sql, runId);
      if (run === undefined || run.status !== 'suspended' || hasEnded(run)) return (await runs.resumeOf(unit.sql, runId)) ?? null;
      if ((await interactions.standing(unit.sql, runId)).waits) return null;
      if (prepared === undefined) {
        await this.endings.end(unit, run, { status: 'failed', fault: userVisible('AGENT_DISABLED') });
        return null;
      }
      const session = await sessions.find(unit.sql, run.sessionId);
      if (session === undefined) return null;
      // The suspended run's facts stay as they are; only its session is free for the next.
      await runs.store(unit, { ...run, endedAt: unit.now.toISOString() });
      const { principal, roles, replyTo } = run;
      const resumed = await this.launcher.launch(unit, {
        agent,
        session,
        prepared,
        principal,
        roles,
        replyTo,
        resumes: { run, id: resumeRunId(run.id) },
      });
      if (resumed === undefined) return null;
      await tape.append(unit, run.sessionId, [handoffEntry(run, resumed, 'every decision that the run waited for was taken')]);
      return resumed.id;
    });
  }

  async #isDue(runId: string): Promise<boolean> {
    const run = await runs.find(this.transactions.read, runId);
    if (run === undefined || run.status !== 'suspended' || hasEnded(run)) return false;
    return !(await interactions.standing(this.transactions.read, runId)).waits;
  }
}
