import { randomUUID } from 'node:crypto';
import {
  eventMessage,
  Fault,
  HEADER,
  jobMessage,
  MAX_PAYLOAD_BYTES,
  platformFault,
  subject,
  type EventContract,
  type Input,
  type JobContract,
  type KeysOf,
  type Output,
  type Payload,
  type Rpc,
  type SignalContract,
  type StoredMessage,
} from '@ambit/contracts';
import { JetStreamApiError, type ApiError } from '@nats-io/jetstream';
import { headers, type Msg, type MsgHdrs, type NatsConnection } from '@nats-io/nats-core';
import type { Call } from './call.js';
import { writeIdentity, type Identity } from './identity.js';
import { NobodyThere, Requests } from './requests.js';
import { continueTrace, traceIdOf } from './trace.js';
import { decodeJson, faultOf } from './wire.js';

type CallContext = Pick<Call, 'traceparent' | 'principal' | 'actor' | 'via' | 'signal'> & { remainingMs?(): number };

interface Sending extends Identity {
  /** The request this one is made for: hands on its time, signal, trace and identity. */
  readonly within?: CallContext | undefined;
  readonly signal?: AbortSignal | undefined;
  /** @default the contract's */
  readonly timeoutMs?: number | undefined;
  /** An idempotent call that takes long is sent again after so many ms, to whoever is there then: its receiver may have died. @default all of its time */
  readonly eachMs?: number | undefined;
}
/** `keys` is required where the subject has some. */
type WithKeys<C extends { readonly subject: string }> =
  Record<never, string> extends KeysOf<C> ? { readonly keys?: KeysOf<C> } : { readonly keys: KeysOf<C> };
type Optional<T> = object extends T ? [options?: T] : [options: T];

export type CallOptions<C extends Rpc = Rpc> = Sending & WithKeys<C>;
export type PublishOptions<C extends { readonly subject: string }> = WithKeys<C> & {
  readonly id?: string | undefined;
  readonly within?: Pick<Call, 'traceparent'> | undefined;
};

/** Where a stream put a message. */
export interface Stored {
  readonly stream: string;
  readonly sequence: number;
  readonly duplicate: boolean;
}

export interface BusOptions {
  /** @default `_INBOX` */
  readonly inboxPrefix?: string | undefined;
  /** @default 512 KiB */
  readonly maxMessageBytes?: number | undefined;
}

// While a replica is being replaced nobody may be subscribed for a moment.
const NOBODY_BACKOFF_MS = [20, 60, 150, 400] as const;

const STORE_MS = 5_000;
const STORE_TRIES = 3;
const STORE_BACKOFF_MS = 250;

/** Speaks contracts: asks, tells, hands out work, signals. Needs no framework. */
export class Bus {
  readonly connection: NatsConnection;
  readonly #requests: Requests;
  readonly #maxBytes: number;

  constructor(connection: NatsConnection, options: BusOptions = {}) {
    this.connection = connection;
    this.#requests = new Requests(connection, options.inboxPrefix ?? '_INBOX');
    this.#maxBytes = options.maxMessageBytes ?? MAX_PAYLOAD_BYTES;
  }

  /** Asks, and gives the validated answer. Throws a declared or platform Fault, or the signal's reason. */
  async call<C extends Rpc>(contract: C, input: Input<C>, ...[options]: Optional<CallOptions<C>>): Promise<Output<C>> {
    const sending: Sending & { readonly keys?: unknown } = options ?? {};
    const to = subject<C['subject']>(contract, (sending.keys ?? {}) as KeysOf<C>);
    const body = this.#encode(input);
    const traceparent = continueTrace(sending.within?.traceparent);
    const answer = await this.#ask(contract, { to, body, traceparent }, sending);
    if (answer.headers !== undefined && answer.headers.has(HEADER.errorCode)) throw faultOf(contract, answer, traceIdOf(traceparent));
    const output = contract.output.safeParse(answerOf(answer));
    if (!output.success)
      throw platformFault(
        'INTERNAL',
        { traceId: traceIdOf(traceparent) },
        `${contract.subject} answered with another shape than its contract has`,
      );
    return output.data as Output<C>;
  }

