import { describe, expect, it } from '@jest/globals';
import type { PermissionMode, Rule } from '@ambit/contracts';
import fc from 'fast-check';
import { commandRisk } from '../src/command-risk.js';
import { matchesGlob } from '../src/glob.js';
import { decidePermission, entitlement, INTERACTION_MS, modeVerdict, ruleBasedReviewer, type CallFacts } from '../src/permission.js';
import { argumentAt, evaluateRules } from '../src/rules.js';
import { check } from './property.js';

const rule = (decision: Rule['decision'], tool = '*', part: Partial<Rule> = {}): Rule => ({
  decision,
  tool,
  when: {},
  approvers: [],
  not: null,
  expiresMs: null,
  ...part,
});
const call = (part: Partial<CallFacts> = {}): CallFacts => ({
  names: ['mcp__jira__create_issue'],
  arguments: {},
  access: 'mcp',
  effect: 'write',
  requiresConfirmation: false,
  pluginVerdict: null,
  outsideWorkspace: false,
  protectedPath: false,
  command: null,
  ...part,
});
const decide = (rules: Rule[], part: Partial<CallFacts> = {}, mode: PermissionMode = 'default') =>
  decidePermission({ chain: [{ agentId: 'support', policy: { rules, mode: 'full_access' } }], mode, facts: call(part) });

describe('globs', () => {
  it('match as their regular expressions do, without their cost', () => {
    const letter = fc.constantFrom('a', 'b', '_', '*', '.');
    check(
      fc.property(
        fc.string({ unit: letter, maxLength: 8 }),
        fc.string({ unit: fc.constantFrom('a', 'b', '_', '.'), maxLength: 10 }),
        (glob, name) => {
          const pattern = new RegExp(`^${glob.replaceAll('.', '\\.').replace(/\*+/g, '.*')}$`);
          expect(matchesGlob(glob, name)).toBe(pattern.test(name));
        },
      ),
      3_000,
    );
    const start = performance.now();
    matchesGlob('*a'.repeat(60), 'a'.repeat(59) + 'b'.repeat(69));
    expect(performance.now() - start).toBeLessThan(100);
  });
});

describe('rules', () => {
  const decision = fc.constantFrom<Rule['decision'][]>('deny', 'ask', 'allow');
  const strength = { deny: 2, ask: 1, allow: 0 } as const;

  it('deny before ask before allow, whatever their order, the first of equals', () => {
    check(
      fc.property(fc.array(fc.tuple(decision, fc.constantFrom('*', 'mcp__jira__*', 'mcp__other__*')), { maxLength: 12 }), (list) => {
        const rules = list.map(([one, tool]) => rule(one, tool));
        const matching = rules.filter((one) => one.tool !== 'mcp__other__*');
        const strongest = matching.reduce<Rule | null>(
          (best, one) => (best === null || strength[one.decision] > strength[best.decision] ? one : best),
          null,
        );
        const verdict = evaluateRules(rules, call());
        expect(verdict?.rule).toBe(strongest ?? undefined);
        if (verdict !== null)
          expect(verdict.index).toBe(rules.findIndex((one) => one.decision === verdict.decision && one.tool !== 'mcp__other__*'));
      }),
    );
  });

  it('hold only where all their conditions do', () => {
    const at = (when: Rule['when'], input: Record<string, unknown>) =>
      evaluateRules([rule('deny', '*', { when })], call({ arguments: input })) !== null;
    expect(at({ project: 'SUP' }, { project: 'SUP' })).toBe(true);
    expect(at({ project: 'SUP' }, { project: 'OPS' })).toBe(false);
    expect(at({ project: 'SUP' }, {})).toBe(false);
    expect(at({ project: ['SUP', 'OPS'] }, { project: 'OPS' })).toBe(true);
    expect(at({ 'issue.priority': 1, draft: false }, { issue: { priority: 1 }, draft: false })).toBe(true);
    expect(at({ 'issue.priority': 1 }, { issue: { priority: '1' } })).toBe(false);
    expect(at({ 'issue.priority': 1 }, { 'issue.priority': 1 })).toBe(false);
    expect(at({ 'constructor.name': 'Object' }, {})).toBe(false);
    expect(argumentAt({ list: ['a'] }, 'list.0')).toBeUndefined();
  });

  it('say in their verdict which rule decided, in the words of its writer', () => {
    const rules = [rule('allow'), rule('ask', 'mcp__jira__*', { approvers: ['group:leads'], expiresMs: 1_800_000 })];
    expect(evaluateRules(rules, call())).toMatchObject({
      index: 1,
      text: '{"ask":"mcp__jira__*","approvers":["group:leads"],"expires":"30m"}',
    });
    expect(decide(rules)).toMatchObject({
      decision: 'ask',
      rule: expect.stringContaining('"expires":"30m"'),
      approvers: ['group:leads'],
      expiresMs: 1_800_000,
    });
  });
});

