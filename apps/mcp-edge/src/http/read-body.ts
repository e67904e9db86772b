import type { IncomingMessage } from 'node:http';
import { CODE, RpcError } from '../domain/json-rpc.js';
import { header } from './arrival.js';

/** Arguments of a call travel over the bus, which carries no more than half of this. */
const BODY_BYTES = 1024 * 1024;

/** The body as JSON. Throws what the client is told where it is none, or too large. */
export async function readBody(request: IncomingMessage): Promise<unknown> {
  if (!/^application\/json\b/i.test(header(request, 'content-type') ?? ''))
    throw new RpcError(CODE.refused, 'Send application/json', { status: 415 });
  if (Number(header(request, 'content-length') ?? 0) > BODY_BYTES) throw tooLarge();
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request) {
    // No encoding is set, so there is nothing else.
    if (!Buffer.isBuffer(part)) continue;
    size += part.byteLength;
    if (size > BODY_BYTES) throw tooLarge();
    parts.push(part);
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString('utf8'));
  } catch {
    throw new RpcError(CODE.parse, 'The body is not JSON', { status: 400 });
  }
}

const tooLarge = () =>
  new RpcError(CODE.refused, `A message has at most ${BODY_BYTES} bytes`, { status: 413, data: { limitBytes: BODY_BYTES } });
