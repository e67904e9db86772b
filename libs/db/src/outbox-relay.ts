import type { StoredMessage } from '@ambit/contracts';
import pg from 'pg';
import { settledChannel, wakeChannel, type OutboxId } from './outbox.js';
import { schemaOf } from './schema-name.js';

/** What the relay needs of a logger; pino's loggers fit. */
export interface RelayLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface OutboxRelayOptions {
  readonly url: string;
  readonly owner: string;
  readonly log: RelayLog;
  /** Publishes one message and gives its position in the stream once that is acknowledged. */
  readonly publish: (message: StoredMessage) => Promise<{ readonly sequence: number }>;
  /** Whether the stream refused this message for good, so that repeating it cannot help. */
  readonly isRefusal: (error: unknown) => boolean;
  /** Days that the owner's audit records are kept. @default for ever */
  readonly keepAuditDays?: number;
}

/** What became of a row: its position in the stream, or why the stream refused it. */
export type Settled = { readonly sequence: number } | { readonly error: string };

interface Row extends StoredMessage {
  readonly id: OutboxId;
}
interface Waiter {
  readonly missing: Set<OutboxId>;
  readonly settled: Map<OutboxId, Settled>;
  readonly resolve: (settled: ReadonlyMap<OutboxId, Settled>) => void;
}

const BATCH = 64;
const POLL_MS = 1_000;
const RETRY_MS = 250;
const SWEEP_MS = 60_000;
const KEEP_SETTLED = '10 minutes';

/**
 * Publishes an owner's outbox in id order. Every replica runs one; an advisory lock on a connection of its own makes one of them
 * active, and the others take over within a second of its death. A crash between publishing and marking publishes again, which
 * the stream drops by message id.
 */
