import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { AuditAppended } from '@ambit/contracts';
import { startPostgres, type TestPostgres } from '@ambit/testing';
import { appendAudit, appendAudits, openDatabase, verifyAudit, type AuditEntry, type Database } from '../src/index.js';

let postgres: TestPostgres;
let database: Database;
beforeAll(async () => {
  postgres = await startPostgres();
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  database = openDatabase({
    url: postgres.url,
    owner: 'skill-store',
    log,
    publish: () => Promise.reject(new Error('unused')),
    isRefusal: () => false,
  });
}, 60_000);
afterAll(async () => {
  await database.close();
  await postgres.stop();
});

const entry = (action: string): AuditEntry => ({
  at: '2030-01-02T03:04:05.000Z',
  actor: { id: 'user:alice', kind: 'person', issuer: 'local', display: 'Alice' },
  principal: null,
  via: { kind: 'token', id: 't' },
  projectId: 'default',
  action,
  target: 'skill:ä "quoted"',
  beforeDigest: null,
  afterDigest: 'a'.repeat(64),
  rule: null,
  reason: null,
  traceId: null,
  retention: 'audit',
});
const append = (action: string): Promise<unknown> =>
  database.client.$transaction((transaction) => appendAudit(transaction, 'skill-store', entry(action)));

it('chains concurrent records without a gap, tells each by the outbox, and finds the chain intact', async () => {
  await Promise.all(Array.from({ length: 8 }, (_, index) => append(`skill.put.${index}`)));
  expect(await verifyAudit(database.client, 'skill-store')).toEqual({ isIntact: true, records: 8 });
  const rows = await database.client.skillOutbox.findMany({ orderBy: { id: 'asc' } });
  const told = rows.flatMap(({ payload }) => AuditAppended.parse(JSON.parse(payload)).records);
  expect(told.map(({ sequence }) => sequence).sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(rows[0]?.subject).toBe('ambit.evt.skill-store.v1.audit.appended');
});

it('tells records that are written together in one event, as far as a message has room', async () => {
  const before = await database.client.skillOutbox.findMany({ select: { id: true } });
  const short = Array.from({ length: 150 }, (_, index) => entry(`many.${index}`));
  const long = Array.from({ length: 60 }, (_, index) => ({ ...entry(`long.${index}`), reason: 'x'.repeat(2_000), rule: 'y'.repeat(500) }));
  await database.client.$transaction((transaction) => appendAudits(transaction, 'skill-store', [...short, ...long]), { timeout: 20_000 });
  const rows = await database.client.skillOutbox.findMany({
    where: { id: { notIn: before.map(({ id }) => id) } },
    orderBy: { id: 'asc' },
  });
  const told = rows.map(({ payload }) => AuditAppended.parse(JSON.parse(payload)).records);
  expect(told[0]).toHaveLength(100);
  expect(told.length).toBeLessThanOrEqual(4);
  expect(told.flat().map(({ action }) => action)).toEqual([...short, ...long].map(({ action }) => action));
  expect(Math.max(...rows.map(({ payload }) => Buffer.byteLength(payload)))).toBeLessThan(512 * 1024);
  expect(await verifyAudit(database.client, 'skill-store')).toEqual({ isIntact: true, records: 218 });
  await database.client.skillAudit.deleteMany({ where: { sequence: { gt: 8n } } });
});

it('writes nothing when the transaction it stands in is undone', async () => {
  const undone = database.client.$transaction(async (transaction) => {
    await appendAudit(transaction, 'skill-store', entry('undone'));
    throw new Error('no');
  });
  await expect(undone).rejects.toThrow('no');
  expect(await verifyAudit(database.client, 'skill-store')).toEqual({ isIntact: true, records: 8 });
});

it('notices a record that was changed, and one that was taken out', async () => {
  const original = await database.client.skillAudit.findUniqueOrThrow({ where: { sequence: 4n } });
  await database.client.skillAudit.update({ where: { sequence: 4n }, data: { record: original.record.replace('alice', 'mallo') } });
  expect(await verifyAudit(database.client, 'skill-store')).toMatchObject({ isIntact: false, brokenAt: 4 });
  await database.client.skillAudit.update({ where: { sequence: 4n }, data: { record: original.record } });
  await database.client.skillAudit.delete({ where: { sequence: 5n } });
  expect(await verifyAudit(database.client, 'skill-store')).toMatchObject({ isIntact: false, brokenAt: 6, problem: 'record 5 is missing' });
});

it('still verifies after old records were swept away by their retention', async () => {
  await database.client.skillAudit.deleteMany({ where: { sequence: { lte: 5n } } });
  expect(await verifyAudit(database.client, 'skill-store')).toEqual({ isIntact: true, records: 3 });
});
