import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { sha256Hex } from '@ambit/capability';
import { epochKey, journalSubject, sessionService } from '@ambit/contracts';
import { Ingress } from '../src/ingress.service.js';
import { ask, bob, call, codeOf, Fixture } from './fixture.js';
import { PLUGIN, registration, server, SKILL, type World } from './world.js';
import { startAlone } from '../../../test/system/alone.js';
import { verifies } from '../../../test/verifies.js';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await Fixture.start();
}, 120_000);
afterAll(() => fixture.stop());
afterEach(() => {
  Object.assign(fixture.world, { tools: [registration('question')], servers: [], skills: [], plugins: [] });
  fixture.world.changed();
});

const compositions = () => fixture.replicas[0]?.app.get(Ingress).compositions ?? 0;

async function given(agentId: string): Promise<string> {
  const attempt = await fixture.begin(agentId);
  await fixture.step(attempt, 0);
  await fixture.finish(attempt, 'completed');
  return attempt.ref.fingerprint;
}

it('an unchanged world gives the same fingerprint without composing again; a changed one another', async () => {
  const agent = await fixture.agent();
  fixture.world.servers = [server('files', ['list', 'get'])];
  fixture.world.changed();
  await fixture.send(agent);
  const first = await given(agent.id);
  const before = compositions();
  const pages = fixture.world.asked.get('pages');
  await fixture.send(agent);
  expect(await given(agent.id)).toBe(first);
  expect(compositions()).toBe(before);
  expect(fixture.world.asked.get('pages')).toBe(pages);
  fixture.world.tools.push(registration('update_plan'));
  fixture.world.changed();
  await fixture.send(agent);
  expect(await given(agent.id)).not.toBe(first);
  const { text, agentId } = await fixture.bus.call(sessionService.readSnapshot, { fingerprint: first });
  expect(agentId).toBe(agent.id);
  expect(JSON.parse(text)).toMatchObject({ tools: [{ name: 'mcp__files__get' }, { name: 'mcp__files__list' }, { name: 'question' }] });
  expect((await fixture.bus.call(sessionService.listSnapshots, { agentId: agent.id })).items).toHaveLength(2);
  expect(await codeOf(fixture.bus.call(sessionService.readSnapshot, { fingerprint: '0'.repeat(64) }))).toBe('SNAPSHOT_UNKNOWN');
});

it('an owner that was taken away moves the runs that have it, and withdraws what is asked about it', async () => {
  const owner = 'plugin:kit';
  fixture.world.servers = [server('kit', ['go'], { owner })];
  fixture.world.plugins = [
    { id: 'kit', version: '1.0.0', digest: '0'.repeat(64), state: 'enabled', servers: ['kit'], skills: [], agents: [] },
  ];
  fixture.world.changed();
  const agent = await fixture.agent();
  await fixture.send(agent);
  const attempt = await fixture.begin(agent.id);
  const { runId, originRunId } = attempt.ref;
  await fixture.step(attempt, 0, [call('c0', 'mcp__kit__go')]);
  await fixture.bus.call(sessionService.requestInteractions, {
    runId,
    step: 0,
    requests: [ask(originRunId, 'c0', { tool: 'mcp__kit__go' })],
  });
  await fixture.finish(attempt, 'waiting');
  const before = await fixture.bus.call(sessionService.getAuthority, { runId });
  expect(before.revokedOwners).toEqual([]);

  const fence = Date.now();
  await fixture.write(`$KV.ambit_epochs.${epochKey.fence('plugin-registry', owner)}`, fence);
  fixture.world.servers = [];
  fixture.world.plugins = [];
  fixture.world.changed();
  expect(await fixture.bus.call(sessionService.revokeOwner, { owner, service: 'plugin-registry', fence })).toEqual({ runs: 1 });
  expect((await fixture.fact(journalSubject.runState(runId)))?.seq).toBeGreaterThan(before.stateSequence);
  expect((await fixture.bus.call(sessionService.getAuthority, { runId })).revokedOwners).toEqual([owner]);
  const resumed = await fixture.begin(agent.id);
  expect(resumed.ref.fingerprint).not.toBe(attempt.ref.fingerprint);
  expect(resumed.start.messages.at(-1)).toMatchObject({ results: [{ callId: 'c0', fault: { code: 'TOOL_GONE' } }] });
});

