import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect } from '@jest/globals';
import { readSnapshot, type SnapshotRecord } from '@ambit/capability';
import { buckets, leaseKey, mappingKey, services, sessionService, type Input } from '@ambit/contracts';
import { until, withClient } from '@ambit/testing';
import { verifies } from '../../../test/verifies.js';
import { alice, call, codeOf, Fixture } from './fixture.js';
import { PLUGIN, registration, server, SKILL, type World } from './world.js';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await Fixture.start();
}, 120_000);
afterAll(() => fixture.stop());
afterEach(() => {
  Object.assign(fixture.world, { tools: [registration('question')], servers: [], skills: [], plugins: [], held: Promise.resolve() });
  fixture.world.changed();
});

type Message = Input<typeof sessionService.matchAgent>;
type Rules = NonNullable<Input<typeof sessionService.putAgent>['match']>;

/** A platform of its own for each test, so that no rule of another meets its messages. */
const platform = () => `chat-${randomUUID().slice(0, 8)}`;
const match = (message: Message) => fixture.bus.call(sessionService.matchAgent, message);
const reached = (message: Message) =>
  match(message).then(
    ({ agentId }) => agentId,
    ({ code }: { code: string }) => code,
  );
const receive = (message: Message, more: Partial<Input<typeof sessionService.receiveMessage>> = {}) =>
  fixture.bus.call(sessionService.receiveMessage, { ...message, principal: alice, idempotencyKey: randomUUID(), ...more });
const sql = (text: string, values: readonly unknown[]) =>
  withClient(fixture.postgres.url, async (client) => void (await client.query(text, [...values])));
function gate(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}
/** What ingress has asked of owners so far. */
const loads = () => [...fixture.world.asked.values()].reduce((sum, count) => sum + count, 0);
async function recordOf(runId: string | null): Promise<SnapshotRecord> {
  const { fingerprint } = await fixture.bus.call(sessionService.getRun, { id: runId ?? '' });
  const { text } = await fixture.bus.call(sessionService.readSnapshot, { fingerprint });
  return readSnapshot(text, fingerprint);
}
const give = (world: Partial<World>): void => {
  Object.assign(fixture.world, world);
  fixture.world.changed();
};

/** Rules, the part of a message that they are asked about, and whether it is theirs. */
const TABLE: readonly (readonly [
  rule: Record<string, unknown> | readonly Record<string, unknown>[],
  message: Partial<Message>,
  hits: boolean,
])[] = [
  [{}, {}, true],
  [{ endpoint: 'sales' }, { endpoint: 'sales' }, true],
  [{ endpoint: 'sales' }, { endpoint: 'sale' }, false],
  [{ scene: 'private' }, {}, true],
  [{ scene: 'group' }, {}, false],
  [{ scene: 'group' }, { scene: 'group' }, true],
  [{ sceneId: '42' }, { sceneId: '42' }, true],
  [{ sceneId: '42' }, { sceneId: '042' }, false],
  [{ hasMedia: ['image', 'audio'] }, { media: [{ kind: 'audio' }] }, true],
  [{ hasMedia: ['image', 'audio'] }, { media: [{ kind: 'video' }] }, false],
  [{ hasMedia: ['image', 'text'] }, { media: [{ kind: 'video' }] }, true],
  [{ hasMedia: ['text'] }, {}, true],
  [{ hasMedia: ['text'] }, { media: [{ kind: 'image' }] }, false],
  [{ contentContains: 'ReFund' }, { content: 'a refund, please' }, true],
  [{ contentContains: 'refund' }, { content: 'a re-fund' }, false],
  // All fields of one rule, any of the rules.
  [{ scene: 'group', sceneId: '1', contentContains: 'hi' }, { scene: 'group', sceneId: '1' }, true],
  [{ scene: 'group', sceneId: '1', contentContains: 'hi' }, { scene: 'group', sceneId: '2' }, false],
  [{ scene: 'group', sceneId: '1', contentContains: 'bye' }, { scene: 'group', sceneId: '1' }, false],
  [[{ sceneId: '1' }, { sceneId: '2' }], { sceneId: '2' }, true],
  [[{ sceneId: '1' }, { sceneId: '2' }], { sceneId: '3' }, false],
];

