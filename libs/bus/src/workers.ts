import { streams, type EventContract, type Fault, type JobContract } from '@ambit/contracts';
import {
  AckPolicy,
  DeliverPolicy,
  jetstream,
  JetStreamApiError,
  jetstreamManager,
  type Consumer,
  type ConsumerConfig,
  type JsMsg,
} from '@nats-io/jetstream';
import { nanos, type NatsConnection } from '@nats-io/nats-core';
import type { z } from 'zod';
import { HeldMessage, type Delivery } from './held-message.js';
import type { Log } from './log.js';
import type { Listening } from './responder.js';

type Stored = EventContract | JobContract;
export type StoredHandler<C extends Stored> = (payload: z.output<C['payload']>, delivery: Delivery<C>) => Promise<void> | void;

export interface ConsumeOptions {
  /** The durable's name; without one the consumer is this process's own and hears what comes from now on. */
  readonly durable?: string | undefined;
  /** Subjects to hear. */
  readonly filters: readonly string[];
  /** How many handlers run at once here. @default 1 */
  readonly concurrency?: number | undefined;
  /** Deliveries after which a message that its handler fails on counts as poison; those while something it needs was away end nothing. @default 5 */
  readonly maxDeliveries?: number | undefined;
}

/** A process that died gives back what it held after this long. */
const ACK_WAIT_MS = 10_000;
const PULL_MS = 30_000;
const RETRY_MS = 1_000;
const DRAIN_MS = 60_000;
const ALREADY_EXISTS = 10148;

/** What an error of a library means; undefined where it means nothing. */
type MeaningOf = (error: unknown) => Fault | undefined;

/** Pulls from JetStream as many messages as there are free hands, so that none waits here while another replica is idle. */
export class Workers {
  readonly #connection: NatsConnection;
  readonly #log: Log;
  readonly #meaningOf: MeaningOf;
  readonly #open = new Set<Listening>();

  constructor(connection: NatsConnection, log: Log, meaningOf: MeaningOf = () => undefined) {
    this.#connection = connection;
    this.#log = log;
    this.#meaningOf = meaningOf;
  }

  /** Hears events or takes jobs of one contract until closed. Rejects when the stream does not exist. */
  async consume<C extends Stored>(contract: C, handler: StoredHandler<C>, options: ConsumeOptions): Promise<Listening> {
    const loop = new PullLoop(this.#connection, this.#log, { contract, handler: handler, options, meaningOf: this.#meaningOf });
    await loop.start();
    const listening = {
      close: async () => {
        this.#open.delete(listening);
        await loop.close();
      },
    };
    this.#open.add(listening);
    return listening;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open].map((listening) => listening.close()));
  }
}

interface Work {
  readonly contract: Stored;
  readonly handler: StoredHandler<Stored>;
  readonly options: ConsumeOptions;
  readonly meaningOf: MeaningOf;
}

class PullLoop {
  readonly #connection: NatsConnection;
  readonly #log: Log;
  readonly #work: Work;
  readonly #running = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  readonly #ending = new AbortController();
  #pull: Awaited<ReturnType<Consumer['fetch']>> | undefined;
  #finished: Promise<void> = Promise.resolve();

  constructor(connection: NatsConnection, log: Log, work: Work) {
    this.#connection = connection;
    this.#log = log;
    this.#work = work;
  }

  async start(): Promise<void> {
    const consumer = await this.#consumer();
    this.#finished = this.#run(consumer);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#pull?.stop();
    const finished = this.#finished.then(() => Promise.all(this.#running));
    if (await settles(finished, DRAIN_MS)) return;
    this.#ending.abort(new Error('the service is shutting down'));
    // What still runs is delivered again, elsewhere, once its acknowledgement is overdue.
    await settles(finished, 1_000);
  }

