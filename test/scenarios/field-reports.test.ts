// What users of other gateways report, with the numbers of their reports, through the edge of a system of replicas.
import { mcpBroker, type ServiceName } from '@ambit/contracts';
import { until } from '@ambit/testing';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { abandonSessions } from '../system/abandoned.js';
import { collectGarbage, INSPECTABLE } from '../system/garbage.js';
import { http } from '../system/http.js';
import { BareClient, type Said } from '../system/mcp-client.js';
import { residentMb } from '../system/processes.js';
import { alice, Scene } from '../system/scene.js';

jest.setTimeout(300_000);
const SESSIONS = 1_000;
const AT_ONCE = 20;
const replicas: Partial<Record<ServiceName, number>> = {
  'mcp-edge': 3,
  'tool-gateway': 2,
  'session-service': 2,
  'mcp-broker': 2,
  'mcp-runner': 2,
};

let scene: Scene;
beforeAll(async () => {
  scene = await Scene.start({ replicas, environment: { AMBIT_DRAIN_MS: '1000', ...INSPECTABLE } });
  await scene.server('one');
});
afterAll(() => scene?.stop());

async function tokenFor(agentId: string): Promise<string> {
  const { body } = await http(scene.system, 'POST /v1/edge-token', { body: { name: 'field', agentId, principal: alice.id } });
  return String(body['token']);
}

/** A client of an agent of its own; of these servers alone where some are named. */
async function clientOf(...servers: readonly { readonly id: string }[]): Promise<{ token: string; client: BareClient }> {
  const agent = await scene.agent(servers.length === 0 ? {} : { servers: servers.map(({ id }) => id) });
  const token = await tokenFor(agent.id);
  return { token, client: await new BareClient(scene.system.edgeUrls, token).open() };
}

const call = (tool: string, values: Readonly<Record<string, unknown>>) => ({ name: `mcp__${tool}`, arguments: values });

/** Does it so often, at most so many at once; results in order. */
async function inTurns<R>(times: number, work: (index: number) => Promise<R>, atOnce = AT_ONCE): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (next < times) {
        const index = next++;
        results[index] = await work(index);
      }
    }),
  );
  return results;
}

it('three replicas, each request to another one, a thousand sessions: no session is unknown, and each call ran once', async () => {
  const { token } = await clientOf();
  const name = randomUUID();
  const answers = await inTurns(SESSIONS, async (index) => {
    const client = await new BareClient(scene.system.edgeUrls, token, index).open();
    const names = await client.toolNames();
    return [names.includes('mcp__one__count'), await client.ask('tools/call', call('one__count', { name }))] as const;
  });
  expect(answers.filter(([isListed, { result, error }]) => !isListed || error !== undefined || result?.['isError'] === true)).toEqual([]);
  expect(await scene.counting.ran('count', name)).toBe(SESSIONS);
});

it('two hundred first calls at once to a server that is not started: it is started once', async () => {
  const put = scene.counting.offering('cold', []);
  const { id } = await scene.bus.call(mcpBroker.putServer, put);
  await scene.bus.call(mcpBroker.testServer, { id });
  const starts = async (): Promise<number> => (await scene.counting.heard('cold')).filter((method) => method === 'initialize').length;
  await scene.bus.call(mcpBroker.putServer, { ...put, enabled: false });
  await scene.bus.call(mcpBroker.putServer, { ...put, enabled: true });
  const { client } = await clientOf({ id });
  await until(async () => (await client.toolNames()).length > 0);
  const before = await starts();
  const name = randomUUID();
  const answers = await Promise.all(Array.from({ length: 200 }, () => client.ask('tools/call', call('cold__count', { name }))));
  expect(answers.filter(({ result, error }) => error !== undefined || result?.['isError'] === true)).toEqual([]);
  expect(await scene.counting.ran('count', name)).toBe(200);
  expect((await starts()) - before).toBeLessThanOrEqual(1);
});

it('one of many servers takes 25 s to answer: nobody waits for it, and it is said that it is not there yet', async () => {
  const { client, token } = await clientOf();
  const took = (): Promise<number[]> =>
    inTurns(60, async (index) => {
      const began = performance.now();
      await (await new BareClient(scene.system.edgeUrls, token, index).open()).toolNames();
      return performance.now() - began;
    });
  await took();
  const before = p99(await took());
  const { transport } = scene.counting.server('sleepy');
  if (transport.type !== 'stdio') throw new Error('counting servers are programs');
  const sleepy = await scene.bus.call(mcpBroker.putServer, {
    slug: 'sleepy',
    transport: { ...transport, command: '/bin/sh', args: ['-c', `sleep 25; exec "$0" "$@"`, process.execPath, ...(transport.args ?? [])] },
  });
  const after = p99(await took());
  // Noise is no wait of 25 s.
  expect(after).toBeLessThan(Math.max(before * 3, 1_000));
  expect((await client.toolNames()).some((name) => name.startsWith('mcp__sleepy__'))).toBe(false);
  expect(await scene.bus.call(mcpBroker.getServer, { id: sleepy.id })).not.toMatchObject({ state: 'connected' });
  await scene.bus.call(mcpBroker.deleteServer, { id: sleepy.id });
});

