import { mcpBroker, pluginRegistry, sessionService, services, toolGateway, type ServiceName } from '@ambit/contracts';
import { collect, collectEndedCalls, until } from '@ambit/testing';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { intend, type HandRun } from '../system/by-hand.js';
import { installPlugin, PLUGIN, PLUGIN_TOOL } from '../system/helper-plugin.js';
import { http } from '../system/http.js';
import { bob, RULES, Scene } from '../system/scene.js';
import { verifies } from '../verifies.js';

jest.setTimeout(300_000);
const SESSIONS = 50;
const AT_ONCE = 10;
const doubled = Object.keys(services) as ServiceName[];

let scene: Scene;
beforeAll(async () => {
  scene = await Scene.start({ replicas: Object.fromEntries(doubled.map((name) => [name, 2])) });
  await scene.server('one');
  await scene.server('asking');
});
afterAll(() => scene?.stop());

it('two admin-apis that begin on an empty database have one first administrator, whom both know', async () => {
  const { apiUrls, token } = scene.system;
  expect(apiUrls).toHaveLength(2);
  for (const apiUrl of apiUrls)
    expect((await http({ apiUrl, token }, 'GET /v1/whoami')).body).toMatchObject({ principal: { id: 'user:admin' } });
  const { body } = await http(scene.system, 'GET /v1/token');
  expect(body['items']).toHaveLength(1);
});

it('fifty sessions over two replicas of everything: nobody is unknown anywhere, and each tool ran once', async () => {
  const agent = await scene.agent();
  const worker = await scene.worker(agent);
  const names = Array.from({ length: SESSIONS }, () => randomUUID());
  const changes = await collect(scene.system.connection, sessionService.runChanged);
  const sessions = await inTurns(names, async () => scene.send(agent));
  expect(new Set(sessions.map(({ sessionId }) => sessionId)).size).toBe(SESSIONS);

  await inTurns(names, async (name) => {
    const run = await worker.begin();
    const calls = [intend('mcp__one__count', { name }), intend('mcp__asking__count', { name })];
    expect(await run.use(...calls)).toMatchObject([{ status: 'completed' }, { status: 'waiting' }]);
    await run.finish('waiting');
    const [pending] = await scene.pending(run.ref.sessionId);
    await scene.bus.call(sessionService.decideInteraction, { id: pending?.id ?? '', decision: 'allow', by: bob });
  });
  const ended = await inTurns(names, async () => {
    const next = await worker.begin();
    expect(next.opened.messages.at(-1)).toMatchObject({ role: 'tool', results: [{ status: 'completed' }, { status: 'completed' }] });
    await next.step([]);
    return next.finish('completed');
  });
  expect(ended.map(({ status }) => status)).toEqual(names.map(() => 'completed'));
  await Promise.all(
    sessions.map(({ sessionId }) =>
      changes.next(({ payload }) => payload.sessionId === sessionId && payload.status === 'completed', 30_000),
    ),
  );
  changes.stop();
  for (const name of names) expect(await scene.counting.ran('count', name)).toBe(2);
  for (const { sessionId } of sessions) expect(await scene.runsOf(sessionId)).toHaveLength(2);
});

verifies(['R-NATS-2#1', 'R-NATS-2#3', 'R-EXEC-20#4'], 'one batch sent ten times at once to two gateways makes one call', async () => {
  const agent = await scene.agent();
  const worker = await scene.worker(agent);
  await scene.send(agent);
  const run = await worker.begin();
  const name = randomUUID();
  const stored = await run.step([intend('mcp__one__count', { name })]);
  const ended = await collectEndedCalls(scene.system.connection);
  const answers = await Promise.all(Array.from({ length: 10 }, () => run.batch(stored)));
  for (const answer of answers) expect(answer).toEqual(answers[0]);
  expect(answers[0]).toMatchObject([{ status: 'completed' }]);
  expect(await scene.counting.ran('count', name)).toBe(1);
  await ended.next(({ payload }) => payload.callId === stored.calls[0]?.callId);
  ended.stop();
  const { items } = await scene.bus.call(toolGateway.listCalls, { runId: run.ref.runId });
  expect(items).toHaveLength(1);
  await run.step([]);
  await run.finish('completed');
});

