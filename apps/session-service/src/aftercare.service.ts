import { Bus } from '@ambit/bus';
import { journalSubject, streams, toolGateway, toToken } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { aftercares, type Aftercare } from './aftercare.repository.js';
import { JetStream } from './jetstream.service.js';
import { Leases } from './lease.service.js';
import { PoolService } from './pool.service.js';
import { Snapshots } from './snapshot.service.js';
import { Transactions } from './transactions.repository.js';

/** A request that made it sees to it first; after that the sweeper does. */
const YOUNG_MS = 3_000;
const TRIES = 20;
const PAUSE_MS = 250;

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
        if (!(await this.#attend(one).catch(() => false))) undone.push(one);
      }
      left = undone;
      if (left.length > 0) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  /** One round over everything that is still owed. */
  async sweep(now: Date): Promise<void> {
    for (const owed of await aftercares.open(this.transactions.read, new Date(now.getTime() - YOUNG_MS))) await this.#attend(owed);
  }

  /** True once nothing is left. Each part may be done again. */
  async #attend(owed: Aftercare): Promise<boolean> {
    const { sessionId, whole, by, at, runs } = owed;
    const references = runs.map(({ runId, originRunId }) => ({ runId, originRunId }));
    await this.snapshots.withdraw(sessionId, owed.fingerprints);
    for (const run of runs) {
      await this.leases.release(run.runId);
      if (run.hasJob) await this.pools.deleteJob({ id: run.runId, agentId: run.agentId, pool: run.pool });
    }
    const { open } = await this.bus.call(toolGateway.clearSession, { sessionId, whole, by, before: at.toISOString(), runs: references });
    if (open > 0) return false;
    if (whole) await this.#purge(owed);
    await aftercares.done(this.transactions.read, owed.id);
    return true;
  }

  /** States of its runs, and what was told of it. */
  async #purge({ sessionId, runs }: Aftercare): Promise<void> {
    const manager = await this.jetstream.manager();
    for (const { runId } of runs) await manager.streams.purge(streams.journal.name, { filter: journalSubject.runState(runId) });
    const keys = [...new Set([sessionId, ...runs.map(({ runId }) => runId)])];
    for (const key of keys) await manager.streams.purge(streams.events.name, { filter: aboutKey(key) });
    await aftercares.dropTold(
      this.transactions.read,
      runs.map(({ runId }) => journalSubject.runState(runId)),
    );
  }
}

/** Every event whose one key is this id. */
const aboutKey = (id: string): string => `${streams.events.subjects[0].slice(0, -1)}*.v1.*.*.${toToken(id)}`;
