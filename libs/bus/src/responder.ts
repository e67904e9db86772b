import {
  Fault,
  MAX_PAYLOAD_BYTES,
  pattern,
  platformFault,
  type KeysOf,
  type Parsed,
  type Returns,
  type Rpc,
  type SignalContract,
} from '@ambit/contracts';
import type { Msg, NatsConnection, Subscription } from '@nats-io/nats-core';
import type { z } from 'zod';
import { IncomingCall, type Call, type LiveSignals } from './call.js';
import { EndpointStats } from './endpoint-stats.js';
import { incomingSignal, type IncomingSignal } from './incoming-signal.js';
import type { Log } from './log.js';
import { crossing, decodeJson, faultHeaders, issuesOf } from './wire.js';

export type AnswerHandler<C extends Rpc> = (input: Parsed<C>, call: Call<C>) => Promise<Returns<C>> | Returns<C>;
export type SignalHandler<C extends SignalContract> = (payload: z.output<C['payload']>, signal: IncomingSignal<C>) => Promise<void> | void;

export interface SubscribeOptions<C extends { readonly subject: string }> {
  /** Only requests with these keys. @default all */
  readonly keys?: Partial<KeysOf<C>> | undefined;
}

/** Something that goes on until it is closed; closing lets what was taken finish. */
export interface Listening {
  close(): Promise<void>;
}

export interface ResponderOptions {
  readonly connection: NatsConnection;
  readonly log: Log;
  /** @default 512 KiB */
  readonly maxMessageBytes?: number | undefined;
  /** How long a close waits for open answers. @default 60000 */
  readonly drainMs?: number | undefined;
  /** What an error of a library means to callers; undefined where it means nothing to them. */
  readonly meaningOf?: ((error: unknown) => Fault | undefined) | undefined;
  /** Told of every answer: milliseconds, and the fault's code where there was one. */
  readonly onAnswered?: ((contract: Rpc, elapsedMs: number, code: string | undefined) => void) | undefined;
}

// `_R_.` is what the server makes of the reply of a request that comes through another account's import.
const isInbox = (reply: string): boolean => reply.startsWith('_INBOX.') || reply.startsWith('_R_.');

/** Answers requests and hears signals on one connection, and leaves without losing an answer. */
export class Responder {
  readonly endpoints: EndpointStats[] = [];
  readonly #options: ResponderOptions;
  readonly #maxBytes: number;
  readonly #subscriptions = new Set<Subscription>();
  readonly #live: LiveSignals = new Set();
  readonly #waiting: (() => void)[] = [];
  #inFlight = 0;

  constructor(options: ResponderOptions) {
    this.#options = options;
    this.#maxBytes = options.maxMessageBytes ?? MAX_PAYLOAD_BYTES;
  }

