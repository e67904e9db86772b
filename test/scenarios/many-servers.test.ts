// Many servers at once behind one broker and one runner: real ones from npm, of which nothing is left once they are stopped, and a hundred that are there at a cold start.
import { mcpBroker, type Input, type Output } from '@ambit/contracts';
import { freePort, startGuarded, type GuardedProcess } from '@ambit/embedded';
import { until } from '@ambit/testing';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Counting } from '../system/counting.js';
import { failing, npmServers, type Calls, type NpmServer } from '../system/npm-servers.js';
import { descendantsOf, processesWith, residentMb } from '../system/processes.js';
import { startSystem, type System } from '../system/system.js';

jest.setTimeout(180_000);
const MARK = `AMBIT_TEST_MARK=${randomUUID()}`;
const SLOW = { timeoutMs: 120_000 };
/** What a runner starts at once where nobody says otherwise. */
const AT_ONCE = 4;
type Server = Output<typeof mcpBroker.getServer>;

let system: System;
let folder: string;
let runner: number;
let belowBefore: number;
const elsewhere: GuardedProcess[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ambit-many-servers-'));
  system = await startSystem({ services: ['mcp-broker', 'mcp-runner'], environment: { AMBIT_RUNNER_CHILD_USER: 'same' } });
  runner = system.process('mcp-runner').pid;
  belowBefore = descendantsOf(runner).length;
});
afterAll(async () => {
  await Promise.all(elsewhere.map((one) => one.stop()));
  await system?.stop();
  await rm(folder, { recursive: true, force: true });
});

const ownFolder = (slug: string): string => join(folder, slug);
const ours = (): number[] => [runner, ...descendantsOf(runner), system.process('mcp-broker').pid];

type Started = Omit<NpmServer, 'protocol' | 'tools' | 'tries'>;
async function transportOf(
  slug: string,
  { program, args = [], env = {}, over }: Started,
): Promise<Input<typeof mcpBroker.putServer>['transport']> {
  await mkdir(ownFolder(slug));
  const fill = (text: string): string => text.replace('${FOLDER}', ownFolder(slug));
  const filled = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, fill(value)]));
  if (over === undefined) {
    const [name = '', value = ''] = MARK.split('=');
    return { type: 'stdio', command: process.execPath, args: [program, ...args.map(fill)], env: { ...filled, [name]: value } };
  }
  const port = await freePort();
  const remote = startGuarded({ command: process.execPath, args: [program, ...args], env: { PATH: process.env.PATH, PORT: String(port) } });
  elsewhere.push(remote);
  await until(() => remote.lastOutput().includes(String(port)), 30_000);
  return { type: over, url: `http://127.0.0.1:${port}/${over === 'http' ? 'mcp' : 'sse'}` };
}

async function start(slug: string, of: Started): Promise<Server> {
  const { id } = await system.bus.call(mcpBroker.putServer, { slug, transport: await transportOf(slug, of) });
  return system.bus.call(mcpBroker.testServer, { id }, SLOW);
}

/** Switches them off, and waits until no process is left of them: theirs, their guards', or one that they started. */
async function stopAll(servers: readonly Server[]): Promise<void> {
  await Promise.all(servers.map(({ id }) => system.bus.call(mcpBroker.switchServer, { id, on: false }, SLOW)));
  await until(() => processesWith(MARK).length === 0 && descendantsOf(runner).length === belowBefore, 30_000);
}

function callsOf({ id: serverId, configGeneration, bindingHash }: Server): Calls {
  return async (tool, values = {}) => {
    const pin = { configGeneration, bindingHash };
    const { instanceId, leaseRevision } = await system.bus.call(
      mcpBroker.ensureInstance,
      { ...pin, agentId: 'guide', sessionId: randomUUID() },
      { keys: { serverId }, ...SLOW },
    );
    const { result = {} } = await system.bus.call(
      mcpBroker.executeCall,
      {
        ...{ serverId, ...pin, leaseRevision, tool, arguments: values },
        ...{ operationId: randomBytes(32).toString('hex'), gatewayId: randomUUID(), callTimeoutMs: 60_000 },
      },
      { keys: { instanceId }, ...SLOW },
    );
    const content = result['content'] as readonly { readonly text?: string }[] | undefined;
    return { result, words: (content ?? []).map(({ text }) => text ?? '').join('\n'), isError: result['isError'] === true };
  };
}

