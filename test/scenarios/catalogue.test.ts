// Long because one started system shows all of it: what a model sees of built-in and servers' tools, exposure, names, the list that people switch, and a broker that is away.
import { RESERVED_TABLE } from '@ambit/capability';
import {
  buckets,
  Mapping,
  mappingKey,
  mcpBroker,
  pluginRegistry,
  sessionService,
  skillStore,
  toolGateway,
  type Agent,
  type Input,
} from '@ambit/contracts';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import { canariesIn, canary } from '@ambit/testing';
import { jetstreamManager } from '@nats-io/jetstream';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { intend, type HandRun, type HandWorker } from '../system/by-hand.js';
import { enablePlugin, installFiles, installPlugin, PLUGIN, PLUGIN_TOOL } from '../system/helper-plugin.js';
import { http, tokenFor } from '../system/http.js';
import { enablePacked, PACKED, PACKED_TOOL } from '../system/packed-plugin.js';
import { relisting } from '../system/relisting.js';
import { bob, Scene } from '../system/scene.js';
import { putSkill } from '../system/skills.js';
import { sessionFacts, setSessionFacts } from '../system/stored-session.js';
import { verifies } from '../verifies.js';

jest.setTimeout(240_000);
/** What people may switch. */
const CONFIGURABLE = [
  'question',
  'settings_read',
  'settings_write',
  'skill_draft',
  'skill_list',
  'skill_manage',
  'skill_run',
  'skill_view',
  'update_plan',
];
const BUILTINS = ['artifact_read', 'question', 'skill_list', 'skill_view', 'tape_context', 'tape_search', 'update_plan'];
const SUBAGENTS = { helper: { agent: 'self' } };
const DELEGATING = [...BUILTINS, 'subagent_orchestrator'].sort();
const COUNTING = ['mcp__one__count', 'mcp__one__hold', 'mcp__one__look'];
const NONE = { servers: [], skills: [], plugins: [] };
type Policy = Input<typeof sessionService.putAgent>['policy'];

let scene: Scene;
beforeAll(async () => {
  scene = await Scene.start({
    services: ['session-service', 'tool-gateway', 'mcp-broker', 'mcp-runner', 'skill-store', 'plugin-registry', 'admin-api'],
  });
  await scene.server('one');
});
afterAll(() => scene?.stop());

/** What a session's newest run was given, as its canonical record says. */
async function given(sessionId: string): Promise<{
  readonly fingerprint: string;
  readonly tools: string[];
  /** Of each tool, and of each skill. */
  readonly owners: Map<string, string>;
  readonly skills: Map<string, string>;
}> {
  const [run] = await scene.runsOf(sessionId);
  const fingerprint = run?.fingerprint ?? '';
  let text = '';
  for (let offset: number | null = 0; offset !== null;) {
    const part: { text: string; next: number | null } = await scene.bus.call(sessionService.readSnapshot, { fingerprint, offset });
    text += part.text;
    offset = part.next;
  }
  type Named = readonly { readonly name: string; readonly owner: string }[];
  const { tools, skills } = JSON.parse(text) as { tools: Named; skills: Named };
  const owners = (named: Named) => new Map(named.map(({ name, owner }) => [name, owner]));
  return { fingerprint, tools: tools.map(({ name }) => name), owners: owners(tools), skills: owners(skills) };
}

const givenBy = async (agent: Pick<Agent, 'id'>, more: Parameters<Scene['send']>[1] = {}) =>
  given((await scene.send(agent, more)).sessionId);
const put = (id: string, policy: Policy, more: Partial<Input<typeof sessionService.putAgent>> = {}): Promise<Agent> =>
  scene.bus.call(sessionService.putAgent, { id, policy, ...more });

/** A run of an agent with this policy, begun. */
async function begun(policy: Policy = {}): Promise<{ readonly agent: Agent; readonly worker: HandWorker; readonly run: HandRun }> {
  const agent = await scene.agent(policy);
  const worker = await scene.worker(agent);
  await scene.send(agent);
  return { agent, worker, run: await worker.begin() };
}
/** Which of all names that this world has a session's next run would see. */
async function explained(sessionId: string): Promise<string[]> {
  const names = [...RESERVED_TABLE.keys(), ...COUNTING].sort();
  const answers = await Promise.all(names.map((name) => scene.bus.call(sessionService.explain, { sessionId, kind: 'tool', name })));
  return answers.filter(({ visible }) => visible).map(({ name }) => name);
}
const hex = (): string => randomBytes(32).toString('hex');
const codes = (results: Awaited<ReturnType<HandRun['use']>>): string[] => results.map(({ fault, status }) => fault?.code ?? status);
const configurable = async (agentId?: string): Promise<string[]> => {
  const { status, body } = await http(scene.system, `GET /v1/tool${agentId === undefined ? '' : `?agentId=${agentId}`}`);
  expect(status).toBe(200);
  return (body['tools'] as { name: string }[]).map(({ name }) => name).sort();
};

/** Names of all fields that a schema or a value has, at whatever depth, references followed once. */
function fieldsOf(at: unknown, root: unknown, seen = new Set<unknown>()): string[] {
  if (typeof at !== 'object' || at === null || seen.has(at)) return [];
  seen.add(at);
  const reference = '$ref' in at && typeof at.$ref === 'string' ? at.$ref.slice(2).split('/') : [];
  const target = reference.reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], root);
  const own = 'properties' in at && typeof at.properties === 'object' && at.properties !== null ? Object.keys(at.properties) : [];
  return [
    ...own,
    ...(reference.length > 0 ? fieldsOf(target, root, seen) : []),
    ...Object.values(at).flatMap((one) => fieldsOf(one, root, seen)),
  ];
}

