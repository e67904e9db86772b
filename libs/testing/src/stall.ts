import pg from 'pg';
import { until } from './until.js';

const REACHED_MS = 30_000;

/** Holds a place in PostgreSQL, so that whoever comes there waits and can be killed just then. */
export class Stall {
  readonly #client: pg.Client;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  /** Nobody can write to this table from now on, or nobody can read it either. */
  static async table(url: string, table: string, mode: 'SHARE' | 'ACCESS EXCLUSIVE' = 'SHARE'): Promise<Stall> {
    const stall = await Stall.#open(url);
    await stall.#client.query(`BEGIN; LOCK TABLE ${table} IN ${mode} MODE`);
    return stall;
  }

  /** Nothing of this owner's outbox is published from now on. Waits until the relay that does it now has let go: kill it first. */
  static async outbox(url: string, schema: string): Promise<Stall> {
    const stall = await Stall.#open(url);
    await stall.#client.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', [`ambit.outbox.${schema}`]);
    return stall;
  }

  /** Resolves once somebody waits for what is held here; rejects when nobody comes within 30 s. */
  async reached(): Promise<void> {
    await until(async () => {
      const { rowCount } = await this.#client.query(
        'SELECT 1 FROM pg_stat_activity a WHERE pg_backend_pid() = ANY(pg_blocking_pids(a.pid)) LIMIT 1',
      );
      return rowCount === 1;
    }, REACHED_MS);
  }

  async release(): Promise<void> {
    await this.#client.end();
  }

  static async #open(url: string): Promise<Stall> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    return new Stall(client);
  }
}
