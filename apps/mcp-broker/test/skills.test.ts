// Long because one broker serves all servers: starting it takes longer than any of them.
import { sha256Hex } from '@ambit/capability';
import { Fault, mcpBroker, type JsonObject, type Output, type ServerSkill } from '@ambit/contracts';
import { collect, until, type Collector, type TestNats } from '@ambit/testing';
import { afterAll, beforeAll, expect } from '@jest/globals';
import { skillEntry } from '@modelcontextprotocol/server/ext/skills';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lists, startSdkServer, type SdkServer } from '../../../test/system/sdk-server.js';
import { verifies } from '../../../test/verifies.js';
import { SkillBuilders } from '../src/skills/builders.js';
import { startBroker, type BrokerAlone } from './broker-alone.js';
import { startRuns, type StandIn } from './run-stand-in.js';

type Server = Output<typeof mcpBroker.getServer>;
const TTL_MS = 1_500;

let broker: BrokerAlone;
let nats: TestNats;
let runs: StandIn;
let changes: Collector<typeof mcpBroker.catalogueChanged>;
const upstreams: SdkServer[] = [];

beforeAll(async () => {
  broker = await startBroker(
    async ({ connection }) => {
      runs = startRuns(connection);
      changes = await collect(connection, mcpBroker.catalogueChanged);
    },
    { AMBIT_MCP_SKILLS_TTL_MS: String(TTL_MS) },
  );
  nats = broker.nats;
}, 120_000);
afterAll(async () => {
  changes.stop();
  for (const upstream of upstreams) await upstream.stop();
  await broker.stop(() => runs.close());
});

const OFFERS = { tools: { listChanged: true }, prompts: { listChanged: true }, resources: { listChanged: true } };
const SKILLS = { ...OFFERS, extensions: { 'io.modelcontextprotocol/skills': {} } };
const switchTo = (enabled: boolean) => nats.bus.call(mcpBroker.putSwitch, { name: 'mcp-skills', enabled });
const get = (id: string): Promise<Server> => nats.bus.call(mcpBroker.getServer, { id });
const asked = (server: SdkServer, method: string): number => server.asked.get(method) ?? 0;

interface Held {
  readonly upstream: SdkServer;
  readonly server: Server;
  /** What reads of these addresses answer; a function answers itself. */
  readonly files: Map<string, string | (() => JsonObject | Promise<JsonObject>)>;
  readonly lists: { tools: JsonObject[]; prompts: JsonObject[]; resources: JsonObject[] };
  skills: unknown[];
}
/** A connected server with files, each of them a resource too. */
async function held(
  slug: string,
  files: Record<string, string>,
  options: Partial<Parameters<typeof startSdkServer>[0]> = {},
): Promise<Held> {
  const upstream = await startSdkServer({ capabilities: OFFERS, ...options });
  upstreams.push(upstream);
  const made = {
    upstream,
    files: new Map<string, string | (() => JsonObject | Promise<JsonObject>)>(Object.entries(files)),
    lists: {
      tools: [{ name: 'tool', inputSchema: { type: 'object' } }],
      prompts: [{ name: 'prompt' }],
      resources: Object.keys(files).map((uri): JsonObject => ({ uri, name: uri })),
    },
    skills: [] as unknown[],
  };
  lists(upstream, made.lists);
  upstream.answers.set('resources/read', async ({ uri }) => {
    const file = made.files.get(String(uri));
    if (typeof file === 'function') return file();
    if (file === undefined) throw Object.assign(new Error('no such resource'), { code: -32_602 });
    return { contents: [{ uri, text: file }], ttlMs: 0, cacheScope: 'private' };
  });
  upstream.answers.set('skills/list', () => ({ skills: made.skills, ttlMs: 0, cacheScope: 'private' }));
  const { id } = await nats.bus.call(mcpBroker.putServer, { slug, transport: { type: 'http', url: upstream.url } });
  await until(async () => (await get(id)).state === 'connected' && ((await get(id)).offers?.resources ?? null) !== null, 20_000);
  return Object.assign(made, { server: await get(id) });
}
async function skillsOf(one: Pick<Held, 'server'>): Promise<readonly ServerSkill[] | null> {
  const { server } = one;
  const { servers, mcpSkills } = await nats.bus.call(mcpBroker.catalogueHeads, { projectId: 'default' });
  const hash = servers.find(({ serverId }) => serverId === server.id)?.offers?.skills ?? null;
  if (!mcpSkills || hash === null) return null;
  try {
    return (await nats.bus.call(mcpBroker.skillPage, { serverId: server.id, hash })).skills;
  } catch (error) {
    // It moved between the two questions, and the next heads say to what.
    if (error instanceof Fault && error.code === 'OFFERS_MOVED') return skillsOf(one);
    throw error;
  }
}
const namesOf = async (one: Pick<Held, 'server'>): Promise<readonly string[] | null> =>
  (await skillsOf(one))?.map(({ name }) => name) ?? null;
