import { guardedLookup, requireOpen, type Egress } from '@ambit/egress';
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';

/** A request that is to be sent, as its headers and bytes. */
export interface WebhookRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Sends webhooks: to open addresses alone, without following anybody elsewhere, and without reading more than the status of an answer. */
export class WebhookSender {
  readonly #allows: (address: string) => boolean;
  readonly #withinMs: number;
  readonly #agents;

  constructor(egress: Egress, options: { readonly withinMs: number }) {
    this.#allows = (address) => egress.allows(address);
    this.#withinMs = options.withinMs;
    // One connection a request: a name is resolved, and its address judged, every time.
    const pool = { keepAlive: false, lookup: guardedLookup(this.#allows) };
    this.#agents = { 'http:': new HttpAgent(pool), 'https:': new HttpsAgent(pool) };
  }

  /** Why the receiver did not take it, in a sentence; undefined where it answered 2xx. */
  async send(message: WebhookRequest): Promise<string | undefined> {
    const signal = AbortSignal.timeout(this.#withinMs);
    try {
      const status = await this.#statusOf(message, signal);
      if (status >= 200 && status < 300) return undefined;
      return `it answered ${status}${status >= 300 && status < 400 ? '; redirects are not followed' : ''}`;
    } catch (error) {
      return signal.aborted ? `it did not answer within ${this.#withinMs / 1_000} s` : wordsOf(error);
    }
  }

  #statusOf({ url, headers, body }: WebhookRequest, signal: AbortSignal): Promise<number> {
    return new Promise((fulfil, reject) => {
      const target = new URL(url);
      const protocol = target.protocol === 'https:' ? 'https:' : 'http:';
      requireOpen(target, this.#allows);
      const request = (protocol === 'https:' ? httpsRequest : httpRequest)(target, {
        method: 'POST',
        agent: this.#agents[protocol],
        headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
        signal,
      });
      request.on('error', reject);
      request.on('response', (response) => {
        fulfil(response.statusCode ?? 0);
        // What else it says is not read; cutting it off may be called an error, and is none.
        response.on('error', () => undefined).destroy();
      });
      request.end(body);
    });
  }
}

/** What failed, in words. Where a name has several addresses, Node says nothing but a code of what failed with all of them. */
function wordsOf(error: unknown): string {
  const field = (name: string): unknown => (typeof error === 'object' && error !== null ? Reflect.get(error, name) : undefined);
  return String(field('message') || field('code') || error);
}