verifies(
  ['R-INGRESS-9#1', 'R-INGRESS-9#4', 'R-INGRESS-9#5'],
  'the table of match rules, their combinations and their odd spellings',
  async () => {
    const adapter = platform();
    const message = { adapter, content: 'hi' };
    const agent = await fixture.agent();
    const put = (rules: unknown) => fixture.bus.call(sessionService.putAgent, { id: agent.id, match: rules as Rules });
    for (const [rule, part, hits] of TABLE) {
      await put([rule].flat().map((one) => ({ ...one, adapter })));
      expect({ rule, part, to: await reached({ ...message, ...part }) }).toEqual({ rule, part, to: hits ? agent.id : 'NO_AGENT' });
    }
    await put([{ adapter }]);
    for (const other of [`${adapter}-more`, adapter.slice(0, -1), adapter.toUpperCase()])
      expect(await reached({ ...message, adapter: other })).toBe('NO_AGENT');

    await put([]);
    expect(await reached(message)).toBe('NO_AGENT');
    for (const empty of [[{}], [{ adapter, sceneId: '1' }, {}], [{ colour: 'red' }], {}, [[{}]], [[[{ adapter }]]]])
      expect(await codeOf(put(empty))).toBe('INVALID_INPUT');

    await put([{ adapter, sceneId: 4711 }]);
    expect(await reached({ ...message, sceneId: '4711' })).toBe(agent.id);
    expect(await reached({ ...message, sceneId: 4711 })).toBe(agent.id);
    expect(await reached({ ...message, sceneId: '04711' })).toBe('NO_AGENT');
    await put([{ adapter, hasMedia: [] }]);
    for (const media of [[], [{ kind: 'image' as const }]]) expect(await reached({ ...message, media })).toBe('NO_AGENT');
    const nested = await put([
      [
        { adapter, sceneId: '1' },
        { adapter, sceneId: '2' },
      ],
      { adapter, sceneId: '3' },
      [],
    ]);
    expect(nested.match).toEqual(['1', '2', '3'].map((sceneId) => ({ adapter, sceneId })));
    expect(await match({ ...message, sceneId: '3' })).toEqual({ agentId: agent.id, version: nested.version, rule: 2 });
  },
);

verifies('R-INGRESS-9#2', 'two agents for one message: refused where they are applied, and named on the wire', async () => {
  const adapter = platform();
  const one = await fixture.agent({ match: [{ adapter, scene: 'group' }] });
  expect(await codeOf(fixture.agent({ match: [{ adapter, contentContains: 'refund' }] }))).toBe('AGENT_AMBIGUOUS');
  // Put at once, still one alone.
  const fresh = platform();
  const both = await Promise.all([0, 1].map(() => codeOf(fixture.agent({ match: [{ adapter: fresh }] }))));
  expect(both.sort()).toEqual(['AGENT_AMBIGUOUS', 'none']);
  // A backup may bring two that no put would have let in.
  const other = await fixture.agent({ match: [{ adapter, scene: 'channel' }] });
  await sql('UPDATE "session_service"."agent" SET "match" = $2 WHERE "id" = $1', [other.id, JSON.stringify([{ adapter }])]);
  const message = { adapter, scene: 'group' as const, content: 'hi' };
  const refused = { code: 'AGENT_AMBIGUOUS', data: { agents: [one.id, other.id].sort() } };
  await expect(match(message)).rejects.toMatchObject(refused);
  const before = loads();
  await expect(receive(message)).rejects.toMatchObject(refused);
  expect(loads()).toBe(before);
});

verifies(
  ['R-INGRESS-9#3', 'R-INGRESS-9#7'],
  'an agent that is off or gone is passed over, and what no rule matches is the default agent’s',
  async () => {
    const adapter = platform();
    const message = { adapter, content: 'hi' };
    const agent = await fixture.agent({ match: [{ adapter }] });
    expect(await reached(message)).toBe(agent.id);
    const off = await fixture.bus.call(sessionService.putAgent, { ...agent, enabled: false });
    expect(await reached(message)).toBe('NO_AGENT');
    expect(await codeOf(receive(message))).toBe('NO_AGENT');
    await fixture.agent({ id: 'default', match: [{ adapter: `${adapter}-never` }] });
    expect(await match(message)).toEqual({ agentId: 'default', version: 1, rule: null });
    const received = await receive(message);
    expect(received.agentId).toBe('default');
    await fixture.bus.call(sessionService.putAgent, { ...off, enabled: true });
    expect(await reached(message)).toBe(agent.id);
    await fixture.bus.call(sessionService.deleteAgent, { id: agent.id });
    expect(await reached(message)).toBe('default');
    await fixture.bus.call(sessionService.putAgent, { id: 'default', enabled: false });
    expect(await reached(message)).toBe('NO_AGENT');
    await fixture.bus.call(sessionService.cancelRun, { id: received.runId ?? '' });
    await fixture.bus.call(sessionService.deleteSession, { id: received.sessionId });
    await fixture.bus.call(sessionService.deleteAgent, { id: 'default' });
    expect(await reached(message)).toBe('NO_AGENT');
  },
);

