// Long because one running system serves them all: what is a plugin's comes whole, belongs to it, and goes whole.
import { buckets, epochKey, mcpBroker, pluginRegistry, sessionService, skillStore, subject, toolGateway } from '@ambit/contracts';
import { collect, collectEndedCalls, until } from '@ambit/testing';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import { Kvm } from '@nats-io/kv';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { intend, type HandRun, type HandWorker } from '../system/by-hand.js';
import { claimsOf } from '../system/facts.js';
import { enablePlugin, installFiles, installPlugin, PLUGIN, PLUGIN_TOOL } from '../system/helper-plugin.js';
import { http } from '../system/http.js';
import { DEEPCHAT, withChecksums } from '../system/packages.js';
import { bob, Scene } from '../system/scene.js';
import { enableSmall, installSmall } from '../system/small-plugin.js';
import { putSkill } from '../system/skills.js';
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

verifies(
  ['R-PLUGIN-8#1', 'R-PLUGIN-8#2'],
  'an agent has of plugins what its policy names: no tool, no skill and no call of any other one',
  async () => {
    await enabled();
    const mayNot = await begin({ plugins: [] });
    const may = await begin({ plugins: [PLUGIN] });
    const ofPlugin = (names: readonly string[]): string[] => names.filter((one) => one.startsWith(TOOL) || one === 'greeting').sort();
    const given = ofPlugin(await namesOf(may.worker, may.run.ref.fingerprint));
    expect(given).toEqual(['greeting', `${TOOL}count`, `${TOOL}hold`, `${TOOL}look`]);
    const names = await namesOf(mayNot.worker, mayNot.run.ref.fingerprint);
    expect(ofPlugin(names)).toEqual([]);
    expect(names).toContain('mcp__own__count');
    const name = randomUUID();
    const forged = await mayNot.run.use(intend(`${TOOL}count`, { name }), intend('skill_view', { name: 'greeting' }));
    expect(forged).toMatchObject([{ status: 'refused', fault: { code: 'TOOL_NOT_IN_SNAPSHOT' } }, {}]);
    expect(forged[1]?.status).not.toBe('completed');
    expect(await scene.counting.ran('count', name)).toBe(0);
    // Who is told nothing of plugins has none of them.
    const { policy } = await scene.bus.call(sessionService.putAgent, { id: `plain-${randomUUID().slice(0, 8)}` });
    expect(policy.plugins).toEqual([]);
    for (const { run } of [may, mayNot]) {
      await run.step([]);
      await run.finish('completed');
    }
  },
);

/** What stands of a plugin with the owners of servers and skills, by name. */
async function partsOf(id: string): Promise<string[]> {
  const { items } = await scene.bus.call(mcpBroker.listServers, { owner: `plugin:${id}` });
  const { skills } = await scene.bus.call(skillStore.effectiveSkills, { agentId: 'nobody', plugins: [id] });
  return [...items.map(({ slug }) => slug), ...skills.filter(({ owner }) => owner === `plugin:${id}`).map(({ name }) => name)].sort();
}

verifies(
  'R-PLUGIN-5#1',
  'a registry that is killed in the middle of an activation leaves nothing of it, and none that had ended undone',
  async () => {
    await disable();
    const registry = scene.system.process('plugin-registry');
    const { worker } = await begin();
    const killedAt = async (address: string): Promise<void> => {
      const seen = new Promise<void>((resolve, reject) => {
        scene.system.connection.subscribe(address, { max: 1, callback: () => void registry.kill().then(() => resolve(), reject) });
      });
      await scene.system.connection.flush();
      void scene.bus.call(pluginRegistry.enablePlugin, { id: PLUGIN }).catch(() => undefined);
      await seen;
    };
    for (const contract of [skillStore.putContribution, mcpBroker.putServer]) {
      await killedAt(subject(contract, {}));
      // Nobody sees anything of it, whoever has been given something already.
      const [given] = await scene.runsOf((await scene.send({ id: worker.agentId })).sessionId);
      expect((await namesOf(worker, given?.fingerprint ?? '')).filter((one) => one.startsWith(TOOL) || one === 'greeting')).toEqual([]);
      await registry.start();
      await until(async () => (await partsOf(PLUGIN)).length === 0, 30_000);
      expect(await scene.bus.call(pluginRegistry.getPlugin, { id: PLUGIN })).toMatchObject({ state: 'disabled', wanted: 'disabled' });
    }
    await killedAt(subject(pluginRegistry.pluginChanged, { pluginId: PLUGIN }));
    await registry.start();
    expect(await scene.bus.call(pluginRegistry.getPlugin, { id: PLUGIN })).toMatchObject({ state: 'enabled' });
    expect(await partsOf(PLUGIN)).toEqual(['greeting', 'helper-tools']);
  },
);