  async #consumer(): Promise<Consumer> {
    const { contract, options } = this.#work;
    const stream = contract.kind === 'job' ? contract.stream : streams.events.name;
    const config: Partial<ConsumerConfig> = {
      ack_policy: AckPolicy.Explicit,
      ack_wait: nanos(ACK_WAIT_MS),
      // Which delivery is the last depends on why it failed.
      max_deliver: -1,
      filter_subjects: [...options.filters],
      ...(options.durable === undefined
        ? { deliver_policy: DeliverPolicy.New, inactive_threshold: nanos(5 * 60_000) }
        : { durable_name: options.durable, deliver_policy: DeliverPolicy.All }),
    };
    const manager = await jetstreamManager(this.#connection, { checkAPI: false });
    const info = await manager.consumers.add(stream, config).catch((error: unknown) => {
      // Made by an older version, with other settings: it keeps its place and gets ours.
      if (options.durable !== undefined && error instanceof JetStreamApiError && error.code === ALREADY_EXISTS)
        return manager.consumers.update(stream, options.durable, config);
      throw error;
    });
    return jetstream(this.#connection).consumers.getConsumerFromInfo(info);
  }

  async #run(first: Consumer): Promise<void> {
    const concurrency = this.#work.options.concurrency ?? 1;
    let consumer: Consumer | undefined = first;
    while (!this.#closing.signal.aborted) {
      try {
        consumer ??= await this.#consumer();
        if (this.#running.size >= concurrency) await Promise.race(this.#running);
        else await this.#take(consumer, concurrency - this.#running.size);
      } catch (error) {
        if (this.#closing.signal.aborted || this.#connection.isClosed()) return;
        // The server is away or forgot the consumer; what is stored waits there for us.
        this.#log.warn(
          { reason: error instanceof Error ? error.message : String(error), subject: this.#work.contract.subject },
          'pulling failed; trying again',
        );
        consumer = undefined;
        await this.#pause();
      }
    }
  }

  async #take(consumer: Consumer, free: number): Promise<void> {
    const pull = await consumer.fetch({ max_messages: free, expires: PULL_MS });
    this.#pull = pull;
    if (this.#closing.signal.aborted) pull.stop();
    for await (const message of pull) {
      const done: Promise<void> = this.#handle(message).finally(() => this.#running.delete(done));
      this.#running.add(done);
    }
    this.#pull = undefined;
  }

  async #handle(message: JsMsg): Promise<void> {
    const { contract, handler, options } = this.#work;
    const held = new HeldMessage(contract, message, { maxDeliveries: options.maxDeliveries ?? 5, signal: this.#ending.signal });
    try {
      const payload = held.payload();
      await handler(payload, held);
      held.done();
    } catch (error) {
      const verdict = held.failed(this.#work.meaningOf(error) ?? error);
      if (verdict === 'poison')
        this.#log.error(
          { error, subject: message.subject, sequence: message.seq, deliveries: held.deliveries, traceId: held.traceId },
          'gave a message up',
        );
      else
        this.#log.warn(
          { error, subject: message.subject, sequence: message.seq, deliveries: held.deliveries, traceId: held.traceId },
          'a message’s handler failed; it comes again',
        );
    } finally {
      held.end();
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, RETRY_MS);
      this.#closing.signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
    });
  }
}

/** Whether a promise settles within `ms`. */
async function settles(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), ms)));
  const isSettled = await Promise.race([promise.then(() => true), late]);
  clearTimeout(timer);
  return isSettled;
}

/** The durable of a listener's event or a worker's job: `<listener>--<noun>-<verb>`, with the owner where two would share it. */
export function durableName(listener: string, contract: Stored, all: readonly Stored[]): string {
  const name = nameOf(contract);
  const isShared = all.some((other) => other.subject !== contract.subject && nameOf(other) === name);
  return `${listener}--${isShared ? `${contract.owner}-` : ''}${name}`;
}

function nameOf(contract: Stored): string {
  const [, , , , noun, verb] = contract.subject.split('.');
  return `${noun}-${verb}`;
}
