import { platformFault } from '@ambit/contracts';
import { presenceOf } from './presence.js';
import { createInbox, type Msg, type MsgHdrs, type NatsConnection, type Subscription } from '@nats-io/nats-core';

interface Pending {
  readonly resolve: (message: Msg) => void;
  readonly reject: (reason: unknown) => void;
}

export interface RequestOptions {
  readonly headers?: MsgHdrs | undefined;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Nobody subscribes to the subject: the request was not delivered. */
export class NobodyThere extends Error {
  override readonly name = 'NobodyThere';
}

const MAX_PENDING = 65_536;

/** One inbox subscription for every open request; a request ends by its answer, its time, its signal or the connection's end. */
export class Requests {
  readonly #connection: NatsConnection;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #pending = new Map<string, Pending>();
  readonly #presence: ReturnType<typeof presenceOf>;
  #next = 0;

  constructor(connection: NatsConnection, inboxPrefix: string) {
    this.#connection = connection;
    this.#presence = presenceOf(connection);
    this.#inbox = `${createInbox(inboxPrefix)}.`;
    this.#subscription = connection.subscribe(`${this.#inbox}*`, { callback: (error, message) => this.#receive(error, message) });
    void connection
      .closed()
      .then(() =>
        this.#failAll(
          platformFault('TIMEOUT', undefined, 'The connection ended before the answer came; the request may have taken effect'),
        ),
      );
  }

  /** Sends one request. Rejects with NobodyThere, a TIMEOUT fault, or the signal's reason. */
  send(subject: string, data: string, options: RequestOptions): Promise<Msg> {
    if (this.#pending.size >= MAX_PENDING)
      return Promise.reject(platformFault('UNAVAILABLE', undefined, 'Too many requests are open in this process; nothing was sent'));
    const { signal } = options;
    if (signal?.aborted === true) return Promise.reject(signal.reason);
    const token = (this.#next++).toString(36);
    return new Promise<Msg>((resolve, reject) => {
      const onAbort = (): void => settle(() => reject(signal?.reason));
      const timer = setTimeout(() => settle(() => reject(platformFault('TIMEOUT'))), options.timeoutMs);
      const settle = (then: () => void): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        this.#pending.delete(token);
        then();
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#pending.set(token, { resolve: (message) => settle(() => resolve(message)), reject: (reason) => settle(() => reject(reason)) });
      const publish = (): void => {
        try {
          this.#connection.publish(subject, data, {
            reply: this.#inbox + token,
            ...(options.headers === undefined ? {} : { headers: options.headers }),
          });
        } catch (error) {
          settle(() => reject(error));
        }
      };
      const { back } = this.#presence;
      if (back === undefined) publish();
      else void back.then(() => (this.#pending.has(token) ? publish() : undefined));
    });
  }

  close(): void {
    this.#subscription.unsubscribe();
    this.#failAll(platformFault('CANCELLED', undefined, 'The bus was closed before the answer came'));
  }

  #receive(error: Error | null, message: Msg): void {
    if (error !== null) {
      this.#failAll(error);
      return;
    }
    const pending = this.#pending.get(message.subject.slice(this.#inbox.length));
    if (pending === undefined) return;
    if (message.data.length === 0 && message.headers?.code === 503) pending.reject(new NobodyThere('no responders'));
    else pending.resolve(message);
  }

  #failAll(reason: unknown): void {
    for (const pending of [...this.#pending.values()]) pending.reject(reason);
  }
}
