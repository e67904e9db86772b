import { BadArguments } from './arguments.js';
import type { AuthorityLink, Decision, GateCode, GateInput, Refusal, RunAuthority, Stop, TargetFacts } from './gate-input.js';
import { GateState } from './gate-state.js';
import { targetHash } from './operation-id.js';
import { allows } from './policy.js';
import { QUESTION_TOOL, readQuestion } from './question.js';
import type { SnapshotTool } from './snapshot.js';
import { presetsMeant, resolveSubagents, slotsNamed } from './subagents.js';

/** One gate: what it is called, the step of the execution order it belongs to, and what it says. Null lets the call pass. */
export interface Gate {
  readonly name: string;
  readonly step: number;
  readonly check: (state: GateState) => Stop | null;
}

const refuse = (code: GateCode, data?: unknown, detail?: string): Refusal => ({
  decision: 'refuse',
  code,
  ...(data === undefined ? {} : { data }),
  ...(detail === undefined ? {} : { detail }),
});

/** The one shape for everything that is not the caller's: it never tells whether the thing exists. */
const unknown = (detail: string): Refusal => refuse('TOOL_NOT_IN_SNAPSHOT', undefined, detail);

const ALIVE: Readonly<Record<'batch' | 'deferred', readonly string[]>> = { batch: ['running'], deferred: ['running', 'suspended'] };

/** A gate about the run, which an earlier gate has found to be there. */
const ofRun = (check: (run: RunAuthority, state: GateState) => Stop | null) => (state: GateState) =>
  state.input.run === null ? null : check(state.input.run, state);
/** A gate about the tool and what stands behind it now. */
const ofTool = (check: (tool: SnapshotTool, current: TargetFacts, state: GateState) => Stop | null) => (state: GateState) =>
  state.input.tool === null || state.input.current === null ? null : check(state.input.tool, state.input.current, state);
/** A gate that every policy of the chain is asked at. */
const ofEveryPolicy = (check: (link: AuthorityLink, tool: SnapshotTool, current: TargetFacts) => Stop | null) =>
  ofTool((tool, current, { input }) => {
    for (const link of input.run?.chain ?? []) {
      const stop = check(link, tool, current);
      if (stop !== null) return stop;
    }
    return null;
  });

const pluginOf = (owner: string) => (owner.startsWith('plugin:') ? owner.slice('plugin:'.length) : null);

/**
 * Every gate of a call, in the order in which they are asked; the first that does not pass ends it, before any effect.
 * Steps are those of the execution order: 1 run, 2 mapping, 3 call, 4 question, 5 authority, 6 policies, 7 permission, 8 limits.
 */
