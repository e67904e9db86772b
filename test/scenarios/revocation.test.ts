import { mcpBroker, pluginRegistry, sessionService, toolGateway } from '@ambit/contracts';
import { collect, collectEndedCalls } from '@ambit/testing';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { intend, type HandRun, type HandWorker } from '../system/by-hand.js';
import { claimsOf } from '../system/facts.js';
import { enablePlugin, installPlugin, PLUGIN, PLUGIN_TOOL } from '../system/helper-plugin.js';
import { http } from '../system/http.js';
import { bob, Scene } from '../system/scene.js';
import { verifies } from '../verifies.js';

jest.setTimeout(120_000);
const TOOL = PLUGIN_TOOL;
const enabled = (): Promise<void> => enablePlugin(scene);

let scene: Scene;
beforeAll(async () => {
  scene = await Scene.start();
  await scene.server('own');
  await installPlugin(scene);
});
afterAll(() => scene?.stop());

const disable = () => scene.bus.call(pluginRegistry.disablePlugin, { id: PLUGIN });

async function begin(
  rules: Parameters<Scene['agent']>[0] = {},
): Promise<{ readonly worker: HandWorker; readonly run: HandRun; readonly agentId: string; readonly sceneId: string }> {
  const agent = await scene.agent(rules);
  const worker = await scene.worker(agent);
  const sceneId = randomUUID();
  await scene.send(agent, { sceneId });
  return { worker, run: await worker.begin(), agentId: agent.id, sceneId };
}
const namesOf = async (worker: HandWorker, fingerprint: string): Promise<string[]> => {
  const { tools, skills } = await worker.snapshot(fingerprint);
  return [...tools, ...skills].map(({ name }) => name);
};

verifies(
  ['R-PLUGIN-6#1', 'R-PLUGIN-6#4', 'R-PLUGIN-6#5', 'R-EXEC-2#2', 'R-NATS-6#2'],
  'a plugin switched off: the running run keeps its fingerprint and cannot execute its tool, the next has another fingerprint',
  async () => {
    await enabled();
    const { worker, run, agentId, sceneId } = await begin();
    const name = randomUUID();
    expect(await namesOf(worker, run.ref.fingerprint)).toEqual(expect.arrayContaining([`${TOOL}count`, 'greeting']));
    expect(await run.use(intend(`${TOOL}count`, { name }))).toMatchObject([{ status: 'completed' }]);
    const claims = await claimsOf(scene.system.connection, run.ref);

    await disable();
    const results = await run.use(intend(`${TOOL}count`, { name }), intend('mcp__own__count', { name }));
    expect(results).toMatchObject([{ status: 'refused', fault: { code: 'TOOL_GONE' } }, { status: 'completed' }]);
    expect(await claimsOf(scene.system.connection, run.ref)).toBe(claims + 1);
    expect(await scene.counting.ran('count', name)).toBe(2);
    // The snapshot itself is as it was.
    expect(await namesOf(worker, run.ref.fingerprint)).toContain(`${TOOL}count`);
    await run.step([]);
    await run.finish('completed');

    await scene.send({ id: agentId }, { sceneId });
    const next = await worker.begin();
    expect(next.ref.sessionId).toBe(run.ref.sessionId);
    expect(next.ref.fingerprint).not.toBe(run.ref.fingerprint);
    const names = await namesOf(worker, next.ref.fingerprint);
    expect(names.filter((one) => one.startsWith(TOOL) || one === 'greeting')).toEqual([]);
    expect(names).toContain('mcp__own__count');
    await next.step([]);
    await next.finish('completed');
  },
);