const found = (one: Held, names: readonly string[]): Promise<void> =>
  until(async () => JSON.stringify(await namesOf(one)) === JSON.stringify(names), 20_000);
const file = (name: string, more = '', body = `# ${name}\nDo it.`): string =>
  `---\nname: ${name}\ndescription: How to ${name}\n${more}---\n${body}\n`;

/** Reads a file of a skill as a run that has it in its snapshot. */
async function read(one: Held, wanted: { path?: string; opened?: boolean; skill?: ServerSkill } = {}) {
  const skill = wanted.skill ?? (await skillsOf(one))?.[0];
  if (skill === undefined) throw new Error('the server has no skill');
  const { id: serverId, slug, owner, configGeneration, catalogHash } = one.server;
  const { name, digest, description, uri } = skill;
  const run = runs.run([{ serverId, slug, owner, configGeneration, catalogHash: catalogHash ?? '' }], {
    skills: [{ name, origin: 'mcp', owner, digest, description, mcp: { serverId, uri } }],
    authority: { openedSkills: wanted.opened === true ? [name] : [] },
  });
  const { runId, sessionId } = run;
  return nats.bus.call(mcpBroker.readServerSkill, { runId, sessionId, name, ...(wanted.path === undefined ? {} : { path: wanted.path }) });
}

verifies(
  ['R-MCPSKILL-1#1', 'R-MCPSKILL-1#4', 'R-MCPSKILL-2#1', 'R-MCPSKILL-14#4'],
  'switched off no resource is read; switching moves the version; a server without resources is never asked',
  async () => {
    const one = await held('switched', { 'skill://brew/SKILL.md': file('brew') });
    expect(await nats.bus.call(mcpBroker.listSwitches, {})).toEqual({ items: [{ name: 'mcp-skills', enabled: false }] });
    await one.upstream.changed('resources');
    await until(() => asked(one.upstream, 'resources/list') > 1);
    expect(asked(one.upstream, 'resources/read')).toBe(0);
    expect(await skillsOf(one)).toBeNull();
    const epochOf = async (): Promise<number> => (await nats.bus.call(mcpBroker.catalogueHeads, { projectId: 'default' })).epoch;
    const off = await epochOf();
    const bare = await startSdkServer({ capabilities: { tools: {} } });
    upstreams.push(bare);
    lists(bare, {});
    const { id } = await nats.bus.call(mcpBroker.putServer, { slug: 'bare', transport: { type: 'http', url: bare.url } });
    await until(async () => (await get(id)).state === 'connected', 20_000);
    await switchTo(true);
    expect(await epochOf()).toBeGreaterThan(off);
    await found(one, ['brew']);
    expect([...bare.asked.keys()].filter((method) => method.startsWith('resources'))).toEqual([]);
    const on = await epochOf();
    await switchTo(false);
    expect(await epochOf()).toBeGreaterThan(on);
    expect(await skillsOf(one)).toBeNull();
    await switchTo(true);
    await found(one, ['brew']);
  },
);