export const GATES: readonly Gate[] = [
  { name: 'run-known', step: 1, check: ({ input }) => (input.run === null ? unknown('no such run') : null) },
  {
    name: 'run-owner',
    step: 1,
    check: ofRun((run, { input }) => (run.agentId === input.agentId ? null : unknown(`the run is ${run.agentId}'s`))),
  },
  {
    name: 'run-session',
    step: 1,
    check: ofRun((run, { input }) =>
      input.sessionId === undefined || input.sessionId === run.sessionId ? null : unknown('the run is another session’s'),
    ),
  },
  { name: 'run-token', step: 1, check: ofRun((run) => (run.token === 'unknown' ? unknown('a token this run never had') : null)) },
  {
    name: 'run-live',
    step: 1,
    check: ofRun((run, { input }) =>
      ALIVE[input.purpose ?? 'batch'].includes(run.status) ? null : refuse('TURN_ENDED', undefined, run.status),
    ),
  },
  { name: 'run-attempt', step: 1, check: ofRun((run) => (run.token === 'superseded' ? refuse('STALE_INSTANCE') : null)) },
  {
    name: 'fingerprint',
    step: 1,
    check: ofRun((run, { input }) => (run.fingerprint === input.fingerprint ? null : unknown('not the fingerprint of this run'))),
  },
  { name: 'not-aborted', step: 1, check: ({ input }) => (input.aborted ? refuse('CANCELLED') : null) },
  {
    name: 'mapping',
    step: 2,
    check: ({ input }) =>
      input.tool === null || input.tool.name !== input.call.name ? unknown('not in the mapping of this session') : null,
  },
  {
    name: 'exposure',
    step: 3,
    check: ({ input }) =>
      input.tool === null || input.tool.exposure === 'user-configurable' || input.tool.exposure === 'system-model'
        ? null
        : refuse('NOT_MODEL_CALLABLE'),
  },
  {
    name: 'arguments',
    step: 3,
    check: (state) => (state.arguments instanceof BadArguments ? refuse('BAD_ARGUMENTS', { reason: state.arguments.reason }) : null),
  },
  {
    name: 'schema',
    step: 3,
    check: (state) => {
      const problems = state.input.tool === null ? [] : state.input.validate(state.input.tool, state.values);
      return problems.length === 0 ? null : refuse('BAD_ARGUMENTS', { reason: problems.slice(0, 5).join('; ').slice(0, 2_000) });
    },
  },
  { name: 'question', step: 4, check: questionGate },
  {
    name: 'target-there',
    step: 5,
    check: ({ input }) => (input.current === null || input.current.target === null ? refuse('TOOL_GONE') : null),
  },
  {
    name: 'fence',
    step: 5,
    check: ofTool((tool, current, { input }) => {
      if (input.run?.revokedOwners?.includes(tool.owner) === true) return refuse('TOOL_GONE', undefined, `${tool.owner} was taken away`);
      const mapped = input.run?.fences[tool.owner];
      if (mapped === undefined) return refuse('TOOL_GONE', undefined, `the mapping names no fence of ${tool.owner}`);
      if (current.ownerFence <= mapped) return null;
      // What belongs together goes together; of what only shares an owner's name, facts read since say whether this one tool is still there.
      const shared = tool.owner === 'user' || tool.owner === 'builtin';
      return shared && current.readAtFence >= current.ownerFence
        ? null
        : refuse('TOOL_GONE', undefined, `the fence of ${tool.owner} has moved`);
    }),
  },
  {
    name: 'owner-lease',
    step: 5,
    check: ofTool((tool, current, { input }) =>
      current.ownerLeaseUntil === null || current.ownerLeaseUntil > input.now
        ? null
        : refuse('UNAVAILABLE', undefined, `nobody vouches for ${tool.owner} now`),
    ),
  },
  {
    name: 'target',
    step: 5,
    check: ofTool((tool, current) =>
      current.target !== null && current.target !== tool.target && targetHash(current.target) !== targetHash(tool.target)
        ? refuse('TARGET_CHANGED')
        : null,
    ),
  },
  {
    name: 'policy-known',
    step: 6,
    check: ofRun((run) =>
      run.chain.length > 0 && run.chain.every((link) => link.policy !== null)
        ? null
        : refuse('UNAVAILABLE', undefined, 'a policy could not be read'),
    ),
  },
  { name: 'agent-enabled', step: 6, check: ofRun((run) => (run.chain.every((link) => link.enabled) ? null : refuse('AGENT_DISABLED'))) },
  {
    name: 'tool-enabled',
    step: 6,
    check: ofEveryPolicy((link, tool) =>
      tool.exposure === 'user-configurable' &&
      tool.target.kind !== 'mcp' &&
      [tool.name, tool.qualifiedName].some((name) => link.policy?.disabledTools.includes(name) === true)
        ? refuse('TOOL_DISABLED')
        : null,
    ),
  },
  {
    name: 'server-allowed',
    step: 6,
    check: ofEveryPolicy((link, tool, current) => {
      if (tool.target.kind !== 'mcp' || link.policy === null) return null;
      const names = current.server === null ? [tool.target.serverId] : [tool.target.serverId, current.server.slug];
      return allows(link.policy.servers, ...names) ? null : refuse('SERVER_NOT_ALLOWED', undefined, `by the policy of ${link.agentId}`);
    }),
  },
  {
    name: 'plugin-allowed',
    step: 6,
    check: ofEveryPolicy((link, tool) => {
      const plugin = pluginOf(tool.owner);
      return plugin === null || link.policy === null || allows(link.policy.plugins, plugin)
        ? null
        : refuse('PLUGIN_POLICY_DENIED', undefined, `by the policy of ${link.agentId}`);
    }),
  },
  { name: 'delegation', step: 6, check: delegationGate },
  { name: 'permission', step: 7, check: permissionGate },
  { name: 'call-limit', step: 8, check: callLimitGate },
  {
    name: 'rate-limit',
    step: 8,
    check: ({ input }) => {
      const full = input.usage.windows.find((window) => window.used >= window.limit);
      return full === undefined ? null : refuse('RATE_LIMITED', { limit: full.limit, retryAfterMs: full.retryAfterMs }, full.name);
    },
  },
];