verifies(
  ['R-PERM-6#1', 'R-MCP-2#2'],
  'a configuration that approves its own calls is imported without that, says so, and its calls ask',
  async () => {
    await enabled();
    const { warnings } = await scene.bus.call(pluginRegistry.getPlugin, { id: PLUGIN });
    expect(warnings).toEqual([expect.stringMatching(/^mcp\.json: server "tools": autoApprove: .* left out$/)]);
    const { items } = await scene.bus.call(mcpBroker.listServers, { owner: `plugin:${PLUGIN}` });
    expect(items).toHaveLength(1);
    expect(items[0]).toMatchObject({ transport: { type: 'stdio' } });
    const { text } = await http(scene.system, `GET /v1/server/${items[0]?.id}`);
    for (const said of [JSON.stringify(items), text]) expect(said).not.toContain('autoApprove');
    const { run } = await begin({ rules: [] });
    const name = randomUUID();
    expect(await run.use(intend(`${TOOL}count`, { name }))).toMatchObject([{ status: 'waiting' }]);
    expect(await run.finish('waiting')).toMatchObject({ status: 'suspended' });
    expect(await scene.pending(run.ref.sessionId)).toMatchObject([{ tool: `${TOOL}count` }]);
    expect(await scene.counting.ran('count', name)).toBe(0);
  },
);

verifies(
  ['R-PLUGIN-6#2', 'R-EXEC-10#5', 'R-EXEC-10#6'],
  'a plugin switched off while its call waits: the approval is cancelled, nothing is executed, the next decision can be taken',
  async () => {
    await enabled();
    const settled = await collect(scene.system.connection, sessionService.interactionSettled);
    const { worker, run } = await begin({ rules: [{ decision: 'ask', tool: 'mcp__*' }] });
    const name = randomUUID();
    const calls = [intend(`${TOOL}count`, { name }), intend('mcp__own__count', { name })];
    expect(await run.use(...calls)).toMatchObject([{ status: 'waiting' }, { status: 'waiting' }]);
    await run.finish('waiting');
    const [gone, other] = await scene.pending(run.ref.sessionId);

    await disable();
    const { payload } = await settled.next(({ payload: one }) => one.interactionId === gone?.id);
    expect(payload.status).toBe('cancelled');
    settled.stop();
    const decide = (id: string | undefined) =>
      scene.bus.call(sessionService.decideInteraction, { id: id ?? '', decision: 'allow', by: bob });
    await expect(decide(gone?.id)).rejects.toMatchObject({ code: 'NO_INTERACTION' });
    await decide(other?.id);
    const next = await worker.begin();
    expect(next.opened.messages.at(-1)).toMatchObject({
      role: 'tool',
      results: [{ status: 'refused', fault: { code: 'TOOL_GONE' } }, { status: 'completed' }],
    });
    expect(await scene.counting.ran('count', name)).toBe(1);
    await next.step([]);
    await next.finish('completed');
  },
);

verifies('R-PLUGIN-6#3', 'a plugin switched off in the middle of its call: the call is stopped and its outcome recorded', async () => {
  await enabled();
  const { run } = await begin();
  const name = randomUUID();
  const stored = await run.step([intend(`${TOOL}hold`, { name })]);
  const ended = await collectEndedCalls(scene.system.connection);
  const answered = run.batch(stored);
  await scene.counting.held(name);
  await disable();
  const [result] = await answered;
  expect(result?.status).toMatch(/^(cancelled|failed|indeterminate)$/);
  const { payload } = await ended.next(({ payload: one }) => one.callId === result?.callId);
  expect(payload.status).toBe(result?.status);
  ended.stop();
  const { items } = await scene.bus.call(toolGateway.listCalls, { runId: run.ref.runId });
  expect(items).toMatchObject([{ status: result?.status }]);
  expect(await scene.counting.ran('hold', name)).toBe(1);
  await run.step([]);
  await run.finish('completed');
});

verifies('R-PLUGIN-6#6', 'services that were away while a plugin was switched off refuse its tool when they are back', async () => {
  await enabled();
  const { run } = await begin();
  const name = randomUUID();
  expect(await run.use(intend(`${TOOL}count`, { name }))).toMatchObject([{ status: 'completed' }]);
  const gateway = scene.system.process('tool-gateway');
  const broker = scene.system.process('mcp-broker');
  await Promise.all([gateway.kill(), broker.kill()]);
  await disable();
  await Promise.all([gateway.start(), broker.start()]);
  expect(await run.use(intend(`${TOOL}count`, { name }))).toMatchObject([{ status: 'refused', fault: { code: 'TOOL_GONE' } }]);
  expect(await scene.counting.ran('count', name)).toBe(1);
});
