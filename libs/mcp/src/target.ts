import {
  InMemoryTransport,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  type FetchLike,
  type Transport,
} from '@modelcontextprotocol/client';
import { watchStreams } from './http-stream.js';

/**
 * How to reach one server: transports to try in order, each made fresh for every attempt.
 * The second is tried only when the first proves that the server does not speak it (legacy SSE servers answer 404 or 405 to a POST).
 */
export interface ServerTarget {
  readonly kind: 'stdio' | 'http' | 'sse' | 'inmemory';
  readonly transports: readonly [() => Transport, ...(() => Transport)[]];
  /** Known before connecting; skips the version probe. */
  readonly era?: 'legacy';
}

export interface HttpTargetOptions {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: FetchLike;
  /** Speaks only the HTTP+SSE transport of 2024-11-05. @default false */
  readonly isSse?: boolean;
}

/** A server behind a URL: Streamable HTTP, then legacy SSE. A redirect to another origin is refused, so no header ever follows one. */
export function httpTarget(options: HttpTargetOptions): ServerTarget {
  const shared = { fetch: options.fetch, requestInit: { headers: { ...options.headers } } };
  const streamable = (): Transport => {
    const transport = new StreamableHTTPClientTransport(options.url, { ...shared, redirectPolicy: 'same-origin' });
    watchStreams(transport);
    return transport;
  };
  const sse = (): Transport => new SSEClientTransport(options.url, { ...shared, redirectPolicy: 'same-origin' });
  return options.isSse === true ? { kind: 'sse', transports: [sse], era: 'legacy' } : { kind: 'http', transports: [streamable, sse] };
}

/** A server inside this process; `serve` gets the other end of a linked pair. */
export function inMemoryTarget(serve: (transport: Transport) => void): ServerTarget {
  const open = (): Transport => {
    const [near, far] = InMemoryTransport.createLinkedPair();
    serve(far);
    return near;
  };
  return { kind: 'inmemory', transports: [open], era: 'legacy' };
}