  /** Answers a contract's requests in its owner's queue group. */
  answer<C extends Rpc>(contract: C, handler: AnswerHandler<C>, options: SubscribeOptions<C> = {}): Listening {
    const endpoint = new EndpointStats(contract, pattern<C['subject']>(contract, options.keys));
    this.endpoints.push(endpoint);
    const listening = this.#subscribe(endpoint.subject, contract.owner, (message) => {
      // An answer sent to a subject of the asker's choosing would carry our rights.
      if (message.reply === undefined || !isInbox(message.reply)) {
        endpoint.refusedReplies++;
        return;
      }
      void this.#answer(endpoint, handler, message);
    });
    return {
      close: async () => {
        await listening.close();
        this.endpoints.splice(this.endpoints.indexOf(endpoint), 1);
      },
    };
  }

  /** Hears a signal's every message in this process. */
  listen<C extends SignalContract>(contract: C, handler: SignalHandler<C>, options: SubscribeOptions<C> = {}): Listening {
    return this.#subscribe(pattern<C['subject']>(contract, options.keys), undefined, (message) => {
      void this.#hear(contract, handler, message);
    });
  }

  /** Stops taking work and answers what was taken; after the drain time it aborts what is left. */
  async close(): Promise<void> {
    await Promise.all([...this.#subscriptions].map((subscription) => this.#drain(subscription)));
    const drainMs = this.#options.drainMs ?? 60_000;
    const isIdle = await this.#idle(drainMs);
    if (isIdle) return;
    for (const controller of this.#live) controller.abort(platformFault('CANCELLED', undefined, 'The service is shutting down'));
    if (!(await this.#idle(Math.min(1_000, drainMs))))
      this.#options.log.warn({ inFlight: this.#inFlight }, 'left with requests unanswered after the drain time');
  }

  #subscribe(subject: string, queue: string | undefined, receive: (message: Msg) => void): Listening {
    const subscription = this.#options.connection.subscribe(subject, {
      ...(queue === undefined ? {} : { queue }),
      callback: (error, message) => {
        if (error === null) receive(message);
        else this.#options.log.error({ error, subject }, 'the subscription was refused');
      },
    });
    this.#subscriptions.add(subscription);
    return { close: () => this.#drain(subscription) };
  }

  async #drain(subscription: Subscription): Promise<void> {
    this.#subscriptions.delete(subscription);
    if (!subscription.isClosed() && !this.#options.connection.isClosed()) await subscription.drain();
  }

  async #answer(endpoint: EndpointStats, handler: AnswerHandler<Rpc>, message: Msg): Promise<void> {
    const { contract } = endpoint;
    const call = new IncomingCall(contract, message, this.#live);
    this.#inFlight++;
    let code: string | undefined;
    try {
      const output = contract.output.safeParse(await handler(this.#inputOf(contract, message, call), call));
      if (!output.success)
        throw new Error(`the answer to ${contract.subject} has not its contract's shape: ${JSON.stringify(issuesOf(output.error))}`);
      const body = JSON.stringify(output.data) ?? '';
      this.#bound(body.length * 3 > this.#maxBytes ? Buffer.byteLength(body) : 0);
      message.respond(body);
    } catch (error) {
      const fault = this.#faultFor(contract, error, call);
      code = fault.code;
      message.respond(JSON.stringify(fault.toBody()), { headers: faultHeaders(fault) });
    } finally {
      call.end();
      const elapsedMs = call.elapsedMs();
      endpoint.count(elapsedMs, code);
      this.#options.onAnswered?.(contract, elapsedMs, code);
      this.#leave();
    }
  }

  #inputOf(contract: Rpc, message: Msg, call: IncomingCall<Rpc>): unknown {
    this.#bound(message.data.length);
    let json: unknown;
    try {
      json = decodeJson(message.data);
      void call.keys;
    } catch (error) {
      const reason =
        error instanceof SyntaxError ? 'the body is not JSON' : 'the body is not UTF-8, or the subject has a key that is no escaped token';
      throw platformFault('INVALID_INPUT', { issues: [{ path: '', message: reason }] });
    }
    const input = contract.input.safeParse(json);
    if (!input.success) throw platformFault('INVALID_INPUT', { issues: issuesOf(input.error) });
    return input.data;
  }

  #bound(bytes: number): void {
    if (bytes > this.#maxBytes) throw platformFault('TOO_LARGE', { limitBytes: this.#maxBytes, actualBytes: bytes });
  }

  /** The only place where an unknown error becomes INTERNAL: logged here once, and nothing of it told. */
  #faultFor(contract: Rpc, error: unknown, call: IncomingCall<Rpc>): Fault {
    const declared = crossing(contract, this.#options.meaningOf?.(error) ?? error);
    if (declared !== undefined) return declared;
    const { traceId } = call;
    this.#options.log.error({ error, subject: contract.subject, traceId }, 'a request failed');
    return platformFault('INTERNAL', { traceId });
  }

  async #hear<C extends SignalContract>(contract: C, handler: SignalHandler<C>, message: Msg): Promise<void> {
    if (message.data.length > this.#maxBytes) return;
    this.#inFlight++;
    try {
      const payload = contract.payload.safeParse(decodeJson(message.data));
      if (payload.success) await handler(payload.data as z.output<C['payload']>, incomingSignal(contract, message));
      else this.#options.log.debug({ subject: contract.subject, issues: issuesOf(payload.error) }, 'dropped a signal of another shape');
    } catch (error) {
      this.#options.log.error({ error, subject: contract.subject }, 'a signal’s handler failed');
    } finally {
      this.#leave();
    }
  }

  #leave(): void {
    this.#inFlight--;
    if (this.#inFlight === 0) for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Resolves true when nothing is in flight, false after `ms`. */
  #idle(ms: number): Promise<boolean> {
    if (this.#inFlight === 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), ms);
      this.#waiting.push(() => {
        clearTimeout(timer);
        resolve(true);
      });
    });
  }
}
