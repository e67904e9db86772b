// Long because one started service shows all of it: what messages and their senders decide about a snapshot.
import {
  permitChecker,
  sessionService,
  type Agent,
  type AgentPreset,
  type Explanation,
  type Input,
  type MessageIn,
  type Output,
} from '@ambit/contracts';
import { silentLog, Responder } from '@ambit/bus';
import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { randomBytes, randomUUID } from 'node:crypto';
import { Ingress } from '../src/ingress.service.js';
import { alice, bob, codeOf, Fixture } from './fixture.js';
import { registration, server, toolset } from './world.js';
import { verifies } from '../../../test/verifies.js';

jest.setTimeout(120_000);
let fixture: Fixture;
let checkers: Responder;
beforeAll(async () => {
  fixture = await Fixture.start();
  checkers = new Responder({ connection: fixture.nats.connection, log: silentLog });
}, 120_000);
afterAll(async () => {
  await checkers?.close();
  await fixture?.stop();
});
afterEach(() => {
  Object.assign(fixture.world, { tools: [registration('question')], toolsets: [], servers: [], skills: [] });
  fixture.world.changed();
});

type Demands = Pick<Parameters<typeof registration>[1] & object, 'platforms' | 'scopes' | 'permissions'>;
type Message = Partial<Input<typeof sessionService.receiveMessage>>;
const CHAT: Message = { adapter: 'chat', scene: 'group', sceneId: 'room' };

/** An agent whose worker brings tools with these demands, by name. */
async function agentWith(tools: Readonly<Record<string, Demands>>, more: Parameters<Fixture['agent']>[0] = {}): Promise<Agent> {
  const agent = await fixture.agent(more);
  const brought = Object.entries(tools).map(([name, demands]) => registration(name, demands));
  fixture.world.toolsets.push(toolset(agent.id, brought));
  fixture.world.changed();
  return agent;
}

interface Given {
  readonly runId: string;
  readonly sessionId: string;
  readonly fingerprint: string;
  /** The worker's tools. */
  readonly tools: readonly string[];
  readonly record: {
    readonly [K in 'skills' | 'servers' | 'subagents' | 'deferred']: readonly { readonly name: string; readonly slug: string }[];
  };
}
async function recordOf(fingerprint: string): Promise<Pick<Given, 'tools' | 'record'>> {
  const record = JSON.parse((await fixture.bus.call(sessionService.readSnapshot, { fingerprint })).text);
  const tools = record.tools
    .filter(({ owner }: { owner: string }) => owner.startsWith('worker:'))
    .map(({ name }: { name: string }) => name);
  return { tools, record };
}
/** What a message's run is given; each is a conversation of its own. */
async function given(agent: Pick<Agent, 'id'>, message: Message = CHAT): Promise<Given> {
  const { runId, sessionId } = await fixture.send(agent, 'Hello', { thread: randomUUID(), ...message });
  const { fingerprint } = await fixture.bus.call(sessionService.getRun, { id: runId ?? '' });
  return { runId: runId ?? '', sessionId, fingerprint, ...(await recordOf(fingerprint)) };
}
const explain = (sessionId: string, name: string, principal?: MessageIn['principal']): Promise<Explanation> =>
  fixture.bus.call(sessionService.explain, { sessionId, kind: 'tool', name, ...(principal === undefined ? {} : { principal }) });
const compositions = () => fixture.replicas[0]?.app.get(Ingress).compositions ?? 0;

const PLATFORMS = { absent: undefined, match: ['mail', 'chat'], miss: ['mail', 'cha', 'chat2'] };
const SCOPES = { absent: undefined, match: ['private', 'group'], miss: ['private', 'channel'] } as const;
const PERMISSIONS = { absent: undefined, match: ['group(room)', 'role(member)'], miss: ['group(room)', 'role(owner)'] };
const STATES = ['absent', 'match', 'miss'] as const;
const TABLE = STATES.flatMap((platform) => STATES.flatMap((scope) => STATES.map((permission) => ({ platform, scope, permission }))));
type Row = (typeof TABLE)[number];
const nameOf = ({ platform, scope, permission }: Row) => `p_${platform}_s_${scope}_q_${permission}`;
const demandsOf = ({ platform, scope, permission }: Row): Demands => ({
  ...(PLATFORMS[platform] === undefined ? {} : { platforms: [...PLATFORMS[platform]] }),
  ...(SCOPES[scope] === undefined ? {} : { scopes: [...SCOPES[scope]] }),
  ...(PERMISSIONS[permission] === undefined ? {} : { permissions: [...PERMISSIONS[permission]] }),
});
const isIn = (row: Row) => Object.values(row).every((state) => state !== 'miss');
const demandsNothing = (row: Row) => Object.values(row).every((state) => state === 'absent');

