import { Bus } from '@ambit/bus';
import { Claim, Outcome, streams, toolGateway } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { AckPolicy, DeliverPolicy, jetstreamManager, jetstream, type Consumer, type JsMsg } from '@nats-io/jetstream';
import { nanos } from '@nats-io/nats-core';
import { CallRepository } from './call.repository.js';
import { operationFacts } from './domain/operation-facts.js';
import { Journal } from './journal.js';

/** The durable consumer that all gateways share. */
export const PROJECTION_DURABLE = 'tool-gateway--journal';

const AT_ONCE = 400;
const PULL_MS = 2_000;
/** Facts are taken in bunches: a bunch costs Postgres about as much as one fact. */
const GATHER_MS = 150;
const RETRY_MS = 1_000;
/** Short: what a gateway took and died with is parked only once another has taken it. Facts that come twice change nothing. */
const ACK_WAIT_MS = 3_000;

interface Ended {
  readonly claim: Claim;
  readonly outcome: Outcome;
}

/** Brings the journal's facts into Postgres, where people look and where they may stay when the journal is emptied. Off every call's path. */
@Injectable()
export class Projection implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #stopping = new AbortController();
  #finished: Promise<void> = Promise.resolve();

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(CallRepository) private readonly repository: CallRepository,
    @Inject(Journal) private readonly journal: Journal,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const consumer = await this.#consumer();
    this.#finished = this.#run(consumer);
  }

  async onApplicationShutdown(): Promise<void> {
    this.#stopping.abort();
    await this.#finished;
  }

  async #consumer(): Promise<Consumer> {
    const manager = await jetstreamManager(this.bus.connection, { checkAPI: false });
    await manager.consumers.add(streams.journal.name, {
      durable_name: PROJECTION_DURABLE,
      filter_subject: operationFacts.all,
      ack_policy: AckPolicy.Explicit,
      deliver_policy: DeliverPolicy.All,
      ack_wait: nanos(ACK_WAIT_MS),
      max_ack_pending: AT_ONCE * 8,
      max_deliver: -1,
    });
    return jetstream(this.bus.connection).consumers.get(streams.journal.name, PROJECTION_DURABLE);
  }

  async #run(first: Consumer): Promise<void> {
    let consumer: Consumer | undefined = first;
    while (!this.#stopping.signal.aborted) {
      try {
        consumer ??= await this.#consumer();
        await this.#take(consumer);
      } catch (error) {
        if (this.#stopping.signal.aborted || this.bus.connection.isClosed()) return;
        this.log.warn({ error }, 'the journal was not brought into Postgres; trying again');
        consumer = undefined;
        await this.#pause(RETRY_MS);
      }
    }
  }

  /**
   * One pull, written in bunches while it goes on. It is never cut short: what a stopped pull still has on its way comes again only
   * when its acknowledgement is overdue, and people would look at calls without an end until then.
   */
  async #take(consumer: Consumer): Promise<void> {
    const pull = await consumer.fetch({ max_messages: AT_ONCE, expires: PULL_MS });
    const gathered: JsMsg[] = [];
    let writing: Promise<void> | undefined;
    const write = async (): Promise<void> => {
      while (gathered.length > 0) {
        await this.#pause(GATHER_MS);
        const together = gathered.splice(0);
        await this.#project(together);
        for (const message of together) message.ack();
      }
      writing = undefined;
    };
    const stop = (): void => pull.stop();
    this.#stopping.signal.addEventListener('abort', stop, { once: true });
    for await (const message of pull) {
      gathered.push(message);
      if (writing !== undefined) continue;
      writing = write();
      // Whoever takes the pull learns of it when the pull ends.
      writing.catch(() => undefined);
    }
    this.#stopping.signal.removeEventListener('abort', stop);
    await writing;
  }

  async #project(messages: readonly JsMsg[]): Promise<void> {
    const claims: Claim[] = [];
    const outcomes: Outcome[] = [];
    const aborts: string[] = [];
    for (const message of messages) {
      const fact = operationFacts.read(message.subject, message.string());
      if (fact === undefined)
        this.log.error({ subject: message.subject, sequence: message.seq }, 'a fact of the journal cannot be read; it is left out');
      else if (fact.kind === 'claim') claims.push(fact.claim);
      else if (fact.kind === 'outcome') outcomes.push(fact.outcome);
      else aborts.push(fact.operationId);
    }
    const ended = await this.#ended(claims, outcomes);
    await this.repository.project(claims, ended);
    await this.repository.aborting(aborts);
    await Promise.all(ended.map((end) => this.#tell(end)));
  }

  /** Another gateway may have taken the claim of an outcome that came here. */
  async #ended(claims: readonly Claim[], outcomes: readonly Outcome[]): Promise<Ended[]> {
    const here = new Map(claims.map((claim) => [claim.operationId, claim]));
    const found = await Promise.all(
      outcomes.map(async (outcome) => ({
        outcome,
        claim: here.get(outcome.operationId) ?? (await this.journal.readClaim(outcome.originRunId, outcome.operationId)),
      })),
    );
    // A claim that stands in Postgres and not in the journal was lost with the journal.
    const lost = await this.repository.claimsOf(found.flatMap(({ outcome, claim }) => (claim === undefined ? [outcome.operationId] : [])));
    return found.flatMap(({ outcome, claim = lost.get(outcome.operationId) }) => (claim === undefined ? [] : [{ outcome, claim }]));
  }

  /** Hints for whoever watches; a repetition is dropped by its id. */
  async #tell({ claim, outcome }: Ended): Promise<void> {
    const { runId, sessionId, agentId, operationId, callId, tool, rule } = claim;
    const { status, durationMs, at } = outcome;
    const fault = outcome.fault ?? null;
    this.bus.hint(
      toolGateway.callEnded,
      { runId, sessionId, agentId, operationId, callId, tool, status, fault, rule, durationMs, at },
      { keys: { runId }, id: `${operationId}.ended` },
    );
    if (status === 'indeterminate')
      await this.bus.emit(
        toolGateway.callParked,
        { operationId, runId, sessionId, agentId, tool, at },
        { keys: { operationId }, id: `${operationId}.parked` },
      );
  }

  #pause(ms: number): Promise<void> {
    const { signal } = this.#stopping;
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal.addEventListener('abort', end, { once: true });
    });
  }
}