it('explains the first reason why a tool is absent', async () => {
  const agent = await fixture.agent({ policy: { servers: [], skills: [] } });
  fixture.world.servers = [server('files', ['list'])];
  fixture.world.changed();
  const absent = (name: string) => fixture.bus.call(sessionService.explain, { agentId: agent.id, kind: 'tool', name });
  expect(await absent('mcp__files__list')).toMatchObject({ visible: false, summary: expect.stringContaining('SERVER_NOT_ALLOWED') });
  expect(await absent('nothing_like_it')).toMatchObject({ visible: false, summary: expect.stringContaining('NOT_REGISTERED') });
  const { sessionId } = await fixture.send(agent);
  const inSession = await fixture.bus.call(sessionService.explain, { sessionId, kind: 'tool', name: 'question' });
  expect(inSession).toMatchObject({ visible: true, fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/) });
  expect(inSession.chain.map(({ step }) => step)).toEqual(expect.arrayContaining(['snapshot', 'fence']));
});

it('a refresh gives the run another fingerprint, and the next attempt begins with the job’s', async () => {
  const agent = await fixture.agent();
  await fixture.send(agent);
  const { job } = await fixture.take(agent.id);
  const attempt = await fixture.attempt(agent.id, job);
  fixture.world.tools.push(registration('update_plan'));
  fixture.world.changed();
  const { fingerprint } = await fixture.bus.call(
    sessionService.refreshRun,
    { ...attempt.ref, token: attempt.token },
    { keys: { agentId: agent.id } },
  );
  expect(fingerprint).not.toBe(job.fingerprint);
  expect(await fixture.bus.call(sessionService.getAuthority, { runId: job.runId })).toMatchObject({ fingerprint });
  await fixture.attempt(agent.id, job);
  expect(await fixture.bus.call(sessionService.getAuthority, { runId: job.runId })).toMatchObject({ fingerprint: job.fingerprint });
});

it('refreshes that are asked for at the same moment are each answered', async () => {
  const agent = await fixture.agent();
  await fixture.send(agent);
  const { job } = await fixture.take(agent.id);
  const { ref, token } = await fixture.attempt(agent.id, job);
  const refresh = () => fixture.bus.call(sessionService.refreshRun, { ...ref, token }, { keys: { agentId: agent.id } });
  const all = await Promise.all(Array.from({ length: 16 }, refresh));
  expect(new Set(all.map(({ fingerprint }) => fingerprint))).toEqual(new Set([job.fingerprint]));
});

it('a tape can be listed, searched and read around', async () => {
  const agent = await fixture.agent();
  const { sessionId } = await fixture.send(agent, 'The invoice 4711 is overdue; nul \u0000 and half \ud83d of a pair survive');
  const { items } = await fixture.bus.call(sessionService.listTape, { sessionId });
  expect(items).toMatchObject([{ id: 1, kind: 'message', role: 'user' }]);
  const found = await fixture.bus.call(sessionService.searchTape, { sessionId, query: 'overdue "invoice 4711" -unpaid' });
  expect(found.entries).toMatchObject([{ id: 1, kind: 'message', excerpt: expect.stringContaining('invoice') }]);
  expect((await fixture.bus.call(sessionService.searchTape, { sessionId, query: "' OR 1=1 --" })).entries).toEqual([]);
  const around = await fixture.bus.call(sessionService.tapeContext, { sessionId, entryIds: [1], entryBytes: 10 });
  expect(around.entries).toMatchObject([{ id: 1, text: 'The invoic', truncated: true }]);
});