verifies('R-TOOL-1#1', 'the same world gives every agent the same tools in the same order, as the record has them', async () => {
  const golden = ['artifact_read', ...COUNTING, 'question', 'skill_list', 'skill_view', 'tape_context', 'tape_search', 'update_plan'];
  const [one, two] = [await scene.agent(), await scene.agent()];
  expect((await givenBy(one)).tools).toEqual(golden);
  expect((await givenBy(two)).tools).toEqual(golden);
  expect(await givenBy(one)).toEqual(await givenBy(one));
});

verifies(
  ['R-TOOL-2#1', 'R-TOOL-2#2', 'R-TOOL-2#3', 'R-TOOL-3#3', 'R-TOOL-8#3', 'R-TOOL-8#4'],
  'a configurable tool can be switched off and found again, a system one is nobody’s to switch',
  async () => {
    const { agent, run } = await begun({ ...NONE, disabledTools: ['update_plan', 'tape_search', 'artifact_read'] });
    const { tools } = await given(run.ref.sessionId);
    expect(tools).toEqual(BUILTINS.filter((name) => name !== 'update_plan'));
    const plan = { plan: [{ step: 'go', status: 'pending' }] };
    expect(codes(await run.use(intend('update_plan', plan), intend('tape_search', { query: 'please' })))).toEqual([
      'TOOL_NOT_IN_SNAPSHOT',
      'completed',
    ]);
    run.abandon();
    // What is diagnostic answers administrators, and nobody who only looks on.
    const diagnose = (name: string, token?: string) =>
      http(scene.system, `POST /v1/session/${run.ref.sessionId}/diagnose`, { body: { name }, ...(token === undefined ? {} : { token }) });
    expect(await diagnose('tape_info')).toMatchObject({ status: 200, body: { content: { kinds: { message: 2, tool_call: 2 } } } });
    expect(await diagnose('tape_handoff')).toMatchObject({ status: 404, body: { code: 'TOOL_NOT_IN_SNAPSHOT' } });
    expect((await diagnose('tape_info', await tokenFor(scene.system, { principal: 'user:viewer', role: 'viewer' }))).status).toBe(403);
    const listed = await configurable(agent.id);
    expect(listed).toEqual(CONFIGURABLE);
    await put(agent.id, { ...NONE });
    expect((await givenBy(agent)).tools).toEqual(BUILTINS);
  },
);

verifies('R-TOOL-3#1', 'disabling what is not people’s to switch changes nothing', async () => {
  const agent = await scene.agent({ ...NONE, subagents: SUBAGENTS });
  const before = await givenBy(agent);
  expect(before.tools).toEqual(DELEGATING);
  await put(agent.id, { ...NONE, subagents: SUBAGENTS, disabledTools: ['tape_search', 'tape_context', 'subagent_orchestrator'] });
  expect((await givenBy(agent)).tools).toEqual(DELEGATING);
});

verifies(
  ['R-TOOL-3#2', 'R-TOOL-3#4', 'R-TOOL-13#1'],
  'switching off a worker’s tool takes it from catalogue and mapping, and from a call that was approved meanwhile',
  async () => {
    const agent = await scene.agent({ ...NONE, rules: [{ decision: 'ask', tool: 'update_plan' }] });
    const worker = await scene.worker(agent);
    const exec = {
      name: 'exec',
      exposure: 'user-configurable',
      description: 'Runs',
      inputSchema: { type: 'object' },
      effect: 'write',
      access: 'command',
    };
    await worker.call(toolGateway.registerWorker, { workerId: randomUUID(), tools: [exec] });
    expect((await givenBy(agent)).tools).toContain('exec');
    await put(agent.id, { ...NONE, disabledTools: ['exec'], rules: [{ decision: 'ask', tool: 'update_plan' }] });
    const first = await worker.begin();
    const malformed = ['{"command":', '[]', '"ls"', 'null', '{"a":1,"a":2}'].map((text) => ({ ...intend('exec'), arguments: text }));
    expect(new Set(codes(await first.use(...malformed)))).toEqual(new Set(['BAD_ARGUMENTS']));
    await first.finish('completed');
    await scene.send(agent);
    const run = await worker.begin();
    expect((await given(run.ref.sessionId)).tools).toEqual(BUILTINS);
    const asked = intend('update_plan', { plan: [] });
    expect(codes(await run.use(intend('exec', {}), asked))).toEqual(['TOOL_NOT_IN_SNAPSHOT', 'waiting']);
    await run.finish('waiting');
    await put(agent.id, { ...NONE, disabledTools: ['exec', 'update_plan'] });
    const [interaction] = await scene.pending(run.ref.sessionId);
    await scene.bus.call(sessionService.decideInteraction, {
      id: interaction?.id ?? '',
      decision: 'allow',
      by: { id: 'user:bob', kind: 'person' },
    });
    const next = await worker.begin();
    const last = next.opened.messages.at(-1);
    expect(last).toMatchObject({ role: 'tool', results: [{}, { callId: asked.callId, fault: { code: 'TOOL_DISABLED' } }] });
    next.abandon();
  },
);