verifies(
  ['R-MCPSKILL-3#1', 'R-MCPSKILL-3#2', 'R-MCPSKILL-3#3', 'R-MCPSKILL-3#5', 'R-MCPSKILL-4#1', 'R-MCPSKILL-4#2'],
  'every SKILL.md among all pages of resources is a skill, within limits, and nothing else is',
  async () => {
    await switchTo(true);
    const one = await held('searched', {
      'skill://a/SKILL.md': file('a', 'argument-hint: <what>\n'),
      'skill://a/references/x.md': 'beside it',
      'skill://a/_manifest': '{}',
      'skill://b/SKILL.md': '# The first line\nof b',
      'skill://deep/down/c/SKILL.md': file(
        'c',
        'disable-model-invocation: true\nuser-invocable: false\nhooks: {a: b}\nmodel: other\nshell: bash\n',
      ),
      'skill://d/SKILL.md': file('other'),
      'skill://e/SKILL.md': '',
      'https://example.com/f/SKILL.md': file('f'),
    });
    one.files.set('skill://e/SKILL.md', () => ({ contents: [{ uri: 'skill://e/SKILL.md', blob: 'AAAA' }] }));
    const named = one.lists.resources.find(({ uri }) => uri === 'skill://b/SKILL.md');
    if (named !== undefined) delete named['name'];
    const [first, second, ...rest] = [one.lists.resources.slice(0, 2), one.lists.resources.slice(2, 4), one.lists.resources.slice(4)];
    one.upstream.answers.set('resources/list', ({ cursor }) =>
      cursor === undefined
        ? { resources: first, nextCursor: '' }
        : cursor === ''
          ? { resources: second, nextCursor: '3' }
          : { resources: rest.flat() },
    );
    await one.upstream.changed('resources');
    await found(one, ['a', 'b', 'c']);
    const skills = (await skillsOf(one)) ?? [];
    expect(skills).toMatchObject([
      {
        uri: 'skill://a/SKILL.md',
        path: 'a',
        description: 'How to a',
        found: 'searched',
        argumentHint: '<what>',
        modelInvocable: true,
        userInvocable: true,
      },
      { uri: 'skill://b/SKILL.md', description: 'The first line' },
      { path: 'deep/down/c', modelInvocable: false, userInvocable: false },
    ]);
    expect(Object.keys(skills[2] ?? {}).sort()).toEqual(Object.keys(skills[0] ?? {}).sort());
    one.upstream.answers.set('resources/list', () => ({
      resources: Array.from({ length: 500 }, (_, index) => ({ uri: `skill://s${index}/SKILL.md`, name: `s${index}` })),
    }));
    one.upstream.answers.set('resources/read', ({ uri }) => ({ contents: [{ uri, text: 'text' }] }));
    await one.upstream.changed('resources');
    await until(async () => (await skillsOf(one))?.length === 64, 20_000);
  },
);

verifies(
  ['R-MCPSKILL-3#4', 'R-MCPSKILL-1#3', 'R-MCPSKILL-7#1'],
  'one that hangs or fails costs itself alone, and is tried again',
  async () => {
    await switchTo(true);
    const one = await held('hanging', { 'skill://good/SKILL.md': file('good'), 'skill://hangs/SKILL.md': file('hangs') });
    let isStuck = true;
    one.files.set('skill://hangs/SKILL.md', () =>
      isStuck ? new Promise<JsonObject>(() => undefined) : { contents: [{ uri: 'skill://hangs/SKILL.md', text: file('hangs') }] },
    );
    await one.upstream.changed('resources');
    const startedAt = performance.now();
    await found(one, ['good']);
    expect(performance.now() - startedAt).toBeLessThan(15_000);
    expect(await get(one.server.id)).toMatchObject({
      state: 'connected',
      tools: 1,
      offers: { prompts: expect.any(String), resources: expect.any(String) },
    });
    isStuck = false;
    await one.upstream.changed('resources');
    await found(one, ['good', 'hangs']);
    const broken = await held('broken', {}, { capabilities: SKILLS });
    broken.upstream.answers.set('skills/list', () => {
      throw new Error('out of order');
    });
    await broken.upstream.changed('resources');
    await until(() => asked(broken.upstream, 'skills/list') > 0);
    expect(await get(broken.server.id)).toMatchObject({ state: 'connected', tools: 1 });
    broken.upstream.answers.set('skills/list', () => ({ skills: broken.skills }));
    broken.skills = [await skillEntry('mended', { 'SKILL.md': file('mended') })];
    await found(broken, ['mended']);
  },
);

