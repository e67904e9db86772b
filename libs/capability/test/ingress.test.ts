import { describe, expect, it } from '@jest/globals';
import { Permit, type MatchRule } from '@ambit/contracts';
import fc from 'fast-check';
import { cacheKey, worldKey, type CompositionVersions } from '../src/cache-key.js';
import { canonicalRecord } from '../src/canonical.js';
import { compose } from '../src/compose.js';
import { fieldsConsulted, filterVerdicts, permitProblem, type Filterable, type Subject } from '../src/filters.js';
import { findTies, matchAgent, ruleMatches, type MessageFacts } from '../src/match.js';
import { ok, openPolicy, server, SCHEMA, skill, world } from './fixtures.js';
import { check } from './property.js';

const subject = fc.record<Subject>({
  adapter: fc.constantFrom('slack', 'teams'),
  scene: fc.constantFrom('private' as const, 'group' as const, 'channel' as const),
  sceneId: fc.constantFrom('1', '2'),
  userId: fc.constantFrom('', '1', '2'),
  roles: fc.subarray(['master', 'trusted', 'member']),
  platformPermits: fc.subarray(['admin', 'mute']),
});
const permit = fc.constantFrom(
  'adapter(slack)',
  'group(1)',
  'group()',
  'channel(*)',
  'private',
  'user(1)',
  'user(1,2)',
  'user()',
  'role(trusted)',
  'role(member)',
  'platform(slack, admin)',
  'platform(teams, mute)',
  'nonsense',
  'user(1',
);
const filterable = fc.record<Filterable>({
  platforms: fc.subarray(['slack', 'teams']),
  scopes: fc.subarray(['private', 'group', 'channel']),
  permissions: fc.array(permit, { maxLength: 3 }),
});
const slotOf = ({ platforms, scopes, permissions }: Filterable) => ({
  platforms: [...(platforms ?? [])],
  scopes: [...(scopes ?? [])],
  permissions: (permissions ?? []).filter((one) => permitProblem(one) === null),
});
const passes = (capability: Filterable, who: Subject | null) =>
  filterVerdicts(capability, who).every((verdict) => verdict.verdict === 'pass');
const alice: Subject = { adapter: 'slack', scene: 'group', sceneId: '1', userId: '1', roles: [], platformPermits: [] };

describe('filters', () => {
  it('read no more of the subject than they say', () => {
    check(
      fc.property(filterable, subject, subject, (capability, left, right) => {
        const fields = fieldsConsulted(capability);
        const same = { ...right, ...Object.fromEntries(fields.map((field) => [field, left[field]])) };
        expect(filterVerdicts(capability, same)).toEqual(filterVerdicts(capability, left));
      }),
      3_000,
    );
  });

  it('let a run without a message see only what demands nothing', () => {
    check(
      fc.property(filterable, (capability) => {
        const demands = [capability.platforms, capability.scopes, capability.permissions].some((list) => (list ?? []).length > 0);
        expect(passes(capability, null)).toBe(!demands);
      }),
    );
  });

  it.each([
    ['adapter(slack)', {}, true],
    ['adapter(sla)', {}, false],
    ['group(1)', {}, true],
    ['group(2)', {}, false],
    ['group(2, 1)', {}, true],
    ['group()', {}, true],
    ['group(*)', {}, true],
    ['private()', {}, false],
    ['user(1)', {}, true],
    ['user(2)', {}, false],
    ['user(1)', { userId: '' }, false],
    ['role(trusted)', { roles: ['master'] }, true],
    ['role(master)', { roles: ['trusted'] }, false],
    ['platform(slack, admin)', { platformPermits: ['admin'] }, true],
    ['platform(teams, admin)', { platformPermits: ['admin'] }, false],
    ['unknown(1)', {}, false],
  ])('%s of %j is %s', (text, part, expected) => {
    expect(passes({ permissions: [text] }, { ...alice, ...part })).toBe(expected);
  });

  it.each(['user()', 'role()', 'adapter( )', 'platform(slack)', 'user(1', 'all', ''])(
    'refuse the permit %j where it is registered',
    (text) => {
      expect(permitProblem(text)).not.toBeNull();
    },
  );
});

it('permits are read where they are registered as they are read where they are asked', () => {
  const part = fc.constantFrom(
    'user',
    'role',
    'adapter',
    'group',
    'private',
    'channel',
    'platform',
    '(',
    ')',
    ',',
    ' ',
    '*',
    'a',
    'b c',
    '1',
    '\n',
  );
  const text = fc.oneof(
    fc.array(part, { maxLength: 9 }).map((parts) => parts.join('')),
    permit,
  );
  check(
    fc.property(text, (one) => {
      expect(Permit.safeParse(one).success).toBe(permitProblem(one) === null);
    }),
    3_000,
  );
});

