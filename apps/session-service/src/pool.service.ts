import { fault, pattern, sessionService, streams, toToken, type Parsed } from '@ambit/contracts';
import { AckPolicy, DeliverPolicy, JetStreamApiError, JetStreamError } from '@nats-io/jetstream';
import { nanos } from '@nats-io/nats-core';
import { Injectable } from '@nestjs/common';
import { agents } from './agent.repository.js';
import { MAX_DELIVERIES } from './domain/run-state.js';
import { JetStream } from './jetstream.service.js';
import { pools } from './owner.repository.js';
import { Transactions } from './transactions.repository.js';

type Key = Parsed<typeof sessionService.ensurePool>;

const ACK_WAIT_MS = 30_000;
const CONSUMER_NOT_FOUND = 10_014;
const NO_MESSAGE = 404;
const STREAM = streams.runs.name;

/** The durable consumers from which an agent's workers take runs, one a pool. */
@Injectable()
export class PoolService {
  constructor(
    private readonly jetstream: JetStream,
    private readonly transactions: Transactions,
  ) {}

  async ensure({ agentId, pool }: Key): Promise<{ consumer: string }> {
    if ((await agents.find(this.transactions.read, agentId)) === undefined) throw fault(sessionService.ensurePool, 'AGENT_UNKNOWN');
    const consumer = consumerOf({ agentId, pool });
    const manager = await this.jetstream.manager();
    await manager.consumers.add(STREAM, {
      durable_name: consumer,
      filter_subject: pattern(sessionService.runExecute, { agentId, pool }),
      ack_policy: AckPolicy.Explicit,
      ack_wait: nanos(ACK_WAIT_MS),
      max_deliver: MAX_DELIVERIES,
      deliver_policy: DeliverPolicy.All,
      max_ack_pending: 10_000,
    });
    await pools.remember(this.transactions.read, { agentId, pool, consumer }, new Date());
    return { consumer };
  }

  async remove({ agentId, pool }: Key): Promise<{ removed: boolean }> {
    await pools.forget(this.transactions.read, agentId, pool);
    const manager = await this.jetstream.manager();
    try {
      return { removed: await manager.consumers.delete(STREAM, consumerOf({ agentId, pool })) };
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === CONSUMER_NOT_FOUND) return { removed: false };
      throw error;
    }
  }

  /** Makes again what a lost JetStream forgot. */
  async restore(): Promise<void> {
    for (const pool of await pools.all(this.transactions.read)) {
      if ((await agents.find(this.transactions.read, pool.agentId)) !== undefined) await this.ensure(pool);
    }
  }

  /** Drops the job of a run that is given up; one that is gone already is fine. */
  async deleteJob(run: { readonly agentId: string; readonly pool: string; readonly id: string }): Promise<void> {
    const manager = await this.jetstream.manager();
    const subject = pattern(sessionService.runExecute, { agentId: run.agentId, pool: run.pool });
    try {
      for await (const message of await manager.direct.getBatch(STREAM, { seq: 1, next_by_subj: subject, batch: 1_000 })) {
        const job = sessionService.runExecute.payload.safeParse(message.json());
        if (job.success && job.data.runId === run.id) await manager.streams.deleteMessage(STREAM, message.seq, false);
      }
    } catch (error) {
      // Said where the agent has no job at all.
      if (!(error instanceof JetStreamError) || !('code' in error) || error.code !== NO_MESSAGE) throw error;
    }
  }
}

/** The name of the consumer of a pool. */
export const consumerOf = ({ agentId, pool }: Key) => `${toToken(agentId)}_${toToken(pool)}`;
