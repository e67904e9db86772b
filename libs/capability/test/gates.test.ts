import { describe, expect, it } from '@jest/globals';
import { platformFaults, refusals, type FaultMap } from '@ambit/contracts';
import fc from 'fast-check';
import type { GateInput, Grant, TargetFacts } from '../src/gate-input.js';
import { GRANT_MS, policyStamp } from '../src/gate-state.js';
import { evaluateGates, GATES } from '../src/gates.js';
import { argumentsHash, targetHash } from '../src/operation-id.js';
import { authority, facts, gateInput, hex, mcpTool, openPolicy, policy, uuid } from './fixtures.js';
import { check } from './property.js';

const link = (part: Parameters<typeof openPolicy>[0] = {}, agentId = 'support') => ({
  agentId,
  version: 1,
  enabled: true,
  policy: openPolicy({ mode: 'full_access', ...part }),
});
const question = mcpTool({
  name: 'question',
  qualifiedName: 'question',
  access: 'session',
  effect: 'read',
  owner: 'builtin',
  target: { kind: 'builtin', id: 'question', version: 1 },
});
const orchestrator = mcpTool({
  name: 'subagent_orchestrator',
  qualifiedName: 'subagent_orchestrator',
  exposure: 'system-model',
  access: 'delegation',
  owner: 'builtin',
  target: { kind: 'builtin', id: 'subagent_orchestrator', version: 1 },
});
const workerTool = mcpTool({
  name: 'deploy',
  qualifiedName: 'deploy',
  access: 'other',
  owner: 'worker:support',
  target: { kind: 'worker', agentId: 'support', toolsetDigest: hex(7), tool: 'deploy' },
});
const pluginTool = mcpTool({ owner: 'plugin:kit' });
const asks = link({ rules: [{ decision: 'ask', tool: '*', when: {}, approvers: ['group:leads'], not: 'requester', expiresMs: 60_000 }] });
const current = (part: Partial<TargetFacts>, tool = mcpTool()) => ({ tool, current: facts(tool, part) });

/** For each gate, a call that this gate alone holds back, and what it answers. */
const HELD: Record<string, { readonly part: Partial<GateInput>; readonly answers: Readonly<Record<string, unknown>> }> = {
  'run-known': { part: { run: null }, answers: { code: 'TOOL_NOT_IN_SNAPSHOT' } },
  'run-owner': { part: { agentId: 'intruder' }, answers: { code: 'TOOL_NOT_IN_SNAPSHOT' } },
  'run-session': { part: { sessionId: uuid(77) }, answers: { code: 'TOOL_NOT_IN_SNAPSHOT' } },
  'run-token': { part: { run: authority({ token: 'unknown' }) }, answers: { code: 'TOOL_NOT_IN_SNAPSHOT' } },
  'run-live': { part: { run: authority({ status: 'cancelled' }) }, answers: { code: 'TURN_ENDED' } },
  'run-attempt': { part: { run: authority({ token: 'superseded' }) }, answers: { code: 'STALE_INSTANCE' } },
  fingerprint: { part: { fingerprint: hex('e') }, answers: { code: 'TOOL_NOT_IN_SNAPSHOT' } },
  'not-aborted': { part: { aborted: true }, answers: { code: 'CANCELLED' } },
  mapping: { part: { call: { ...gateInput().call, name: 'mcp__other__tool' } }, answers: { code: 'TOOL_NOT_IN_SNAPSHOT' } },
  exposure: { part: { tool: mcpTool({ exposure: 'diagnostic' }) }, answers: { code: 'NOT_MODEL_CALLABLE' } },
  arguments: {
    part: { call: { ...gateInput().call, arguments: '[]' } },
    answers: { code: 'BAD_ARGUMENTS', data: { reason: 'must be a JSON object, not an array' } },
  },
  schema: {
    part: { validate: () => ['id must be a number'] },
    answers: { code: 'BAD_ARGUMENTS', data: { reason: 'id must be a number' } },
  },
  question: {
    part: { tool: question, call: { ...gateInput().call, name: 'question', arguments: '{"question":"Which?","options":[{"label":"A"}]}' } },
    answers: { decision: 'question' },
  },
  'target-there': { part: current({ target: null }), answers: { code: 'TOOL_GONE' } },
  fence: { part: current({ ownerFence: 6, readAtFence: 5 }), answers: { code: 'TOOL_GONE' } },
  'owner-lease': { part: current({ ownerLeaseUntil: 1_000_000 }), answers: { code: 'UNAVAILABLE' } },
  target: {
    part: current({ target: { kind: 'mcp', serverId: uuid(1), configGeneration: 2, bindingHash: hex(1), tool: 'merge' } }),
    answers: { code: 'TARGET_CHANGED' },
  },
  'policy-known': {
    part: { run: authority({ chain: [link(), { agentId: 'parent', version: 1, enabled: true, policy: null }] }) },
    answers: { code: 'UNAVAILABLE' },
  },
  'agent-enabled': {
    part: { run: authority({ chain: [link(), { ...link({}, 'parent'), enabled: false }] }) },
    answers: { code: 'AGENT_DISABLED' },
  },
  'tool-enabled': {
    part: { tool: workerTool, run: authority({ chain: [link({ disabledTools: ['deploy'] })] }) },
    answers: { code: 'TOOL_DISABLED' },
  },
  'server-allowed': {
    part: { run: authority({ chain: [link(), link({ servers: ['jira'] }, 'parent')] }) },
    answers: { code: 'SERVER_NOT_ALLOWED' },
  },
  'plugin-allowed': {
    part: { tool: pluginTool, run: authority({ fences: { 'plugin:kit': 0 }, chain: [link({ plugins: [] })] }) },
    answers: { code: 'PLUGIN_POLICY_DENIED' },
  },
  delegation: {
    part: {
      tool: orchestrator,
      run: authority({ sessionKind: 'subagent', chain: [link({ subagents: { reader: { agent: 'reader', description: '' } } })] }),
    },
    answers: { code: 'SUBAGENT_UNAVAILABLE', data: { reason: 'unsupported_session' } },
  },
  permission: { part: { run: authority({ chain: [asks] }) }, answers: { decision: 'ask', approvers: ['group:leads'], expiresMs: 60_000 } },
  'call-limit': { part: { usage: { callsInRun: 128, windows: [] } }, answers: { code: 'CALL_LIMIT', data: { limit: 128 } } },
  'rate-limit': {
    part: { usage: { callsInRun: 0, windows: [{ name: 'agent', used: 5, limit: 5, retryAfterMs: 900 }] } },
    answers: { code: 'RATE_LIMITED', data: { limit: 5, retryAfterMs: 900 } },
  },
};