export class OutboxRelay {
  readonly #options: OutboxRelayOptions;
  readonly #schema: string;
  readonly #waiters = new Set<Waiter>();
  readonly #stopping = new AbortController();
  #client: pg.Client | undefined;
  #isActive = false;
  #isWoken = false;
  #wake: () => void = () => undefined;
  #finished: Promise<void> = Promise.resolve();
  #sweptAt = 0;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(options: OutboxRelayOptions) {
    this.#options = options;
    this.#schema = schemaOf(options.owner);
  }

  start(): void {
    this.#finished = this.#run();
  }

  /** Publishes what is committed by now where this replica is the active one, then lets another take over. */
  async close(): Promise<void> {
    this.#stopping.abort();
    this.wake();
    await this.#finished;
  }

  /** Looks for new rows now. A commit elsewhere wakes the relay by itself. */
  wake(): void {
    this.#isWoken = true;
    this.#wake();
  }

  /** Waits until the rows are published, by whichever replica; rejects with the signal's reason, or when a stream refused one. */
  async flushed(ids: readonly OutboxId[], signal: AbortSignal): Promise<ReadonlyMap<OutboxId, number>> {
    const settled = await this.#settled(ids, signal);
    const sequences = new Map<OutboxId, number>();
    for (const [id, outcome] of settled) {
      if ('error' in outcome) throw new Error(`the stream refused outbox row ${id}: ${outcome.error}`);
      sequences.set(id, outcome.sequence);
    }
    return sequences;
  }

  /** Rows that wait and the age of the oldest, in milliseconds. Undefined while Postgres is away. */
  async lag(): Promise<{ readonly rows: number; readonly oldestMs: number } | undefined> {
    const client = this.#client;
    if (client === undefined) return undefined;
    const text = `SELECT count(*) AS rows, extract(epoch FROM now() - min("created_at")) * 1000 AS oldest FROM "${this.#schema}"."outbox" WHERE "settled_at" IS NULL`;
    const result = await this.#query<{ rows: string; oldest: string | null }>(client, text).catch(() => undefined);
    const row = result?.rows[0];
    return row === undefined ? undefined : { rows: Number(row.rows), oldestMs: Math.round(Number(row.oldest ?? 0)) };
  }

  #settled(ids: readonly OutboxId[], signal: AbortSignal): Promise<ReadonlyMap<OutboxId, Settled>> {
    if (ids.length === 0) return Promise.resolve(new Map());
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiters.delete(waiter);
        reject(signal.reason);
      };
      const waiter: Waiter = {
        missing: new Set(ids),
        settled: new Map(),
        resolve: (settled) => {
          signal.removeEventListener('abort', onAbort);
          this.#waiters.delete(waiter);
          resolve(settled);
        },
      };
      if (signal.aborted) return reject(signal.reason);
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiters.add(waiter);
      this.wake();
      // The rows may have been published before anyone waited for them.
      void this.#look();
    });
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      try {
        await this.#connected();
      } catch (error) {
        if (!this.#stopping.signal.aborted)
          this.#options.log.warn({ error, owner: this.#options.owner }, 'the outbox relay lost its connection; connecting again');
      }
      await this.#pause(RETRY_MS);
    }
  }

  async #connected(): Promise<void> {
    const client = new pg.Client({
      connectionString: this.#options.url,
      application_name: `${this.#options.owner} outbox`,
      keepAlive: true,
    });
    const lost = new Promise<never>((_resolve, reject) => {
      // A lost connection may say so more than once.
      client.on('error', reject);
      client.once('end', () => reject(new Error('the connection ended')));
    });
    lost.catch(() => undefined);
    try {
      await client.connect();
      client.on('notification', ({ channel }) => (channel === wakeChannel(this.#options.owner) ? this.wake() : void this.#look()));
      await client.query(`LISTEN ${wakeChannel(this.#options.owner)}; LISTEN ${settledChannel(this.#options.owner)}`);
      this.#client = client;
      // What was asked of the lost connection may never be answered.
      this.#queue = Promise.resolve();
      await Promise.race([this.#relay(client), lost]);
    } finally {
      this.#client = undefined;
      this.#isActive = false;
      await client.end().catch(() => undefined);
    }
  }

  async #relay(client: pg.Client): Promise<void> {
    for (;;) {
      this.#isActive ||= await this.#lock(client);
      this.#isWoken = false;
      const published = this.#isActive ? await this.#publishBatch(client) : 0;
      if (!this.#isActive) await this.#look();
      if (published > 0) continue;
      if (this.#stopping.signal.aborted) return;
      await this.#sweep(client);
      await this.#rest(POLL_MS);
    }
  }

  async #lock(client: pg.Client): Promise<boolean> {
    const { rows } = await this.#query<{ locked: boolean }>(client, `SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS locked`, [
      `ambit.outbox.${this.#schema}`,
    ]);
    return rows[0]?.locked === true;
  }

  /** Publishes up to a batch, stops at the first failure that may pass; gives the number of rows settled. */
  async #publishBatch(client: pg.Client): Promise<number> {
    const { rows } = await this.#query<{
      id: string;
      message_id: string;
      subject: string;
      payload: string;
      headers: Record<string, string>;
    }>(
      client,
      `SELECT "id", "message_id", "subject", "payload", "headers" FROM "${this.#schema}"."outbox" WHERE "settled_at" IS NULL ORDER BY "id" LIMIT ${BATCH}`,
    );
    const settled = new Map<OutboxId, Settled>();
    try {
      for (const together of bySubject(rows.map(({ id, message_id, ...row }) => ({ ...row, id: BigInt(id), messageId: message_id }))))
        await this.#publish(together, settled);
    } catch (error) {
      this.#options.log.warn({ error, owner: this.#options.owner }, 'publishing from the outbox failed; trying again');
      await this.#mark(client, settled);
      await this.#pause(RETRY_MS);
      return settled.size;
    }
    await this.#mark(client, settled);
    return settled.size;
  }

  async #publish(together: readonly Row[], settled: Map<OutboxId, Settled>): Promise<void> {
    const outcomes = await Promise.allSettled(together.map((row) => this.#options.publish(row)));
    for (const [index, outcome] of outcomes.entries()) {
      const row = together[index];
      if (row === undefined) continue;
      if (outcome.status === 'fulfilled') settled.set(row.id, { sequence: outcome.value.sequence });
      else if (this.#options.isRefusal(outcome.reason)) {
        settled.set(row.id, { error: String(outcome.reason) });
        this.#options.log.error(
          { error: outcome.reason, owner: this.#options.owner, id: String(row.id), subject: row.subject },
          'a stream refused a message of the outbox; it is kept with its error',
        );
      } else throw outcome.reason;
    }
  }

  async #mark(client: pg.Client, settled: ReadonlyMap<OutboxId, Settled>): Promise<void> {
    if (settled.size === 0) return;
    const rows = [...settled].map(([id, outcome]) => ({ id: String(id), ...outcome }));
    await this.#query(
      client,
      `WITH done AS (SELECT * FROM jsonb_to_recordset($1::jsonb) AS d("id" bigint, "sequence" bigint, "error" text)), marked AS (
         UPDATE "${this.#schema}"."outbox" o SET "settled_at" = now(), "sequence" = done."sequence", "error" = done."error" FROM done WHERE o."id" = done."id")
       SELECT pg_notify($2, '')`,
      [JSON.stringify(rows), settledChannel(this.#options.owner)],
    );
    this.#tell(settled);
  }

  /** Asks what became of the rows that callers wait for. */
  async #look(): Promise<void> {
    const missing = [...this.#waiters].flatMap((waiter) => [...waiter.missing]);
    const client = this.#client;
    if (missing.length === 0 || client === undefined) return;
    const text = `SELECT "id", "sequence", "error" FROM "${this.#schema}"."outbox" WHERE "id" = ANY($1::bigint[]) AND "settled_at" IS NOT NULL`;
    // A failure here is the connection's, which the main loop notices and mends.
    const result = await this.#query<{ id: string; sequence: string | null; error: string | null }>(client, text, [
      missing.map(String),
    ]).catch(() => undefined);
    const settled = result?.rows.map((row): [OutboxId, Settled] => [
      BigInt(row.id),
      row.error === null ? { sequence: Number(row.sequence) } : { error: row.error },
    ]);
    this.#tell(new Map(settled));
  }

  #tell(settled: ReadonlyMap<OutboxId, Settled>): void {
    for (const waiter of [...this.#waiters]) {
      for (const id of [...waiter.missing]) {
        const outcome = settled.get(id);
        if (outcome === undefined) continue;
        waiter.missing.delete(id);
        waiter.settled.set(id, outcome);
      }
      if (waiter.missing.size === 0) waiter.resolve(waiter.settled);
    }
  }

  async #sweep(client: pg.Client): Promise<void> {
    if (!this.#isActive || performance.now() - this.#sweptAt < SWEEP_MS) return;
    this.#sweptAt = performance.now();
    await this.#query(
      client,
      `DELETE FROM "${this.#schema}"."outbox" WHERE "settled_at" < now() - interval '${KEEP_SETTLED}' AND "error" IS NULL`,
    );
    await this.#trimAudit(client);
  }

  /** From the oldest on and never the newest: what is left is one unbroken chain, and the next record follows it. */
  async #trimAudit(client: pg.Client): Promise<void> {
    const days = this.#options.keepAuditDays ?? 0;
    if (days === 0) return;
    await this.#query(
      client,
      `DELETE FROM "${this.#schema}"."audit" WHERE "sequence" < (
         SELECT coalesce(
           (SELECT "sequence" FROM "${this.#schema}"."audit" WHERE "at" >= now() - $1 * interval '1 day' ORDER BY "sequence" LIMIT 1),
           (SELECT max("sequence") FROM "${this.#schema}"."audit")))`,
      [days],
    );
  }

  /** One query at a time: the connection also serves those who wait and those who measure. */
  #query<T extends pg.QueryResultRow>(client: pg.Client, text: string, values: unknown[] = []): Promise<pg.QueryResult<T>> {
    const result = this.#queue.then(() => client.query<T>(text, values));
    this.#queue = result.catch(() => undefined);
    return result;
  }

  /** What is away now does not come back sooner because somebody waits for it: nothing but the end cuts this short. */
  #pause(ms: number): Promise<void> {
    const { signal } = this.#stopping;
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal.addEventListener('abort', end, { once: true });
    });
  }

  #rest(ms: number): Promise<void> {
    if (this.#isWoken || this.#stopping.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Cuts rows into runs without a repeated subject: two messages of one subject are never on their way at once, so none overtakes. */
function* bySubject(rows: readonly Row[]): Generator<readonly Row[]> {
  let together: Row[] = [];
  const subjects = new Set<string>();
  for (const row of rows) {
    if (subjects.has(row.subject)) {
      yield together;
      together = [];
      subjects.clear();
    }
    together.push(row);
    subjects.add(row.subject);
  }
  if (together.length > 0) yield together;
}
