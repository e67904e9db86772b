import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { buckets, pattern, platformFault, streams } from '@ambit/contracts';
import { startNats, type TestNats } from '@ambit/testing';
import { AckPolicy, jetstreamManager } from '@nats-io/jetstream';
import { ensureStreams, isRefusedByStream, silentLog, verifyStreams, Workers } from '../src/index.js';
import { notes } from './fixture.js';

let nats: TestNats;
let workers: Workers;
const poison: string[] = [];

beforeAll(async () => {
  nats = await startNats();
  workers = new Workers(nats.connection, { ...silentLog, error: (_fields, message) => void poison.push(message) });
});
afterEach(() => workers.close());
afterAll(() => nats.stop());

const note = (id: string): { id: string; text: string } => ({ id, text: '' });
const inFolder = (folder: string): readonly string[] => [pattern(notes.noteWritten, { folder })];

/** Resolves with the first `count` things that were added. */
function heard<T>(count: number): { add(one: T): void; readonly all: Promise<readonly T[]> } {
  const list: T[] = [];
  let done: (all: readonly T[]) => void = () => undefined;
  const all = new Promise<readonly T[]>((resolve) => (done = resolve));
  return { all, add: (one) => void (list.push(one) === count && done(list)) };
}

it('keeps events for a listener that was away, in order, by key', async () => {
  for (const id of ['1', '2', '3']) await nats.bus.emit(notes.noteWritten, note(id), { keys: { folder: 'order' } });
  await nats.bus.emit(notes.noteWritten, note('other'), { keys: { folder: 'elsewhere' } });
  const seen = heard<string>(3);
  await workers.consume(notes.noteWritten, ({ id }, { keys }) => seen.add(`${keys.folder}/${id}`), {
    durable: 'a--note-written',
    filters: inFolder('order'),
  });
  expect(await seen.all).toEqual(['order/1', 'order/2', 'order/3']);
});

it('sends CloudEvents attributes, and stores an event with one id once', async () => {
  const first = await nats.bus.emit(notes.noteWritten, note('1'), { keys: { folder: 'twice' }, id: 'event-1' });
  const second = await nats.bus.emit(notes.noteWritten, note('1'), { keys: { folder: 'twice' }, id: 'event-1' });
  expect(second).toMatchObject({ sequence: first.sequence, duplicate: true });
  const manager = await jetstreamManager(nats.connection);
  const stored = await manager.streams.getMessage(streams.events.name, { seq: first.sequence });
  expect(stored?.header.get('ce-id')).toBe('event-1');
  expect(stored?.header.get('ce-type')).toBe('ambit.evt.notes.v1.note.written');
  expect(stored?.header.get('ce-source')).toBe('/ambit/notes');
});

it('delivers again what a handler failed on, and acknowledges only after it returned', async () => {
  await nats.bus.emit(notes.noteWritten, note('again'), { keys: { folder: 'again' } });
  const deliveries = heard<number>(2);
  await workers.consume(
    notes.noteWritten,
    (_payload, delivery) => {
      deliveries.add(delivery.deliveries);
      if (delivery.deliveries === 1) throw new Error('not yet');
    },
    { durable: 'b--note-written', filters: inFolder('again') },
  );
  expect(await deliveries.all).toEqual([1, 2]);
});

it('gives a message up after its last delivery, says so, and goes on', async () => {
  for (const id of ['bad', 'good']) await nats.bus.emit(notes.noteWritten, note(id), { keys: { folder: 'poison' } });
  const seen = heard<string>(1);
  poison.length = 0;
  await workers.consume(
    notes.noteWritten,
    ({ id }) => {
      if (id === 'bad') throw new Error('never');
      seen.add(id);
    },
    { durable: 'c--note-written', filters: inFolder('poison'), maxDeliveries: 1 },
  );
  expect(await seen.all).toEqual(['good']);
  expect(poison).toEqual(['gave a message up']);
});

it('gives no message up because what it needs is away', async () => {
  await nats.bus.emit(notes.noteWritten, note('patient'), { keys: { folder: 'away' } });
  const deliveries = heard<number>(4);
  poison.length = 0;
  const away = new Error('as a library says it');
  const patient = new Workers(nats.connection, { ...silentLog, error: (_fields, message) => void poison.push(message) }, (error) =>
    error === away ? platformFault('UNAVAILABLE') : undefined,
  );
  await patient.consume(
    notes.noteWritten,
    (_payload, delivery) => {
      deliveries.add(delivery.deliveries);
      if (delivery.deliveries === 1) throw platformFault('TIMEOUT');
      if (delivery.deliveries < 4) throw away;
    },
    { durable: 'away--note-written', filters: inFolder('away'), maxDeliveries: 1 },
  );
  expect(await deliveries.all).toEqual([1, 2, 3, 4]);
  expect(poison).toEqual([]);
  await patient.close();
});