verifies(
  ['R-INGRESS-11#1', 'R-INGRESS-11#3'],
  'three filters, each absent, met or not, settle what is there; a scheduled turn has what demands nothing',
  async () => {
    const agent = await agentWith(Object.fromEntries(TABLE.map((row) => [nameOf(row), demandsOf(row)])));
    const wanted = (holds: (row: Row) => boolean) => TABLE.filter(holds).map(nameOf).sort();
    const member = await given(agent, { ...CHAT, roles: ['member'] });
    expect(member.tools).toEqual(wanted(isIn));
    expect(TABLE.filter(isIn)).toHaveLength(8);
    const codes = await Promise.all(
      TABLE.map(async (row) => [nameOf(row), (await explain(member.sessionId, nameOf(row))).reasons[0]?.code]),
    );
    const first = ({ platform, scope }: Row) => (platform === 'miss' ? 'PLATFORM' : scope === 'miss' ? 'SCOPE' : 'PERMISSION');
    expect(codes).toEqual(TABLE.map((row) => [nameOf(row), isIn(row) ? 'INCLUDED' : `FILTERED_${first(row)}`]));
    for (const adapter of ['schedule', 'http', 'mcp'])
      expect((await given(agent, { ...CHAT, adapter, roles: ['member'] })).tools).toEqual(wanted(demandsNothing));
  },
);

verifies('R-INGRESS-11#1', 'skills, servers and subagents obey the same three', async () => {
  const subagents = Object.fromEntries(
    TABLE.map((row, index) => [`s${index}`, { agent: 'self' as const, description: nameOf(row), ...demandsOf(row) }]),
  );
  const rows = (count: number) => TABLE.filter((_row, index) => index % 5 === count);
  for (const part of [0, 1, 2, 3, 4]) {
    const own = Object.fromEntries(
      Object.entries(subagents).filter(([, { description }]) => rows(part).some((row) => nameOf(row) === description)),
    );
    const agent = await fixture.agent({
      policy: { servers: null, skills: null, plugins: null, subagents: Object.fromEntries(Object.entries(own).slice(0, 5)) },
    });
    fixture.world.servers = rows(part).map((row, index) => server(`server-${index}`, [nameOf(row)], demandsOf(row)));
    fixture.world.skills = rows(part).map((row, index) => skill(`skill-${index}`, { description: nameOf(row), ...demandsOf(row) }));
    fixture.world.changed();
    const { record } = await given(agent, { ...CHAT, roles: ['member'] });
    const wanted = rows(part).flatMap((row, index) => (isIn(row) ? [index] : []));
    expect(record.servers.map(({ slug }) => slug).sort()).toEqual(wanted.map((index) => `server-${index}`));
    expect(record.skills.map(({ name }) => name)).toEqual(wanted.map((index) => `skill-${index}`));
    const offered = Object.entries(own)
      .slice(0, 5)
      .filter(([, { description }]) => TABLE.some((row) => isIn(row) && nameOf(row) === description));
    expect((record.subagents ?? []).map(({ name }) => name)).toEqual(offered.map(([name]) => name).sort());
  }
});

type Skill = (typeof fixture.world.skills)[number];
const skill = (name: string, more: Partial<Skill> = {}): Skill => ({
  ...{ name, description: name, allowedTools: null, platforms: null, disableModelInvocation: false, userInvocable: true, metadata: {} },
  ...{ agentId: 'any', owner: 'user', origin: 'owned', digest: 'a'.repeat(64), scripts: [], shadows: null },
  ...more,
});