verifies(
  ['R-INGRESS-9#6', 'R-INGRESS-2#2'],
  'a preset of an agent’s name, or of no agent’s, changes nothing about who gets a message',
  async () => {
    const adapter = platform();
    const message = { adapter, content: 'hi' };
    const agent = await fixture.agent({ model: 'the-agents-own', instructions: 'Its own', match: [{ adapter, scene: 'private' }] });
    const before = await match(message);
    const preset = (name: string) => ({
      name,
      description: 'Helps',
      instructions: 'Be another',
      tools: null,
      // As whoever wrote it may have thought.
      ...{ model: 'another', provider: 'another', match: [{ adapter }] },
    });
    give({ plugins: [{ ...PLUGIN, agents: [preset(agent.id), preset('default'), preset('zealous')] }] });
    expect(await match(message)).toEqual(before);
    expect(await reached({ ...message, scene: 'group' })).toBe('NO_AGENT');
    const { agentId } = await receive(message);
    expect(agentId).toBe(agent.id);
    const { job } = await fixture.take(agent.id);
    expect(job).toMatchObject({ model: 'the-agents-own', instructions: 'Its own' });
  },
);

verifies('R-INGRESS-10#1', 'a run says at which version its agent was bound, whatever becomes of the agent', async () => {
  const adapter = platform();
  const message = { adapter, content: 'hi' };
  const agent = await fixture.agent({ match: [{ adapter }] });
  const bound = await match(message);
  const first = await receive(message);
  const versionOf = async (id: string | null) => (await fixture.bus.call(sessionService.getRun, { id: id ?? '' })).agentVersion;
  expect(await versionOf(first.runId)).toBe(bound.version);
  const changed = await fixture.bus.call(sessionService.putAgent, { ...agent, match: [{ adapter, scene: 'private' }] });
  expect(changed.version).toBe(bound.version + 1);
  const second = await receive(message, { sceneId: 'elsewhere' });
  expect(second.agentId).toBe(agent.id);
  expect([await versionOf(first.runId), await versionOf(second.runId)]).toEqual([bound.version, changed.version]);
  const { items } = await fixture.bus.call(sessionService.listRuns, { agentId: agent.id });
  expect(items.map(({ agentVersion }) => agentVersion).sort()).toEqual([bound.version, changed.version]);
});

verifies('R-INGRESS-8#1', 'what hits no agent, orders something, or goes to work that is under way loads nothing', async () => {
  const adapter = platform();
  const message = { adapter, content: 'hi' };
  const agent = await fixture.agent({ match: [{ adapter }], policy: { whileBusy: 'steer' } });
  const first = await receive(message);
  const attempt = await fixture.begin(agent.id);
  const before = loads();
  // No agent, one that is off, a session that nobody has.
  expect(await codeOf(receive({ ...message, adapter: platform() }))).toBe('NO_AGENT');
  const off = await fixture.agent({ enabled: false });
  expect(await codeOf(fixture.send(off))).toBe('AGENT_DISABLED');
  expect(await codeOf(receive(message, { sessionId: randomUUID() }))).toBe('SESSION_UNKNOWN');
  // Work that is under way takes it, or it waits, or it is a subagent's.
  expect(await receive(message)).toMatchObject({ runId: first.runId, queued: false });
  await fixture.bus.call(sessionService.putAgent, { ...agent, policy: { whileBusy: 'queue' } });
  expect(await receive(message)).toMatchObject({ runId: null, queued: true });
  const child = await fixture.bus.call(sessionService.createSession, { principal: alice, agentId: agent.id });
  await sql('UPDATE "session_service"."session" SET "kind" = \'subagent\' WHERE "id" = $1', [child.id]);
  expect(await codeOf(receive(message, { sessionId: child.id }))).toBe('SESSION_READ_ONLY');
  // Orders: which agent, what the tape says, and an end.
  await match(message);
  await fixture.bus.call(sessionService.listTape, { sessionId: first.sessionId });
  await fixture.bus.call(sessionService.updateSession, { id: first.sessionId, mode: 'default' });
  expect(loads()).toBe(before);
  // What waited is loaded for when its own run begins.
  await fixture.bus.call(sessionService.cancelRun, { id: attempt.ref.runId });
  await fixture.begin(agent.id);
  expect(loads()).toBeGreaterThan(before);
});