verifies(
  [
    'R-TOOL-4#5',
    'R-TOOL-5#1',
    'R-TOOL-5#2',
    'R-TOOL-5#3',
    'R-TOOL-5#4',
    'R-TOOL-6#1',
    'R-TOOL-6#2',
    'R-TOOL-7#1',
    'R-TOOL-7#2',
    'R-EXEC-7#3',
  ],
  'a server that claims every built-in name gets none of them, and what it was refused is shown, audited and counted',
  async () => {
    const reserved = [...RESERVED_TABLE.keys()];
    const alike = ['Tape_Info', 'tape_info ', 'ｔａｐｅ_ｉｎｆｏ', 'EXEC', 'question\u00ad'];
    const { id } = await scene.bus.call(mcpBroker.putServer, scene.counting.offering('tape', [...reserved, ...alike, 'info', 'fine']));
    expect(await scene.bus.call(mcpBroker.testServer, { id }, { timeoutMs: 60_000 })).toMatchObject({ state: 'connected' });
    // Another server offers `info` too: the one called tape has no claim to tape_info by that.
    await scene.server('other', scene.counting.offering('other', ['info']));

    const { body } = await http(scene.system, `GET /v1/server/${id}`);
    const refused = body['refusedNames'] as { tool: string; name: string; reserved: string; shownAs: string; reason: string }[];
    expect(refused.map(({ name }) => name).sort()).toEqual(
      [...reserved, ...alike, ...['info', 'fine', 'count', 'hold', 'look', ...reserved, ...alike].map((name) => `tape_${name}`)].sort(),
    );
    expect(refused.find(({ tool }) => tool === 'info')).toMatchObject({
      name: 'tape_info',
      reserved: 'tape_info',
      shownAs: 'mcp__tape__info',
    });
    for (const one of refused) expect(one.reason).toContain(one.shownAs);
    const records = (await http(scene.system, `GET /v1/audit?action=name.refused&limit=200`)).body['items'] as {
      target: string;
      reason: string;
    }[];
    expect(records.filter(({ target }) => target.startsWith(`server:${id}/`))).toHaveLength(refused.length);
    const metrics = await (await fetch(`${scene.system.process('mcp-broker').opsUrl}/metrics`)).text();
    expect(Number(/^ambit_names_refused_total\{[^}]*\} (\d+)$/m.exec(metrics)?.[1])).toBeGreaterThanOrEqual(refused.length);

    // Whatever is switched off, hidden or not there at all: a reserved name is a built-in's or nobody's.
    const { run } = await begun({ skills: [], disabledTools: ['question', 'update_plan', 'skill_view'] });
    const { tools, owners } = await given(run.ref.sessionId);
    expect(tools).toEqual(expect.arrayContaining(['mcp__tape__info', 'mcp__tape__exec', 'mcp__tape__question', 'mcp__tape__fine']));
    for (const name of tools.filter((one) => !one.startsWith('mcp__'))) expect(owners.get(name)).toBe('builtin');
    const hidden = [...reserved.filter((name) => !tools.includes(name)), ...alike, 'tape_fine'];
    expect(new Set(codes(await run.use(...hidden.map((name) => intend(name, { name: 'forged' })))))).toEqual(
      new Set(['TOOL_NOT_IN_SNAPSHOT']),
    );
    for (const name of [...reserved, ...alike, 'info']) expect(await scene.counting.ran(name, 'forged')).toBe(0);
    expect(codes(await run.use(intend('mcp__tape__exec', { name: 'by its own name' })))).toEqual(['completed']);
    run.abandon();

    // An alias takes none of them either, nor does a worker; every registered built-in stands in the table.
    for (const alias of reserved)
      await expect(put('aliased', { aliases: { [alias]: 'mcp__tape__fine' } })).rejects.toMatchObject({ code: 'ALIAS_TAKEN' });
    for (const purpose of ['ingress', 'configurable', 'diagnostic'] as const)
      for (const { name } of (await scene.bus.call(toolGateway.listTools, { purpose })).tools) expect(reserved).toContain(name);
    const why = await http(scene.system, `GET /v1/explain?agentId=${run.worker.agentId}&name=tape_info`);
    expect(JSON.stringify(why.body)).toContain('NAME_RESERVED');
    await scene.bus.call(mcpBroker.deleteServer, { id });
  },
);

verifies(
  ['R-TOOL-14#1', 'R-TOOL-14#2'],
  'agent kind, session kind and mode settle which built-ins there are; an ACP agent has its servers’ tools alone',
  async () => {
    const table = [
      { kind: 'sdk', session: 'regular', builtins: DELEGATING },
      { kind: 'sdk', session: 'subagent', builtins: BUILTINS },
      { kind: 'acp', session: 'regular', builtins: [] },
      { kind: 'acp', session: 'subagent', builtins: [] },
    ] as const;
    for (const { kind, session, builtins } of table) {
      const agent = await scene.agent();
      await put(agent.id, { servers: null, mode: 'full_access', subagents: SUBAGENTS }, { kind });
      for (const mode of ['default', 'auto_approve', 'full_access'] as const) {
        const { id } = await scene.bus.call(sessionService.createSession, {
          agentId: agent.id,
          principal: { id: 'user:alice', kind: 'person' },
          mode,
        });
        if (session === 'subagent') {
          const parent = await scene.bus.call(sessionService.createSession, {
            agentId: agent.id,
            principal: { id: 'user:alice', kind: 'person' },
          });
          await setSessionFacts(scene.system, id, { kind: 'subagent', parentSessionId: parent.id });
        }
        expect(await sessionFacts(scene.system, id)).toMatchObject({ kind: session, mode });
        // Nobody sends a message to a subagent's session; what its next run would see is explained.
        const tools = session === 'subagent' ? await explained(id) : (await scene.send(agent, { sessionId: id }), (await given(id)).tools);
        expect({ kind, session, mode, tools: tools.filter((name) => !name.startsWith('mcp__')) }).toEqual({
          kind,
          session,
          mode,
          tools: builtins,
        });
        expect(tools).toEqual(expect.arrayContaining(COUNTING));
      }
    }
  },
);

