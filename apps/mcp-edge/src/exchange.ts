import type { ClientAbilities } from './domain/client-session.js';
import type { Json, RequestId } from './domain/json-rpc.js';
import type { Naming } from './domain/shown-tools.js';
import type { Caller } from './edge-tokens.service.js';

/** One request of a client, of whatever revision, and what may be done about it before its answer. */
export interface Exchange {
  readonly caller: Caller;
  readonly naming: Naming;
  readonly era: 'legacy' | 'modern';
  readonly id: RequestId;
  readonly method: string;
  readonly params: Json;
  /** Of the revisions with sessions: the client among those of its token. */
  readonly clientId: string | null;
  readonly can: ClientAbilities;
  /** Aborts when the client cancels, or is gone where that means the same. */
  readonly signal: AbortSignal;
  /** Sends a notification or a request ahead of the answer; false where the client takes no stream. */
  tell(message: Json): boolean;
}

/** What a request says beside its parameters. */
export function metaOf({ params }: Pick<Exchange, 'params'>): Json {
  const meta = params['_meta'];
  return typeof meta === 'object' && meta !== null && !Array.isArray(meta) ? { ...meta } : {};
}
