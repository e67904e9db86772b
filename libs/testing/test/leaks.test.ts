import { subject, toolGateway } from '@ambit/contracts';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { jetstream } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { canary } from '../src/canary.js';
import { searchedLog, searchStored } from '../src/leaks.js';
import { startNats, type TestNats } from '../src/nats.js';
import { watchWire } from '../src/wire.js';

let folder: string;
let nats: TestNats;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ambit-shown-'));
  watchWire(folder);
  nats = await startNats();
}, 120_000);

afterAll(async () => {
  await nats?.stop();
  await rm(folder, { recursive: true, force: true });
});

async function leaks(): Promise<{ where: string; secret: string }[]> {
  const [name = ''] = await readdir(folder);
  const lines = (await readFile(join(folder, name), 'utf8')).trim().split('\n');
  return lines.map((line) => JSON.parse(line)).filter(({ kind }) => kind === 'leak');
}

it('finds a planted secret in events, behind many others, and in a bucket', async () => {
  const told = canary('told');
  const kept = canary('kept');
  const stream = jetstream(nats.connection);
  const event = (operationId: string, text: string): Promise<unknown> =>
    stream.publish(subject(toolGateway.callParked, { operationId }), text);
  for (let index = 0; index < 600; index++) await event(`${index}`, 'nothing');
  await event('last', told);
  const bucket = await new Kvm(nats.connection).open('ambit_mappings');
  await bucket.put('a.b', JSON.stringify({ secret: kept }));
  await searchStored(nats.connection);
  expect(await leaks()).toEqual(
    expect.arrayContaining([
      { kind: 'leak', where: 'the stream AMBIT_EVENTS', secret: told },
      { kind: 'leak', where: 'the stream KV_ambit_mappings', secret: kept },
    ]),
  );
}, 30_000);

it('searches every line of a log and shows those at its level', async () => {
  const said = canary('said');
  searchedLog('a-service', 'fatal').write(`{"level":"info","message":"${said}"}\n`);
  expect(await leaks()).toContainEqual({ kind: 'leak', where: 'the log of a-service', secret: said });
});