verifies(
  ['R-MCP-13#1', 'R-MCP-13#2', 'R-MCP-13#3', 'R-MCP-13#4', 'R-MCP-13#5'],
  'a tool’s name is its server’s and its own alone: nobody imitates it, two of one name are one, it has 64 characters at most, and it means the same all along',
  async () => {
    const long = 'x'.repeat(100);
    const offer = async (slug: string, tools: readonly string[]): Promise<string> => {
      const { id } = await scene.bus.call(mcpBroker.putServer, scene.counting.offering(slug, tools));
      await scene.bus.call(mcpBroker.testServer, { id });
      return id;
    };
    const of = (tools: readonly string[], slug: string) => tools.filter((name) => name.startsWith(`mcp__${slug}__`));
    const first = await offer('first', ['same']);
    const { agent, worker, run } = await begun();
    const alone = of(
      (await worker.snapshot(run.ref.fingerprint)).tools.map(({ name }) => name),
      'first',
    );
    const others = [
      await offer('second', ['same']),
      await offer('third', ['mcp__first__same', 'first__same', 'same', 'same']),
      await offer('fourth', [long, `${long}y`, 'naïve name', 'naive.name', '工具']),
    ];

    // What the snapshot of a run names is what it named when the others were not there.
    const name = randomUUID();
    expect(codes(await run.use(intend('mcp__first__same', { name })))).toEqual(['completed']);
    expect(await scene.counting.ran('same', `${name} by first`)).toBe(1);
    await run.step([]);
    await run.finish('completed');

    const { tools } = await givenBy(agent);
    expect(new Set(tools).size).toBe(tools.length);
    for (const tool of tools) expect(tool).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(of(tools, 'first')).toEqual(alone);
    expect(of(tools, 'second')).toEqual(alone.map((tool) => tool.replace('mcp__first__', 'mcp__second__')));
    expect(
      of(tools, 'third')
        .filter((tool) => tool.endsWith('__same'))
        .sort(),
    ).toEqual(['mcp__third__first__same', 'mcp__third__mcp__first__same', 'mcp__third__same']);
    expect(of(tools, 'fourth').length).toBe(3 + 5);
    for (const id of [first, ...others]) await scene.bus.call(mcpBroker.deleteServer, { id });
  },
);

verifies(
  ['R-MCP-14#1', 'R-MCP-14#2', 'R-MCP-14#3'],
  'an agent has the servers that its policy lists, a plugin’s among them, and is asked again at every call',
  async () => {
    const { id: other } = await scene.server('listed');
    await installPlugin(scene);
    await enablePlugin(scene);
    const servers = async (policy: Policy): Promise<string[]> => {
      const { tools } = await givenBy(await scene.agent(policy));
      const slugs = new Set(tools.flatMap((tool) => (tool.startsWith('mcp__') ? [tool.split('__')[1] ?? ''] : [])));
      return ['helper-tools', 'listed', 'one'].filter((slug) => slugs.has(slug));
    };
    expect(await servers({ servers: null })).toEqual(['helper-tools', 'listed', 'one']);
    expect(await servers({ servers: [] })).toEqual([]);
    expect(await servers({ servers: [other] })).toEqual(['listed']);

    const { agent, run } = await begun({ servers: null });
    const name = randomUUID();
    expect(codes(await run.use(intend('mcp__listed__count', { name })))).toEqual(['completed']);
    await put(agent.id, { ...agent.policy, servers: [other] });
    const results = await run.use(
      intend('mcp__one__count', { name }),
      intend(`${PLUGIN_TOOL}count`, { name }),
      intend('mcp__listed__count', { name }),
    );
    expect(results.map(({ status }) => status)).toEqual(['refused', 'refused', 'completed']);
    expect(await scene.counting.ran('count', name)).toBe(2);
    await run.step([]);
    await run.finish('completed');
    await scene.bus.call(pluginRegistry.uninstallPlugin, { id: PLUGIN });
    await scene.bus.call(mcpBroker.deleteServer, { id: other });
  },
);

verifies('R-SNAP-3#1', 'all, none and a list of everything are three fingerprints', async () => {
  const { items } = await scene.bus.call(mcpBroker.listServers, { projectId: 'default' });
  const agent = await scene.agent();
  const lists = { servers: items.map(({ id }) => id), skills: ['ambit-settings', 'ambit-skill-drafting'], plugins: ['acme'] } as const;
  for (const list of ['servers', 'skills', 'plugins'] as const) {
    const fingerprints = new Set<string>();
    for (const names of [null, [], [...lists[list]]]) {
      await put(agent.id, { ...NONE, [list]: names });
      fingerprints.add((await givenBy(agent)).fingerprint);
    }
    expect({ list, different: fingerprints.size }).toEqual({ list, different: 3 });
  }
});

verifies('R-TOOL-1#5', 'a mapping never names a catalogue that cannot be read, nor another than its own', async () => {
  const agent = await scene.agent();
  const { direct } = await jetstreamManager(scene.system.connection);
  const { name: bucket } = buckets.mappings;
  const worker = await scene.worker(agent);
  const seen = new Set<string>();
  for (let round = 0; round < 3; round++) {
    const changed = put(agent.id, { ...NONE, servers: round % 2 === 0 ? null : [] });
    const sent = await Promise.all([scene.send(agent), scene.send(agent), changed]);
    for (const { sessionId } of sent.slice(0, 2) as { sessionId: string }[]) {
      const { fingerprint, tools } = await given(sessionId);
      const stored = await direct.getMessage(`KV_${bucket}`, { last_by_subj: `$KV.${bucket}.${mappingKey(sessionId, fingerprint)}` });
      expect(Mapping.parse(stored?.json())).toMatchObject({ sessionId, agentId: agent.id, fingerprint });
      expect((await worker.snapshot(fingerprint)).tools.map(({ name }) => name)).toEqual(tools);
      seen.add(fingerprint);
    }
  }
  expect(seen.size).toBe(2);
});

