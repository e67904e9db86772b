import type { AgentPreset } from '@ambit/contracts';
// Long because the compositions that must agree are read side by side: one table of inputs, one property beside each.
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { z } from 'zod';
import { canonicalRecord, fingerprint } from '../src/canonical.js';
import { compose } from '../src/compose.js';
import type { CompositionInput, EffectiveSkill, Source } from '../src/compose-input.js';
import { RESERVED_NAMES } from '../src/reserved.js';
import { readSnapshot, SnapshotMismatch, SnapshotRecord } from '../src/snapshot.js';
import { reservedNameOf } from '../src/tool-name.js';
import { builtin, hex, ok, openPolicy, plugin, policy, SCHEMA, server, skill, toolset, uuid, world } from './fixtures.js';
import { check } from './property.js';

const names = (input: CompositionInput) => compose(input).record.tools.map((tool) => tool.name);
const print = (input: CompositionInput) => fingerprint(compose(input).record);
const codeOf = (input: CompositionInput, name: string) =>
  compose(input)
    .reasons.filter((reason) => reason.name === name)
    .map((reason) => reason.code);

/** The paths of all leaves of a JSON schema, `a.b[].c`: what holds no further named field is one. */
function leavesOf(schema: z.core.JSONSchema._JSONSchema, path = ''): string[] {
  if (typeof schema === 'boolean') return [path];
  const below = schema.anyOf ?? schema.oneOf;
  if (below !== undefined) return [...new Set(below.flatMap((one) => leavesOf(one, path)))];
  if (schema.items !== undefined) return [schema.items].flat().flatMap((one) => leavesOf(one, `${path}[]`));
  if (schema.properties === undefined) return [path];
  return Object.entries(schema.properties).flatMap(([name, one]) => leavesOf(one, path === '' ? name : `${path}.${name}`));
}
function valuesAt(value: unknown, [name = '', ...rest]: readonly string[]): unknown[] {
  if (name === '') return [value];
  const field = name.replace('[]', '');
  const found = typeof value === 'object' && value !== null ? Object.entries(value).find(([key]) => key === field)?.[1] : undefined;
  return (name.endsWith('[]') && Array.isArray(found) ? found : [found]).flatMap((one: unknown) => valuesAt(one, rest));
}

const permuted = <T>(source: Source<T>, seed: number): Source<T> => {
  if (source.state === 'failed') return source;
  const items = source.items.map((item, index) => ({ item, rank: Math.imul(index + 1, seed * 2 + 1) >>> 3 }));
  return { state: 'ok', items: items.sort((left, right) => left.rank - right.rank).map(({ item }) => item) };
};