verifies('R-INGRESS-11#2', 'a skill none of whose tools are for this message is there, and its tools are not', async () => {
  const agent = await agentWith({ kick: { permissions: ['role(owner)'] }, ban: { platforms: ['mail'] } });
  fixture.world.skills = [skill('moderating', { allowedTools: ['kick', 'ban'] })];
  fixture.world.changed();
  const { tools, record } = await given(agent);
  expect([tools, record.skills]).toMatchObject([[], [{ name: 'moderating' }]]);
  expect((await given(agent, { ...CHAT, roles: ['owner'] })).tools).toEqual(['kick']);
});

const PERMITS: readonly (readonly [string, Message, boolean])[] = [
  ['adapter(chat)', {}, true],
  ['adapter(mail, chat)', {}, true],
  ['adapter(cha)', {}, false],
  ['group(room)', {}, true],
  ['group(other, room)', {}, true],
  ['group(other)', {}, false],
  ['group()', {}, true],
  ['group(*)', {}, true],
  ['private()', {}, false],
  ['private()', { scene: 'private' }, true],
  ['channel(room)', { scene: 'channel' }, true],
  ['user(alice)', {}, true],
  ['user(bob, alice)', {}, true],
  ['user(alice)', { principal: bob }, false],
  // An application that calls itself a person is none.
  ['user(alice)', { principal: { ...bob, id: 'app:alice', kind: 'application' } }, false],
  ['role(member)', { roles: ['member'] }, true],
  ['role(member)', { roles: ['Member', 'members'] }, false],
  ['role(owner, member)', { roles: ['member'] }, true],
  ['role(trusted)', { roles: ['master'] }, true],
  ['role(master)', { roles: ['trusted'] }, false],
  // Nobody answers for these platforms.
  ['platform(chat, admin)', {}, false],
  ['platform(mail, admin)', {}, false],
];

verifies('R-INGRESS-12#1', 'each permit holds for the subjects that the table says, and all of a list have to', async () => {
  const texts = [...new Set(PERMITS.map(([text]) => text))];
  const tools = Object.fromEntries(texts.map((text, index) => [`t${index}`, { permissions: [text] }]));
  const agent = await agentWith({ ...tools, both: { permissions: ['user(alice)', 'role(member)'] } });
  const seen = new Map<string, readonly string[]>();
  for (const [text, message, holds] of PERMITS) {
    const key = JSON.stringify(message);
    const found = seen.get(key) ?? (await given(agent, { ...CHAT, ...message })).tools;
    seen.set(key, found);
    expect({ text, message, holds: found.includes(`t${texts.indexOf(text)}`) }).toEqual({ text, message, holds });
  }
  expect(seen.get('{}')).not.toContain('both');
  expect(seen.get(JSON.stringify({ roles: ['member'] }))).toContain('both');
});

verifies(
  'R-INGRESS-12#2',
  'a permit that names nobody, or that nobody reads, is refused where subagents and their demands are configured',
  async () => {
    for (const permit of ['user()', 'role()', 'role( , )', 'adapter()', 'platform(chat)', 'everybody', 'user(1', ''])
      expect(await codeOf(fixture.agent({ policy: { subagents: { it: { agent: 'self', permissions: [permit] } } } }))).toBe(
        'INVALID_INPUT',
      );
  },
);

verifies(['R-INGRESS-13#1', 'R-INGRESS-13#3'], 'what is for one user, or for one group, is nobody else’s, whoever came first', async () => {
  const agent = await agentWith({ hers: { permissions: ['user(alice)'] }, theirs: { permissions: ['group(room)'] } });
  const member = { ...CHAT, roles: ['member'] };
  for (let round = 0; round < 3; round++) {
    const her = await given(agent, member);
    const his = await given(agent, { ...member, principal: bob });
    const elsewhere = await given(agent, { ...member, sceneId: 'another room' });
    expect([her.tools, his.tools, elsewhere.tools]).toEqual([['hers', 'theirs'], ['theirs'], ['hers']]);
  }
});

verifies('R-INGRESS-13#5', 'separators in what senders are called make nobody another', async () => {
  const agent = await agentWith({ one: { permissions: ['role(a)'] }, two: { permissions: ['user(alice)', 'role(b)'] } });
  const SEPARATORS = [',', '|', '"', '","', '\\', ':', '\n', '}', ']'];
  for (const separator of SEPARATORS) {
    const joined = await given(agent, { ...CHAT, roles: [`a${separator}b`] });
    const apart = await given(agent, { ...CHAT, roles: ['a', 'b'] });
    const other = await given(agent, {
      ...CHAT,
      roles: ['b'],
      principal: { ...bob, id: `user:alice${separator.trim() === '' ? ';' : separator}a` },
    });
    expect({ separator, tools: [joined.tools, apart.tools, other.tools] }).toEqual({ separator, tools: [[], ['one', 'two'], []] });
  }
});