it('a changed list reaches the sessions of every replica within a second; a hundred changes in one second are few notices, and none where nothing changed', async () => {
  const { id } = await scene.bus.call(mcpBroker.putServer, scene.counting.offering('flapping', ['flap']));
  await scene.bus.call(mcpBroker.testServer, { id });
  const { token, client } = await clientOf({ id });
  const listening = new AbortController();
  const heard: Said[][] = await Promise.all(
    scene.system.edgeUrls.map(async (url) => {
      const said: Said[] = [];
      const listener = await new BareClient([url], token).open();
      await listener.toolNames();
      await listener.listen((one) => said.push(one), listening.signal);
      return said;
    }),
  );
  const notices = (): number[] => heard.map((said) => said.filter(({ method }) => method === 'notifications/tools/list_changed').length);
  const flap = (values: { name: string; bytes: number; ms: number }) => client.ask('tools/call', call('flapping__flap', values));

  const changedAt = performance.now();
  await flap({ name: 'added', bytes: 1, ms: 1 });
  await until(() => notices().every((count) => count >= 1));
  expect(performance.now() - changedAt).toBeLessThan(1_000);
  for (const url of scene.system.edgeUrls)
    expect(await (await new BareClient([url], token).open()).toolNames()).toContain('mcp__flapping__added');

  const before = notices();
  const began = performance.now();
  await flap({ name: 'added', bytes: 101, ms: 1_000 });
  const took = performance.now() - began;
  await until(async () => !(await client.toolNames()).includes('mcp__flapping__added'));
  await pause(1_500);
  const flapped = notices().map((count, index) => count - (before[index] ?? 0));
  // The machine may take longer than the second.
  expect(Math.max(...flapped)).toBeLessThanOrEqual(1 + Math.ceil(took / 1_000));

  const settled = notices();
  await flap({ name: 'brief', bytes: 2, ms: 2 });
  await pause(1_500);
  expect(notices()).toEqual(settled);
  listening.abort();
});

it('a cancel that comes to another replica reaches the server within 100 ms, and its place is free', async () => {
  const { id } = await scene.bus.call(mcpBroker.putServer, scene.counting.offering('long', []));
  await scene.bus.call(mcpBroker.testServer, { id });
  const { client } = await clientOf({ id });
  const cancels = async (): Promise<number> =>
    (await scene.counting.heard('long')).filter((method) => method === 'notifications/cancelled').length;
  const took: number[] = [];
  // A busy machine is late now and then; the way itself is not.
  for (let round = 0; round < 20 && !took.some((ms) => ms < 100); round++) {
    const name = randomUUID();
    const held = client.ask('tools/call', call('long__hold', { name }), 1_000 + round).catch((error: unknown) => error);
    await scene.counting.held(name);
    const before = await cancels();
    const began = performance.now();
    await client.tell('notifications/cancelled', { requestId: 1_000 + round, reason: 'enough' });
    while ((await cancels()) === before && performance.now() - began < 5_000) await pause(2);
    took.push(performance.now() - began);
    scene.counting.release(name);
    await held;
  }
  expect(Math.min(...took)).toBeLessThan(100);
  expect(Math.max(...took)).toBeLessThan(1_000);
});

it('ten thousand sessions that their clients abandon, some of them with a stream, cost the edge no memory', async () => {
  const { token } = await clientOf();
  const edges = scene.system.edgeUrls.map((_url, index) => scene.system.process('mcp-edge', index + 1));
  const megabytes = async (): Promise<number> => {
    await Promise.all(edges.map(collectGarbage));
    return residentMb(edges.map(({ pid }) => pid));
  };
  // What the processes grow to with any such load, however little of it.
  await abandonSessions(scene.system.edgeUrls, token, 1_000);
  const before = await megabytes();
  await abandonSessions(scene.system.edgeUrls, token, 10_000);
  // The edge hears of the streams' ends on its own time.
  await until(async () => (await megabytes()) < before * 1.1);
});

it('each service is restarted in turn while calls go on: none of them fails', async () => {
  const { client } = await clientOf();
  const name = randomUUID();
  let isOver = false;
  let made = 0;
  const failed: unknown[] = [];
  const load = Promise.all(
    Array.from({ length: 4 }, async () => {
      while (!isOver) {
        made += 1;
        const said = await client.ask('tools/call', call('one__count', { name })).catch((error: Error) => ({
          error: `${error.message} ${String((error.cause as { code?: string } | undefined)?.code)} ${String(error.cause)}`,
          result: undefined,
        }));
        if (said.error !== undefined || said.result?.['isError'] === true) failed.push(said.error ?? said.result);
      }
    }),
  );
  for (const [service, count] of Object.entries(replicas) as [ServiceName, number][])
    // Of those that share a queue one stands for the others.
    for (let replica = 1; replica <= (service === 'mcp-edge' ? count : 1); replica++) {
      const process = scene.system.process(service, replica);
      // What spreads requests hears of it when readiness ends, before the process does.
      if (service === 'mcp-edge') client.without(replica - 1);
      await process.stop();
      await process.start();
      client.without(undefined);
    }
  isOver = true;
  await load;
  expect([...new Set(failed.map(String))]).toEqual([]);
  expect(made).toBeGreaterThan(50);
  expect(await scene.counting.ran('count', name)).toBe(made);
});

function p99(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length * 0.99)] ?? 0;
}