describe('composition', () => {
  it('joins built-ins, servers and the worker, by code unit, with hidden tools left out', () => {
    expect(names(world())).toEqual([
      'deploy',
      'mcp__server-1__add',
      'mcp__server-1__echo',
      'mcp__server-2__echo',
      'question',
      'tape_search',
    ]);
    expect(codeOf(world(), 'tape_info')).toEqual(['EXPOSURE_HIDDEN']);
    expect(codeOf(world(), 'tape_handoff')).toEqual(['EXPOSURE_HIDDEN']);
    expect(() => SnapshotRecord.parse(compose(world()).record)).not.toThrow();
  });

  it('gives every candidate exactly one reason, and the record nothing else', () => {
    const server_ = fc.record({
      names: fc.array(fc.constantFrom('echo', 'add', 'read', 'tape_info', 'a.b', '读取', 'x'.repeat(80)), { maxLength: 5 }),
      enabled: fc.boolean(),
      owner: fc.constantFrom('user', 'plugin:kit', 'plugin:gone'),
      state: fc.constantFrom('connected' as const, 'idle' as const, 'degraded' as const, 'needs-auth' as const),
      catalogHash: fc.constantFrom(null, hex(5)),
      toolPolicy: fc.constantFrom(null, { echo: 'allow' as const, add: 'deny' as const }),
      slug: fc.constantFrom('alpha', 'beta', 'gamma', 'tape'),
    });
    const toolset_ = fc.record({
      names: fc.uniqueArray(fc.constantFrom('deploy', 'read', 'question', 'mcp__alpha__echo', 'bad name', 'Tape_Info'), { maxLength: 4 }),
      epoch: fc.nat(3),
      agentId: fc.constantFrom('support', 'other'),
    });
    const skill_ = fc.record({
      name: fc.constantFrom('triage', 'report'),
      origin: fc.constantFrom('owned' as const, 'plugin' as const),
      enabled: fc.boolean(),
    });
    const list = fc.constantFrom<(string[] | null)[]>(null, [], ['alpha'], ['kit'], ['triage']);
    check(
      fc.property(
        fc.array(server_, { maxLength: 4 }),
        fc.array(toolset_, { maxLength: 3 }),
        fc.array(skill_, { maxLength: 4 }),
        fc.record({ servers: list, plugins: list, skills: list }),
        fc.nat(),
        (...[servers, toolsets, skills, lists, seed]) => {
          const input = world({
            policies: [policy({ ...lists, disabledTools: ['deploy'] })],
            servers: ok(...servers.map((part, index) => server(index + 1, part))),
            toolsets: ok(...toolsets.map((part, index) => toolset({ ...part, digest: hex(index) }))),
            skills: ok(...skills.map((part) => skill(part.name, { ...part, owner: part.origin === 'plugin' ? 'plugin:kit' : 'user' }))),
            plugins: ok(plugin('kit')),
          });
          const { record, reasons } = compose(input);
          const candidates =
            servers.reduce((sum, one) => sum + one.names.length, 0) + toolsets.reduce((sum, one) => sum + one.names.length, 0) + 4;
          const tools = reasons.filter((reason) => reason.kind === 'tool');
          // Beside it, a short name that a server's tool may not have says so.
          expect(tools.filter((reason) => !reason.slot.includes('/names/'))).toHaveLength(candidates);
          for (const reason of tools.filter(({ slot }) => slot.includes('/names/'))) expect(reason.code).toBe('NAME_RESERVED');
          expect(reasons.filter((reason) => reason.kind === 'skill')).toHaveLength(skills.length);
          expect(reasons.filter((reason) => reason.kind === 'server')).toHaveLength(servers.length);
          expect(
            reasons
              .filter((reason) => reason.kind === 'tool' && reason.included)
              .map((reason) => reason.name)
              .sort(),
          ).toEqual(record.tools.map((tool) => tool.name));
          expect(
            reasons
              .filter((reason) => reason.kind === 'skill' && reason.included)
              .map((reason) => reason.name)
              .sort(),
          ).toEqual(record.skills.map((one) => one.name));
          expect(new Set(record.tools.map((tool) => tool.name)).size).toBe(record.tools.length);
          for (const tool of record.tools)
            if (reservedNameOf(tool.name) !== null)
              expect(tool.owner === 'builtin' || (tool.name === 'read' && tool.owner === 'worker:support')).toBe(true);
          for (const tool of record.tools)
            if (tool.owner === 'plugin:kit') expect(lists.plugins === null || lists.plugins.includes('kit')).toBe(true);
          const mixed = {
            ...input,
            servers: permuted(input.servers, seed),
            toolsets: permuted(input.toolsets, seed),
            skills: permuted(input.skills, seed),
            builtins: permuted(input.builtins, seed),
          };
          expect(canonicalRecord(compose(mixed).record)).toBe(canonicalRecord(record));
        },
      ),
    );
  });

  it('lets nothing shadow a built-in, whatever it calls itself', () => {
    for (const name of RESERVED_NAMES) {
      const input = world({
        servers: ok(server(1, { names: [name] })),
        toolsets: ok(toolset({ names: [name, name.toUpperCase()] })),
        builtins: ok(builtin(name)),
      });
      const { record } = compose(input);
      const behind = record.tools.filter((tool) => reservedNameOf(tool.name) !== null);
      expect(behind.every((tool) => tool.owner === 'builtin')).toBe(true);
      expect(record.tools.map((tool) => tool.name)).toContain(`mcp__server-1__${name}`);
    }
    expect(codeOf(world({ toolsets: ok(toolset({ names: ['tape_info'] })) }), 'tape_info')).toEqual(
      expect.arrayContaining(['NAME_RESERVED']),
    );
  });

  it('keeps the names of a server’s tools whatever else runs', () => {
    const alone = names(world({ servers: ok(server(1)) }));
    const together = names(world({ servers: ok(server(1), server(2), server(3, { slug: 'server-1-echo' })) }));
    expect(together).toEqual(expect.arrayContaining(alone));
  });

  it('refuses both of two servers with one slug, and both of two different tools with one name', () => {
    const twin = world({ servers: ok(server(1, { slug: 'same' }), server(2, { slug: 'same' })) });
    expect(compose(twin).record.servers).toEqual([]);
    const different = server(1, { names: ['echo', 'echo'] });
    const [first] = different.tools;
    if (first === undefined) throw new Error('the fixture has tools');
    expect(codeOf(world({ servers: ok({ ...different, tools: [first, first] }) }), 'mcp__server-1__echo').sort()).toEqual([
      'DUPLICATE_NAME',
      'INCLUDED',
    ]);
    const changed = { ...first, definition: { ...first.definition, description: 'another' } };
    expect(codeOf(world({ servers: ok({ ...different, tools: [first, changed] }) }), 'mcp__server-1__echo')).toEqual([
      'DUPLICATE_NAME',
      'DUPLICATE_NAME',
    ]);
  });

  it('goes on where a source, a server or one schema fails', () => {
    const failed = world({ servers: { state: 'failed', detail: 'timeout' }, skills: { state: 'failed', detail: 'timeout' } });
    expect(names(failed)).toEqual(['deploy', 'question', 'tape_search']);
    expect(codeOf(failed, 'servers')).toEqual(['SOURCE_FAILED']);
    const degraded = world({ servers: ok(server(1, { catalogHash: null, state: 'degraded' }), server(2, { state: 'degraded' })) });
    expect(names(degraded)).toContain('mcp__server-2__echo');
    expect(codeOf(degraded, 'mcp__server-1__echo')).toEqual(['SERVER_DEGRADED']);
    let deep: unknown = 1;
    for (let level = 0; level < 80; level++) deep = { deep };
    const bad = server(1, { names: ['echo', 'add'] });
    const [echo, add] = bad.tools;
    if (echo === undefined || add === undefined) throw new Error('the fixture has tools');
    const broken = world({ servers: ok({ ...bad, tools: [{ ...echo, definition: { ...echo.definition, inputSchema: { deep } } }, add] }) });
    expect(codeOf(broken, 'mcp__server-1__echo')).toEqual(['SCHEMA_INVALID']);
    expect(names(broken)).toContain('mcp__server-1__add');
  });

  it('holds a plugin’s server to the policy’s servers and plugins both', () => {
    const at = (servers: string[] | null, plugins: string[] | null) =>
      codeOf(
        world({ policies: [policy({ servers, plugins })], servers: ok(server(1, { owner: 'plugin:kit' })), plugins: ok(plugin('kit')) }),
        'mcp__server-1__echo',
      );
    expect(at(null, null)).toEqual(['INCLUDED']);
    expect(at(['server-1'], ['kit'])).toEqual(['INCLUDED']);
    expect(at([uuid(1)], ['kit'])).toEqual(['INCLUDED']);
    expect(at([], null)).toEqual(['SERVER_NOT_ALLOWED']);
    expect(at(null, [])).toEqual(['PLUGIN_NOT_ALLOWED']);
    const state = (part: Parameters<typeof plugin>[1]) =>
      codeOf(world({ servers: ok(server(1, { owner: 'plugin:kit' })), plugins: ok(plugin('kit', part)) }), 'mcp__server-1__echo');
    expect(state({ state: 'disabled' })).toEqual(['PLUGIN_DISABLED']);
    expect(state({ state: 'unavailable' })).toEqual(['PLUGIN_UNAVAILABLE']);
    expect(
      codeOf(
        world({ servers: ok(server(1, { owner: 'plugin:kit' })), plugins: { state: 'failed', detail: 'away' } }),
        'mcp__server-1__echo',
      ),
    ).toEqual(['PLUGIN_UNAVAILABLE']);
    const closed = world({
      servers: ok(server(1, { owner: 'plugin:kit', names: ['echo', 'add', 'late'], toolPolicy: { echo: 'ask', add: 'deny' } })),
      plugins: ok(plugin('kit')),
    });
    expect(names(closed)).toContain('mcp__server-1__echo');
    expect(codeOf(closed, 'mcp__server-1__add')).toEqual(['PLUGIN_POLICY_DENIED']);
    expect(codeOf(closed, 'mcp__server-1__late')).toEqual(['PLUGIN_POLICY_DENIED']);
  });

  it('allows nothing where a policy cannot be read', () => {
    const input = world({ policies: [null] });
    expect(compose(input).record.servers).toEqual([]);
    expect(compose(input).record.skills).toEqual([]);
    expect(codeOf(input, 'policy')).toEqual(['POLICY_UNREADABLE']);
    expect(compose(world({ policies: [openPolicy(), null] })).record.servers).toEqual([]);
  });

  it('disables only what people may configure, and no server’s tool', () => {
    const input = world({ policies: [openPolicy({ disabledTools: ['question', 'tape_search', 'deploy', 'mcp__server-1__echo'] })] });
    expect(names(input)).toEqual(['mcp__server-1__add', 'mcp__server-1__echo', 'mcp__server-2__echo', 'tape_search']);
    expect(codeOf(input, 'deploy')).toEqual(['TOOL_DISABLED']);
  });

  it('shows an ACP agent the tools of servers alone', () => {
    const input = world({ agent: { id: 'support', kind: 'acp' } });
    expect(names(input)).toEqual(['mcp__server-1__add', 'mcp__server-1__echo', 'mcp__server-2__echo']);
    expect(codeOf(input, 'question')).toEqual(['AGENT_KIND']);
  });

  it('offers delegation to a regular session with a valid slot alone', () => {
    const orchestrator = builtin('subagent_orchestrator', { access: 'delegation', effect: 'write' });
    const at = (part: Partial<CompositionInput>, agent = 'reader') =>
      world({ builtins: ok(orchestrator), policies: [openPolicy({ subagents: { reader: { agent, description: '' } } })], ...part });
    expect(names(at({}))).toContain('subagent_orchestrator');
    expect(compose(at({})).record.subagents).toEqual([{ name: 'reader', agent: 'reader', description: '' }]);
    expect(compose(at({}, 'self')).record.subagents).toEqual([{ name: 'reader', agent: 'support', description: '' }]);
    const child = at({ session: { kind: 'subagent', selectedSkills: null, activeSkills: [] } });
    expect(compose(child).reasons.find((reason) => reason.name === 'subagent_orchestrator')).toMatchObject({
      code: 'SUBAGENT_UNAVAILABLE',
      detail: 'unsupported_session',
    });
    expect(compose(child).record.subagents).toBeNull();
    expect(compose(at({ policies: [openPolicy()] })).reasons.find((reason) => reason.name === 'subagent_orchestrator')).toMatchObject({
      detail: 'policy_disabled',
    });
    expect(compose(at({ knownAgents: [] })).reasons.find((reason) => reason.name === 'subagent_orchestrator')).toMatchObject({
      detail: 'no_valid_slots',
    });
    const six = Object.fromEntries(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => [name, { agent: 'self', description: '' }]));
    expect(compose(at({ policies: [openPolicy({ subagents: six })] })).record.subagents?.map((slot) => slot.name)).toEqual([
      'a',
      'b',
      'c',
      'd',
      'e',
    ]);
  });

  it('offers settings tools while their skill is active alone', () => {
    const settings = builtin('settings_write', { requiresSkill: 'settings', access: 'settings', effect: 'write' });
    const at = (activeSkills: string[], part: Parameters<typeof skill>[1] = {}) =>
      codeOf(
        world({
          builtins: ok(settings),
          skills: ok(skill('settings', { origin: 'builtin', owner: 'builtin', ...part })),
          session: { kind: 'regular', selectedSkills: null, activeSkills },
        }),
        'settings_write',
      );
    expect(at(['settings'])).toEqual(['INCLUDED']);
    expect(at([])).toEqual(['SKILL_NOT_ACTIVE']);
    expect(at(['settings'], { enabled: false })).toEqual(['SKILL_NOT_ACTIVE']);
    expect(at(['settings'], { origin: 'owned', owner: 'user' })).toEqual(['SKILL_NOT_ACTIVE']);
  });

  it('offers to run scripts where one is enabled and a worker could run it', () => {
    const at = (part: Partial<CompositionInput>) =>
      codeOf(
        world({ builtins: ok(builtin('skill_run', { needsScripts: true, access: 'command', effect: 'write' })), ...part }),
        'skill_run',
      );
    const skills = ok(skill('triage', { scripts: ['scripts/b.sh', 'scripts/a.sh'] }));
    const toolsets = ok(toolset({ names: ['exec'] }));
    expect(at({ skills, toolsets })).toEqual(['INCLUDED']);
    // It is the model's own commands that a policy may do without.
    expect(at({ skills, toolsets, policies: [openPolicy({ disabledTools: ['exec'] })] })).toEqual(['INCLUDED']);
    expect(compose(world({ skills })).record.skills).toMatchObject([{ scripts: ['scripts/a.sh', 'scripts/b.sh'] }]);
    for (const part of [{ toolsets }, { skills }, { skills, toolsets: ok(toolset({ names: ['exec'], agentId: 'another' })) }])
      expect(at(part)).toEqual(['SCRIPTS_UNAVAILABLE']);
    for (const gone of [{ enabled: false }, { origin: 'plugin' as const, owner: 'plugin:gone' }])
      expect(at({ toolsets, skills: ok(skill('triage', { scripts: ['scripts/a.sh'], ...gone })) })).toEqual(['SCRIPTS_UNAVAILABLE']);
  });

  it('takes the selected and allowed skills, an owned one before a plugin’s, and says what has no effect', () => {
    const input = (selectedSkills: string[] | null, part: Partial<CompositionInput> = {}) =>
      world({ session: { kind: 'regular', selectedSkills, activeSkills: [] }, plugins: ok(plugin('kit'), plugin('other')), ...part });
    const both = input(null, {
      skills: ok(skill('triage'), skill('triage', { origin: 'plugin', owner: 'plugin:kit' }), skill('report', { enabled: false })),
    });
    expect(compose(both).record.skills).toMatchObject([{ name: 'triage', origin: 'owned' }]);
    expect(codeOf(both, 'report')).toEqual(['SKILL_DISABLED']);
    const two = input(null, {
      skills: ok(skill('x', { origin: 'plugin', owner: 'plugin:kit' }), skill('x', { origin: 'plugin', owner: 'plugin:other' })),
    });
    expect(codeOf(two, 'x')).toEqual(['DUPLICATE_NAME', 'DUPLICATE_NAME']);
    expect(codeOf(input([]), 'triage')).toEqual(['SKILL_NOT_SELECTED']);
    expect(codeOf(input(['triage', 'gone']), 'gone')).toEqual(['SKILL_UNKNOWN']);
    expect(codeOf(input(null, { policies: [openPolicy({ skills: [] })] }), 'triage')).toEqual(['SKILL_NOT_ALLOWED']);
    expect(codeOf(input(null, { skills: ok(skill('s', { origin: 'mcp', serverId: uuid(9) })) }), 's')).toEqual(['SERVER_NOT_ALLOWED']);
    expect(codeOf(input(null, { skills: ok(skill('s', { origin: 'mcp', serverId: uuid(1) })) }), 's')).toEqual(['INCLUDED']);
  });

  it('names tools by the agent’s aliases, and never lets one win a taken name', () => {
    const at = (aliases: Record<string, string>) => world({ policies: [openPolicy({ aliases })] });
    expect(compose(at({ say: 'mcp__server-2__echo' })).record.tools.find((tool) => tool.name === 'say')).toMatchObject({
      qualifiedName: 'mcp__server-2__echo',
    });
    expect(names(at({ say: 'mcp__server-2__echo' }))).not.toContain('mcp__server-2__echo');
    expect(codeOf(at({ deploy: 'mcp__server-2__echo' }), 'deploy')).toEqual(expect.arrayContaining(['ALIAS_TAKEN', 'INCLUDED']));
    expect(codeOf(at({ exec: 'mcp__server-2__echo' }), 'exec')).toEqual(['NAME_RESERVED']);
    expect(codeOf(at({ say: 'nothing' }), 'say')).toEqual(['ALIAS_UNKNOWN']);
    expect(codeOf(at({ mcp__a__b: 'deploy' }), 'mcp__a__b')).toEqual(['NAME_RESERVED']);
  });

  it('offers the newest toolset of the agent’s own worker alone', () => {
    const input = world({
      toolsets: ok(
        toolset({ epoch: 1, digest: hex(1), names: ['old'] }),
        toolset({ epoch: 2, digest: hex(2), names: ['new'] }),
        toolset({ agentId: 'other', names: ['theirs'] }),
      ),
    });
    expect(names(input)).toContain('new');
    expect(codeOf(input, 'old')).toEqual(['SUPERSEDED']);
    expect(codeOf(input, 'theirs')).toEqual(['NOT_THIS_AGENT']);
  });

  it('names skills of servers so that none shadows a local one, and each is told from the others', () => {
    const remote = (serverId: string, path: string, part: Partial<EffectiveSkill> = {}) =>
      skill('triage', { origin: 'mcp', serverId, path, uri: `skill://${path}/SKILL.md`, ...part });
    const namesOf = (...skills: EffectiveSkill[]) =>
      compose(world({ servers: ok(server(1), server(2)), skills: ok(...skills) })).record.skills.map(
        ({ name, origin }) => `${origin} ${name}`,
      );
    expect(namesOf(remote(uuid(1), 'triage'))).toEqual(['mcp triage']);
    expect(namesOf(remote(uuid(1), 'triage'), remote(uuid(2), 'triage'))).toEqual(['mcp server-1:triage', 'mcp server-2:triage']);
    expect(namesOf(skill('triage'), remote(uuid(1), 'triage'))).toEqual(['mcp server-1:triage', 'owned triage']);
    // A local skill that the agent may not use keeps its name from everybody else.
    expect(namesOf(skill('triage', { enabled: false }), remote(uuid(1), 'triage'))).toEqual(['mcp server-1:triage']);
    expect(namesOf(remote(uuid(1), 'a/triage'), remote(uuid(1), 'b/triage'))).toEqual(['mcp server-1:a/triage', 'mcp server-1:b/triage']);
    expect(namesOf(remote(uuid(1), 'triage', { modelInvocable: false }), remote(uuid(9), 'triage'))).toEqual([]);
  });

  it('is for a child never more than its parent or its own agent has', () => {
    const list = fc.option(fc.subarray(['server-1', 'server-2', 'kit', 'triage']), { nil: null });
    const part = fc.record({ servers: list, plugins: list, skills: list, disabledTools: fc.subarray(['deploy', 'question']) });
    check(
      fc.property(part, part, (parent, own) => {
        const at = (...policies: (typeof own)[]) => {
          const { record } = compose(
            world({
              policies: policies.map((one) => policy(one)),
              servers: ok(server(1), server(2, { owner: 'plugin:kit' })),
              plugins: ok(plugin('kit')),
            }),
          );
          return new Set([...record.tools.map((tool) => tool.name), ...record.skills.map((one) => `skill ${one.name}`)]);
        };
        const child = at(own, parent);
        const both = [...at(own)].filter((name) => at(parent).has(name));
        expect([...child].sort()).toEqual(both.sort());
      }),
    );
  });
});