it('each is started, listed and called, or says why not; stopped again, also for the second time, it leaves no process and no memory behind', async () => {
  const before = residentMb(ours());
  const [good, bad] = await Promise.all([
    Promise.all(Object.entries(npmServers).map(async ([slug, of]) => ({ of, server: await start(slug, of) }))),
    Promise.all(Object.entries(failing).map(async ([slug, of]) => ({ of, server: await start(slug, of) }))),
  ]);
  expect(good.map(({ server }) => [server.slug, server.state, server.protocol, server.tools, server.reason])).toEqual(
    Object.entries(npmServers).map(([slug, { protocol, tools }]) => [slug, 'connected', protocol, tools, null]),
  );
  for (const { of, server } of bad) {
    expect(server).toMatchObject({ state: 'failed', tools: 0, reason: expect.stringContaining(of.says) });
    // One sentence that a person can read.
    expect(server.reason).not.toMatch(/\n|\bat .*:\d+:\d+|node_modules/);
  }
  await Promise.all(good.map(({ of, server }) => of.tries(callsOf(server), ownFolder(server.slug))));

  const children = good.filter(({ of }) => of.over === undefined).length;
  expect(processesWith(MARK).length).toBeGreaterThanOrEqual(children);
  const during = residentMb(ours());
  const servers = [...good, ...bad].map(({ server }) => server);
  await stopAll(servers);
  await Promise.all(servers.map(({ id }) => system.bus.call(mcpBroker.switchServer, { id, on: true }, SLOW)));
  const again = await Promise.all(servers.map(({ id }) => system.bus.call(mcpBroker.testServer, { id }, SLOW)));
  expect(again.map(({ state }) => state)).toEqual([...good.map(() => 'connected'), ...bad.map(() => 'failed')]);
  await stopAll(servers);
  // What the two services themselves have grown by is little beside what the servers took.
  expect(residentMb(ours()) - before).toBeLessThan((during - before) / 10);
});

it('a hundred servers that are new are started a few at a time; at a cold start all their tools are there at once, and none is started before it is called', async () => {
  const counting = await Counting.start();
  const slugs = Array.from({ length: 100 }, (_, index) => `many-${index}`);
  const heads = async () =>
    (await system.bus.call(mcpBroker.catalogueHeads, { projectId: 'default' })).servers.filter(({ slug }) => slugs.includes(slug));
  try {
    const servers: Server[] = [];
    for (const slug of slugs)
      servers.push(await system.bus.call(mcpBroker.putServer, { ...counting.offering(slug, []), instances: { idleStopMs: 1_000 } }, SLOW));
    await until(async () => (await heads()).every(({ catalogHash }) => catalogHash !== null), 120_000);
    const before = await counting.started();

    const processes = [system.process('mcp-broker'), system.process('mcp-runner')];
    await Promise.all(processes.map((one) => one.stop()));
    await Promise.all(processes.map((one) => one.start()));
    const began = performance.now();
    const lists = (await heads()).map(({ serverId, catalogHash }) =>
      system.bus.call(mcpBroker.cataloguePage, { serverId, catalogHash: catalogHash ?? '' }),
    );
    expect((await Promise.all(lists)).filter(({ tools }) => tools.some(({ name }) => name === 'count'))).toHaveLength(100);
    expect(performance.now() - began).toBeLessThan(2_000);
    expect(await counting.started()).toBe(before);

    await Promise.all(servers.slice(0, 12).map((server) => callsOf(server)('count', { name: server.slug })));
    expect(await counting.started()).toBe(before + 12);
    expect(await counting.startedAtOnce()).toBeLessThanOrEqual(AT_ONCE);
  } finally {
    await counting.stop();
  }
});