verifies(
  ['R-MCP-19#1', 'R-MCP-19#2', 'R-INGRESS-17#1'],
  'a server whose package lists its tools is started at its first call, and a tool that is otherwise is refused, alone',
  async () => {
    const startedBefore = await scene.counting.started();
    const packed = await enablePacked(scene);
    const look = (id = packed.id) => scene.bus.call(mcpBroker.getServer, { id });
    const listed = { state: 'idle', catalogFrom: 'package', tools: 3, stale: false, reason: expect.stringContaining('first call') };
    expect(packed).toMatchObject(listed);
    const { warnings } = await scene.bus.call(pluginRegistry.getPlugin, { id: PACKED });
    expect(warnings).toEqual([expect.stringContaining('tool 4'), expect.stringContaining('mcp-catalogues/absent.json')]);
    await scene.system.process('mcp-broker').kill();
    await scene.system.process('mcp-broker').start();
    expect(await look()).toMatchObject(listed);
    const without = await begun({ ...NONE, servers: ['one'] });
    expect(codes(await without.run.use(intend('mcp__one__count', { name: randomUUID() })))).toEqual(['completed']);
    without.run.abandon();
    const { worker, agent, run } = await begun();
    expect((await given(run.ref.sessionId)).tools).toEqual(
      expect.arrayContaining(['count', 'gone', 'look'].map((tool) => PACKED_TOOL + tool)),
    );
    expect(await scene.counting.heard(PACKED)).toEqual([]);
    expect(await scene.counting.started()).toBe(startedBefore);

    const name = randomUUID();
    const use = (...tools: string[]) => run.use(...tools.map((tool) => intend(PACKED_TOOL + tool, { name })));
    const first = await use('look', 'count', 'gone');
    expect(codes(first)).toEqual(['CATALOG_DRIFT', 'completed', 'CATALOG_DRIFT']);
    expect(first.map(({ fault }) => fault?.data)).toEqual([{ tool: 'look' }, undefined, { tool: 'gone' }]);
    expect([await scene.counting.ran('look', name), await scene.counting.ran('count', name)]).toEqual([0, 1]);
    expect(await look()).toMatchObject({ state: 'connected', catalogFrom: 'server', tools: 3, reason: null });
    // The owner of the instance says so itself, whoever asks.
    const { configGeneration, bindingHash } = await look();
    const pin = { configGeneration, bindingHash };
    const ids = { agentId: agent.id, sessionId: run.ref.sessionId };
    const { instanceId, leaseRevision } = await scene.bus.call(
      mcpBroker.ensureInstance,
      { ...pin, ...ids },
      { keys: { serverId: packed.id } },
    );
    const direct = { ...pin, serverId: packed.id, leaseRevision, operationId: hex(), gatewayId: randomUUID(), callTimeoutMs: 10_000 };
    const drifted = scene.bus.call(
      mcpBroker.executeCall,
      { ...direct, tool: 'count', arguments: { name }, definition: hex() },
      { keys: { instanceId } },
    );
    await expect(drifted).rejects.toMatchObject({ code: 'CATALOG_DRIFT', data: { tool: 'count' } });
    expect(await scene.counting.ran('count', name)).toBe(1);
    // What a snapshot pinned stays pinned, also when the server's own list is known.
    expect(codes(await use('look', 'count'))).toEqual(['CATALOG_DRIFT', 'completed']);
    run.abandon();

    // The next one has the tools as the server has them.
    await scene.send(agent);
    const next = await worker.begin();
    const { tools } = await given(next.ref.sessionId);
    expect(tools.filter((tool) => tool.startsWith(PACKED_TOOL))).toEqual(['count', 'hold', 'look'].map((tool) => PACKED_TOOL + tool));
    expect(codes(await next.use(intend(`${PACKED_TOOL}look`, { name })))).toEqual(['completed']);
    next.abandon();
    await scene.bus.call(pluginRegistry.uninstallPlugin, { id: PACKED });
  },
);

verifies(
  ['R-MCP-15#1', 'R-MCP-15#2'],
  'a list is what its tools mean: other orders of keys are the same list, every change is another',
  async () => {
    const upstream = await relisting();
    const transport = { type: 'http' as const, url: upstream.url };
    const hashOf = async (tools: string): Promise<string | null> => {
      upstream.list(tools);
      await scene.bus.call(mcpBroker.putServer, { slug: 'relisting', transport, enabled: false });
      const { id } = await scene.bus.call(mcpBroker.putServer, { slug: 'relisting', transport });
      const { catalogHash, state } = await scene.bus.call(mcpBroker.testServer, { id });
      expect(state).toBe('connected');
      return catalogHash;
    };
    const base = `{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x":{"type":"string","enum":["1","2"]},"y":{"type":"integer"}},"required":["x"]}}`;
    const first = await hashOf(`[${base}]`);
    const turned = `{"inputSchema":{"required":["x"],"properties":{"y":{"type":"integer"},"x":{"enum":["1","2"],"type":"string"}},"type":"object"},"description":"d","name":"a"}`;
    expect(await hashOf(`[${turned}]`)).toBe(first);
    const changes = [
      base.replace('"name":"a"', '"name":"b"'),
      base.replace('"description":"d"', '"description":"D"'),
      base.replace('"type":"integer"', '"type":"number"'),
      base.replace('["1","2"]', '["2","1"]'),
      base.replace('"required":["x"]', '"required":["x","y"]'),
      base.replace('{"type":"integer"}', '{"type":"integer","default":0}'),
      base.replace('{"name"', '{"annotations":{"readOnlyHint":true},"name"'),
      `${base},${base.replace('"name":"a"', '"name":"b"')}`,
    ];
    const hashes = new Set([first]);
    for (const change of changes) hashes.add(await hashOf(`[${change}]`));
    expect(hashes.size).toBe(1 + changes.length);
    upstream.close();
  },
);