verifies(
  ['R-MCPSKILL-14#1', 'R-MCPSKILL-14#2', 'R-MCPSKILL-14#3'],
  'a server that lists its skills is believed, and nothing of them is read before somebody wants it; what it then sends must be what it said',
  async () => {
    await switchTo(true);
    const texts = { 'SKILL.md': file('bake'), 'references/x.md': 'how hot' };
    const one = await held('listing', { 'skill://hidden/SKILL.md': file('hidden') }, { capabilities: SKILLS });
    const wrong = await skillEntry('wrong', { 'SKILL.md': file('wrong') });
    one.skills = [await skillEntry('kitchen/bake', texts), { ...wrong, uri: 'skill://elsewhere/SKILL.md' }, 'nothing'];
    one.files.set('skill://kitchen/bake/SKILL.md', texts['SKILL.md']);
    one.files.set('skill://kitchen/bake/references/x.md', texts['references/x.md']);
    await one.upstream.changed('resources');
    await found(one, ['bake']);
    expect(asked(one.upstream, 'resources/read')).toBe(0);
    expect(await read(one)).toMatchObject({
      verified: true,
      server: 'listing',
      files: ['SKILL.md', 'references/x.md'],
      text: texts['SKILL.md'],
    });
    one.files.set('skill://kitchen/bake/SKILL.md', `${texts['SKILL.md']}and more`);
    await expect(read(one)).rejects.toMatchObject({ code: 'DIGEST_MISMATCH' });
    one.files.set('skill://kitchen/bake/references/x.md', 'how cold');
    await expect(read(one, { path: 'references/x.md', opened: true })).rejects.toMatchObject({ code: 'DIGEST_MISMATCH' });
  },
);

verifies(
  ['R-MCPSKILL-15#1', 'R-MCPSKILL-15#2', 'R-MCPSKILL-15#3'],
  'files beside a skill are read through its own server while it is active, bounded, and nobody else’s',
  async () => {
    await switchTo(true);
    const one = await held('beside', {
      'skill://knit/SKILL.md': file('knit'),
      'skill://knit/references/x.md': 'a pattern',
      'skill://other/x.md': 'other',
    });
    one.files.set('skill://knit/large.md', 'x'.repeat(2 * 1024 * 1024));
    await found(one, ['knit']);
    await expect(read(one, { path: 'references/x.md' })).rejects.toMatchObject({ code: 'SKILL_NOT_ACTIVE' });
    for (const path of ['references/x.md', 'skill://knit/references/x.md'])
      expect(await read(one, { path, opened: true })).toMatchObject({ text: 'a pattern', verified: false });
    const before = asked(one.upstream, 'resources/read');
    for (const path of ['../other/x.md', 'skill://other/x.md', 'https://example.com/x.md', 'file:///etc/passwd', '/x.md', 'a/%2e%2e/x.md'])
      await expect(read(one, { path, opened: true })).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    expect(asked(one.upstream, 'resources/read')).toBe(before);
    await expect(read(one, { path: 'large.md', opened: true })).rejects.toMatchObject({ code: 'FILE_TOO_LARGE' });
    const uri = 'skill://knit/picture';
    one.files.set(uri, () => ({ contents: [{ uri, blob: Buffer.from([0xff, 0xd8, 0xff]).toString('base64') }] }));
    await expect(read(one, { path: 'picture', opened: true })).rejects.toMatchObject({ code: 'NOT_TEXT' });
  },
);