function questionGate(state: GateState): Stop | null {
  const { tool } = state.input;
  if (tool?.target.kind !== 'builtin' || tool.target.id !== QUESTION_TOOL) return null;
  const read = readQuestion(state.values);
  return 'problem' in read ? refuse('QUESTION_INVALID', { reason: read.problem }) : { decision: 'question', question: read.question };
}

function delegationGate({ input, values }: GateState): Stop | null {
  const { run, tool } = input;
  const policy = run?.chain[0]?.policy ?? null;
  if (run === null || policy === null || tool?.access !== 'delegation') return null;
  const { reason, slots } = resolveSubagents({
    agent: { id: run.agentId, kind: run.agentKind },
    sessionKind: run.sessionKind,
    subagents: policy.subagents,
    knownAgents: run.knownAgents,
    presets: presetsMeant(policy, values),
  });
  if (reason !== null) return refuse('SUBAGENT_UNAVAILABLE', { reason });
  const gone = slotsNamed(values).find((named) => !slots.some(({ name }) => name === named));
  return gone === undefined ? null : refuse('SUBAGENT_UNAVAILABLE', { reason: 'no_valid_slots' }, `no slot ${gone}`);
}

function permissionGate(state: GateState): Stop | null {
  // Nobody is asked about a call that its worker cannot carry out.
  const problem = state.input.prepared?.problem;
  if (problem !== undefined && state.permission.decision !== 'deny') return refuse(problem.code, problem.data);
  const permission = state.permission;
  switch (permission.decision) {
    case 'allow':
      return null;
    case 'deny':
      return refuse('POLICY_DENIED', { rule: permission.rule }, `by the policy of ${permission.agentId}`);
    case 'ask':
      if (state.grant === 'expired') return refuse('APPROVAL_EXPIRED');
      return state.grant === 'fits' ? null : permission;
  }
}

function callLimitGate({ input }: GateState): Stop | null {
  const limits = (input.run?.chain ?? []).flatMap((link) => (link.policy === null ? [] : [link.policy.limits.callsPerRun]));
  const limit = Math.min(...limits);
  return input.usage.callsInRun >= limit ? refuse('CALL_LIMIT', { limit }) : null;
}

export interface GateOptions {
  /** Names of gates that are left out: only for tests that show what each one holds back. */
  readonly off?: ReadonlySet<string>;
  /** Hears each gate's name as it is asked. */
  readonly visit?: (name: string) => void;
}

/** Asks every gate in order about one call; the first that does not pass decides. Pure: no effect, clock or storage. */
export function evaluateGates(input: GateInput, options: GateOptions = {}): Decision {
  const state = new GateState(input);
  for (const gate of GATES) {
    if (options.off?.has(gate.name) === true) continue;
    options.visit?.(gate.name);
    const stop = gate.check(state);
    if (stop !== null) return { ...stop, gate: gate.name };
  }
  return {
    decision: 'allow',
    arguments: state.values,
    rule: state.permission.rule,
    grantUsed: state.permission.decision === 'ask' && state.grant === 'fits',
  };
}