describe('gates', () => {
  it('let a call pass that every one of them allows', () => {
    expect(evaluateGates(gateInput())).toEqual({ decision: 'allow', arguments: { id: '7' }, rule: 'mode full_access', grantUsed: false });
  });

  it('are asked in the order of the eight steps, and the first that stops ends it', () => {
    const visited: string[] = [];
    evaluateGates(gateInput(), { visit: (name) => visited.push(name) });
    expect(visited).toEqual(GATES.map((gate) => gate.name));
    expect(visited).toEqual(Object.keys(HELD));
    const steps = GATES.map((gate) => gate.step);
    expect(steps).toEqual([...steps].sort((left, right) => left - right));
    expect(new Set(steps)).toEqual(new Set([1, 2, 3, 4, 5, 6, 7, 8]));
  });

  it.each(Object.entries(HELD))('hold back at %s, and only there', (name, { part, answers }) => {
    const visited: string[] = [];
    expect(evaluateGates(gateInput(part), { visit: (gate) => visited.push(gate) })).toMatchObject({ gate: name, ...answers });
    expect(visited.at(-1)).toBe(name);
    // Without a run or a policy a later gate allows nothing either: those two are held twice.
    const twice = name === 'run-known' || name === 'policy-known';
    expect(evaluateGates(gateInput(part), { off: new Set([name]) })).toMatchObject(twice ? { decision: 'refuse' } : { decision: 'allow' });
  });

  it('answer only declared codes, with the data that is declared', () => {
    for (const { part } of Object.values(HELD)) {
      const decision = evaluateGates(gateInput(part));
      if (decision.decision !== 'refuse') continue;
      const declared: FaultMap = { ...platformFaults, ...refusals };
      const def = declared[decision.code];
      expect(def).toBeDefined();
      expect(def?.data === undefined ? decision.data : def.data.safeParse(decision.data).success).toBe(
        def?.data === undefined ? undefined : true,
      );
    }
  });

  it('refuse whatever is not the caller’s in one and the same shape', () => {
    const shapes = ['run-known', 'run-owner', 'run-session', 'run-token', 'fingerprint', 'mapping'].map((name) => {
      const decision = evaluateGates(gateInput(HELD[name]?.part));
      return decision.decision === 'refuse' ? { code: decision.code, data: decision.data } : decision;
    });
    for (const shape of shapes) expect(shape).toEqual({ code: 'TOOL_NOT_IN_SNAPSHOT', data: undefined });
    // A foreign run tells nothing of its state either.
    expect(evaluateGates(gateInput({ agentId: 'intruder', run: authority({ status: 'cancelled', token: 'superseded' }) }))).toMatchObject({
      code: 'TOOL_NOT_IN_SNAPSHOT',
    });
    expect(evaluateGates(gateInput({ run: authority({ status: 'completed', token: 'unknown' }) }))).toMatchObject({
      code: 'TOOL_NOT_IN_SNAPSHOT',
    });
  });

  it('with several reasons to stop, give the earliest', () => {
    const names = Object.keys(HELD).filter(
      (name) => !['run-known', 'question', 'tool-enabled', 'plugin-allowed', 'delegation', 'exposure'].includes(name),
    );
    const runParts = (chosen: readonly string[]) =>
      chosen.reduce((run, name) => ({ ...run, ...(HELD[name]?.part.run && pick(HELD[name]?.part.run, name)) }), authority());
    const pick = (run: GateInput['run'], name: string) => {
      if (run === null || run === undefined) return {};
      if (name === 'run-token' || name === 'run-attempt') return { token: run.token };
      return name === 'run-live' ? { status: run.status } : { chain: run.chain };
    };
    check(
      fc.property(fc.subarray(names, { minLength: 1 }), (chosen) => {
        const one = (group: string[]) =>
          chosen.filter((name) => !group.includes(name) || name === chosen.find((other) => group.includes(other)));
        const used = [
          ['run-token', 'run-attempt'],
          ['target-there', 'fence', 'owner-lease', 'target'],
          ['policy-known', 'agent-enabled', 'server-allowed', 'permission'],
          ['mapping', 'arguments'],
          ['call-limit', 'rate-limit'],
        ].reduce((list, group) => list.filter((name) => one(group).includes(name)), chosen);
        const part = used.reduce<Partial<GateInput>>((sum, name) => ({ ...sum, ...HELD[name]?.part }), {});
        expect(evaluateGates(gateInput({ ...part, run: runParts(used) }))).toMatchObject({ gate: used[0] });
      }),
    );
  });
});