verifies('R-INGRESS-8#2', 'a run is there, and its prompt written, only when all of its catalogue has come', async () => {
  const adapter = platform();
  const agent = await fixture.agent({ match: [{ adapter }], instructions: 'You have:\n{{tools}}\n{{skills}}', policy: { skills: null } });
  const { promise, resolve } = gate();
  give({ skills: [SKILL], tools: [registration('question'), registration('update_plan')], held: promise });
  const asked = fixture.world.asked.get('slots') ?? 0;
  const received = receive({ adapter, content: 'hi' });
  await until(() => (fixture.world.asked.get('slots') ?? 0) > asked);
  expect((await fixture.bus.call(sessionService.listRuns, { agentId: agent.id })).items).toEqual([]);
  resolve();
  const { runId } = await received;
  const { job } = await fixture.take(agent.id);
  expect(job.runId).toBe(runId);
  for (const part of ['question', 'update_plan', 'triage']) expect(job.instructions).toContain(part);
  expect((await recordOf(runId)).tools.map(({ name }) => name)).toEqual(['question', 'update_plan']);
});

verifies('R-INGRESS-8#3', 'an error in the middle and a cancel leave nothing taken', async () => {
  const agent = await fixture.agent();
  const first = await fixture.send(agent);
  const attempt = await fixture.begin(agent.id);
  await fixture.step(attempt, 0);
  await fixture.finish(attempt, 'completed');
  // The session goes while the catalogue of its next run is gathered.
  const { promise, resolve } = gate();
  give({ held: promise, tools: [registration('question'), registration('update_plan')] });
  const asked = fixture.world.asked.get('slots') ?? 0;
  const idempotencyKey = randomUUID();
  const second = codeOf(fixture.send(agent, 'hi', { sessionId: first.sessionId, idempotencyKey }));
  await until(() => (fixture.world.asked.get('slots') ?? 0) > asked);
  await fixture.bus.call(sessionService.deleteSession, { id: first.sessionId });
  resolve();
  expect(await second).toBe('SESSION_UNKNOWN');
  expect((await fixture.bus.call(sessionService.listSnapshots, { sessionId: first.sessionId })).items).toEqual([]);
  expect((await fixture.bus.call(sessionService.listRuns, { agentId: agent.id, status: 'queued' })).items).toEqual([]);
  expect(await fixture.value('ambit_mappings', mappingKey(first.sessionId, attempt.ref.fingerprint))).toHaveLength(0);
  // The same message again, elsewhere: the failure was no answer.
  const again = await fixture.send(agent, 'hi', { idempotencyKey });
  const going = await fixture.begin(agent.id);
  await fixture.step(going, 0, [call('c1')]);
  const lease = () => fixture.value(buckets.leases15s.name, leaseKey.run(going.ref.runId));
  expect(await lease()).not.toHaveLength(0);
  await fixture.bus.call(sessionService.cancelRun, { id: going.ref.runId });
  expect(await lease()).toHaveLength(0);
  expect(await fixture.bus.call(sessionService.getRun, { id: going.ref.runId })).toMatchObject({ status: 'cancelled' });
  expect(await fixture.send(agent, 'next', { sessionId: again.sessionId })).toMatchObject({ queued: false, position: 0 });
});

verifies(
  ['R-INGRESS-3#1', 'R-INGRESS-3#2', 'R-INGRESS-5#1'],
  'what a plugin registers is there once, for those who may have it, and leaves with it',
  async () => {
    const agent = await fixture.agent({ policy: { servers: null, skills: null, plugins: ['kit'] } });
    const plugins = ['kit', 'other'].map((id) => ({ ...PLUGIN, id, servers: [id], skills: [`${id}-skill`] }));
    const skills = plugins.map(({ id }) => ({ ...SKILL, name: `${id}-skill`, origin: 'plugin' as const, owner: `plugin:${id}` }));
    const servers = plugins.map(({ id }) => server(id, ['go'], { owner: `plugin:${id}` }));
    const of = async () => {
      const record = await recordOf((await fixture.send(agent, 'hi', { sceneId: randomUUID() })).runId);
      const owned = [...record.tools, ...record.skills].filter(({ owner }) => owner.startsWith('plugin:'));
      return [
        owned.map(({ owner, name }) => `${owner} ${name}`),
        record.plugins.map(({ id }) => id),
        record.servers.map(({ slug }) => slug),
      ];
    };
    give({ plugins, skills, servers });
    // The sibling's server, tool and skill are installed and enabled, and are not here.
    expect(await of()).toEqual([['plugin:kit mcp__kit__go', 'plugin:kit kit-skill'], ['kit'], ['kit']]);
    // Told twice it is still one.
    give({ plugins: [...plugins, ...plugins] });
    expect(await of()).toEqual([['plugin:kit mcp__kit__go', 'plugin:kit kit-skill'], ['kit'], ['kit']]);
    give({ plugins: plugins.slice(1), skills: skills.slice(1), servers: servers.slice(1) });
    expect(await of()).toEqual([[], [], []]);
  },
);