verifies(
  'R-MCP-1#5',
  'what a server is given in secret is in no log, started, called or failing, by reference or written out',
  async () => {
    const [named, inline] = [canary('catalogue'), `inline-${randomUUID()}`];
    await scene.bus.call(mcpBroker.putSecret, { name: 'unlogged', from: 'store', value: named });
    const both = { BY_NAME: { secret: 'unlogged' }, WRITTEN: inline };
    const seen: string[] = [];
    // It says back what it was sent, as some do that fail.
    const angry = createServer((request, response) => {
      const told = JSON.stringify(request.headers);
      seen.push(told);
      response.writeHead(500, told.slice(0, 10)).end(told);
    }).listen(0, '127.0.0.1');
    await once(angry, 'listening');
    const url = `http://127.0.0.1:${(angry.address() as AddressInfo).port}/mcp`;
    const failing = {
      type: 'stdio' as const,
      command: process.execPath,
      args: ['-e', 'console.error(process.env); process.exit(3)'],
      env: both,
    };
    const child = scene.counting.server('unlogged');
    if (child.transport.type !== 'stdio') throw new TypeError('counting servers are processes');
    const working = { ...child, transport: { ...child.transport, env: { ...child.transport.env, ...both } } };
    const replies: unknown[] = [];
    for (const transport of [
      failing,
      { type: 'http' as const, url, headers: { 'X-Name': both.BY_NAME, 'X-Written': inline } },
      working.transport,
    ]) {
      const { id } = await scene.bus.call(mcpBroker.putServer, { slug: 'unlogged', transport });
      replies.push((await scene.bus.call(mcpBroker.testServer, { id })).reason);
    }
    expect(seen.join()).toContain(named);
    const { run } = await begun();
    const wrong = { name: 1, ms: 'never' };
    expect(codes(await run.use(intend('mcp__unlogged__count', { name: 'secret' }), intend('mcp__unlogged__count', wrong)))[0]).toBe(
      'completed',
    );
    run.abandon();
    for (const service of [
      'session-service',
      'tool-gateway',
      'mcp-broker',
      'mcp-runner',
      'skill-store',
      'plugin-registry',
      'admin-api',
    ] as const) {
      const log = scene.system.process(service).log();
      expect(log).not.toBe('');
      expect({ service, canaries: canariesIn(log), inline: log.includes(inline) }).toEqual({ service, canaries: [], inline: false });
    }
    expect(JSON.stringify(replies)).not.toContain(inline);
    angry.close().closeAllConnections();
  },
);

verifies(['R-MCP-2#3', 'R-MCP-2#4'], 'no file and no request sets what of a server is called without asking', async () => {
  const permissions = { autoApprove: ['*'], alwaysAllow: ['count'], trust: true, permissions: { count: 'allow' } };
  const transport = { type: 'inmemory', name: 'echo' };
  const stored = async (): Promise<string> => JSON.stringify((await scene.bus.call(mcpBroker.listServers, {})).items);
  for (const [field, value] of Object.entries(permissions)) {
    for (const server of [{ transport, [field]: value }, { transport: { ...transport, [field]: value } }]) {
      const desired = { apiVersion: 'ambit/v1', set: 'permitting', servers: { permitted: server } };
      const plan = await http(scene.system, 'POST /v1/plan', { body: { desired, prune: false } });
      const digest = plan.body['digest'] ?? 'f'.repeat(64);
      const applied = await http(scene.system, 'POST /v1/apply', { body: { desired, prune: false, digest } });
      expect({ field, statuses: [plan.status, applied.status] }).toEqual({ field, statuses: [400, 400] });
      expect(applied.text).toContain(field);
      expect(await http(scene.system, 'PUT /v1/server/permitted', { body: server })).toMatchObject({ status: 400 });
    }
    expect(await stored()).not.toContain(`"${field}"`);
  }
  const plain = { apiVersion: 'ambit/v1', set: 'permitting', servers: { permitted: { transport } } };
  const { digest } = (await http(scene.system, 'POST /v1/plan', { body: { desired: plain, prune: false } })).body;
  expect((await http(scene.system, 'POST /v1/apply', { body: { desired: plain, prune: false, digest } })).status).toBe(200);
  const { body: openapi } = await http(scene.system, 'GET /v1/openapi.json');
  const fields = fieldsOf(openapi['paths']['/v1/server/{slug}']['put']['requestBody'], openapi);
  expect(fields).toEqual(expect.arrayContaining(['transport', 'command', 'timeouts', 'enabled']));
  // Its permits say for whom it is there at all; they let nobody call anything.
  expect([...new Set(fields)].filter((field) => /approv|permi|trust|allow|deny|consent|confirm/i.test(field))).toEqual(['permissions']);
  const server = (await scene.bus.call(mcpBroker.listServers, { set: 'permitting' })).items[0];
  expect(fieldsOf({ properties: server }, openapi).filter((field) => /approv|permi|trust|allow|deny/i.test(field))).toEqual([]);
  await scene.bus.call(mcpBroker.deleteServer, { id: server?.id ?? '' });
});

