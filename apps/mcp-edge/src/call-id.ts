import { createHash, randomUUID } from 'node:crypto';
import { CODE, RpcError } from './domain/json-rpc.js';
import { META_KEY } from './domain/protocol.js';
import { metaOf, type Exchange } from './exchange.js';

const digest = (...parts: readonly string[]): string => createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 40);

/**
 * The id under which a call runs at most once. With an idempotency key it is that of every request with the key; with a session, of the request in it;
 * otherwise a fresh one: an id that two clients may both choose names no call.
 */
export function callIdOf(exchange: Pick<Exchange, 'params' | 'clientId' | 'id'>): string {
  const key = metaOf(exchange)[META_KEY.idempotencyKey];
  if (key !== undefined && (typeof key !== 'string' || key.length === 0 || key.length > 200))
    throw new RpcError(CODE.invalidParams, `_meta["${META_KEY.idempotencyKey}"] is a text of 1 to 200 characters`);
  if (typeof key === 'string') return `key-${digest(key)}`;
  const { clientId, id } = exchange;
  return clientId === null ? `call-${randomUUID()}` : `rpc-${digest(clientId, typeof id, String(id))}`;
}