  /** Stores a fact in the events stream and waits for its acknowledgement. `id` makes a repetition harmless. */
  async emit<C extends EventContract>(contract: C, payload: Payload<C>, ...[options]: Optional<PublishOptions<C>>): Promise<Stored> {
    return this.store(eventMessage(contract, payload, this.#storedOptions<C>(options)));
  }

  /** Puts work on its queue and waits for the acknowledgement. `id` makes a repetition harmless. */
  async enqueue<C extends JobContract>(contract: C, payload: Payload<C>, ...[options]: Optional<PublishOptions<C>>): Promise<Stored> {
    return this.store(jobMessage(contract, payload, this.#storedOptions<C>(options)));
  }

  /** Tells whoever listens now; nobody is fine. */
  signal<C extends SignalContract>(
    contract: C,
    payload: Payload<C>,
    ...[options]: Optional<Omit<PublishOptions<C>, 'id'> & WithKeys<C>>
  ): void {
    const sending: { readonly keys?: unknown; readonly within?: Pick<Call, 'traceparent'> | undefined } = options ?? {};
    const sent = headers();
    sent.set(HEADER.traceparent, continueTrace(sending.within?.traceparent));
    this.connection.publish(
      subject<C['subject']>(contract, (sending.keys ?? {}) as KeysOf<C>),
      this.#encode(contract.payload.parse(payload)),
      { headers: sent },
    );
  }

  /** Sends a fact to the events stream and waits for nothing: for hints that come in numbers, of which one may be lost. */
  hint<C extends EventContract>(contract: C, payload: Payload<C>, ...[options]: Optional<PublishOptions<C>>): void {
    const message = eventMessage(contract, payload, this.#storedOptions<C>(options));
    this.connection.publish(message.subject, message.payload, { headers: storedHeaders(message) });
  }

  /** Publishes a shaped message to its stream. Throws the server's JetStreamApiError when the stream refuses it. */
  async store(message: StoredMessage): Promise<Stored> {
    if (Buffer.byteLength(message.payload) > this.#maxBytes) throw this.#tooLarge(Buffer.byteLength(message.payload));
    const sent = storedHeaders(message);
    for (let tries = 1; ; tries++) {
      try {
        return storedOf(await this.#requests.send(message.subject, message.payload, { headers: sent, timeoutMs: STORE_MS }));
      } catch (error) {
        // Repeating is harmless: the stream drops what it has by the message's id.
        const mayPass = error instanceof NobodyThere || (error instanceof Fault && error.code === 'TIMEOUT');
        if (!mayPass || tries === STORE_TRIES) throw error;
        await rest(STORE_BACKOFF_MS * tries, undefined);
      }
    }
  }

  /** Asks a subject that is no contract's, as JetStream's own are. Rejects with UNAVAILABLE when nobody is there, with TIMEOUT when no answer came. */
  async request(to: string, body: string, options: { readonly headers?: MsgHdrs | undefined; readonly timeoutMs: number }): Promise<Msg> {
    try {
      return await this.#requests.send(to, body, { headers: options.headers, timeoutMs: options.timeoutMs });
    } catch (error) {
      throw error instanceof NobodyThere
        ? platformFault('UNAVAILABLE', undefined, `Nobody answers ${to} just now; nothing was done`)
        : error;
    }
  }

  /** Ends the inbox; open requests fail with CANCELLED. The connection stays. */
  close(): void {
    this.#requests.close();
  }

  async #ask(
    contract: Rpc,
    { to, body, traceparent }: { readonly to: string; readonly body: string; readonly traceparent: string },
    sending: Sending,
  ): Promise<Msg> {
    const { within } = sending;
    const started = performance.now();
    const allowedMs = Math.min(
      within?.remainingMs?.() ?? Infinity,
      sending.timeoutMs ?? (contract.idempotent ? contract.timeoutMs * 2 : contract.timeoutMs),
    );
    const left = (): number => allowedMs - (performance.now() - started);
    const signal = sending.signal ?? within?.signal;
    for (let refusals = 0; ;) {
      const givenMs = Math.min(left(), sending.timeoutMs ?? contract.timeoutMs);
      if (givenMs < 1) throw platformFault('TIMEOUT');
      // Whoever answers a repeated call goes on with it meanwhile: it is told of all the time that there is.
      const timeoutMs = contract.idempotent ? Math.min(givenMs, sending.eachMs ?? givenMs) : givenMs;
      try {
        return await this.#requests.send(to, body, { headers: this.#headersFor(sending, traceparent, givenMs), timeoutMs, signal });
      } catch (error) {
        if (error instanceof NobodyThere) {
          const pause = NOBODY_BACKOFF_MS[refusals++];
          if (pause === undefined || pause >= left())
            throw platformFault('UNAVAILABLE', undefined, `Nobody answers ${contract.subject} just now; nothing was done`);
          await rest(pause, signal);
          continue;
        }
        // What may have happened is repeated only where repeating has no second effect.
        if (error instanceof Fault && error.code === 'TIMEOUT' && contract.idempotent && left() >= 1) continue;
        throw error;
      }
    }
  }

  #headersFor(sending: Sending, traceparent: string, timeoutMs: number): MsgHdrs {
    const { within } = sending;
    const sent = headers();
    sent.set(HEADER.traceparent, traceparent);
    sent.set(HEADER.timeout, String(Math.floor(timeoutMs)));
    writeIdentity(sent, {
      principal: sending.principal ?? within?.principal,
      actor: sending.actor ?? within?.actor,
      via: sending.via ?? within?.via,
    });
    return sent;
  }

  #storedOptions<C extends { readonly subject: string }>(
    options: PublishOptions<C> | undefined,
  ): { keys: KeysOf<C>; id: string; time: Date; traceparent: string } {
    return {
      keys: (options?.keys ?? {}) as KeysOf<C>,
      id: options?.id ?? randomUUID(),
      time: new Date(),
      traceparent: continueTrace(options?.within?.traceparent),
    };
  }

  #encode(value: unknown): string {
    const body = JSON.stringify(value) ?? '';
    // A UTF-16 unit is at most three bytes: only long texts need counting.
    if (body.length * 3 > this.#maxBytes && Buffer.byteLength(body) > this.#maxBytes) throw this.#tooLarge(Buffer.byteLength(body));
    return body;
  }

  #tooLarge(actualBytes: number): Fault {
    return platformFault('TOO_LARGE', { limitBytes: this.#maxBytes, actualBytes });
  }
}

function storedHeaders({ headers: given, messageId }: StoredMessage): MsgHdrs {
  const sent = headers();
  for (const [name, value] of Object.entries(given)) sent.set(name, value);
  sent.set(HEADER.messageId, messageId);
  return sent;
}

/** Reads a stream's acknowledgement; throws what it refused with. */
function storedOf(answer: Msg): Stored {
  const ack = answer.json<{ error?: ApiError; stream?: string; seq?: number; duplicate?: boolean }>();
  if (ack.error !== undefined) throw new JetStreamApiError(ack.error);
  if (ack.stream === undefined || ack.seq === undefined) throw new Error(`${answer.subject}: the acknowledgement is not a stream’s`);
  return { stream: ack.stream, sequence: ack.seq, duplicate: ack.duplicate === true };
}

/** The answer's JSON; undefined where there is none, which only a contract without an answer takes. */
function answerOf(answer: Msg): unknown {
  if (answer.data.length === 0) return undefined;
  try {
    return decodeJson(answer.data);
  } catch {
    return undefined;
  }
}

function rest(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
