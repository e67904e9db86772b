import { Fault, HEADER, keysOf, type EventContract, type JobContract, type KeysOf } from '@ambit/contracts';
import type { JsMsg } from '@nats-io/jetstream';
import { continueTrace, traceIdOf } from './trace.js';
import { decodeJson, issuesOf } from './wire.js';

/** What a handler knows of a stored message beside its payload. */
export interface Delivery<C extends { readonly subject: string } = EventContract | JobContract> {
  readonly keys: KeysOf<C>;
  /** `Nats-Msg-Id`; the same for every delivery of one message. */
  readonly id: string;
  /** 1 for the first. */
  readonly deliveries: number;
  /** Position in the stream. */
  readonly sequence: number;
  /** When the stream stored it. */
  readonly storedAt: Date;
  readonly traceparent: string;
  readonly traceId: string;
  /** Aborts when the process must end before the handler did. */
  readonly signal: AbortSignal;
  /** Says that the work goes on. The bus says so itself every 3 s while the handler runs. */
  working(): void;
}

const WORKING_EVERY_MS = 3_000;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 30_000;
/** Deliveries of a message that nobody is to blame for, about an hour of them: what it needs is away. Also the end of one that takes its process down. */
const MOST_DELIVERIES = 120;
const AWAY: ReadonlySet<string> = new Set(['UNAVAILABLE', 'TIMEOUT']);

/** Thrown for a message that no later delivery can mend. */
class Malformed extends Error {
  override readonly name = 'Malformed';
}

/** One delivered message, kept alive at the server while its handler runs. */
export class HeldMessage<C extends EventContract | JobContract> implements Delivery<C> {
  readonly traceparent: string;
  readonly signal: AbortSignal;
  readonly #contract: C;
  readonly #message: JsMsg;
  readonly #maxDeliveries: number;
  readonly #heartbeat: NodeJS.Timeout;

  constructor(contract: C, message: JsMsg, options: { readonly maxDeliveries: number; readonly signal: AbortSignal }) {
    this.#contract = contract;
    this.#message = message;
    this.#maxDeliveries = options.maxDeliveries;
    this.signal = options.signal;
    this.traceparent = continueTrace(message.headers?.get(HEADER.traceparent));
    this.#heartbeat = setInterval(() => message.working(), WORKING_EVERY_MS);
  }

  get keys(): KeysOf<C> {
    return keysOf<C['subject']>(this.#contract, this.#message.subject);
  }
  get id(): string {
    return this.#message.headers?.get(HEADER.messageId) ?? '';
  }
  get deliveries(): number {
    return this.#message.info.deliveryCount;
  }
  get sequence(): number {
    return this.#message.seq;
  }
  get storedAt(): Date {
    return this.#message.time;
  }
  get traceId(): string {
    return traceIdOf(this.traceparent);
  }

  /** Parses the payload; throws what counts as poison at once. */
  payload(): unknown {
    if (this.deliveries > MOST_DELIVERIES) throw new Malformed('nobody could finish with it, however often it was delivered');
    let json: unknown;
    try {
      json = decodeJson(this.#message.data);
      void this.keys;
    } catch (cause) {
      throw new Malformed('the message is no JSON, or its subject not its contract’s', { cause });
    }
    const payload = this.#contract.payload.safeParse(json);
    if (!payload.success) throw new Malformed(`the payload has not its contract's shape: ${JSON.stringify(issuesOf(payload.error))}`);
    return payload.data;
  }

  working(): void {
    this.#message.working();
  }

  done(): void {
    this.#message.ack();
  }

  /** Has it delivered again later, or gives it up. Where what it needs is away, the message is not to blame. */
  failed(error: unknown): 'again' | 'poison' {
    const isAway = error instanceof Fault && AWAY.has(error.code);
    if (error instanceof Malformed || this.deliveries >= (isAway ? MOST_DELIVERIES : this.#maxDeliveries)) {
      this.#message.term();
      return 'poison';
    }
    this.#message.nak(Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(this.deliveries - 1, 10)));
    return 'again';
  }

  end(): void {
    clearInterval(this.#heartbeat);
  }
}