verifies(
  ['R-MCPSKILL-10#1', 'R-MCPSKILL-10#2', 'R-MCPSKILL-11#1', 'R-MCPSKILL-11#2', 'R-MCPSKILL-11#3', 'R-MCPSKILL-12#2'],
  'changed prompts cost one listing of prompts; changed resources have the skills found again, once for a burst, in whatever order both come',
  async () => {
    await switchTo(true);
    const one = await held('moving', { 'skill://one/SKILL.md': file('one'), 'skill://two/SKILL.md': file('two') });
    await found(one, ['one', 'two']);
    const before = { prompts: asked(one.upstream, 'prompts/list'), reads: asked(one.upstream, 'resources/read') };
    one.lists.prompts.push({ name: 'another' });
    await one.upstream.changed('prompts');
    await until(() => asked(one.upstream, 'prompts/list') > before.prompts);
    expect(asked(one.upstream, 'prompts/list')).toBe(before.prompts + 1);
    expect(asked(one.upstream, 'resources/read')).toBe(before.reads);
    expect(await namesOf(one)).toEqual(['one', 'two']);

    const [old] = (await skillsOf(one)) ?? [];
    one.files.set('skill://one/SKILL.md', file('one', '', 'Otherwise.'));
    one.files.set('skill://three/SKILL.md', file('three'));
    one.lists.resources.push({ uri: 'skill://three/SKILL.md', name: 'three' });
    one.lists.resources.splice(1, 1);
    const told = changes.all.length;
    for (let times = 0; times < 50; times++) {
      await one.upstream.changed(times % 2 === 0 ? 'prompts' : 'resources');
      await one.upstream.changed(times % 3 === 0 ? 'resources' : 'prompts');
    }
    await found(one, ['one', 'three']);
    expect((await skillsOf(one))?.[0]?.digest).not.toBe(old?.digest);
    expect(changes.all.slice(told).filter(({ payload }) => payload.serverId === one.server.id).length).toBeLessThanOrEqual(4);
    await expect(read(one, { ...(old === undefined ? {} : { skill: old }) })).rejects.toMatchObject({ code: 'SKILL_GONE' });
  },
);

verifies(
  ['R-MCPSKILL-12#1', 'R-MCPSKILL-12#3'],
  'a server that declares no changes is not heard, but looked at again after a time',
  async () => {
    await switchTo(true);
    const silent = { tools: {}, prompts: {}, resources: {} };
    const one = await held('silent', { 'skill://one/SKILL.md': file('one') }, { capabilities: silent });
    await found(one, ['one']);
    one.files.set('skill://one/SKILL.md', file('one', '', 'Otherwise.'));
    const digest = (await skillsOf(one))?.[0]?.digest;
    const reads = asked(one.upstream, 'resources/list');
    await one.upstream.changed('resources').catch(() => undefined);
    expect(asked(one.upstream, 'resources/list')).toBe(reads);
    await until(async () => (await skillsOf(one))?.[0]?.digest === sha256Hex(file('one', '', 'Otherwise.')), 20_000);
    expect((await skillsOf(one))?.[0]?.digest).not.toBe(digest);
  },
);