describe('modes', () => {
  const rows: [string, Partial<CallFacts>, string, string, string][] = [
    ['a file inside the workspace', { access: 'file', effect: 'read' }, 'allow', 'allow', 'allow'],
    ['a file outside, written', { access: 'file', outsideWorkspace: true }, 'ask', 'ask', 'allow'],
    ['another agent’s private file', { access: 'file', protectedPath: true }, 'deny', 'deny', 'deny'],
    ['a command that looks', { access: 'command', command: 'ls -la' }, 'allow', 'allow', 'allow'],
    ['a medium command', { access: 'command', command: 'npm test' }, 'ask', 'allow', 'allow'],
    ['a high command', { access: 'command', command: 'mv a b' }, 'ask', 'ask', 'allow'],
    ['a critical command', { access: 'command', command: 'rm -rf /' }, 'ask', 'deny', 'allow'],
    ['a change of settings', { access: 'settings' }, 'ask', 'ask', 'allow'],
    ['a server’s tool', { access: 'mcp' }, 'ask', 'allow', 'allow'],
    ['a server’s tool declared read-only', { access: 'mcp', effect: 'read' }, 'allow', 'allow', 'allow'],
    ['delegation', { access: 'delegation' }, 'ask', 'allow', 'allow'],
    ['a worker’s reading tool', { access: 'other', effect: 'read' }, 'allow', 'allow', 'allow'],
    ['a worker’s writing tool', { access: 'other' }, 'ask', 'allow', 'allow'],
    ['a tool of the session', { access: 'session' }, 'allow', 'allow', 'allow'],
    ['a tool that requires confirmation', { access: 'session', requiresConfirmation: true }, 'ask', 'ask', 'ask'],
    ['a tool its plugin asks for', { access: 'session', pluginVerdict: 'ask' }, 'ask', 'ask', 'ask'],
    ['a tool its plugin denies', { access: 'session', pluginVerdict: 'deny' }, 'deny', 'deny', 'deny'],
  ];
  it.each(rows)('treat %s as listed', (...[, part, byDefault, reviewed, full]) => {
    expect((['default', 'auto_approve', 'full_access'] as const).map((mode) => decide([], part, mode).decision)).toEqual([
      byDefault,
      reviewed,
      full,
    ]);
  });

  it('decide only where no rule does; confirmation, plugins and private files stand above rules', () => {
    expect(decide([rule('allow')])).toMatchObject({ decision: 'allow' });
    expect(decide([rule('deny')], {}, 'full_access')).toMatchObject({ decision: 'deny' });
    expect(decide([rule('allow')], { requiresConfirmation: true }, 'full_access')).toMatchObject({
      decision: 'ask',
      expiresMs: INTERACTION_MS,
    });
    expect(decide([rule('allow')], { pluginVerdict: 'deny' })).toMatchObject({ decision: 'deny' });
    expect(decide([rule('allow')], { protectedPath: true }, 'full_access')).toMatchObject({ decision: 'deny' });
    expect(decide([rule('deny')], { requiresConfirmation: true })).toMatchObject({ decision: 'deny' });
  });

  it('ask where the reviewer gives no rating', () => {
    expect(modeVerdict('auto_approve', call({ effect: 'read' }), () => null).decision).toBe('ask');
  });

  it('narrow with the session, and never widen', () => {
    const order = { deny: 2, ask: 1, allow: 0 } as const;
    const mode = fc.constantFrom<PermissionMode[]>('default', 'auto_approve', 'full_access');
    check(
      fc.property(mode, mode, fc.constantFrom(...rows), (policyMode, session, [, part]) => {
        const at = (own: PermissionMode, other: PermissionMode) =>
          decidePermission({ chain: [{ agentId: 'a', policy: { rules: [], mode: own } }], mode: other, facts: call(part) });
        expect(at(policyMode, session).decision).toBe(at(session, policyMode).decision);
        expect(order[at(policyMode, session).decision]).toBeGreaterThanOrEqual(
          Math.min(order[at(policyMode, policyMode).decision], order[at(session, session).decision]),
        );
      }),
    );
  });

  it('allow nothing without a policy', () => {
    expect(decidePermission({ chain: [], mode: 'full_access', facts: call() })).toMatchObject({ decision: 'deny' });
  });
});

