import { describe, expect, it } from '@jest/globals';
import type { PermissionMode } from '@ambit/contracts';
import fc from 'fast-check';
import { formatDuration, parseDuration } from '../src/duration.js';
import { cataloguePolicyHash, intersectLists, narrowerMode } from '../src/policy.js';
import { listFromDocument, listToDocument, PolicyDocument, policyFromDocument, policyToDocument } from '../src/policy-document.js';
import { openPolicy, policy } from './fixtures.js';
import { check } from './property.js';

const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,10}$/);
const list = fc.option(fc.uniqueArray(name, { maxLength: 5 }), { nil: null });
const slot = fc.record(
  { agent: fc.oneof(fc.constant('self'), name), servers: list, description: fc.string({ maxLength: 20 }) },
  { requiredKeys: ['agent', 'description'] },
);
const rule = fc.oneof(
  fc.record({
    decision: fc.constantFrom('deny' as const, 'allow' as const),
    tool: fc.constantFrom('*', 'mcp__jira__*'),
    when: fc.dictionary(name, fc.oneof(fc.string(), fc.integer(), fc.boolean())),
    approvers: fc.constant<string[]>([]),
    not: fc.constant(null),
    expiresMs: fc.constant(null),
  }),
  fc.record({
    decision: fc.constant('ask' as const),
    tool: name,
    when: fc.constant({}),
    approvers: fc.uniqueArray(fc.constantFrom('requester', 'user:dana', 'group:leads')),
    not: fc.constantFrom(null, 'requester' as const),
    expiresMs: fc.option(
      fc.integer({ min: 1, max: 2_592_000 }).map((seconds) => seconds * 1_000),
      { nil: null },
    ),
  }),
);
const stored = fc
  .record({
    mode: fc.constantFrom<PermissionMode[]>('default', 'auto_approve', 'full_access'),
    rules: fc.array(rule, { maxLength: 4 }),
    servers: list,
    plugins: list,
    skills: list,
    disabledTools: fc.uniqueArray(name, { maxLength: 3 }),
    aliases: fc.dictionary(name, name),
    subagents: fc.dictionary(name, slot, { maxKeys: 3 }),
    whileBusy: fc.constantFrom('queue' as const, 'refuse' as const, 'steer' as const),
  })
  .filter((one) => !JSON.stringify(one).includes('__proto__'))
  .map((one) => policy(one));

const authorityOf = ({ mode, rules, limits, whileBusy }: ReturnType<typeof policy>) => ({ mode, rules, limits, whileBusy });

describe('a policy document', () => {
  it('and the stored policy say the same, in both directions', () => {
    check(
      fc.property(stored, (one) => {
        const document = policyToDocument(one);
        const again = policyFromDocument(PolicyDocument.parse(JSON.parse(JSON.stringify(document))));
        expect(again).toEqual(one);
        expect(cataloguePolicyHash(again)).toBe(cataloguePolicyHash(one));
      }),
    );
  });

  it('keeps all, none and names apart', () => {
    check(
      fc.property(list, (names) => {
        expect(listFromDocument(listToDocument(names))).toEqual(names);
      }),
    );
    expect([listToDocument(null), listToDocument([]), listToDocument(['a'])]).toEqual(['all', 'none', ['a']]);
    const read = (servers: unknown) => policyFromDocument(PolicyDocument.parse({ servers })).servers;
    expect([read('all'), read('none'), read(['a']), read([])]).toEqual([null, [], ['a'], []]);
    expect(policyFromDocument(PolicyDocument.parse({}))).toMatchObject({
      servers: [],
      plugins: [],
      skills: [],
      mode: 'default',
      limits: { callsPerRun: 128 },
    });
  });

  it.each([
    ['null for a list', { servers: null }],
    ['a blank list', { servers: '' }],
    ['a blank name', { servers: [' '] }],
    ['a name twice', { servers: ['a', 'a'] }],
    ['another word', { servers: 'some' }],
    ['an unknown field', { server: 'all' }],
    ['an unknown mode', { mode: 'yolo' }],
    ['a rule without a decision', { rules: [{ tool: '*' }] }],
    ['a rule with two', { rules: [{ deny: 'a', allow: 'b' }] }],
    ['approvers of a denial', { rules: [{ deny: '*', approvers: ['requester'] }] }],
    ['an approver that is none', { rules: [{ ask: '*', approvers: ['dana'] }] }],
    ['a time that is none', { rules: [{ ask: '*', expires: 'soon' }] }],
    ['a time too long', { rules: [{ ask: '*', expires: '31d' }] }],
    ['a condition that is an object', { rules: [{ allow: '*', when: { a: {} } }] }],
  ])('refuses %s', (_name, document) => {
    expect(PolicyDocument.safeParse(document).success).toBe(false);
  });

  it('says what would be right', () => {
    expect(PolicyDocument.safeParse({ servers: null }).error?.issues[0]?.message).toContain('write all, none or a list of names');
  });
});

describe('durations', () => {
  it('read back what they write', () => {
    check(
      fc.property(fc.integer({ min: 0, max: 999_999_999 }), (seconds) => {
        expect(parseDuration(formatDuration(seconds * 1_000))).toBe(seconds * 1_000);
      }),
    );
    expect([parseDuration('30m'), parseDuration('24h'), parseDuration('1.5h'), parseDuration('-1s'), parseDuration('')]).toEqual([
      1_800_000,
      86_400_000,
      null,
      null,
      null,
    ]);
  });
});

describe('policies', () => {
  it('narrow to the narrower mode, in either order', () => {
    const mode = fc.constantFrom<PermissionMode[]>('default', 'auto_approve', 'full_access');
    check(
      fc.property(mode, mode, mode, (a, b, c) => {
        expect(narrowerMode(a, b)).toBe(narrowerMode(b, a));
        expect(narrowerMode(narrowerMode(a, b), c)).toBe(narrowerMode(a, narrowerMode(b, c)));
        expect([a, b]).toContain(narrowerMode(a, b));
      }),
    );
    expect(narrowerMode('full_access', 'auto_approve')).toBe('auto_approve');
  });

  it('intersect their lists, where null is all', () => {
    check(
      fc.property(list, list, name, (left, right, probe) => {
        const both = intersectLists(left, right);
        const has = (names: string[] | null) => names === null || names.includes(probe);
        expect(has(both)).toBe(has(left) && has(right));
        expect(both === null).toBe(left === null && right === null);
      }),
    );
  });

  it('hash what shapes the catalogue, whatever its order, and nothing else', () => {
    check(
      fc.property(stored, stored, (one, other) => {
        const reversed = {
          ...one,
          servers: one.servers === null ? null : [...one.servers].reverse(),
          disabledTools: [...one.disabledTools].reverse(),
        };
        expect(cataloguePolicyHash({ ...reversed, ...authorityOf(other) })).toBe(cataloguePolicyHash(one));
      }),
    );
    const base = openPolicy();
    const prints = [
      base,
      { ...base, servers: [] },
      { ...base, servers: ['a'] },
      { ...base, plugins: [] },
      { ...base, skills: ['a'] },
      { ...base, disabledTools: ['a'] },
      { ...base, aliases: { a: 'b' } },
      { ...base, subagents: { a: { agent: 'self', description: '' } } },
      { ...base, subagents: { a: { agent: 'self', description: '', servers: [] } } },
      { ...base, subagents: { a: { agent: 'self', description: '', servers: null } } },
    ].map(cataloguePolicyHash);
    expect(new Set(prints).size).toBe(prints.length);
  });
});
