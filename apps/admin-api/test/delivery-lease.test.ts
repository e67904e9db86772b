// What webhooks are to be told is claimed in the database: several processes share it, and one that dies loses nothing.
import { randomUUID } from 'node:crypto';
import { openDatabase, type Database } from '@ambit/db';
import { startPostgres, until, withClient, type TestPostgres } from '@ambit/testing';
import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { NotifyRepository } from '../src/notify.repository.js';

let postgres: TestPostgres;
let database: Database;
let deliveries: NotifyRepository;
beforeAll(async () => {
  postgres = await startPostgres();
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const publish = () => Promise.reject(new Error('nothing is published here'));
  database = openDatabase({ url: postgres.url, owner: 'admin-api', log, publish, isRefusal: () => false });
  deliveries = new NotifyRepository(database.client);
}, 120_000);
afterAll(async () => {
  await database?.close();
  await postgres?.stop();
});
beforeEach(async () => {
  await withClient(postgres.url, async (client) => {
    await client.query('DELETE FROM "admin_api"."notify_sink"');
  });
});

/** A webhook with so many things to be told. */
async function webhook(events: number, projectId = 'default'): Promise<string> {
  const sink = {
    id: randomUUID(),
    projectId,
    url: `https://hooks.example/${randomUUID()}`,
    events: ['call.parked'],
    secret: 'key',
    set: null,
  };
  const { id } = await deliveries.put(sink, (target) => ({
    ...{ at: new Date().toISOString(), action: 'notify.put', target, projectId },
    ...{ actor: null, principal: null, via: null, beforeDigest: null, afterDigest: null, rule: null, reason: null, traceId: null },
    retention: 'audit',
  }));
  const at = new Date().toISOString();
  const happened = Array.from({ length: events }, () => ({ event: 'call.parked' as const, about: randomUUID(), projectId, at }));
  expect(await deliveries.add(happened, { found: false })).toBe(events);
  // Hearing of it again is nothing new.
  expect(await deliveries.add(happened, { found: true })).toBe(0);
  return id;
}

const claim = (more: { leaseMs?: number; busy?: readonly string[]; perSink?: number; limit?: number } = {}) =>
  deliveries.claim({ claim: randomUUID(), leaseMs: 60_000, busy: [], perSink: 4, limit: 32, ...more });
const ids = (claimed: Awaited<ReturnType<typeof claim>>): string[] => claimed.map(({ id }) => String(id));

it('is shared by those who ask at once, and nobody gets what another has', async () => {
  await webhook(20);
  const claimed = (await Promise.all(Array.from({ length: 8 }, () => claim()))).flatMap(ids);
  expect(new Set(claimed).size).toBe(claimed.length);
  const rest: string[] = [];
  for (let more = ids(await claim()); more.length > 0; more = ids(await claim())) rest.push(...more);
  expect(new Set([...claimed, ...rest]).size).toBe(20);
});

it('takes a few of each webhook, and none of those that are busy', async () => {
  const [busy, other] = [await webhook(6, 'one'), await webhook(6, 'two')];
  const claimed = await claim({ busy: [busy], perSink: 2 });
  expect(claimed.map(({ sinkId, attempts }) => [sinkId, attempts])).toEqual([
    [other, 1],
    [other, 1],
  ]);
  expect((await claim({ perSink: 3 })).map(({ sinkId }) => sinkId).sort()).toEqual([busy, busy, busy, other, other, other].sort());
});

it('is due again when its lease has lapsed, and what the first then says of it counts for nothing', async () => {
  const sink = await webhook(1);
  const [first] = await claim({ leaseMs: 1 });
  let again: Awaited<ReturnType<typeof claim>> = [];
  await until(async () => (again = await claim()).length > 0);
  const [second] = again;
  if (first === undefined || second === undefined) throw new Error('it was not claimed');
  expect([second.id, second.attempts]).toEqual([first.id, 2]);
  expect(await deliveries.settle(first, { status: 'delivered', error: null })).toBe(false);
  expect(await deliveries.deliveries(sink, { limit: 1 })).toMatchObject([{ status: 'pending', attempts: 2 }]);
  expect(await deliveries.settle(second, { status: 'pending', error: 'HTTP 500', delayMs: 3_600_000 })).toBe(true);
  // Once for each claim, and not before it is due.
  expect(await deliveries.settle(second, { status: 'delivered', error: null })).toBe(false);
  expect(await claim()).toEqual([]);
  expect(await deliveries.deliveries(sink, { limit: 1 })).toMatchObject([{ status: 'pending', lastError: 'HTTP 500', endedAt: null }]);
});