describe('fingerprint', () => {
  const changing: [string, Partial<CompositionInput>][] = [
    ['agent', { agent: { id: 'other', kind: 'sdk' } }],
    ['policy list null to empty', { policies: [openPolicy({ servers: [] })] }],
    ['policy list null to all names', { policies: [openPolicy({ servers: ['server-1', 'server-2'] })] }],
    ['disabled tool', { policies: [openPolicy({ disabledTools: ['question'] })] }],
    ['project', { project: { id: 'other', workspaceId: null } }],
    ['workspace', { project: { id: 'default', workspaceId: 'desk' } }],
    ['model', { model: { name: 'another', vision: false } }],
    ['vision', { model: { name: 'a-model', vision: true } }],
    ['switch', { switches: { skills: true, mcp: true, mcpSkills: false } }],
    ['catalogue hash', { servers: ok(server(1, { names: ['echo', 'add'], catalogHash: hex('b') }), server(2)) }],
    ['generation', { servers: ok(server(1, { names: ['echo', 'add'], configGeneration: 2 }), server(2)) }],
    ['binding', { servers: ok(server(1, { names: ['echo', 'add'], bindingHash: hex('c') }), server(2)) }],
    ['a tool fewer', { servers: ok(server(1), server(2)) }],
    ['toolset digest', { toolsets: ok(toolset({ digest: hex('d') })) }],
    ['built-in version', { builtins: ok(builtin('question', { version: 2 }), builtin('tape_search', { parallel: true })) }],
    ['skill content', { skills: ok(skill('triage', { digest: hex('e') })) }],
    ['an enabled script', { skills: ok(skill('triage', { scripts: ['scripts/sort.sh'] })) }],
    ['skill selection', { session: { kind: 'regular', selectedSkills: [], activeSkills: [] } }],
    ['plugin', { plugins: ok(plugin('kit')) }],
    ['subagents', { policies: [openPolicy({ subagents: { reader: { agent: 'reader', description: '' } } })] }],
  ];
  it.each(changing)('moves with the %s', (_name, part) => {
    expect(print(world(part))).not.toBe(print(world()));
  });

  const server_ = (part: Parameters<typeof server>[1]) => ({ servers: ok(server(1, { names: ['echo', 'add'], ...part }), server(2)) });
  /** Further changes, so that each field of the record has one that moves it. */
  const more: [string, Partial<CompositionInput>][] = [
    ['server made anew', { servers: ok(server(3, { names: ['echo', 'add'], slug: 'server-1' }), server(2)) }],
    ['slug', server_({ slug: 'another' })],
    ['what a plugin asks for its tool', server_({ toolPolicy: { echo: 'ask', add: 'allow' } })],
    ['owner of a server', { ...server_({ owner: 'plugin:kit' }), plugins: ok(plugin('kit')) }],
    ['alias', { policies: [openPolicy({ aliases: { add: 'mcp__server-1__add' } })] }],
    [
      'description, schemas, effect, access and exposure of a built-in',
      {
        builtins: ok(
          builtin('question', {
            description: 'another',
            inputSchema: { type: 'object' },
            outputSchema: SCHEMA,
            effect: 'write',
            access: 'settings',
            exposure: 'user-configurable',
          }),
          builtin('tape_search'),
        ),
      },
    ],
    [
      'tool of a server that only reads',
      {
        servers: ok(
          server(1, {
            tools: [{ definition: { name: 'echo', description: 'another', inputSchema: {}, outputSchema: SCHEMA }, readOnly: true }],
          }),
          server(2),
        ),
      },
    ],
    ['tool of a worker', { toolsets: ok(toolset({ names: ['deliver'] })) }],
    ['worker of another agent', { agent: { id: 'other', kind: 'sdk' }, toolsets: ok(toolset({ agentId: 'other' })) }],
    [
      'name, origin, owner and description of a skill',
      {
        skills: ok(skill('sort', { origin: 'plugin', owner: 'plugin:kit', description: 'another' })),
        plugins: ok(plugin('kit')),
      },
    ],
    ['skill of a server', { skills: ok(skill('triage', { origin: 'mcp', serverId: uuid(1), uri: 'skill://triage/SKILL.md' })) }],
    [
      'skill of another server, at another address',
      { skills: ok(skill('triage', { origin: 'mcp', serverId: uuid(2), uri: 'skill://b/triage/SKILL.md' })) },
    ],
    ['another built-in in its place', { builtins: ok(builtin('question'), builtin('update_plan')) }],
    ['another plugin', { plugins: ok(plugin('box')) }],
    ['version of a plugin', { plugins: ok(plugin('kit', { version: '2.0.0' })) }],
    ['switches', { switches: { skills: false, mcp: true, mcpSkills: true } }],
    ['switch of servers', { switches: { skills: true, mcp: false, mcpSkills: true } }],
    ['description of a subagent', { policies: [openPolicy({ subagents: { reader: { agent: 'reader', description: 'reads' } } })] }],
  ];
  const preset = (id: string, part: Partial<AgentPreset> = {}) => ({
    policies: [openPolicy({ presets: { '*': 'allow' } })],
    plugins: ok(plugin(id, { agents: [{ name: 'reviewer', description: 'reviews', instructions: 'Review.', tools: ['echo'], ...part }] })),
  });
  more.push(
    ['deferred tool', { policies: [openPolicy({ deferredTools: ['*echo'] })], servers: ok(server(1)) }],
    ['another deferred tool', { policies: [openPolicy({ deferredTools: ['*add'] })], servers: ok(server(1, { names: ['add'] })) }],
    ['preset of a plugin', preset('kit')],
    ['preset of another plugin', preset('box')],
    ['what a preset is told', preset('kit', { instructions: 'Review all.' })],
    ['tools of a preset', preset('kit', { tools: ['add'] })],
    ['tools that a preset says nothing of', preset('kit', { tools: null })],
  );
  it.each(more)('moves with the %s', (_name, part) => {
    expect(print(world(part))).not.toBe(print(world()));
  });

  /** What every record of this release has alike; a change of it is another format, or another table of names. */
  const FIXED = new Set(['format', 'schemaVersion', 'reservedTableVersion']);
  /** Prompt commands of servers are not composed yet; what a worker prepared is a part of what is approved, never of a record. */
  const UNUSED = /^promptCommands\[\]\.|^tools\[\]\.target\.prepared$/;

  it('knows of each field of the record’s schema which input moves it', () => {
    const records = [{}, ...[...changing, ...more].map(([, part]) => part)].map((part) => compose(world(part)).record);
    // Of lists, two as long as each other count: that one has more entries moves none of their fields.
    const moves = (path: string): boolean => {
      const byLength = new Map<number, string>();
      return records.some((record) => {
        const values = valuesAt(record, path.split('.')).map((value) => JSON.stringify(value) ?? '');
        const seen = JSON.stringify(values.sort());
        const other = byLength.get(values.length);
        byLength.set(values.length, other ?? seen);
        return other !== undefined && other !== seen;
      });
    };
    const fields = leavesOf(z.toJSONSchema(SnapshotRecord, { io: 'input', unrepresentable: 'any' }));
    expect(fields.length).toBeGreaterThan(40);
    expect(fields.filter((path) => !FIXED.has(path) && !UNUSED.test(path) && !moves(path))).toEqual([]);
  });

  it('knows of each input of the composition whether it is one of the fingerprint', () => {
    const inputs: Readonly<Record<keyof CompositionInput, 'moves' | 'moves as filters read it' | 'moves with subagents'>> = {
      agent: 'moves',
      policies: 'moves',
      project: 'moves',
      model: 'moves',
      switches: 'moves',
      session: 'moves',
      subject: 'moves as filters read it',
      builtins: 'moves',
      servers: 'moves',
      toolsets: 'moves',
      skills: 'moves',
      plugins: 'moves',
      knownAgents: 'moves with subagents',
    };
    expect(Object.keys(inputs).sort()).toEqual(Object.keys(world()).sort());
    const moved = new Set([...changing, ...more].flatMap(([, part]) => Object.keys(part)));
    for (const [input, how] of Object.entries(inputs))
      expect({ input, moves: moved.has(input) }).toEqual({ input, moves: how === 'moves' });
    const only = { subject: { adapter: 'chat', scene: 'group', sceneId: '1', userId: 'u', roles: [], platformPermits: [] } } as const;
    const filtered = (subject: CompositionInput['subject']) =>
      print(world({ subject, skills: ok(skill('triage', { platforms: ['chat'] })) }));
    expect(filtered(only.subject)).not.toBe(filtered({ ...only.subject, adapter: 'mail' }));
    const delegating = { policies: [openPolicy({ subagents: { reader: { agent: 'reader', description: '' } } })] };
    expect(print(world({ ...delegating, knownAgents: [] }))).not.toBe(print(world(delegating)));
  });

  const still: [string, Partial<CompositionInput>][] = [
    ['mode', { policies: [openPolicy({ mode: 'full_access' })] }],
    [
      'rules',
      { policies: [openPolicy({ rules: [{ decision: 'deny', tool: '*', when: {}, approvers: [], not: null, expiresMs: null }] })] },
    ],
    ['limits', { policies: [openPolicy({ limits: { runsAtOnce: 1, callsPerRun: 1, callsPerMinute: 1 } })] }],
    ['subject', { subject: { adapter: 'slack', scene: 'group', sceneId: '1', userId: 'u', roles: [], platformPermits: [] } }],
    ['health of a listed server', { servers: ok(server(2), server(1, { names: ['add', 'echo'], state: 'failed', stale: true })) }],
    ['a disabled server', { servers: ok(server(1, { names: ['echo', 'add'] }), server(2), server(3, { enabled: false })) }],
    ['a failed source that had nothing', { plugins: { state: 'failed', detail: 'away' } }],
  ];
  it.each(still)('stays with another %s', (_name, part) => {
    expect(print(world(part))).toBe(print(world()));
  });

  it('stays under any mixture of what cannot change it, in any order, and moves with any one change on top', () => {
    const first = print(world());
    check(
      fc.property(fc.subarray(still), fc.constantFrom(...changing, ...more), fc.nat(), (kept, [, change], seed) => {
        const base = kept.reduce<Partial<CompositionInput>>((sum, [, part]) => ({ ...sum, ...part }), {});
        const mixed = (part: Partial<CompositionInput>): CompositionInput => {
          const input = world(part);
          const { servers, toolsets, skills, builtins, plugins } = input;
          return {
            ...input,
            servers: permuted(servers, seed),
            toolsets: permuted(toolsets, seed),
            skills: permuted(skills, seed),
            builtins: permuted(builtins, seed),
            plugins: permuted(plugins, seed),
          };
        };
        expect(print(mixed(base))).toBe(first);
        expect(print(mixed({ ...base, ...change }))).not.toBe(first);
      }),
    );
  });

  it('is checked against the bytes as they came', () => {
    const { record } = compose(world());
    expect(readSnapshot(canonicalRecord(record), fingerprint(record))).toEqual(record);
    expect(() => readSnapshot(canonicalRecord(record).replace('"deploy"', '"destroy"'), fingerprint(record))).toThrow(SnapshotMismatch);
  });
});

