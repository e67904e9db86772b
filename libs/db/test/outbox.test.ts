import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import type { StoredMessage } from '@ambit/contracts';
import { startPostgres, type TestPostgres } from '@ambit/testing';
import pg from 'pg';
import { addToOutbox, openDatabase, OutboxRelay, type Database, type OutboxId } from '../src/index.js';

const OWNER = 'skill-store';
const log = { info: () => undefined, warn: () => undefined, error: () => undefined };

let postgres: TestPostgres;
let database: Database;
let relays: OutboxRelay[] = [];

beforeAll(async () => {
  postgres = await startPostgres();
}, 60_000);
afterAll(() => postgres.stop());
beforeEach(() => {
  // This one never publishes: it is never started.
  database = openDatabase({
    url: postgres.url,
    owner: OWNER,
    log,
    publish: () => Promise.reject(new Error('not started')),
    isRefusal: () => false,
  });
});
afterEach(async () => {
  await Promise.all(relays.map((relay) => relay.close()));
  relays = [];
  await database.client.$executeRawUnsafe('DELETE FROM "skill_store"."outbox"');
  await database.close();
});

interface Published {
  readonly subjects: string[];
  /** Throws or waits before a message counts as published. */
  before: (message: StoredMessage) => Promise<void> | void;
}

function relay(published: Published): OutboxRelay {
  let sequence = 0;
  const made = new OutboxRelay({
    url: postgres.url,
    owner: OWNER,
    log,
    isRefusal: (error) => error instanceof TypeError,
    publish: async (message) => {
      await published.before(message);
      published.subjects.push(message.subject);
      return { sequence: ++sequence };
    },
  });
  relays.push(made);
  made.start();
  return made;
}

let made = 0;
const message = (subject: string): StoredMessage => ({
  subject,
  payload: '{"a":1}',
  headers: { 'Nats-Rollup': 'sub' },
  messageId: `m-${made++}`,
});
const add = (...subjects: string[]): Promise<OutboxId[]> =>
  database.client.$transaction((transaction) => addToOutbox(transaction, OWNER, subjects.map(message)));
const soon = (): AbortSignal => AbortSignal.timeout(10_000);

it('publishes what a transaction committed, in order, and tells where it stands', async () => {
  const published: Published = { subjects: [], before: () => undefined };
  const one = relay(published);
  const ids = await add('s.1', 's.1', 's.2', 's.1', 's.3');
  const sequences = await one.flushed(ids, soon());
  expect(published.subjects).toEqual(['s.1', 's.1', 's.2', 's.1', 's.3']);
  expect([...sequences.values()].sort()).toEqual([1, 2, 3, 4, 5]);
  expect(await one.lag()).toEqual({ rows: 0, oldestMs: 0 });
});

it('publishes nothing of a transaction that was rolled back', async () => {
  const published: Published = { subjects: [], before: () => undefined };
  const one = relay(published);
  const undone = database.client.$transaction(async (transaction) => {
    await addToOutbox(transaction, OWNER, [message('undone')]);
    throw new Error('no');
  });
  await expect(undone).rejects.toThrow('no');
  await one.flushed(await add('kept'), soon());
  expect(published.subjects).toEqual(['kept']);
});

it('repeats in order what could not be published, without letting a later one of its subject overtake', async () => {
  let failures = 2;
  const published: Published = {
    subjects: [],
    before: ({ subject }) => {
      if (subject === 's.a' && failures-- > 0) throw new Error('NATS is away');
    },
  };
  const one = relay(published);
  const ids = await add('s.a', 's.a', 's.b');
  await one.flushed(ids, soon());
  expect(published.subjects.filter((subject) => subject === 's.a')).toHaveLength(2);
  expect(published.subjects).toContain('s.b');
});

it('sets a message aside that the stream refuses for good, tells who waits, and goes on', async () => {
  const published: Published = {
    subjects: [],
    before: ({ subject }) => {
      if (subject === 'refused') throw new TypeError('too large');
    },
  };
  const one = relay(published);
  const [refused, good] = await add('refused', 'good');
  await expect(one.flushed(refused === undefined ? [] : [refused], soon())).rejects.toThrow(/refused outbox row \d+: TypeError: too large/);
  await one.flushed(good === undefined ? [] : [good], soon());
  expect(published.subjects).toEqual(['good']);
});

it('has one active relay, and another takes over after its connection died between publishing and marking', async () => {
  let died: () => void = () => undefined;
  const dead = new Promise<void>((resolve) => (died = resolve));
  const first: Published = {
    subjects: [],
    before: async () => {
      await killRelays();
      died();
    },
  };
  relay(first);
  const ids = await add('once');
  await dead;
  const second: Published = { subjects: [], before: () => undefined };
  const survivor = relay(second);
  first.before = () => undefined;
  await survivor.flushed(ids, soon());
  // At least once: the stream drops the repetition by its message id.
  expect(new Set([...first.subjects, ...second.subjects])).toEqual(new Set(['once']));
});

it('lets a replica wait for what another replica publishes', async () => {
  const published: Published = { subjects: [], before: () => undefined };
  const active = relay(published);
  await active.flushed(await add('first'), soon());
  const idle: Published = { subjects: [], before: () => undefined };
  const waiting = relay(idle);
  await waiting.flushed(await add('second'), soon());
  expect(published.subjects).toEqual(['first', 'second']);
  expect(idle.subjects).toEqual([]);
});

it('asks a Postgres that is away at its own pace, however many wait for it', async () => {
  let failures = 0;
  const url = new URL(postgres.url);
  url.port = '1';
  const options = { owner: OWNER, isRefusal: () => false, publish: () => Promise.reject(new Error('nothing is there to publish')) };
  const one = new OutboxRelay({ ...options, url: url.href, log: { ...log, warn: () => void failures++ } });
  relays.push(one);
  one.start();
  const waiting = Array.from({ length: 50 }, () => one.flushed([1n], AbortSignal.timeout(1_000)));
  await Promise.allSettled(waiting);
  expect(failures).toBeGreaterThanOrEqual(1);
  expect(failures).toBeLessThanOrEqual(5);
});

it('stops waiting when the signal aborts', async () => {
  const one = relay({ subjects: [], before: () => new Promise((_resolve, reject) => setTimeout(() => reject(new Error('slow')), 200)) });
  const abort = new AbortController();
  const waiting = one.flushed(await add('slow'), abort.signal);
  abort.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
});

async function killRelays(): Promise<void> {
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  await client.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'skill-store outbox' AND datname = current_database()",
  );
  await client.end();
}
