import type { StoredMessage } from '@ambit/contracts';
import type { RawSql } from './raw-sql.js';
import { schemaOf } from './schema-name.js';

/** Position of a row in its owner's outbox; the relay publishes in this order. */
export type OutboxId = bigint;

/** The channel on which a commit wakes the relay. */
export const wakeChannel = (owner: string): string => `ambit_outbox_${schemaOf(owner)}`;
/** The channel on which the active relay tells that rows are settled. */
export const settledChannel = (owner: string): string => `${wakeChannel(owner)}_settled`;

/** Adds messages to the owner's outbox inside the transaction whose facts they tell; gives the rows' ids, in order. */
export async function addToOutbox(transaction: RawSql, owner: string, messages: readonly StoredMessage[]): Promise<OutboxId[]> {
  if (messages.length === 0) return [];
  const rows = await transaction.$queryRawUnsafe<{ id: bigint }[]>(
    `INSERT INTO "${schemaOf(owner)}"."outbox" ("message_id", "subject", "payload", "headers")
     SELECT m->>'messageId', m->>'subject', m->>'payload', m->'headers' FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS e(m, n) ORDER BY n
     RETURNING "id"`,
    JSON.stringify(messages),
  );
  await transaction.$executeRawUnsafe(`SELECT pg_notify($1, '')`, wakeChannel(owner));
  return rows.map(({ id }) => id);
}