it('agents: ties, aliases, versions, deletion', async () => {
  const sceneId = crypto.randomUUID();
  const match = [{ adapter: 'chat', sceneId }];
  const agent = await fixture.agent({ match });
  const conflicting = fixture.agent({ match: [{ sceneId, contentContains: 'refund' }] });
  expect(await codeOf(conflicting)).toBe('AGENT_AMBIGUOUS');
  expect(await codeOf(fixture.agent({ policy: { aliases: { exec: 'mcp__files__list' } } }))).toBe('ALIAS_TAKEN');
  expect(await codeOf(fixture.bus.call(sessionService.putAgent, { ...agent, model: 'other', ifVersion: 7 }))).toBe('VERSION_CONFLICT');
  expect(await fixture.bus.call(sessionService.putAgent, { ...agent })).toEqual(agent);
  const inbound = { adapter: 'chat', endpoint: '', scene: 'group' as const, sceneId, content: 'hi', media: [] };
  expect(await fixture.bus.call(sessionService.matchAgent, inbound)).toEqual({ agentId: agent.id, version: 1, rule: 0 });
  expect(await codeOf(fixture.bus.call(sessionService.matchAgent, { ...inbound, sceneId: 'elsewhere' }))).toBe('NO_AGENT');
  const { sessionId } = await fixture.send(agent);
  expect(await codeOf(fixture.bus.call(sessionService.deleteAgent, { id: agent.id }))).toBe('AGENT_IN_USE');
  expect(await fixture.bus.call(sessionService.deleteSession, { id: sessionId })).toEqual({ deleted: true });
  expect(await fixture.bus.call(sessionService.deleteAgent, { id: agent.id })).toEqual({ deleted: true });
  const created = { principal: bob, agentId: (await fixture.agent()).id, skills: ['no-such-skill'] };
  expect(await codeOf(fixture.bus.call(sessionService.createSession, created))).toBe('SKILL_UNKNOWN');
});

type Spec = Omit<Parameters<Fixture['agent']>[0] & object, 'id'>;
/** One world, and the changes of it that a catalogue can show. */
const FILES = server('files', ['list', 'get']);
const POLICY = { servers: null, skills: null, plugins: null };

interface Input {
  readonly tools?: World['tools'];
  readonly servers?: World['servers'];
  readonly skills?: readonly World['skills'][number][];
  readonly plugins?: readonly World['plugins'][number][];
  readonly spec?: Spec;
  readonly message?: Parameters<Fixture['send']>[2];
}
const UPDATE = registration('update_plan');
const head = (more: Partial<(typeof FILES)['head']>): Input => ({ servers: [{ ...FILES, head: { ...FILES.head, ...more } }] });
const listing = (more: Partial<(typeof FILES)['tools'][number]>): Input => ({
  servers: [
    { head: { ...FILES.head, catalogHash: sha256Hex(JSON.stringify(more)) }, tools: FILES.tools.map((tool) => ({ ...tool, ...more })) },
  ],
});
const builtIn = (more: Parameters<typeof registration>[1]): Input => ({
  tools: [registration('question'), registration('update_plan', more)],
});