it('goes on with the durable of an older version, whatever that had settled', async () => {
  const manager = await jetstreamManager(nats.connection);
  const [filter] = inFolder('older');
  await manager.consumers.add(streams.events.name, {
    ...{
      durable_name: 'older--note-written',
      ack_policy: AckPolicy.Explicit,
      max_deliver: 2,
      filter_subjects: filter === undefined ? [] : [filter],
    },
  });
  await nats.bus.emit(notes.noteWritten, note('kept'), { keys: { folder: 'older' } });
  const seen = heard<string>(1);
  await workers.consume(notes.noteWritten, ({ id }) => seen.add(id), { durable: 'older--note-written', filters: inFolder('older') });
  expect(await seen.all).toEqual(['kept']);
});

it('never hands a handler a stored message of another shape', async () => {
  await nats.connection.request(pattern(notes.noteWritten, { folder: 'shape' }), '{"id":1}');
  await nats.bus.emit(notes.noteWritten, note('whole'), { keys: { folder: 'shape' } });
  const seen = heard<string>(1);
  await workers.consume(notes.noteWritten, ({ id }) => seen.add(id), { durable: 'd--note-written', filters: inFolder('shape') });
  expect(await seen.all).toEqual(['whole']);
});

it('hands each job to one worker and removes it when done', async () => {
  const other = new Workers(nats.connection, silentLog);
  const done = heard<string>(20);
  for (const pool of [workers, other])
    await pool.consume(notes.print, ({ id }) => done.add(id), { durable: 'printer', filters: [pattern(notes.print)], concurrency: 4 });
  const ids = Array.from({ length: 20 }, (_, index) => String(index));
  await Promise.all(ids.map((id) => nats.bus.enqueue(notes.print, note(id), { keys: { sessionId: 's' }, id: `job-${id}` })));
  expect([...(await done.all)].sort()).toEqual([...ids].sort());
  await other.close();
  await workers.close();
  await nats.connection.flush();
  const manager = await jetstreamManager(nats.connection);
  expect((await manager.streams.info(streams.deferred.name)).state.messages).toBe(0);
});

it('lets a handler finish before it closes', async () => {
  await nats.bus.emit(notes.noteWritten, note('slow'), { keys: { folder: 'slow' } });
  let finish: () => void = () => undefined;
  let isDone = false;
  const begun = heard<true>(1);
  await workers.consume(
    notes.noteWritten,
    async () => {
      begun.add(true);
      await new Promise<void>((resolve) => (finish = resolve));
      isDone = true;
    },
    { durable: 'e--note-written', filters: inFolder('slow') },
  );
  await begun.all;
  const closed = workers.close();
  finish();
  await closed;
  expect(isDone).toBe(true);
});

it('makes streams and buckets as declared, twice over, and names what is missing or different', async () => {
  const declared = [...Object.values(streams), ...Object.values(buckets)];
  await ensureStreams(nats.connection, declared);
  await verifyStreams(nats.connection, declared);
  const other = { ...buckets.epochs, name: 'ambit_other' };
  const changed = { ...streams.runs, maxBytes: 1_000_000 };
  await expect(verifyStreams(nats.connection, [other, changed])).rejects.toThrow(
    /ambit_other does not exist\n- AMBIT_RUNS differs in max_bytes/,
  );
  await ensureStreams(nats.connection, [changed]);
  await verifyStreams(nats.connection, [changed]);
});

it('tells a refusal that stands from one that passes', async () => {
  const fact = { subject: 'ambit.jrn.v1.op.a.b.claim', payload: '{}', headers: {}, messageId: '1' };
  await nats.bus.store(fact);
  const refused = await nats.bus.store({ ...fact, messageId: '2' }).catch((error: unknown) => error);
  expect(isRefusedByStream(refused)).toBe(true);
  expect(isRefusedByStream(new Error('timeout'))).toBe(false);
  const rolled = await nats.bus.store({ ...fact, messageId: '3', headers: { 'Nats-Rollup': 'sub' } });
  expect(rolled.duplicate).toBe(false);
});