verifies(
  ['R-MCPSKILL-7#2', 'R-MCPSKILL-7#3', 'R-MCPSKILL-8#1', 'R-MCPSKILL-8#2', 'R-MCPSKILL-9#1', 'R-MCPSKILL-9#2'],
  'skills go with their connection: on a disconnect, when it is switched off, reconfigured or removed, and what comes late is not kept',
  async () => {
    await switchTo(true);
    const one = await held('going', { 'skill://one/SKILL.md': file('one') });
    const other = await held('going-too', { 'skill://one/SKILL.md': file('one', '', 'Another one.') });
    await found(one, ['one']);
    await found(other, ['one']);
    expect((await skillsOf(one))?.[0]?.digest).not.toBe((await skillsOf(other))?.[0]?.digest);
    // The connection is ended while a look is under way: what that one finds is not kept.
    let release: (answer: JsonObject) => void = () => undefined;
    let isReading = false;
    one.files.set('skill://one/SKILL.md', () => {
      isReading = true;
      return new Promise<JsonObject>((resolve) => (release = resolve));
    });
    await one.upstream.changed('resources');
    await until(() => isReading);
    nats.bus.signal(
      mcpBroker.closeInstance,
      { serverId: one.server.id, keepGeneration: null, reason: 'disconnected' },
      { keys: { serverId: one.server.id } },
    );
    await until(async () => (await skillsOf(one)) === null);
    release({ contents: [{ uri: 'skill://one/SKILL.md', text: file('one') }] });
    one.files.set('skill://one/SKILL.md', file('one'));
    await nats.bus.call(mcpBroker.testServer, { id: one.server.id });
    await found(one, ['one']);

    const put = (more: JsonObject) =>
      nats.bus.call(mcpBroker.putServer, { slug: 'going', transport: { type: 'http', url: one.upstream.url }, ...more } as never);
    await put({ enabled: false });
    await until(async () => (await skillsOf(one)) === null);
    await put({ enabled: true });
    await nats.bus.call(mcpBroker.testServer, { id: one.server.id });
    await found(one, ['one']);
    one.files.set('skill://one/SKILL.md', () => new Promise<JsonObject>(() => undefined));
    await put({ transport: { type: 'http', url: `${one.upstream.url}?again` } });
    expect(await skillsOf(one)).toBeNull();
    await nats.bus.call(mcpBroker.deleteServer, { id: one.server.id });
    expect(await skillsOf(one)).toBeNull();
    expect(await namesOf(other)).toEqual(['one']);
  },
);

verifies('R-MCPSKILL-16#2', 'a builder that is missing is an error of the switch, not of each connection', async () => {
  const builders = new SkillBuilders();
  builders.register('listed', () => Promise.resolve({ skills: [], notes: [] }));
  expect(() => builders.complete()).toThrow('no builder of searched skills');
  expect(() => builders.register('listed', () => Promise.resolve({ skills: [], notes: [] }))).toThrow('twice');
  expect((await switchTo(true)).enabled).toBe(true);
});

verifies(
  'R-MCPSKILL-16#1',
  'what builds skills can be loaded without what uses them, and nothing imports itself by way of another',
  async () => {
    const root = fileURLToPath(new URL('../src', import.meta.url));
    const files = (await readdir(root, { recursive: true })).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'));
    const imports = new Map<string, readonly string[]>();
    for (const name of files) {
      const text = await readFile(join(root, name), 'utf8');
      const found = text.matchAll(/^(?:import|export) (?!type )[^;]*?from '(\.[^']+)'/gm);
      imports.set(
        name,
        [...found].map(([, to = '']) => normalize(join(dirname(name), to.replace(/\.js$/, '.ts')))),
      );
    }
    const done = new Set<string>();
    const visit = (name: string, path: readonly string[]): void => {
      expect(path).not.toContain(name);
      if (done.has(name)) return;
      for (const next of imports.get(name) ?? []) visit(next, [...path, name]);
      done.add(name);
    };
    for (const name of imports.keys()) visit(name, []);
    expect(imports.get('skills/builders.ts')).toEqual([]);
    const isOfSkills = (name: string): boolean => name.startsWith('skills/');
    const users = [...imports].filter(([name, to]) => !isOfSkills(name) && to.some(isOfSkills));
    expect(users).toEqual([]);
    expect((await switchTo(true)).enabled).toBe(true);
  },
);