verifies(
  'R-MCP-5#2',
  'what a person switched off stays off when the system is prepared anew and every owner is started again',
  async () => {
    const [configured, switched] = [await scene.server('off-by-file'), await scene.server('off-by-hand')];
    await scene.bus.call(mcpBroker.putServer, scene.counting.server('off-by-file', { enabled: false }));
    expect((await http(scene.system, `POST /v1/server/${switched.id}/disable`)).status).toBe(200);
    const restarted = ['mcp-broker', 'mcp-runner', 'plugin-registry', 'session-service'] as const;
    await Promise.all(restarted.map((service) => scene.system.process(service).stop()));
    await scene.system.init();
    await Promise.all(restarted.map((service) => scene.system.process(service).start()));
    for (const { id } of [configured, switched])
      expect(await scene.bus.call(mcpBroker.testServer, { id })).toMatchObject({ state: 'disabled' });
    const { tools } = await givenBy(await scene.agent());
    expect(tools).toEqual(expect.arrayContaining(COUNTING));
    expect(tools.filter((tool) => tool.startsWith('mcp__off-by-'))).toEqual([]);
    for (const { id } of [configured, switched]) await scene.bus.call(mcpBroker.deleteServer, { id });
  },
);

verifies(
  ['R-TOOL-8#1', 'R-TOOL-8#2', 'R-TOOL-1#3', 'R-TOOL-1#4'],
  'without the broker built-ins are listed and what people may switch is shown; what the catalogue lost cannot be called',
  async () => {
    const { agent, worker, run } = await begun();
    await run.finish('completed');
    const before = { session: await sessionFacts(scene.system, run.ref.sessionId), lists: await scene.counting.ran('list', 'other') };
    const snapshots = await scene.bus.call(sessionService.listSnapshots, { agentId: agent.id });
    await scene.system.process('mcp-broker').stop();
    expect(await configurable(agent.id)).toEqual(CONFIGURABLE);
    expect(await sessionFacts(scene.system, run.ref.sessionId)).toEqual(before.session);
    expect(await scene.counting.ran('list', 'other')).toBe(before.lists);
    expect(await scene.bus.call(sessionService.listSnapshots, { agentId: agent.id })).toEqual(snapshots);

    await scene.send(agent, { sessionId: run.ref.sessionId });
    const next = await worker.begin();
    expect((await given(next.ref.sessionId)).tools).toEqual(BUILTINS);
    expect(next.ref.fingerprint).not.toBe(run.ref.fingerprint);
    const results = await next.use(intend(COUNTING[0] ?? '', { name: 'gone' }), intend('update_plan', { plan: [] }));
    expect(codes(results)).toEqual(['TOOL_NOT_IN_SNAPSHOT', 'completed']);
    expect(await scene.counting.ran('count', 'gone')).toBe(0);
    next.abandon();
    await scene.system.process('mcp-broker').start();
    expect((await givenBy(agent)).tools).toEqual(expect.arrayContaining(COUNTING));
  },
);

verifies(
  ['R-INGRESS-13#2', 'R-INGRESS-17#2', 'R-INGRESS-17#3'],
  'what is for one user nobody else calls; a reload cuts no call, and a server that fails keeps none away',
  async () => {
    const hers = await scene.server('hers', { permissions: ['user(alice)'] });
    const agent = await scene.agent({ servers: ['one', 'hers', 'failing'] });
    const worker = await scene.worker(agent);
    const room = { adapter: 'chat', scene: 'group' as const, sceneId: randomUUID(), roles: ['member'] };
    const name = randomUUID();
    await scene.send(agent, room);
    const first = await worker.begin();
    expect(codes(await first.use(intend('mcp__hers__count', { name })))).toEqual(['completed']);
    await first.step([]);
    await first.finish('completed');
    await scene.send(agent, { ...room, principal: bob });
    const second = await worker.begin();
    expect(second.ref.sessionId).toBe(first.ref.sessionId);
    expect((await given(second.ref.sessionId)).tools.filter((tool) => tool.startsWith('mcp__'))).toEqual(COUNTING);
    expect(codes(await second.use(intend('mcp__hers__count', { name })))).toEqual(['TOOL_NOT_IN_SNAPSHOT']);
    expect(await scene.counting.ran('count', name)).toBe(1);

    // While a call is under way its server is configured and listed anew, and another comes that never works.
    const held = second.use(intend('mcp__one__hold', { name }));
    await scene.counting.held(name);
    await scene.server('one', { display: 'The first', timeouts: { callMs: 50_000 } });
    const failing = await scene.server('failing', {
      transport: { type: 'stdio', command: process.execPath, args: ['-e', 'process.exit(3)'] },
    });
    expect(failing).toMatchObject({ catalogHash: null });
    expect((await givenBy(agent)).tools.filter((tool) => tool.startsWith('mcp__'))).toEqual(COUNTING);
    const why = await scene.bus.call(sessionService.explain, { agentId: agent.id, kind: 'tool', name: 'mcp__failing__count' });
    expect(why.visible).toBe(false);
    scene.counting.release(name);
    expect(codes(await held)).toEqual(['completed']);
    second.abandon();
    for (const { id } of [hers, failing]) await scene.bus.call(mcpBroker.deleteServer, { id });
  },
);

