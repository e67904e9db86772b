import type { ServerResponse } from 'node:http';
import type { Json } from '../domain/json-rpc.js';

const KEEP_ALIVE_MS = 15_000;
/** A request that takes longer is answered with a stream, so that whoever stands between sees that it lives. */
const SLOW_MS = 10_000;
/** A client that does not read loses its stream. */
const UNREAD_BYTES = 4 * 1024 * 1024;

/** The answer to one POST: plain JSON, or a stream from the moment that something is told before the end. */
export class Reply {
  #isStream = false;
  #keepAlive: NodeJS.Timeout | undefined;
  readonly #slow: NodeJS.Timeout | undefined;

  constructor(
    private readonly response: ServerResponse,
    /** The client takes a stream. */
    private readonly takesStream: boolean,
    private readonly headers: Readonly<Record<string, string>> = {},
  ) {
    if (takesStream) this.#slow = setTimeout(() => this.stream(), SLOW_MS);
    response.once('close', () => this.#quiet());
  }

  get isOpen(): boolean {
    return !this.response.writableEnded && !this.response.destroyed;
  }

  /** Sends something before the answer; false where the client takes no stream. */
  tell(message: Json): boolean {
    if (!this.takesStream || !this.isOpen) return false;
    this.stream();
    this.#write(message);
    return true;
  }

  /** Begins the stream. */
  stream(): void {
    if (this.#isStream || !this.isOpen) return;
    this.#isStream = true;
    this.response.writeHead(200, {
      ...this.headers,
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
    });
    this.response.flushHeaders();
    this.#keepAlive = setInterval(() => this.response.write(': alive\n\n'), KEEP_ALIVE_MS);
  }

  /** Sends the answer, where there is one, and ends. */
  end(message: Json | undefined, status = 200): void {
    this.#quiet();
    if (!this.isOpen) return;
    if (this.#isStream) {
      if (message !== undefined) this.#write(message);
      this.response.end();
      return;
    }
    const text = message === undefined ? '' : JSON.stringify(message);
    this.response.writeHead(status, {
      ...this.headers,
      ...(message === undefined ? {} : { 'content-type': 'application/json' }),
      'content-length': Buffer.byteLength(text),
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
    this.response.end(text);
  }

  #write(message: Json): void {
    this.response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
    if (this.response.writableLength > UNREAD_BYTES) this.response.destroy();
  }

  #quiet(): void {
    clearTimeout(this.#slow);
    clearInterval(this.#keepAlive);
  }
}