describe('authority', () => {
  it('ends with any move of a plugin’s fence, and for shared owners with facts older than the fence', () => {
    const at = (owner: string, ownerFence: number, readAtFence: number) => {
      const tool = mcpTool({ owner });
      return evaluateGates(
        gateInput({ tool, current: facts(tool, { ownerFence, readAtFence }), run: authority({ fences: { [owner]: 5 } }) }),
      ).decision;
    };
    check(
      fc.property(fc.constantFrom('user', 'builtin', 'plugin:kit', 'worker:support'), fc.nat(10), fc.nat(10), (owner, fence, read) => {
        const shared = owner === 'user' || owner === 'builtin';
        expect(at(owner, fence, read)).toBe(fence <= 5 || (shared && read >= fence) ? 'allow' : 'refuse');
      }),
    );
    expect(evaluateGates(gateInput({ run: authority({ revokedOwners: ['user'] }) }))).toMatchObject({ gate: 'fence', code: 'TOOL_GONE' });
    const tool = mcpTool();
    expect(evaluateGates(gateInput({ tool, run: authority({ fences: {} }) }))).toMatchObject({ gate: 'fence', code: 'TOOL_GONE' });
  });

  it('refuses every change of the pinned target', () => {
    const pinned = mcpTool().target;
    if (pinned.kind !== 'mcp') throw new Error('the fixture is a server’s tool');
    for (const target of [
      { ...pinned, serverId: uuid(2) },
      { ...pinned, configGeneration: 2 },
      { ...pinned, bindingHash: hex(2) },
      { ...pinned, tool: 'other' },
      question.target,
    ]) {
      expect(evaluateGates(gateInput(current({ target })))).toMatchObject({ code: 'TARGET_CHANGED' });
    }
  });

  it('takes a tool for writing once either the snapshot or the present says so', () => {
    const chain = [{ agentId: 'support', version: 1, enabled: true, policy: openPolicy() }];
    const decide = (seen: 'read' | 'write', now: 'read' | 'write') => {
      const tool = mcpTool({ effect: seen });
      return evaluateGates(gateInput({ tool, current: facts(tool, { effect: now }), run: authority({ mode: 'default', chain }) })).decision;
    };
    expect([decide('read', 'read'), decide('read', 'write'), decide('write', 'read'), decide('write', 'write')]).toEqual([
      'allow',
      'ask',
      'ask',
      'ask',
    ]);
  });

  it('lets a rule see a tool under its alias, its full name and the name its server uses', () => {
    const long = 'x'.repeat(90);
    const tool = mcpTool({
      name: 'say',
      qualifiedName: 'mcp__github__xxxxxxxxxxxxxx_0123456789ab',
      target: { kind: 'mcp', serverId: uuid(1), configGeneration: 1, bindingHash: hex(1), tool: long },
    });
    for (const pattern of ['say', 'mcp__github__*_0123456789ab', `mcp__github__${long}`, 'mcp__github__*']) {
      const chain = [link({ rules: [{ decision: 'deny', tool: pattern, when: {}, approvers: [], not: null, expiresMs: null }] })];
      expect(evaluateGates(gateInput({ tool, run: authority({ chain }) }))).toMatchObject({ code: 'POLICY_DENIED' });
    }
  });

  it('never lets a child do what an ancestor’s policy refuses', () => {
    const part = fc.record({
      servers: fc.constantFrom<(string[] | null)[]>(null, [], ['github']),
      mode: fc.constantFrom('default' as const, 'auto_approve' as const, 'full_access' as const),
      decision: fc.constantFrom('deny' as const, 'ask' as const, 'allow' as const),
    });
    const strength = { refuse: 2, ask: 1, question: 1, allow: 0 } as const;
    check(
      fc.property(part, part, (own, parent) => {
        const chainOf = (...parts: (typeof own)[]) =>
          parts.map(({ decision, servers, mode }, index) => ({
            agentId: `a${index}`,
            version: 1,
            enabled: true,
            policy: policy({ servers, mode, rules: [{ decision, tool: '*', when: {}, approvers: [], not: null, expiresMs: null }] }),
          }));
        const decide = (...parts: (typeof own)[]) =>
          strength[evaluateGates(gateInput({ run: authority({ chain: chainOf(...parts) }) })).decision];
        expect(decide(own, parent)).toBe(Math.max(decide(own), decide(parent)));
      }),
    );
  });

  it('lets deferred calls of a suspended run pass, and batches of it not', () => {
    const run = authority({ status: 'suspended' });
    expect(evaluateGates(gateInput({ run }))).toMatchObject({ code: 'TURN_ENDED' });
    expect(evaluateGates(gateInput({ run, purpose: 'deferred' }))).toMatchObject({ decision: 'allow' });
    for (const status of ['completed', 'failed', 'cancelled', 'parked', 'queued'] as const) {
      expect(evaluateGates(gateInput({ run: authority({ status }), purpose: 'deferred' }))).toMatchObject({ code: 'TURN_ENDED' });
    }
  });
});