const CHANGES: Readonly<Record<string, Input>> = {
  'a tool of the platform more': { tools: [registration('question'), UPDATE, registration('tape_search', { exposure: 'system-model' })] },
  'a tool of the platform fewer': { tools: [registration('question')] },
  'a description of a tool': builtIn({ description: 'Another' }),
  'a schema of a tool': builtIn({ inputSchema: { type: 'object', required: ['plan'] } }),
  'an output schema of a tool': builtIn({ outputSchema: { type: 'object' } }),
  'an effect of a tool': builtIn({ effect: 'write' }),
  'an access of a tool': builtIn({ access: 'settings' }),
  'a tool that may run beside others': builtIn({ parallel: true }),
  'a version of a tool': builtIn({ version: 2 }),
  'a server fewer': { servers: [] },
  'a server more': { servers: [FILES, server('mail', ['send'])] },
  'a generation of a server': head({ configGeneration: 2 }),
  'a binding of a server': head({ bindingHash: 'c'.repeat(64) }),
  'a catalogue of a server': head({ catalogHash: 'd'.repeat(64) }),
  'a slug of a server': head({ slug: 'folders' }),
  'an owner of a server': head({ owner: 'plugin:kit' }),
  'a server that was removed and made again': head({ serverId: '0190f000-0000-7000-8000-00000000000a' }),
  'a tool of a server that only reads': head({ readOnly: ['list'] }),
  'a description of a server’s tool': listing({ description: 'Another' }),
  'a schema of a server’s tool': listing({ inputSchema: { type: 'object', required: ['path'] } }),
  'a skill fewer': { skills: [] },
  'a name of a skill': { skills: [{ ...SKILL, name: 'sorting' }] },
  'a content of a skill': { skills: [{ ...SKILL, digest: 'e'.repeat(64) }] },
  'a description of a skill': { skills: [{ ...SKILL, description: 'Another' }] },
  'an owner of a skill': { skills: [{ ...SKILL, owner: 'builtin' }] },
  'a plugin fewer': { plugins: [] },
  'a version of a plugin': { plugins: [{ ...PLUGIN, version: '1.0.1' }] },
  'a plugin that is off': { plugins: [{ ...PLUGIN, state: 'disabled' }] },
  'no server in the policy': { spec: { policy: { ...POLICY, servers: [] } } },
  'every server by its name': { spec: { policy: { ...POLICY, servers: ['files'] } } },
  'no skill in the policy': { spec: { policy: { ...POLICY, skills: [] } } },
  'no plugin in the policy': { spec: { policy: { ...POLICY, plugins: [] } } },
  'a tool that is switched off': { spec: { policy: { ...POLICY, disabledTools: ['update_plan'] } } },
  'a short name': { spec: { policy: { ...POLICY, aliases: { list: 'mcp__files__list' } } } },
  'a subagent': { spec: { policy: { ...POLICY, subagents: { helper: { agent: 'self', description: 'Helps' } } } } },
  'a description of a subagent': { spec: { policy: { ...POLICY, subagents: { helper: { agent: 'self', description: 'Helps more' } } } } },
  'a model': { spec: { model: 'another' } },
  'a workspace': { message: { workspaceId: 'desk' } },
  'a choice of skills': { message: { skills: [] } },
};

/** What an agent of this name is given of the world with these parts. */
async function fingerprintOf(id: string, input: Input): Promise<string> {
  const { tools = [registration('question'), UPDATE], servers = [FILES], skills = [SKILL], plugins = [PLUGIN] } = input;
  Object.assign(fixture.world, { tools: [...tools], servers: [...servers], skills: [...skills], plugins: [...plugins] });
  fixture.world.changed();
  await fixture.bus.call(sessionService.putAgent, { id, policy: POLICY, ...input.spec });
  const { runId } = await fixture.send({ id }, 'Hello', { sceneId: crypto.randomUUID(), ...input.message });
  const { fingerprint } = await fixture.bus.call(sessionService.getRun, { id: runId ?? '' });
  return fingerprint;
}

verifies('R-SNAP-2#1', 'each part of the world that a catalogue shows moves the fingerprint, and nothing is left moved', {
  timeoutMs: 120_000,
  shows: async () => {
    const { id } = await fixture.agent();
    const first = await fingerprintOf(id, {});
    for (const [change, input] of Object.entries(CHANGES))
      expect({ change, isMoved: (await fingerprintOf(id, input)) !== first }).toEqual({ change, isMoved: true });
    expect(await fingerprintOf(id, {})).toBe(first);
    const { id: other } = await fixture.agent();
    expect(await fingerprintOf(other, {})).not.toBe(first);
  },
});

it('explains how a tool got in, and what a source that is away leaves out', async () => {
  const agent = await fixture.agent();
  fixture.world.servers = [server('files', ['list'])];
  fixture.world.changed();
  await fixture.world.loseSkills();
  const explained = await fixture.bus.call(sessionService.explain, { agentId: agent.id, kind: 'tool', name: 'mcp__files__list' });
  expect(explained).toMatchObject({ visible: true, fingerprint: null });
  const steps = ['agent', 'source skills', 'owner', 'slot', 'reserved', 'composition', 'exposure', 'pin', 'health', 'permission'];
  expect(explained.chain.map(({ step }) => step)).toEqual(expect.arrayContaining(steps));
  const received = await fixture.send(agent);
  const { text } = await fixture.bus.call(sessionService.readSnapshot, { fingerprint: (await fixture.take(agent.id)).job.fingerprint });
  expect(received.runId).not.toBeNull();
  expect(JSON.parse(text)).toMatchObject({ skills: [], tools: [{ name: 'mcp__files__list' }, { name: 'question' }] });
  fixture.world.findSkills();
});