it('a NUL or half a character in what a message says of its sender and place is refused, and fails nothing inside', async () => {
  const agent = await fixture.agent();
  const parts: Message[] = [
    { roles: ['a\0b'] },
    { adapter: 'ch\0at' },
    { endpoint: '\0' },
    { sceneId: '\0' },
    { thread: '\0' },
    { replyTo: '\0' },
    { principal: { ...alice, id: 'user:al\0ice' } },
    { principal: { ...alice, display: 'Al\0ice' } },
    { principal: { ...alice, issuer: 'half \ud83d' } },
  ];
  for (const part of parts) expect(await codeOf(fixture.send(agent, 'Hello', part))).toBe('INVALID_INPUT');
});

verifies('R-INGRESS-13#6', 'bindings and senders in turn find what was composed for them', async () => {
  const agents = [await agentWith({ hers: { permissions: ['user(alice)'] } }), await agentWith({ his: { permissions: ['user(bob)'] } })];
  const everybody = async () => {
    for (const agent of agents) for (const principal of [alice, bob]) await given(agent, { ...CHAT, principal });
  };
  await everybody();
  const before = compositions();
  for (let round = 0; round < 3; round++) await everybody();
  expect(compositions()).toBe(before);
});

verifies('R-INGRESS-14#1', 'a thousand times two turns of two senders, all mixed, each with the tool of its own', async () => {
  const agent = await agentWith({ left: { permissions: ['user(alice)'] }, right: { permissions: ['user(bob)'] } });
  const turns = await Promise.all(
    Object.entries({ left: alice, right: bob }).map(async ([tool, principal]) => {
      const { id: sessionId } = await fixture.bus.call(sessionService.createSession, { agentId: agent.id, principal, adapter: 'chat' });
      return { tool, open: { tokenId: randomUUID(), agentId: agent.id, principal, sessionId }, seen: new Set<string>() };
    }),
  );
  for (let round = 0; round < 50; round++) {
    // Composed anew, while others of the same world are being composed.
    if (round % 10 === 0) {
      fixture.world.tools = [registration('question', { version: round + 1 })];
      fixture.world.changed();
    }
    const mixed = Array.from({ length: 20 }, (_, index) => turns[(index + round) % 2]).flatMap((turn) => turn ?? []);
    await Promise.all(mixed.map(async ({ open, seen }) => seen.add((await fixture.bus.call(sessionService.openEdge, open)).fingerprint)));
  }
  for (const { tool, seen } of turns) {
    expect(seen.size).toBe(5);
    for (const fingerprint of seen) expect((await recordOf(fingerprint)).tools).toEqual([tool]);
  }
});

verifies('R-INGRESS-14#2', 'a turn that ends twice takes nothing from another that has the same snapshot', async () => {
  const agent = await agentWith({ tool: {} });
  await fixture.send(agent, 'Hello', { thread: 'one' });
  const first = await fixture.begin(agent.id);
  await fixture.send(agent, 'Hello', { thread: 'two' });
  const second = await fixture.begin(agent.id);
  expect(second.ref.fingerprint).toBe(first.ref.fingerprint);
  await fixture.step(first, 0);
  await fixture.finish(first, 'completed');
  for (let again = 0; again < 3; again++) await codeOf(fixture.finish(first, 'completed'));
  expect(await fixture.bus.call(sessionService.getAuthority, { runId: second.ref.runId })).toMatchObject({
    status: 'running',
    fingerprint: first.ref.fingerprint,
    revokedOwners: [],
  });
  expect((await recordOf(second.ref.fingerprint)).tools).toEqual(['tool']);
  await fixture.step(second, 0);
  expect(await fixture.finish(second, 'completed')).toMatchObject({ status: 'completed' });
});

type Asked = Output<{ output: typeof permitChecker.checkPermits.input }>;

