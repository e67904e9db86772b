import { guardedLookup, requireOpen } from '@ambit/egress';
import type { FetchLike } from '@modelcontextprotocol/client';
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { TooLargeError } from './outcome.js';

/** The most that one answer of a server, or one event of its streams, may weigh: a result of 32 MiB with what JSON-RPC puts around it. */
export const RESULT_LIMIT_BYTES = 32 * 1024 * 1024 + 64 * 1024;
/** Shorter than the 5 s after which Node servers hang up on an idle connection: a call sent into a closing one has an unknown end. */
const IDLE_SOCKET_MS = 4_000;
const SOCKETS = 256;

export interface EgressOptions {
  /** Whether a connection to this address may be made; asked for the very address that is connected to. */
  readonly allows: (address: string) => boolean;
  /** @default RESULT_LIMIT_BYTES */
  readonly limitBytes?: number;
}

/**
 * A `fetch` on node:http that asks about every address after its name is resolved, so that no name can lead to a forbidden one;
 * bounds what it reads; follows no redirects. Ends with the process: idle sockets do not hold it.
 */
export function egressFetch(options: EgressOptions): FetchLike {
  const limit = options.limitBytes ?? RESULT_LIMIT_BYTES;
  const lookup = guardedLookup(options.allows);
  const pool = { keepAlive: true, timeout: IDLE_SOCKET_MS, maxSockets: SOCKETS, lookup };
  const agents = { 'http:': new HttpAgent(pool), 'https:': new HttpsAgent(pool) };
  return (input, init) =>
    new Promise((fulfil, reject) => {
      const url = new URL(input);
      if (url.protocol !== 'http:' && url.protocol !== 'https:')
        throw new TypeError(`${url.protocol} is no protocol of MCP servers; http and https are`);
      requireOpen(url, options.allows);
      const body = typeof init?.body === 'string' ? init.body : undefined;
      const headers = Object.fromEntries(new Headers(init?.headers));
      if (body !== undefined) headers['content-length'] = String(Buffer.byteLength(body));
      const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
      const request = send(url, {
        method: init?.method ?? 'GET',
        headers,
        agent: agents[url.protocol],
        ...(init?.signal ? { signal: init.signal } : {}),
      });
      request.on('error', reject);
      request.on('response', (message) => {
        answer(message, limit).then(fulfil, reject);
      });
      request.end(body);
    });
}

async function answer(message: IncomingMessage, limit: number): Promise<Response> {
  const headers = new Headers();
  for (const [name, value] of Object.entries(message.headers))
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  const init = { status: message.statusCode ?? 502, statusText: message.statusMessage ?? '', headers };
  if (init.status === 204 || init.status === 205 || init.status === 304) {
    message.resume();
    return new Response(null, init);
  }
  if (headers.get('content-type')?.startsWith('text/event-stream') === true) return new Response(boundedStream(message, limit), init);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of message) {
    const part: unknown = chunk;
    if (!Buffer.isBuffer(part)) continue;
    bytes += part.length;
    if (bytes > limit) throw new TooLargeError(limit);
    chunks.push(part);
  }
  return new Response(Buffer.concat(chunks), init);
}

/** An event stream may go on for days; what is bounded is one event of it. */
function boundedStream(message: IncomingMessage, limit: number): ReadableStream<Uint8Array> {
  let sinceEvent = 0;
  let isOver = false;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      message.on('data', (chunk: Buffer) => {
        if (isOver) return;
        const end = Math.max(chunk.lastIndexOf('\n\n'), chunk.lastIndexOf('\r\n\r\n'));
        sinceEvent = end === -1 ? sinceEvent + chunk.length : chunk.length - end;
        if (sinceEvent > limit) {
          isOver = true;
          controller.error(new TooLargeError(limit));
          message.destroy();
          return;
        }
        controller.enqueue(chunk);
        if ((controller.desiredSize ?? 0) <= 0) message.pause();
      });
      message.once('end', () => {
        if (!isOver) controller.close();
        isOver = true;
      });
      message.on('error', (error) => {
        if (!isOver) controller.error(error);
        isOver = true;
      });
    },
    pull() {
      message.resume();
    },
    cancel() {
      isOver = true;
      message.destroy();
    },
  });
}