verifies(
  ['R-PLUGIN-9#1', 'R-PLUGIN-9#2', 'R-PLUGIN-9#3'],
  'what somebody contributed nobody else changes, removes or hides, and nobody else’s epoch moves',
  async () => {
    await enabled();
    const epochs = await new Kvm(scene.system.connection).open(buckets.epochs.name);
    const read = async (key: string) => (await epochs.get(key))?.string();
    const epochsOf = async (owner: string) => ({
      servers: await read(epochKey.epoch('mcp-broker', owner, 'servers')),
      plugins: await read(epochKey.epoch('plugin-registry', owner, 'plugins')),
      fences: [await read(epochKey.fence('mcp-broker', owner)), await read(epochKey.fence('plugin-registry', owner))],
    });
    const skillsOf = async (id: string) => (await scene.bus.call(skillStore.effectiveSkills, { agentId: 'nobody', plugins: [id] })).epoch;
    const agent = await scene.agent();
    await putSkill(scene.bus, agent.id, { name: 'greeting', body: 'My own.' });
    await scene.server('rival-tools');
    const before = [await epochsOf(`plugin:${PLUGIN}`), await epochsOf('user'), await skillsOf(PLUGIN)];

    await installSmall(scene, { id: 'rival', remote: ['tools'] });
    await installSmall(scene, { id: 'thief', skills: ['greeting'] });
    await installSmall(scene, { id: 'first', remote: ['team-a'], skills: ['first'] });
    await installSmall(scene, { id: 'first-team', remote: ['a'], skills: ['second'] });
    await installSmall(scene, { id: 'shadow', skills: ['shared'] });
    await enableSmall(scene, 'first');
    const refused = async (id: string, step: string, reason: string): Promise<void> => {
      await expect(enableSmall(scene, id)).rejects.toMatchObject({
        code: 'ACTIVATION_FAILED',
        data: { step, reason: expect.stringContaining(reason) },
      });
      expect(await partsOf(id)).toEqual([]);
    };
    await refused('rival', 'servers', 'SLUG_TAKEN');
    await refused('thief', 'skills', 'NAME_TAKEN');
    await refused('first-team', 'servers', 'SLUG_TAKEN');
    expect(await partsOf('first')).toEqual(['first', 'first-team-a']);
    expect(await partsOf(PLUGIN)).toEqual(['greeting', 'helper-tools']);
    // Nor does a person, other than by the plugin itself.
    const [server] = (await scene.bus.call(mcpBroker.listServers, { owner: `plugin:${PLUGIN}` })).items;
    expect((await http(scene.system, `DELETE /v1/server/${server?.id}`)).status).toBe(409);
    await expect(scene.bus.call(mcpBroker.deleteServer, { id: server?.id ?? '' })).rejects.toMatchObject({ code: 'PLUGIN_OWNED' });
    await expect(scene.bus.call(mcpBroker.putServer, scene.counting.server('helper-tools'))).rejects.toMatchObject({ code: 'SLUG_TAKEN' });
    expect(await scene.bus.call(mcpBroker.getServer, { projectId: 'default', slug: 'rival-tools' })).toMatchObject({
      owner: 'user',
      enabled: true,
    });
    // A person's skill is not hidden by a plugin's of the same name.
    const { skills } = await scene.bus.call(skillStore.effectiveSkills, { agentId: agent.id, plugins: null });
    expect(skills.filter(({ name }) => name === 'greeting')).toMatchObject([{ owner: 'user', origin: 'owned' }]);

    await scene.bus.call(pluginRegistry.disablePlugin, { id: 'first' });
    expect([await epochsOf(`plugin:${PLUGIN}`), await epochsOf('user'), await skillsOf(PLUGIN)]).toEqual(before);
  },
);