verifies(
  ['R-INGRESS-12#3', 'R-INGRESS-14#3'],
  'a checker that fails, or never answers, grants nothing, and the next turn is asked for anew',
  async () => {
    const agent = await agentWith({ ban: { permissions: ['platform(game, admin)'] } });
    const message = { ...CHAT, adapter: 'game' };
    let answer: () => Promise<{ held: string[] }> = () => Promise.reject(new Error('its platform is away'));
    checkers.answer(permitChecker.checkPermits, () => answer(), { keys: { adapter: 'game' } });
    expect((await given(agent, message)).tools).toEqual([]);
    let late: (() => void) | undefined;
    answer = () => new Promise((resolve) => (late = () => resolve({ held: ['admin'] })));
    expect((await given(agent, message)).tools).toEqual([]);
    answer = () => Promise.resolve({ held: ['admin', 'root'] });
    const admin = await given(agent, message);
    expect(admin.tools).toEqual(['ban']);
    // What comes too late is nobody's any more.
    late?.();
    answer = () => Promise.resolve({ held: [] });
    expect((await given(agent, message)).tools).toEqual([]);
    expect((await recordOf(admin.fingerprint)).tools).toEqual(['ban']);
  },
);

verifies('R-INGRESS-13#4', 'what a checker says of one sender is another’s only where it told what it looks at', async () => {
  const agent = await agentWith({ ban: { permissions: ['platform(forum, admin)'] } });
  const asked: Asked[] = [];
  let declares: Pick<Output<typeof permitChecker.checkPermits>, 'readsOnly' | 'keepMs'> = { keepMs: 60_000 };
  checkers.answer(
    permitChecker.checkPermits,
    (input) => {
      asked.push(input);
      return { held: input.subject.userId === 'alice' || input.subject.roles.includes('owner') ? ['admin'] : [], ...declares };
    },
    { keys: { adapter: 'forum' } },
  );
  const message = { ...CHAT, adapter: 'forum', roles: ['member'] };
  expect((await given(agent, message)).tools).toEqual(['ban']);
  expect((await given(agent, { ...message, principal: bob })).tools).toEqual([]);
  expect(asked).toMatchObject([{ subject: { userId: 'alice' }, permits: ['admin'] }, { subject: { userId: 'bob' } }]);
  // The same sender in the same place, within the time that the checker gave.
  expect((await given(agent, message)).tools).toEqual(['ban']);
  expect(asked).toHaveLength(2);

  declares = { keepMs: 60_000, readsOnly: ['roles'] };
  const owner = { ...message, roles: ['owner'] };
  expect((await given(agent, { ...owner, principal: bob })).tools).toEqual(['ban']);
  expect((await given(agent, { ...owner, principal: { ...bob, id: 'user:carol' } })).tools).toEqual(['ban']);
  expect(asked).toHaveLength(3);
});

verifies(
  ['R-INGRESS-21#1', 'R-INGRESS-21#2'],
  'explaining names where a tool is from, each filter, the reservation and the snapshot, or why it is not there',
  async () => {
    const agent = await agentWith({
      tool: { platforms: ['chat'], permissions: ['role(member)'] },
      hidden: { scopes: ['private'], permissions: ['user(bob)'] },
    });
    const member = await given(agent, { ...CHAT, roles: ['member'] });
    const there = await explain(member.sessionId, 'tool');
    expect(there).toMatchObject({ visible: true, fingerprint: member.fingerprint });
    expect(there.chain).toEqual(
      expect.arrayContaining([
        { step: 'owner', verdict: 'info', code: 'OWNER', detail: `worker:${agent.id}` },
        {
          step: 'slot',
          verdict: 'info',
          code: 'SLOT',
          detail: expect.stringMatching(new RegExp(`^worker:${agent.id}/tools/[0-9a-f]{64}/tool$`)),
        },
        { step: 'source', verdict: 'info', code: 'SOURCE', detail: `brought by a worker of ${agent.id}` },
        { step: 'reserved', verdict: 'info', code: 'NOT_RESERVED', detail: expect.any(String) },
        { step: 'filter platforms', verdict: 'pass', code: 'PASSES', detail: 'chat of chat' },
        { step: 'filter scopes', verdict: 'info', code: 'ABSENT', detail: 'demands nothing' },
        { step: 'filter permissions', verdict: 'pass', code: 'PASSES', detail: 'all hold' },
        { step: 'snapshot', verdict: 'pass', code: 'IN_SNAPSHOT', detail: member.fingerprint },
      ]),
    );
    const absent = await explain(member.sessionId, 'hidden');
    expect(absent.visible).toBe(false);
    expect(absent.chain.find(({ verdict }) => verdict === 'fail')).toMatchObject({ step: 'filter scopes', code: 'FILTERED_SCOPE' });
    expect(absent.summary).toContain('FILTERED_SCOPE');
    // Of somebody else in the same session.
    expect(await explain(member.sessionId, 'tool', bob)).toMatchObject({
      visible: false,
      fingerprint: null,
      summary: expect.stringContaining('FILTERED_PERMISSION'),
    });
    expect((await explain(member.sessionId, 'nothing_like_it')).summary).toContain('NOT_REGISTERED');
    const reserved = await explain(member.sessionId, 'question');
    expect(reserved.chain).toContainEqual({
      step: 'reserved',
      verdict: 'info',
      code: 'RESERVED',
      detail: 'question belongs to the platform',
    });
    expect(reserved.chain).toContainEqual({ step: 'source', verdict: 'info', code: 'SOURCE', detail: 'part of the platform' });
  },
);

