import { Bus } from '@ambit/bus';
import { eventsAbout, journalSubject, streams, toolGateway } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { aftercares, type Aftercare } from './aftercare.repository.js';
import { chunks } from './chunks.js';
import { JetStream } from './jetstream.service.js';
import { Leases } from './lease.service.js';
import { PoolService } from './pool.service.js';
import { Snapshots } from './snapshot.service.js';
import { Transactions } from './transactions.repository.js';

/** A request that made it sees to it first; after that the sweeper does. */
const YOUNG_MS = 3_000;
const TRIES = 20;
const PAUSE_MS = 250;
/** Runs that one request to the gateway names. */
const REFERENCES = 500;

/** Removes what a moved, cleared or deleted session has elsewhere. The debt is written down with the change itself, so no crash forgets it. */
@Injectable()
export class AftercareService {
  constructor(
    private readonly bus: Bus,
    private readonly transactions: Transactions,
    private readonly jetstream: JetStream,
    private readonly leases: Leases,
    private readonly pools: PoolService,
    private readonly snapshots: Snapshots,
  ) {}

  /** Sees to it now, as far as it can be done in a few seconds; the rest is the sweeper's. */
  async settle(owed: readonly Aftercare[]): Promise<void> {
    for (let tries = 1, left = [...owed]; left.length > 0 && tries <= TRIES; tries++) {
      const undone: Aftercare[] = [];
      for (const one of left) {
        // Nobody can say now what still runs: that is found out again until somebody can.
        if (!(await this.attend(one).catch(() => false))) undone.push(one);
      }
      left = undone;
      if (left.length > 0) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  /** What is still owed and no request sees to any more, oldest first. */
  owed(now: Date): Promise<Aftercare[]> {
    return aftercares.open(this.transactions.read, new Date(now.getTime() - YOUNG_MS));
  }

  /** True once nothing is left. Each part may be done again. */
  async attend(owed: Aftercare): Promise<boolean> {
    const { sessionId, whole, runs } = owed;
    await this.snapshots.withdraw(sessionId, owed.fingerprints);
    for (const run of runs) {
      if (!run.hasJob) continue;
      await this.leases.release(run.runId);
      await this.pools.deleteJob({ id: run.runId, agentId: run.agentId, pool: run.pool });
    }
    if (!(await this.#clear(owed))) return false;
    if (whole) await this.#purge(owed);
    await aftercares.done(this.transactions.read, owed.id);
    return true;
  }

  /** Has the gateway drop its part, of which nothing goes before every run's calls have ended. */
  async #clear({ sessionId, whole, by, at, runs }: Aftercare): Promise<boolean> {
    const parts = runs.length === 0 ? [[]] : [...chunks(runs, REFERENCES)];
    const round = async (look: boolean): Promise<number> => {
      let count = 0;
      for (const part of parts) {
        const references = part.map(({ runId, originRunId }) => ({ runId, originRunId }));
        const session = { sessionId, whole, look, by, before: at.toISOString() };
        count += (await this.bus.call(toolGateway.clearSession, { ...session, runs: references })).open;
      }
      return count;
    };
    if (parts.length > 1 && (await round(true)) > 0) return false;
    return (await round(false)) === 0;
  }

  /** States of its runs, and what was told of it. */
  async #purge({ sessionId, runs }: Aftercare): Promise<void> {
    for (const { runId } of runs) await this.jetstream.purge(streams.journal.name, journalSubject.runState(runId));
    const keys = [...new Set([sessionId, ...runs.map(({ runId }) => runId)])];
    for (const key of keys) await this.jetstream.purge(streams.events.name, eventsAbout(key));
    await aftercares.dropTold(
      this.transactions.read,
      runs.map(({ runId }) => journalSubject.runState(runId)),
    );
  }
}
