import type { AuditRecord } from '@ambit/contracts';
import pg from 'pg';
import { schemaOf } from './schema-name.js';

/** Where an owner's audit chain ends in this database. */
export interface ChainEnd {
  readonly sequence: number;
  /** Milliseconds since 1970; 0 for an empty chain. */
  readonly atMs: number;
}

/** Reads the end of each owner's audit chain. */
export function chainEnds(databaseUrl: string, owners: readonly string[]): Promise<ReadonlyMap<string, ChainEnd>> {
  return connected(databaseUrl, async (client) => {
    const ends = new Map<string, ChainEnd>();
    for (const owner of owners) {
      const { rows } = await client.query<{ sequence: string; at: Date }>(
        `SELECT "sequence", "at" FROM "${schemaOf(owner)}"."audit" ORDER BY "sequence" DESC LIMIT 1`,
      );
      ends.set(owner, { sequence: Number(rows[0]?.sequence ?? 0), atMs: rows[0]?.at.getTime() ?? 0 });
    }
    return ends;
  });
}

/** Keeps records that a restored database has never seen, for admin-api to go through; the same one twice is one. */
export function keepLostRecords(databaseUrl: string, records: readonly AuditRecord[]): Promise<void> {
  return connected(databaseUrl, async (client) => {
    await client.query(
      `INSERT INTO "admin_api"."lost_record" ("owner", "sequence", "record")
       SELECT r->>'owner', (r->>'sequence')::bigint, r FROM jsonb_array_elements($1::jsonb) AS r ON CONFLICT DO NOTHING`,
      [JSON.stringify(records)],
    );
  });
}

async function connected<T>(databaseUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: 'ambit init' });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
