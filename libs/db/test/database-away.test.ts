import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startPostgres, until, type TestPostgres } from '@ambit/testing';
import pg from 'pg';
import { openDatabase, type Database } from '../src/index.js';

const log = { info: () => undefined, warn: () => undefined, error: () => undefined };

let postgres: TestPostgres;
let database: Database;
let observer: pg.Client;

beforeAll(async () => {
  postgres = await startPostgres();
  const publish = (): Promise<never> => Promise.reject(new Error('nothing is published here'));
  database = openDatabase({ url: postgres.url, owner: 'skill-store', log, publish, isRefusal: () => false });
  observer = new pg.Client({ connectionString: postgres.url });
  await observer.connect();
}, 60_000);
afterAll(async () => {
  await observer.end();
  await database.close();
  await postgres.stop();
});

it('says of a query on a connection that was lost before it that nothing was written, and goes on with another', async () => {
  const lost = database.client.$transaction(async (transaction) => {
    const [own] = await transaction.$queryRawUnsafe<{ pid: number }[]>('SELECT pg_backend_pid() AS pid');
    await observer.query('SELECT pg_terminate_backend($1)', [own?.pid]);
    await until(async () => (await observer.query('SELECT 1 FROM pg_stat_activity WHERE pid = $1', [own?.pid])).rowCount === 0);
    // By the answer to a question that was asked afterwards, its end was told here too.
    await observer.query('SELECT pg_sleep(0.05)');
    await transaction.$queryRawUnsafe('SELECT 1');
  });
  const error: unknown = await lost.catch((reason: unknown) => reason);
  expect(String(error)).toContain('not queryable');
  expect(database.isAway(error)).toBe(true);
  await database.ping();
});

it('says so of a Postgres that takes no connection, and not of a query that is wrong', async () => {
  const wrong: unknown = await database.client.$queryRawUnsafe('SELECT nothing').catch((reason: unknown) => reason);
  expect(database.isAway(wrong)).toBe(false);
  const url = new URL(postgres.url);
  url.port = '1';
  const gone = openDatabase({
    url: url.href,
    owner: 'skill-store',
    log,
    publish: () => Promise.reject(new Error('nothing')),
    isRefusal: () => false,
  });
  const away: unknown = await gone.ping().catch((reason: unknown) => reason);
  expect(database.isAway(away)).toBe(true);
  await gone.close();
});
