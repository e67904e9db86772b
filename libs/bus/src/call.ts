import { HEADER, keysOf, platformFault, type KeysOf, type Principal, type Rpc, type Via } from '@ambit/contracts';
import type { Msg } from '@nats-io/nats-core';
import { readPrincipal, readVia } from './identity.js';
import { continueTrace, traceIdOf } from './trace.js';

/** What a handler knows of the request it answers, beside its input. */
export interface Call<C extends { readonly subject: string } = Rpc> {
  /** The subject's keys, unescaped. */
  readonly keys: KeysOf<C>;
  /** Aborts when the caller's time is up, or when the process must end before the answer came. */
  readonly signal: AbortSignal;
  /** Milliseconds the caller still waits, never negative; by our own monotonic clock. */
  remainingMs(): number;
  /** Undefined where a worker may publish the request: such headers prove nothing. */
  readonly principal: Principal | undefined;
  readonly actor: Principal | undefined;
  readonly via: Via | undefined;
  readonly traceId: string;
  readonly traceparent: string;
  /** When the request arrived. */
  readonly startedAt: Date;
}

/** Signals that were asked for and not yet ended, so that a shutdown reaches them. */
export type LiveSignals = Set<AbortController>;

/** Everything is read from the message when it is first asked for: most handlers ask for little. */
export class IncomingCall<C extends Rpc> implements Call<C> {
  readonly #arrived = performance.now();
  readonly #contract: C;
  readonly #message: Msg;
  readonly #live: LiveSignals;
  #timeoutMs: number | undefined;
  #traceparent: string | undefined;
  #keys: KeysOf<C> | undefined;
  #controller: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(contract: C, message: Msg, live: LiveSignals) {
    this.#contract = contract;
    this.#message = message;
    this.#live = live;
  }

  get keys(): KeysOf<C> {
    return (this.#keys ??= keysOf<C['subject']>(this.#contract, this.#message.subject));
  }

  remainingMs(): number {
    this.#timeoutMs ??= timeoutOf(this.#message.headers?.get(HEADER.timeout), this.#contract.timeoutMs);
    return Math.max(0, this.#timeoutMs - (performance.now() - this.#arrived));
  }

  get signal(): AbortSignal {
    if (this.#controller !== undefined) return this.#controller.signal;
    const controller = new AbortController();
    this.#controller = controller;
    this.#live.add(controller);
    this.#timer = setTimeout(() => controller.abort(platformFault('TIMEOUT')), this.remainingMs());
    return controller.signal;
  }

  get principal(): Principal | undefined {
    return this.#trusted ? readPrincipal(this.#message.headers, HEADER.principal) : undefined;
  }
  get actor(): Principal | undefined {
    return this.#trusted ? readPrincipal(this.#message.headers, HEADER.actor) : undefined;
  }
  get via(): Via | undefined {
    return this.#trusted ? readVia(this.#message.headers) : undefined;
  }
  get traceparent(): string {
    return (this.#traceparent ??= continueTrace(this.#message.headers?.get(HEADER.traceparent)));
  }
  get traceId(): string {
    return traceIdOf(this.traceparent);
  }
  get startedAt(): Date {
    return new Date(Date.now() - (performance.now() - this.#arrived));
  }

  /** Milliseconds since the request arrived. */
  elapsedMs(): number {
    return performance.now() - this.#arrived;
  }

  /** Lets go of the timer once the answer is sent. */
  end(): void {
    if (this.#controller === undefined) return;
    clearTimeout(this.#timer);
    this.#live.delete(this.#controller);
  }

  get #trusted(): boolean {
    return this.#contract.audience !== 'worker';
  }
}

// Node's timers hold at most a signed 32-bit number of milliseconds.
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

function timeoutOf(header: string | undefined, fallback: number): number {
  if (header === undefined || !/^[0-9]{1,10}$/.test(header)) return fallback;
  return Math.min(Number(header), MAX_TIMEOUT_MS);
}