verifies('R-SNAP-3#1', 'all servers, none and every one by its name are three fingerprints', async () => {
  const agent = await fixture.agent();
  fixture.world.servers = [server('files', ['list'])];
  fixture.world.changed();
  const prints: string[] = [];
  for (const servers of [null, [], ['files']]) {
    await fixture.bus.call(sessionService.putAgent, { id: agent.id, policy: { servers, skills: null, plugins: null } });
    await fixture.send(agent);
    prints.push(await given(agent.id));
  }
  expect(new Set(prints).size).toBe(3);
});

verifies(
  ['R-SNAP-2#2', 'R-EXEC-2#1', 'R-INGRESS-1#3'],
  'who asks, in which session and mode, and under which rules, is no part of the fingerprint',
  async () => {
    const agent = await fixture.agent();
    await fixture.send(agent);
    const attempt = await fixture.begin(agent.id);
    const first = attempt.ref.fingerprint;
    const { text } = await fixture.bus.call(sessionService.readSnapshot, { fingerprint: first });
    const rules = [{ decision: 'ask' as const, tool: '*' }];
    await fixture.bus.call(sessionService.putAgent, {
      id: agent.id,
      policy: { servers: null, skills: null, plugins: null, mode: 'full_access', rules },
    });
    await fixture.send(agent, 'Hello', { principal: bob, sceneId: 'elsewhere', mode: 'default' });
    expect(await given(agent.id)).toBe(first);
    // What the first run's model is given stays, whatever comes to the catalogue while it runs.
    fixture.world.tools.push(registration('update_plan'));
    fixture.world.changed();
    await fixture.send(agent, 'Hello', { sceneId: 'later' });
    expect(await given(agent.id)).not.toBe(first);
    const { fingerprint } = await fixture.bus.call(sessionService.getAuthority, { runId: attempt.ref.runId });
    expect(fingerprint).toBe(first);
    expect((await fixture.bus.call(sessionService.readSnapshot, { fingerprint: first })).text).toBe(text);
  },
);

verifies('R-SNAP-2#3', 'the same world in another order, in another process, time zone and language, is the same bytes', {
  timeoutMs: 120_000,
  shows: async () => {
    const { id } = await fixture.agent();
    // Names that languages sort, and fold, each in its own way.
    const names = ['Zeta', 'alpha', 'I', 'i', 'istanbul', 'ISTANBUL', 'zebra', 'Aal', 'ch', 'cz', '_x', '10', '9', 'ısı', 'ångström', 'öl'];
    const tools = [UPDATE, registration('question')];
    const skills = ['zeta', 'alpha', 'i', 'ch', 'cz', 'aal', '10', '9'].map((name) => ({ ...SKILL, name: `skill-${name}` }));
    const servers = [server('files', names), server('zoo', [...names].reverse()), server('ich', ['i', 'I'])];
    const plugins = ['kit', 'iris', 'zoo'].map((plugin) => ({ ...PLUGIN, id: plugin }));
    const world: Input = { tools, servers, skills, plugins };
    const turned: Input = {
      tools: [...tools].reverse(),
      skills: [...skills].reverse(),
      plugins: [...plugins].reverse(),
      servers: [...servers].reverse().map((one) => ({ ...one, tools: [...one.tools].reverse() })),
    };
    const read = async (fingerprint: string) => (await fixture.bus.call(sessionService.readSnapshot, { fingerprint })).text;
    const fingerprint = await fingerprintOf(id, world);
    const text = await read(fingerprint);
    expect(await fingerprintOf(id, turned)).toBe(fingerprint);
    // From here on another process composes, which knows nothing of the first one but its database.
    await Promise.all(fixture.replicas.map((replica) => replica.close()));
    await fixture.forget(fingerprint);
    const far = await startAlone('session-service', {
      natsUrl: fixture.nats.url,
      databaseUrl: fixture.postgres.url,
      environment: { LC_ALL: 'tr_TR.UTF-8', LANG: 'tr_TR.UTF-8', LANGUAGE: 'tr', TZ: 'Pacific/Kiritimati' },
    });
    try {
      expect(await fingerprintOf(id, turned)).toBe(fingerprint);
      expect(await read(fingerprint)).toBe(text);
    } finally {
      await far.stop();
    }
  },
});