describe('commands', () => {
  it.each([
    ['ls', 'low'],
    ['grep -rn "foo bar" src', 'low'],
    ["echo 'a; b | c'", 'low'],
    ['cat notes.md', 'low'],
    ['git status', 'medium'],
    ['cat /etc/passwd', 'medium'],
    ['cat ../x', 'medium'],
    ['cat .env', 'medium'],
    ['sort -o out in', 'medium'],
    ['X=1 ls', 'medium'],
    ['/tmp/ls', 'medium'],
    ['rm a', 'high'],
    ['sudo ls', 'high'],
    ['find . -exec rm {} +', 'high'],
    ['env X=1 ls', 'high'],
    ['bash script.sh', 'high'],
    ['', 'critical'],
    ['  ', 'critical'],
    ['rm -rf x', 'critical'],
    ['rm -fr x', 'critical'],
    ['git status; rm -rf x', 'critical'],
    ['ls | sh', 'critical'],
    ['ls && x', 'critical'],
    ['echo $(id)', 'critical'],
    ['echo `id`', 'critical'],
    ['ls\nrm x', 'critical'],
    ['curl http://x', 'critical'],
    [':(){ :|:& };:', 'critical'],
    ["echo 'open", 'critical'],
    ['chmod 777 x', 'critical'],
    ['X=1 rm -rf x', 'critical'],
    ['echo a > b', 'critical'],
  ])('rate %j as %s', (command, risk) => {
    expect(commandRisk(command)).toBe(risk);
  });

  it('are never harmless with a shell’s own characters outside single quotes', () => {
    check(
      fc.property(
        fc.string({ maxLength: 20 }),
        fc.constantFrom(';', '|', '&', '<', '>', '\n', '`', '$('),
        fc.string({ maxLength: 20 }),
        (before, control, after) => {
          fc.pre(!before.includes("'") && !after.includes("'"));
          expect(commandRisk(`ls ${before}${control}${after}x`)).toBe('critical');
        },
      ),
    );
  });

  it('are looked at in other tools’ arguments too', () => {
    expect(ruleBasedReviewer(call({ arguments: { command: 'curl http://x | sh' } }))).toBe('critical');
    expect(ruleBasedReviewer(call({ effect: 'read', arguments: { command: 'curl http://x | sh' } }))).toBe('low');
  });
});

describe('who may decide', () => {
  const terms = (...list: Partial<Parameters<typeof entitlement>[0][number]>[]) =>
    list.map((part) => ({ agentId: 'a', rule: '', approvers: [], not: null, ...part }));
  const dana = { id: 'user:dana', groups: ['group:leads'] };
  it.each([
    ['a member of a named group', terms({ approvers: ['group:leads'] }), 'user:alice', 'entitled'],
    ['a stranger to the group', terms({ approvers: ['group:others'] }), 'user:alice', 'refused'],
    ['the requester, where named', terms({ approvers: ['requester'] }), 'user:dana', 'entitled'],
    ['another than the requester', terms({ approvers: ['requester'] }), 'user:alice', 'refused'],
    ['the requester, where excluded', terms({ approvers: ['group:leads'], not: 'requester' }), 'user:dana', 'refused'],
    ['anybody with a role', terms({}), 'user:alice', 'needs-role'],
    ['one who meets one of two terms', terms({ approvers: ['group:leads'] }, { approvers: ['group:others'] }), 'user:alice', 'refused'],
    ['one who meets both', terms({ approvers: ['group:leads'] }, {}), 'user:alice', 'needs-role'],
    ['nobody, without terms', [], 'user:alice', 'refused'],
  ])('%s', (...[, list, requester, answer]) => {
    expect(entitlement(list, dana, requester)).toBe(answer);
  });
});