const PLUGIN = { id: 'kit', version: '1.0.0', digest: '0'.repeat(64), state: 'enabled' as const, servers: [], skills: [] };
const preset = (name: string, more: Partial<AgentPreset> = {}): AgentPreset => ({
  name,
  description: `Does ${name}`,
  instructions: `You do ${name}.`,
  tools: null,
  ...more,
});

verifies(
  ['R-INGRESS-18#1', 'R-INGRESS-18#2'],
  'of plugins’ presets those are offered that the policy allows, and no other can be asked for',
  async () => {
    const presets = { 'review-*': 'allow', 'review-secrets': 'deny', 'for-*': 'allow' } as const;
    const policy = { servers: null, skills: null, plugins: null, presets };
    const agent = await agentWith({ look: {}, change: {} }, { policy });
    const agents = [
      preset('review-code', { tools: ['look', 'mcp__*'] }),
      preset('review-secrets'),
      preset('painter'),
      preset('for-members', { permissions: ['role(member)'] }),
    ];
    fixture.world.plugins = [
      { ...PLUGIN, agents },
      { ...PLUGIN, id: 'off', state: 'disabled', agents: [preset('review-texts')] },
    ];
    fixture.world.tools.push(registration('subagent_orchestrator', { exposure: 'system-model', access: 'delegation' }));
    fixture.world.changed();
    const { runId, sessionId, record } = await given(agent);
    expect(record.subagents.map(({ name }) => name)).toEqual(['review-code']);
    expect(JSON.stringify(record)).not.toContain('review-secrets');
    expect((await given(agent, { ...CHAT, roles: ['member'] })).record.subagents.map(({ name }) => name)).toEqual([
      'for-members',
      'review-code',
    ]);

    const start = (slotId: string, of = runId) =>
      fixture.bus.call(sessionService.startDelegation, {
        runId: of,
        operationId: randomBytes(32).toString('hex'),
        tasks: [{ slotId, title: 'It', prompt: 'Look into it.' }],
      });
    for (const forged of ['review-secrets', 'painter', 'for-members', 'review-texts', 'review-nothing', 'any'])
      expect({ forged, code: await codeOf(start(forged)) }).toEqual({ forged, code: 'SUBAGENT_UNAVAILABLE' });
    const { tasks } = await start('review-code');
    const child = tasks[0]?.sessionId ?? '';
    expect(await fixture.bus.call(sessionService.getSession, { id: child })).toMatchObject({
      agentId: agent.id,
      parentSessionId: sessionId,
      slot: 'review-code',
    });
    const { items } = await fixture.bus.call(sessionService.listRuns, { sessionId: child });
    expect((await recordOf(items[0]?.fingerprint ?? '')).tools).toEqual(['look']);
    const tape = await fixture.bus.call(sessionService.listTape, { sessionId: child });
    expect(JSON.stringify(tape.items[0]?.content)).toContain('You do review-code.\\n\\nLook into it.');
    expect((await explain(child, 'change')).summary).toContain('NOT_IN_PRESET');

    // Allowed no more: nothing new is started, and what works so may do nothing.
    await fixture.bus.call(sessionService.putAgent, {
      id: agent.id,
      policy: { ...policy, presets: { ...presets, 'review-code': 'deny' } },
    });
    expect(await codeOf(start('review-code'))).toBe('SUBAGENT_UNAVAILABLE');
    const { ancestors } = await fixture.bus.call(sessionService.getAuthority, { runId: items[0]?.id ?? '' });
    expect(ancestors[0]?.policy?.rules).toMatchObject([{ decision: 'deny', tool: '*' }]);
    fixture.world.plugins = [];
  },
);