describe('cost', () => {
  it('composes and fingerprints 1,000 tools within its budget', () => {
    const properties = Object.fromEntries(
      Array.from({ length: 5 }, (_, index) => [
        `argument${index}`,
        { type: 'string', description: `What argument ${index} means to the tool` },
      ]),
    );
    const schema = { ...SCHEMA, properties, required: ['argument0'] };
    const servers = Array.from({ length: 10 }, (_, seed) => {
      const one = server(seed, { names: Array.from({ length: 100 }, (_unused, index) => `tool_${index}`) });
      return { ...one, tools: one.tools.map((tool) => ({ ...tool, definition: { ...tool.definition, inputSchema: schema } })) };
    });
    const input = world({ servers: ok(...servers) });
    const took = Array.from({ length: 15 }, () => {
      const start = performance.now();
      print(input);
      return performance.now() - start;
    }).sort((left, right) => left - right);
    expect(compose(input).record.tools.length).toBe(1_003);
    // The budget is 20 ms; this only trips on a change of kind, since other work shares the machine with the tests.
    expect(took[0]).toBeLessThan(100);
  });
});

describe('a worker', () => {
  it('may not claim that its tool touches the session alone, a server, or delegation', () => {
    const [tool] = toolset().tools;
    if (tool === undefined) throw new Error('the fixture has a tool');
    for (const access of ['session', 'mcp', 'delegation'] as const) {
      expect(codeOf(world({ toolsets: ok(toolset({ tools: [{ ...tool, access }] })) }), 'deploy')).toEqual(['ACCESS_REFUSED']);
    }
  });

  it('that is live comes before one that is not', () => {
    const input = world({
      toolsets: ok(toolset({ epoch: 9, live: false, digest: hex(1), names: ['gone'] }), toolset({ digest: hex(2), names: ['here'] })),
    });
    expect(names(input)).toContain('here');
    expect(codeOf(input, 'gone')).toEqual(['SUPERSEDED']);
  });
});