verifies(
  ['R-PLUGIN-6#1', 'R-PLUGIN-6#2', 'R-PLUGIN-6#3'],
  'a plugin that is switched off while fifty sessions use it: once that is answered no call arrives, whoever waits or is in the middle',
  async () => {
    await installPlugin(scene);
    await scene.bus.call(pluginRegistry.enablePlugin, { id: PLUGIN });
    await until(async () => (await scene.bus.call(mcpBroker.listServers, { owner: `plugin:${PLUGIN}` })).items[0]?.tools === 3);
    const agent = await scene.agent({
      limits: { callsPerRun: 10_000, callsPerMinute: 1_000_000 },
      rules: [...RULES, { decision: 'ask', tool: `${PLUGIN_TOOL}look` }],
    });
    const worker = await scene.worker(agent);
    await inTurns(Array.from({ length: SESSIONS }), async () => scene.send(agent));
    const runs: HandRun[] = [];
    await inTurns(Array.from({ length: SESSIONS }), async () => void runs.push(await worker.begin()));
    const [waiting, holding, calling] = [runs.slice(0, 5), runs.slice(5, 10), runs.slice(10)];
    const marker = randomUUID();
    for (const run of waiting) {
      expect(await run.use(intend(`${PLUGIN_TOOL}look`, { name: marker }))).toMatchObject([{ status: 'waiting' }]);
      await run.finish('waiting');
    }
    const held = holding.map((run, index) => run.use(intend(`${PLUGIN_TOOL}hold`, { name: `${marker}.${index}` })));
    await Promise.all(holding.map((_run, index) => scene.counting.held(`${marker}.${index}`)));
    const arrived = async (): Promise<number> => {
      const effects = await scene.counting.effects();
      return [...effects].reduce((sum, [name, times]) => (name.startsWith(`${marker}-`) ? sum + times : sum), 0);
    };
    let completed = 0;
    let isOff = false;
    const called = calling.map(async (run, session) => {
      const after: string[] = [];
      for (let turn = 0; after.length < 2; turn++) {
        const wasOff = isOff;
        const [result] = await run.use(intend(`${PLUGIN_TOOL}count`, { name: `${marker}-${session}-${turn}` }));
        if (result?.status === 'completed') completed++;
        if (wasOff) after.push(result?.fault?.code ?? String(result?.status));
      }
      return after;
    });
    await until(async () => (await arrived()) >= 100, 60_000);

    await scene.bus.call(pluginRegistry.disablePlugin, { id: PLUGIN });
    const last = await arrived();
    isOff = true;
    for (const codes of await Promise.all(called)) expect(codes).toEqual(['TOOL_GONE', 'TOOL_GONE']);
    expect(await arrived()).toBe(last);
    expect(completed).toBeLessThanOrEqual(last);
    for (const [index, [result]] of (await Promise.all(held)).entries()) {
      expect(result?.status).toMatch(/^(cancelled|failed|indeterminate)$/);
      await until(async () => {
        const { items } = await scene.bus.call(toolGateway.listCalls, { runId: holding[index]?.ref.runId });
        return items.length === 1 && items[0]?.status === result?.status;
      });
    }
    for (const run of waiting) {
      const { items } = await scene.bus.call(sessionService.listInteractions, { sessionId: run.ref.sessionId });
      expect(items).toMatchObject([{ status: 'cancelled' }]);
    }
    expect(await scene.counting.ran('look', marker)).toBe(0);
    await inTurns([...holding, ...calling], async (run) => {
      await run.step([]);
      await run.finish('completed');
    });
  },
);

/** Does it for each, at most so many at once; results in order. */
async function inTurns<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let start = 0; start < items.length; start += AT_ONCE)
    results.push(...(await Promise.all(items.slice(start, start + AT_ONCE).map(work))));
  return results;
}