verifies(
  ['R-INGRESS-20#1', 'R-INGRESS-20#2'],
  'deferred tools are loaded out of what the run could have, twelve in a session, and the thirteenth is refused',
  async () => {
    const many = Array.from({ length: 14 }, (_, index) => `more_${String(index).padStart(2, '0')}`);
    const policy = { servers: null, skills: null, plugins: null, deferredTools: ['more_*'] };
    const tools = { ...Object.fromEntries(many.map((name) => [name, {}])), plain: {}, more_for_bob: { permissions: ['user(bob)'] } };
    const agent = await agentWith(tools, { policy });
    fixture.world.tools.push(
      ...['tool_discover', 'tool_load'].map((name) => registration(name, { exposure: 'system-model', needsDeferred: true })),
    );
    fixture.world.changed();
    const { runId } = await fixture.send(agent, 'Hello', CHAT);
    const attempt = await fixture.begin(agent.id);
    const seen = async (fingerprint: string) => {
      const { record, tools: own } = await recordOf(fingerprint);
      return { own, deferred: (record.deferred ?? []).map(({ name }) => name) };
    };
    expect(await seen(attempt.ref.fingerprint)).toEqual({ own: ['plain'], deferred: many });
    const load = (name: string, of = runId ?? '') => fixture.bus.call(sessionService.loadTool, { runId: of, name });
    for (const name of ['more_for_bob', 'plain', 'more_99', 'question']) expect(await codeOf(load(name))).toBe('TOOL_NOT_IN_SNAPSHOT');
    // All at once: no two of them take the same place.
    const codes = await Promise.all(many.map((name) => codeOf(load(name))));
    expect(codes.filter((code) => code === 'none')).toHaveLength(12);
    expect(codes.filter((code) => code === 'LOADED_TOOLS_LIMIT')).toHaveLength(2);
    const loaded = many.filter((_name, index) => codes[index] === 'none');
    expect([...(await load(loaded[0] ?? '')).loaded].sort()).toEqual(loaded);
    const { fingerprint } = await fixture.bus.call(
      sessionService.refreshRun,
      { ...attempt.ref, token: attempt.token },
      { keys: { agentId: agent.id } },
    );
    const left = many.filter((name) => !loaded.includes(name));
    expect(await seen(fingerprint)).toEqual({ own: [...loaded, 'plain'], deferred: left });
    // The run that goes on, and what another session sees.
    await fixture.step(attempt, 0);
    await fixture.finish(attempt, 'completed');
    expect(await codeOf(load(left[0] ?? ''))).toBe('TURN_ENDED');
    await fixture.send(agent, 'And now?', CHAT);
    expect((await fixture.begin(agent.id)).ref.fingerprint).toBe(fingerprint);
    expect(await seen((await given(agent)).fingerprint)).toEqual({ own: ['plain'], deferred: many });
    // Loaded before, and taken away since.
    fixture.world.toolsets = fixture.world.toolsets.map((one) => ({ ...one, tools: one.tools.filter(({ name }) => name !== loaded[0]) }));
    await fixture.bus.call(sessionService.putAgent, { id: agent.id, policy: { ...policy, disabledTools: [loaded[1] ?? ''] } });
    fixture.world.changed();
    const { sessionId } = attempt.ref;
    expect((await explain(sessionId, loaded[0] ?? '')).visible).toBe(false);
    expect((await explain(sessionId, loaded[1] ?? '')).summary).toContain('TOOL_DISABLED');
    expect((await explain(sessionId, left[0] ?? '')).summary).toContain('DEFERRED');
  },
);