const versions = (part: Partial<CompositionVersions> = {}): CompositionVersions => ({
  agent: { id: 'support', kind: 'sdk' },
  project: { id: 'default', workspaceId: null },
  model: { name: 'm', vision: false },
  switches: { skills: true, mcp: true, mcpSkills: true },
  session: { kind: 'regular', selectedSkills: null, activeSkills: [] },
  policies: [{ agentId: 'support', version: 1 }],
  epochs: { 'mcp-broker.user.mcp-servers': 1 },
  agentsVersion: 1,
  failed: [],
  ...part,
});

describe('the cache', () => {
  it('shares a projection exactly between subjects that see the same world', () => {
    check(
      fc.property(fc.array(filterable, { minLength: 1, maxLength: 4 }), subject, subject, (filters, left, right) => {
        const servers = ok(...filters.map((one, index) => ({ ...server(index + 1), ...one })));
        const one = compose(world({ servers, subject: left }));
        const other = compose(world({ servers, subject: right }));
        expect(one.consulted).toEqual(other.consulted);
        if (cacheKey(versions(), left, one.consulted) === cacheKey(versions(), right, one.consulted))
          expect(canonicalRecord(other.record)).toBe(canonicalRecord(one.record));
      }),
    );
  });

  it('is never shared by subjects that differ in what any filter of any kind reads, unless both see the same', () => {
    const demanding = fc.tuple(filterable, filterable, filterable, filterable);
    check(
      fc.property(demanding, subject, subject, ([one, two, three, four], left, right) => {
        const of = (who: Subject) =>
          compose(
            world({
              servers: ok({ ...server(1), ...one, tools: server(1).tools.map((tool) => ({ ...tool, ...two })) }),
              skills: ok(skill('triage', three)),
              policies: [openPolicy({ subagents: { helper: { agent: 'self', description: '', ...slotOf(four) } } })],
              subject: who,
            }),
          );
        const [first, second] = [of(left), of(right)];
        if (canonicalRecord(first.record) === canonicalRecord(second.record)) return;
        const stored = cacheKey(versions(), left, first.consulted);
        // Under its own fields, and under those that the world is known by since the other was composed.
        for (const consulted of [first.consulted, second.consulted]) expect(cacheKey(versions(), right, consulted)).not.toBe(stored);
      }),
      1_000,
    );
  });

  it('never serves one user’s projection to another', () => {
    const tool = { definition: { name: 'secret', description: '', inputSchema: SCHEMA }, readOnly: false, permissions: ['user(1)'] };
    const servers = ok({ ...server(1), tools: [tool] });
    const first = compose(world({ servers, subject: alice }));
    const second = compose(world({ servers, subject: { ...alice, userId: '2' } }));
    expect(first.record.tools.map((entry) => entry.name)).toContain('mcp__server-1__secret');
    expect(second.record.tools.map((entry) => entry.name)).not.toContain('mcp__server-1__secret');
    expect(second.reasons).toContainEqual(
      expect.objectContaining({ name: 'mcp__server-1__secret', included: false, code: 'FILTERED_PERMISSION' }),
    );
    expect(cacheKey(versions(), alice, first.consulted)).not.toBe(cacheKey(versions(), { ...alice, userId: '2' }, first.consulted));
    expect(cacheKey(versions(), null, first.consulted)).not.toBe(cacheKey(versions(), alice, first.consulted));
  });

  it.each<[string, Partial<CompositionVersions>]>([
    ['epoch', { epochs: { 'mcp-broker.user.mcp-servers': 2 } }],
    ['policy version', { policies: [{ agentId: 'support', version: 2 }] }],
    [
      'ancestor',
      {
        policies: [
          { agentId: 'support', version: 1 },
          { agentId: 'p', version: 1 },
        ],
      },
    ],
    ['agent', { agent: { id: 'other', kind: 'sdk' } }],
    ['selection', { session: { kind: 'regular', selectedSkills: [], activeSkills: [] } }],
    ['failed source', { failed: ['servers'] }],
    ['switch', { switches: { skills: false, mcp: true, mcpSkills: true } }],
  ])('keeps worlds of another %s apart', (_name, part) => {
    expect(worldKey(versions(part))).not.toBe(worldKey(versions()));
  });

  it('notes the filters of skills as well', () => {
    expect(compose(world({ skills: ok(skill('triage', { platforms: ['slack'] })), subject: alice })).consulted).toEqual(['adapter']);
  });
});