verifies('R-INGRESS-7#4', 'a service that starts loads nothing of a plugin: that waits for a message which needs it', async () => {
  const agent = await fixture.agent({ policy: { servers: null, skills: null, plugins: null } });
  give({ plugins: [{ ...PLUGIN, servers: ['kit'] }], servers: [server('kit', ['go'], { owner: 'plugin:kit' })] });
  const before = loads();
  const replica = await fixture.addReplica();
  await fixture.bus.call(sessionService.listSnapshots, { agentId: agent.id });
  expect(loads()).toBe(before);
  const { runId } = await fixture.send(agent);
  expect(loads()).toBeGreaterThan(before);
  expect((await recordOf(runId)).tools.map(({ name }) => name)).toEqual(['mcp__kit__go', 'question']);
  await replica.close();
  fixture.replicas.pop();
});

verifies('R-INGRESS-5#2', 'of one name the nearest owner’s is there, and behind it stands the next', async () => {
  const agent = await fixture.agent({ policy: { servers: null, skills: null, plugins: null } });
  const owners = [
    { owner: 'user', origin: 'owned' as const, digest: '1'.repeat(64) },
    { owner: 'plugin:kit', origin: 'plugin' as const, digest: '2'.repeat(64) },
    { owner: 'builtin', origin: 'builtin' as const, digest: '3'.repeat(64) },
  ];
  const skills = owners.map((owned) => ({ ...SKILL, ...owned }));
  for (let nearest = 0; nearest < skills.length; nearest++) {
    give({ plugins: [PLUGIN], skills: skills.slice(nearest).reverse() });
    const record = await recordOf((await fixture.send(agent, 'hi', { sceneId: randomUUID() })).runId);
    expect(record.skills).toEqual([expect.objectContaining(owners[nearest] ?? {})]);
  }
});

/** Every source of apps and libs, by path from the root. */
function sources(): Map<string, string> {
  const root = join(import.meta.dirname, '..', '..', '..');
  const paths = ['apps', 'libs'].flatMap((folder) =>
    readdirSync(join(root, folder)).flatMap((name) =>
      readdirSync(join(root, folder, name, 'src'), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, name, 'src', file)),
    ),
  );
  const texts = paths.filter((path) => path.endsWith('.ts') && !path.includes('generated') && !path.endsWith('.test.ts'));
  return new Map(texts.map((path) => [path, readFileSync(join(root, path), 'utf8')]));
}

verifies(['R-INGRESS-1#1', 'R-INGRESS-3#3'], 'one place gathers what owners offer, and one writes what comes of it', async () => {
  const texts = sources();
  const where = (code: RegExp) => [...texts].flatMap(([path, text]) => (code.test(text) ? [path] : []));
  const service = 'apps/session-service/src';
  expect(where(/(?<!function )\bcompose\(/)).toEqual([`${service}/ingress.service.ts`]);
  expect(where(/\bcatalogueHeads, \{|call\(pluginRegistry\.pluginSlots|purpose: 'ingress'/)).toEqual([`${service}/ingress.service.ts`]);
  expect(where(/\bsnapshot\.(create|createMany|upsert|update)\(/)).toEqual([`${service}/snapshot.repository.ts`]);
  expect(where(/\bmapping\.(create|createMany|upsert)\(/)).toEqual([`${service}/snapshot.repository.ts`]);
  expect(where(/\bsnapshots\.(store|map)\(/)).toEqual([`${service}/snapshot.service.ts`]);
  expect(where(/\.put\(\s*(SNAPSHOTS|MAPPINGS)\b/)).toEqual([`${service}/snapshot.service.ts`]);
  const writers = Object.entries(services).filter(
    ([, { stores }]) => 'ambit_snapshots' in stores.writes || 'ambit_mappings' in stores.writes,
  );
  expect(writers.map(([name]) => name)).toEqual(['session-service']);
  // What that one place writes is what a run is given.
  const agent = await fixture.agent();
  const { runId } = await fixture.send(agent);
  expect((await recordOf(runId)).tools.map(({ name }) => name)).toEqual(['question']);
});
