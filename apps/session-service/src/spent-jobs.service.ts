import { pattern, sessionService, streams } from '@ambit/contracts';
import { JetStreamApiError, JetStreamError } from '@nats-io/jetstream';
import { Injectable } from '@nestjs/common';
import { JetStream } from './jetstream.service.js';
import { consumerOf } from './pool.service.js';
import { runs } from './run.repository.js';
import { Transactions } from './transactions.repository.js';

/** Three deliveries take less, where each is answered or overdue after 30 s. */
const SPENT_MS = 100_000;
const JOBS = 1_000;
const CONSUMER_NOT_FOUND = 10_014;
const NO_MESSAGE = 404;
const STREAM = streams.runs.name;

/** How the job of a queued run stands: `waits` for a worker, was `handed` to one, or is not there. */
type Standing = { readonly kind: 'waits' } | { readonly kind: 'handed'; readonly sequence: number } | { readonly kind: 'gone' };

export interface SpentJob {
  readonly runId: string;
  /** Where its job stands in the stream; null where there is none any more. */
  readonly sequence: number | null;
}

/**
 * Finds queued runs whose job no worker is given any more. JetStream tells once when a job was delivered as often as it may be, and whoever was away then did not
 * hear it. Nothing tells how often one was delivered: a job that was handed out and whose run is still queued after all its deliveries is such a one.
 */
@Injectable()
export class SpentJobs {
  /** By run: since when its job was seen so. Of runs that are queued now only. */
  #since = new Map<string, number>();

  constructor(
    private readonly transactions: Transactions,
    private readonly jetstream: JetStream,
  ) {}

  async find(now: Date): Promise<SpentJob[]> {
    const queued = await runs.queuedSince(this.transactions.read, new Date(now.getTime() - SPENT_MS), JOBS);
    const standings = new Map<string, Standing>();
    for (const one of new Map(queued.map((run) => [`${run.agentId} ${run.pool}`, run])).values())
      for (const [runId, standing] of await this.#standings(
        one,
        queued.filter(({ agentId, pool }) => agentId === one.agentId && pool === one.pool),
      ))
        standings.set(runId, standing);
    const before = this.#since;
    this.#since = new Map();
    const spent: SpentJob[] = [];
    for (const [runId, standing] of standings) {
      if (standing.kind === 'waits') continue;
      const since = before.get(runId) ?? now.getTime();
      this.#since.set(runId, since);
      if (now.getTime() - since >= SPENT_MS) spent.push({ runId, sequence: standing.kind === 'handed' ? standing.sequence : null });
    }
    return spent;
  }

  async #standings(
    key: { readonly agentId: string; readonly pool: string },
    queued: readonly { readonly id: string }[],
  ): Promise<Map<string, Standing>> {
    const handed = await this.#handedUpTo(key);
    if (handed === undefined) return new Map();
    const jobs = await this.#jobs(key);
    return new Map(
      queued.flatMap(({ id }): [string, Standing][] => {
        const sequence = jobs.get(id);
        if (sequence !== undefined) return [[id, sequence <= handed ? { kind: 'handed', sequence } : { kind: 'waits' }]];
        // Among more jobs than were read it may be one of the others.
        return jobs.size < JOBS ? [[id, { kind: 'gone' }]] : [];
      }),
    );
  }

  /** The newest job of a pool that was given to a worker; undefined where the pool has no consumer. */
  async #handedUpTo(key: { readonly agentId: string; readonly pool: string }): Promise<number | undefined> {
    const manager = await this.jetstream.manager();
    try {
      return (await manager.consumers.info(STREAM, consumerOf(key))).delivered.stream_seq;
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === CONSUMER_NOT_FOUND) return undefined;
      throw error;
    }
  }

  /** By run: the newest job of a pool's queue. */
  async #jobs({ agentId, pool }: { readonly agentId: string; readonly pool: string }): Promise<Map<string, number>> {
    const manager = await this.jetstream.manager();
    const found = new Map<string, number>();
    try {
      const batch = { seq: 1, next_by_subj: pattern(sessionService.runExecute, { agentId, pool }), batch: JOBS };
      for await (const message of await manager.direct.getBatch(STREAM, batch)) {
        const job = sessionService.runExecute.payload.safeParse(message.json());
        if (job.success) found.set(job.data.runId, message.seq);
      }
    } catch (error) {
      // Said where the pool has no job at all.
      if (!(error instanceof JetStreamError) || !('code' in error) || error.code !== NO_MESSAGE) throw error;
    }
    return found;
  }
}