describe('agent match', () => {
  const message = (part: Partial<MessageFacts> = {}): MessageFacts => ({
    adapter: 'slack',
    endpoints: ['bot', 'B1'],
    scene: 'channel',
    sceneId: '42',
    media: ['text'],
    content: 'Please DEPLOY it',
    ...part,
  });
  const rule_ = fc
    .record<MatchRule>(
      {
        adapter: fc.constantFrom('slack', 'http'),
        endpoint: fc.constantFrom('bot', 'B1', 'other'),
        scene: fc.constantFrom('private', 'group', 'channel'),
        sceneId: fc.constantFrom('42', '43'),
        hasMedia: fc.subarray(['image', 'audio', 'text']),
        contentContains: fc.constantFrom('deploy', 'stop'),
      },
      { requiredKeys: [] },
    )
    .filter((rule) => Object.keys(rule).length > 0);
  const message_ = fc.record<MessageFacts>({
    adapter: fc.constantFrom('slack', 'http'),
    endpoints: fc.subarray(['bot', 'B1', 'other']),
    scene: fc.constantFrom('private', 'group', 'channel'),
    sceneId: fc.constantFrom('42', '43'),
    media: fc.subarray(['image', 'audio', 'text']),
    content: fc.constantFrom('', 'Deploy', 'deploy and stop'),
  });

  it('finds every tie when agents are applied that a message could make later', () => {
    const agents_ = fc
      .array(fc.array(rule_, { maxLength: 2 }), { maxLength: 3 })
      .map((list) => list.map((match, index) => ({ id: `a${index}`, match })));
    check(
      fc.property(agents_, message_, (agents, one) => {
        const binding = matchAgent(agents, one);
        if ('code' in binding && binding.code === 'AGENT_AMBIGUOUS') expect(findTies(agents).length).toBeGreaterThan(0);
        if (findTies(agents).length === 0) expect(binding).not.toMatchObject({ code: 'AGENT_AMBIGUOUS' });
      }),
      3_000,
    );
  });

  it('passes over what is off, as if it were not there', () => {
    const rules = fc.array(
      fc.record(
        { adapter: fc.constantFrom('http', 'slack'), scene: fc.constantFrom('private' as const, 'group' as const) },
        { requiredKeys: [] },
      ),
      { maxLength: 2 },
    );
    const some = fc.uniqueArray(fc.record({ id: fc.constantFrom('a', 'b', 'c', 'default'), match: rules, enabled: fc.boolean() }), {
      selector: ({ id }) => id,
      maxLength: 4,
    });
    check(
      fc.property(some, (candidates) => {
        const present = candidates.filter(({ enabled }) => enabled).map(({ id, match }) => ({ id, match }));
        expect(matchAgent(candidates, message())).toEqual(matchAgent(present, message()));
        // Whoever switches one on again makes no tie that was not refused before.
        expect(findTies(candidates)).toEqual(findTies(candidates.map(({ id, match }) => ({ id, match }))));
      }),
    );
  });

  it('takes the one agent that matches, the default for the rest, else none', () => {
    const support = { id: 'support', match: [{ adapter: 'http' }, { adapter: 'slack', sceneId: '42' }] };
    expect(matchAgent([support], message())).toEqual({ agentId: 'support', rule: 1 });
    expect(matchAgent([support], message({ sceneId: '1' }))).toEqual({ code: 'NO_AGENT' });
    expect(matchAgent([support, { id: 'default', match: [] }], message({ sceneId: '1' }))).toEqual({ agentId: 'default', rule: null });
    expect(matchAgent([support, { id: 'default', match: [{ adapter: 'slack' }] }], message())).toEqual({ agentId: 'support', rule: 1 });
    expect(matchAgent([support, { id: 'other', match: [{ contentContains: 'deploy' }] }], message())).toEqual({
      code: 'AGENT_AMBIGUOUS',
      agents: ['other', 'support'],
    });
    expect(findTies([support, { id: 'other', match: [{ adapter: 'mail' }] }])).toEqual([]);
  });

  it.each<[string, MatchRule, Partial<MessageFacts>, boolean]>([
    ['any name of the endpoint', { endpoint: 'B1' }, {}, true],
    ['another endpoint', { endpoint: 'B2' }, {}, false],
    ['a missing scene as private', { scene: 'private' }, { scene: undefined }, true],
    ['text alone', { hasMedia: ['text'] }, {}, true],
    ['text beside an image', { hasMedia: ['text'] }, { media: ['text', 'image'] }, false],
    ['an image among others', { hasMedia: ['image', 'text'] }, { media: ['text', 'image'] }, true],
    ['no kind at all', { hasMedia: [] }, {}, false],
    ['words in any case', { contentContains: 'deploy' }, {}, true],
    ['one field that fails', { adapter: 'slack', contentContains: 'stop' }, {}, false],
    ['no field', {}, {}, false],
  ])('reads %s', (...[, rule, part, expected]) => {
    expect(ruleMatches(rule, message(part))).toBe(expected);
  });
});