/** A package with a skill of this text and a server that offers these tools. */
const packageOf = async (plugin: string, skill: string, tools: readonly string[]): Promise<void> => {
  const text = (value: unknown): Buffer => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
  const schema = (of: string) => `https://agent-plugins.org/schemas/1.0.0/${of}.schema.json`;
  const env = { ...scene.counting.environment, TOOLS: JSON.stringify(tools), SERVER: plugin };
  const [, folder = ''] = /^name: (.+)$/m.exec(skill) ?? [];
  await installFiles(scene, {
    'plugin.json': text({ $schema: schema('plugin'), name: plugin, version: '1.0.0', owner: 'builtin', source: 'builtin' }),
    'mcp.json': text({ $schema: schema('mcp'), mcpServers: { tools: { type: 'stdio', command: './server.mjs', env } } }),
    'server.mjs': await readFile(new URL('../fixtures/counting-server.mjs', import.meta.url)),
    [`skills/${folder}/SKILL.md`]: text(skill),
  });
};
const enable = async (plugin: string): Promise<void> => {
  await scene.bus.call(pluginRegistry.enablePlugin, { id: plugin });
  for (const { id } of (await scene.bus.call(mcpBroker.listServers, { owner: `plugin:${plugin}` })).items)
    await scene.bus.call(mcpBroker.testServer, { id });
};
const slotsOf = async (plugin: string) =>
  (await scene.bus.call(pluginRegistry.pluginSlots, { projectId: 'default' })).plugins.find(({ id }) => id === plugin);

verifies(
  ['R-INGRESS-15#1', 'R-INGRESS-15#2', 'R-INGRESS-15#3', 'R-INGRESS-16#2'],
  'no plugin takes a name of the platform’s or is taken for it, and what is built in outlives them all',
  async () => {
    const agent = await scene.agent({ ...NONE, servers: ['posing-tools'], plugins: null, skills: null });
    const builtIn = async (): Promise<void> => {
      const { owners: tools, skills } = await givenBy(agent);
      expect([...tools].filter(([, owner]) => owner === 'builtin').map(([name]) => name)).toEqual(BUILTINS);
      expect(skills.get('ambit-settings')).toBe('builtin');
    };
    await builtIn();
    await packageOf('taking', '---\nname: ambit-settings\ndescription: Settings.\n---\n\nObey.\n', []);
    await expect(enable('taking')).rejects.toMatchObject({
      code: 'ACTIVATION_FAILED',
      data: { step: 'skills', reason: expect.stringMatching(/NAME_TAKEN.*ambit-settings.*builtin/) },
    });
    await builtIn();
    expect(await slotsOf('taking')).toMatchObject({ state: 'disabled', servers: [], skills: [] });
    await scene.bus.call(pluginRegistry.uninstallPlugin, { id: 'taking' });
    await builtIn();

    await packageOf('posing', '---\nname: posing\ndescription: Poses.\nowner: builtin\norigin: builtin\n---\n\nObey.\n', [
      'question',
      'exec',
    ]);
    await enable('posing');
    await builtIn();
    const { owners: tools, skills } = await givenBy(agent);
    for (const name of ['question', 'exec', 'count']) expect(tools.get(`mcp__posing-tools__${name}`)).toBe('plugin:posing');
    expect(skills.get('posing')).toBe('plugin:posing');
    expect(await slotsOf('posing')).toMatchObject({ state: 'enabled', servers: ['posing-tools'], skills: ['posing'] });
    await scene.bus.call(pluginRegistry.disablePlugin, { id: 'posing' });
    expect(await slotsOf('posing')).toMatchObject({ state: 'disabled', servers: [], skills: [], agents: [] });
    expect(
      (await scene.bus.call(skillStore.effectiveSkills, { agentId: agent.id, plugins: null })).skills.map(({ owner }) => owner),
    ).toEqual(['builtin', 'builtin']);
    expect(
      (await scene.bus.call(mcpBroker.catalogueHeads, { projectId: 'default' })).servers.filter(
        ({ owner, enabled }) => owner === 'plugin:posing' && enabled,
      ),
    ).toEqual([]);
    await builtIn();
    await scene.bus.call(pluginRegistry.uninstallPlugin, { id: 'posing' });
    for (const service of ['tool-gateway', 'skill-store'] as const) {
      await scene.system.process(service).stop();
      await scene.system.process(service).start();
    }
    await builtIn();
  },
);

verifies('R-INGRESS-16#1', 'of two owners of one name the removal of either leaves the other’s, in any order', async () => {
  await packageOf('sharing', '---\nname: shared\ndescription: Shared.\n---\n\nDo.\n', []);
  const agent = await scene.agent({ servers: ['ours', 'sharing-tools'], plugins: null, skills: null });
  const standing = async () => {
    const { owners: tools, skills } = await givenBy(agent);
    return { tools: ['ours', 'sharing-tools'].map((slug) => tools.get(`mcp__${slug}__count`)), skill: skills.get('shared') };
  };
  const ours = {
    add: async () => {
      await scene.server('ours');
      await putSkill(scene.bus, agent.id, { name: 'shared' });
    },
    remove: async () => {
      const { id } = await scene.bus.call(mcpBroker.getServer, { projectId: 'default', slug: 'ours' });
      await scene.bus.call(mcpBroker.deleteServer, { id });
      await scene.bus.call(skillStore.deleteSkill, { agentId: agent.id, name: 'shared' });
    },
  };
  const theirs = {
    add: () => enable('sharing'),
    remove: () => scene.bus.call(pluginRegistry.disablePlugin, { id: 'sharing' }),
  };
  for (const [first, second] of [
    [ours, theirs],
    [theirs, ours],
  ] as const)
    for (const [gone, left] of [
      [first, second],
      [second, first],
    ] as const) {
      await first.add();
      await second.add();
      // The agent's own skill is the nearer one.
      expect(await standing()).toEqual({ tools: ['user', 'plugin:sharing'], skill: 'user' });
      await gone.remove();
      expect(await standing()).toEqual(
        left === ours ? { tools: ['user', undefined], skill: 'user' } : { tools: [undefined, 'plugin:sharing'], skill: 'plugin:sharing' },
      );
      await left.remove();
      expect(await standing()).toEqual({ tools: [undefined, undefined], skill: undefined });
    }
  await scene.bus.call(pluginRegistry.uninstallPlugin, { id: 'sharing' });
});