verifies('R-PLUGIN-10#1', 'while a plugin is updated its old tools are executed by its old process or not at all', async () => {
  const tool = 'mcp__moving-tools__leaving';
  await installSmall(scene, { id: 'moving', tools: ['leaving'] });
  await enableSmall(scene, 'moving');
  const known = async (): Promise<void> => {
    const [server] = (await scene.bus.call(mcpBroker.listServers, { owner: 'plugin:moving' })).items;
    expect(await scene.bus.call(mcpBroker.testServer, { id: server?.id ?? '' })).toMatchObject({ state: 'connected' });
  };
  await known();
  const { run, agentId } = await begin({ limits: { callsPerRun: 10_000 } });
  const name = randomUUID();
  expect(await run.use(intend(tool, { name }))).toMatchObject([{ status: 'completed' }]);

  let isOver = false;
  const calling = (async (): Promise<string[]> => {
    const codes: string[] = [];
    for (let after = 0; after < 3; after += isOver ? 1 : 0) {
      // Each with arguments of its own: a run that only repeats itself is ended.
      const [result] = await run.use(intend(tool, { name, bytes: codes.length }));
      codes.push(result?.fault?.code ?? String(result?.status));
    }
    return codes;
  })();
  await installSmall(scene, { id: 'moving', version: '2.0.0', tools: [] });
  await known();
  isOver = true;
  const codes = await calling;
  expect(codes.slice(-3)).toEqual(['TOOL_GONE', 'TOOL_GONE', 'TOOL_GONE']);
  expect(await scene.counting.ran('leaving', `${name} by moving-2.0.0`)).toBe(0);
  expect(await scene.counting.ran('leaving', `${name} by moving-1.0.0`)).toBe(1 + codes.filter((code) => code === 'completed').length);
  // The new process is there, and does what it has.
  await run.step([]);
  await run.finish('completed');
  const worker = await scene.worker({ id: agentId });
  await scene.send({ id: agentId });
  const next = await worker.begin();
  expect(await namesOf(worker, next.ref.fingerprint)).not.toContain(tool);
  expect(await next.use(intend('mcp__moving-tools__count', { name }))).toMatchObject([{ status: 'completed' }]);
  expect(await scene.counting.ran('count', `${name} by moving-2.0.0`)).toBe(1);
});

verifies(
  ['R-PERM-9#1', 'R-PERM-9#2'],
  'of a server with a closed tool policy there is what the policy names, however much the live server offers',
  async () => {
    const tool = (name: string): string => `mcp__ruled-tools__${name}`;
    const env = { ...scene.counting.environment, SERVER: 'ruled', TOOLS: JSON.stringify(['flap', 'late']) };
    const manifest = {
      ...DEEPCHAT,
      ...{ id: 'ruled', capabilities: ['mcp.register'], skills: [], settingsContributions: [] },
      mcpServers: [{ id: 'tools', transport: 'stdio', command: '${plugin.root}/server.mjs', env }],
      toolPolicies: [{ serverId: 'tools', tools: { count: 'allow', flap: 'allow', look: 'ask', hold: 'deny' } }],
    };
    const program = await readFile(new URL('../fixtures/counting-server.mjs', import.meta.url), 'utf8');
    const files = Object.entries(withChecksums({ 'plugin.json': JSON.stringify(manifest), 'server.mjs': program }));
    await installFiles(scene, Object.fromEntries(files.map(([path, text]) => [path, Buffer.from(text)])));
    await enableSmall(scene, 'ruled');
    const [server] = (await scene.bus.call(mcpBroker.listServers, { owner: 'plugin:ruled' })).items;
    const live = () => scene.bus.call(mcpBroker.testServer, { id: server?.id ?? '' });
    expect(await live()).toMatchObject({ tools: 5 });
    const named = [tool('count'), tool('flap'), tool('look')];
    const given = async (worker: HandWorker, run: HandRun): Promise<string[]> =>
      (await namesOf(worker, run.ref.fingerprint)).filter((one) => one.startsWith(tool('')));

    const { worker, run, agentId } = await begin();
    expect(await given(worker, run)).toEqual(named);
    const name = randomUUID();
    const [counted, denied, late, grown] = await run.use(
      intend(tool('count'), { name }),
      intend(tool('hold'), { name }),
      intend(tool('late'), { name }),
      // One more tool from now on, of which the server tells.
      intend(tool('flap'), { name: 'later', bytes: 1, ms: 1 }),
    );
    expect([counted?.status, grown?.status]).toEqual(['completed', 'completed']);
    for (const refused of [denied, late]) expect(refused).toMatchObject({ status: 'refused', fault: { code: 'TOOL_NOT_IN_SNAPSHOT' } });
    await until(async () => (await live()).tools === 6);
    await run.step([]);
    await run.finish('completed');

    await scene.send({ id: agentId });
    const next = await worker.begin();
    expect(await given(worker, next)).toEqual(named);
    expect(await next.use(intend(tool('later'), { name }))).toMatchObject([{ status: 'refused', fault: { code: 'TOOL_NOT_IN_SNAPSHOT' } }]);
    // The agent's rules would let it pass; the plugin wants a person to be asked.
    expect(await next.use(intend(tool('look'), { name }))).toMatchObject([{ status: 'waiting' }]);
    await next.finish('waiting');
    expect(await scene.pending(next.ref.sessionId)).toMatchObject([{ tool: tool('look') }]);
    for (const one of ['hold', 'late', 'later', 'look']) expect(await scene.counting.ran(one, name)).toBe(0);
  },
);