describe('grants', () => {
  const run = authority({ chain: [asks] });
  const tool = mcpTool();
  const grant: Grant = {
    operationId: hex(99),
    targetHash: targetHash(tool.target),
    argumentsHash: argumentsHash('{"id":"7"}'),
    policyStamp: policyStamp(run.chain),
    decidedAt: 1_000_000,
  };

  it('let exactly the approved call pass, for two minutes', () => {
    expect(evaluateGates(gateInput({ run, grant }))).toMatchObject({ decision: 'allow', grantUsed: true });
    expect(evaluateGates(gateInput({ run, grant, now: 1_000_000 + GRANT_MS }))).toMatchObject({ decision: 'allow' });
    expect(evaluateGates(gateInput({ run, grant, now: 1_000_001 + GRANT_MS }))).toMatchObject({ code: 'APPROVAL_EXPIRED' });
  });

  it.each([
    ['operation', { grant: { ...grant, operationId: hex(98) } }],
    ['target', { grant: { ...grant, targetHash: hex(1) } }],
    ['argument', { call: { ...gateInput().call, arguments: '{"id":"8"}' } }],
    ['policy version', { run: authority({ chain: [{ ...asks, version: 2 }] }) }],
  ])('ask again after any change of %s', (_name, part) => {
    expect(evaluateGates(gateInput({ run, grant, ...part }))).toMatchObject({ decision: 'ask' });
  });

  it('open nothing that is denied', () => {
    const denying = authority({
      chain: [link({ rules: [{ decision: 'deny', tool: '*', when: {}, approvers: [], not: null, expiresMs: null }] })],
    });
    expect(evaluateGates(gateInput({ run: denying, grant: { ...grant, policyStamp: policyStamp(denying.chain) } }))).toMatchObject({
      code: 'POLICY_DENIED',
    });
  });
});
