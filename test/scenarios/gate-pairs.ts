// Of each gate and its neighbour a case in which both would refuse; the earlier one has to be who answers.
import type { SnapshotRecord } from '@ambit/capability';
import { buckets, epochKey, sessionService, toolGateway, type IntendedCall } from '@ambit/contracts';
import { jetstream } from '@nats-io/jetstream';
import { randomBytes, randomUUID } from 'node:crypto';
import { intend, operationOf, type Attempt, type PlainWorker } from '../system/plain-worker.js';
import { faultOf, type GateWorld } from './gate-world.js';

/** How a call was refused: by its code, and where its audit record names one, by which gate. */
interface Said {
  readonly code: unknown;
  readonly gate?: string | undefined;
}
export interface Pair {
  readonly gates: readonly [string, string];
  readonly code: string;
  readonly ask: (world: GateWorld) => Promise<Said>;
}
type Policy = Parameters<GateWorld['agent']>[0];
type Tool = SnapshotRecord['tools'][number];

const ECHO = 'mcp__echo__echo';
const echo = (): IntendedCall => intend(ECHO, { text: 'hello' });
const plan = (): IntendedCall => intend('update_plan', { plan: [{ step: 'go', status: 'pending' }] });
const DENY: NonNullable<Policy> = { rules: [{ decision: 'deny', tool: '*' }] };
/** Owners for whom nobody vouches; the second has been taken away too. */
const ABSENT = 'plugin:absent';
const REVOKED = 'plugin:revoked';
const UNREADABLE = '{"mode":"anything goes"}';

/** Pairs of which the second cannot refuse where the first does, and what stands in their place: the next that can. */
export const EXCLUSIVE: Readonly<Record<string, { readonly because: string; readonly next: string }>> = {
  'run-known': { because: 'a run that there is not has no owner', next: 'run-session' },
  mapping: { because: 'a tool that is not in the mapping has no exposure', next: 'arguments' },
  question: { because: 'the question is a tool of every release', next: 'target' },
  'tool-enabled': { because: 'no tool of a server is switched off by its name', next: 'permission' },
};

/** What a batch is answered with that a gate of the run refuses whole. */
async function batch(worker: PlainWorker, attempt: Attempt, forged: Parameters<PlainWorker['send']>[1]): Promise<Said> {
  const fault = await faultOf(worker.send(attempt, forged));
  return { code: typeof fault === 'object' && fault !== null && 'code' in fault ? fault.code : fault };
}

/** What one call of a step is answered with. */
async function call(
  world: GateWorld,
  { worker, attempt }: { readonly worker: PlainWorker; readonly attempt: Attempt },
  { step = 0, asked }: { readonly step?: number; readonly asked: IntendedCall },
): Promise<Said> {
  const [result] = await worker.send(attempt, { step, calls: [asked] });
  return { code: result?.fault?.code, gate: await world.gateOf(attempt, step, asked) };
}

/** A run that was given another record: one of its tools is another. */
async function changed(
  world: GateWorld,
  {
    from = 'update_plan',
    policy = {},
    owners = {},
    ...more
  }: Partial<Tool> & { from?: string; policy?: Policy; owners?: Record<string, number> },
): Promise<{ worker: PlainWorker; attempt: Attempt }> {
  const worker = await world.agent(policy);
  const job = await world.withSnapshot(
    await world.job(worker),
    (record) => ({ ...record, tools: record.tools.map((tool) => (tool.name === from ? { ...tool, ...more } : tool)) }),
    owners,
  );
  return { worker, attempt: await worker.start(job) };
}

async function stored(world: GateWorld, policy: Policy = {}) {
  const { worker, attempt } = await world.run(policy);
  const asked = echo();
  await worker.store(attempt, 0, [asked]);
  return { worker, attempt, asked };
}

/** A run whose record has a tool of an owner that was taken away after it was mapped. */
async function revoked(world: GateWorld, more: Partial<Tool>): Promise<{ worker: PlainWorker; attempt: Attempt }> {
  const subject = `$KV.${buckets.epochs.name}.${epochKey.fence('plugin-registry', REVOKED)}`;
  await jetstream(world.system.connection).publish(subject, String(Date.now()));
  return changed(world, { ...more, owner: REVOKED, owners: { [REVOKED]: 0 } });
}

const wrongToken = (): string => randomBytes(32).toString('base64url');
const wrongPrint = (): string => randomBytes(32).toString('hex');
const cancel = async (world: GateWorld, { ref }: Attempt): Promise<unknown> =>
  world.system.bus.call(sessionService.cancelRun, { id: ref.runId });
const abort = async (world: GateWorld, operationId: string): Promise<void> => {
  world.system.bus.signal(toolGateway.cancelOperation, { operationId, reason: 'changed my mind' }, { keys: { operationId } });
  await world.system.connection.flush();
};

/** A call of a tool in a run whose stored policy cannot be read, and whose agent is what `also` makes it. */
async function unreadable(world: GateWorld, run: { worker: PlainWorker; attempt: Attempt }, also = ''): Promise<Said> {
  const asked = plan();
  await world.sql(`UPDATE "session_service"."agent" SET "policy" = $2${also} WHERE "id" = $1`, [run.worker.agentId, UNREADABLE]);
  await run.worker.store(run.attempt, 0, [asked]);
  return call(world, run, { asked });
}

async function refused(world: GateWorld, run: { worker: PlainWorker; attempt: Attempt }, asked: IntendedCall): Promise<Said> {
  await run.worker.store(run.attempt, 0, [asked]);
  return call(world, run, { asked });
}

/** A run that has made one call under this policy, and is refused the next. */
async function second(world: GateWorld, policy: Policy): Promise<Said> {
  const { worker, attempt } = await world.run(policy);
  await worker.execute(attempt, 0, [echo()]);
  const asked = intend(ECHO, { text: 'second' });
  await worker.store(attempt, 1, [asked]);
  return call(world, { worker, attempt }, { step: 1, asked });
}

const HIDDEN = { from: 'update_plan', exposure: 'diagnostic' } as const;
const NEWER = { kind: 'builtin', id: 'update_plan', version: 99 } as const;

export const PAIRS: readonly Pair[] = [
  {
    gates: ['run-known', 'run-session'],
    code: 'TOOL_NOT_IN_SNAPSHOT',
    ask: async (world) => {
      const { worker, attempt, asked } = await stored(world);
      return batch(worker, attempt, { step: 0, calls: [asked], runId: randomUUID(), sessionId: randomUUID() });
    },
  },
  {
    gates: ['run-owner', 'run-session'],
    code: 'TOOL_NOT_IN_SNAPSHOT',
    ask: async (world) => {
      const { attempt, asked } = await stored(world);
      return batch(await world.agent(), attempt, { step: 0, calls: [asked], sessionId: randomUUID() });
    },
  },
  {
    gates: ['run-session', 'run-token'],
    code: 'TOOL_NOT_IN_SNAPSHOT',
    ask: async (world) => {
      const { worker, attempt, asked } = await stored(world);
      return batch(worker, attempt, { step: 0, calls: [asked], sessionId: randomUUID(), token: wrongToken() });
    },
  },
  {
    gates: ['run-token', 'run-live'],
    code: 'TOOL_NOT_IN_SNAPSHOT',
    ask: async (world) => {
      const { worker, attempt, asked } = await stored(world);
      await cancel(world, attempt);
      return batch(worker, attempt, { step: 0, calls: [asked], token: wrongToken() });
    },
  },
  {
    gates: ['run-live', 'run-attempt'],
    code: 'TURN_ENDED',
    ask: async (world) => {
      const { worker, attempt, asked } = await stored(world);
      await worker.start(attempt.ref);
      await cancel(world, attempt);
      return batch(worker, attempt, { step: 0, calls: [asked] });
    },
  },
  {
    gates: ['run-attempt', 'fingerprint'],
    code: 'STALE_INSTANCE',
    ask: async (world) => {
      const { worker, attempt, asked } = await stored(world);
      await worker.start(attempt.ref);
      return batch(worker, attempt, { step: 0, calls: [asked], fingerprint: wrongPrint() });
    },
  },
  {
    gates: ['fingerprint', 'not-aborted'],
    code: 'TOOL_NOT_IN_SNAPSHOT',
    ask: async (world) => {
      const { worker, attempt, asked } = await stored(world);
      await abort(world, operationOf(attempt, 0, asked));
      return batch(worker, attempt, { step: 0, calls: [asked], fingerprint: wrongPrint() });
    },
  },
  {
    gates: ['not-aborted', 'mapping'],
    code: 'CANCELLED',
    ask: async (world) => {
      const run = await world.run();
      const asked = intend('nothing_like_it');
      await abort(world, operationOf(run.attempt, 0, asked));
      return refused(world, run, asked);
    },
  },
  {
    gates: ['mapping', 'arguments'],
    code: 'TOOL_NOT_IN_SNAPSHOT',
    ask: async (world) => refused(world, await world.run(), intend('nothing_like_it', '[')),
  },
  {
    gates: ['exposure', 'arguments'],
    code: 'NOT_MODEL_CALLABLE',
    ask: async (world) => refused(world, await changed(world, HIDDEN), intend('update_plan', '[')),
  },
  {
    gates: ['arguments', 'schema'],
    code: 'BAD_ARGUMENTS',
    ask: async (world) => refused(world, await world.run(), intend(ECHO, '{"text":')),
  },
  {
    gates: ['schema', 'question'],
    code: 'BAD_ARGUMENTS',
    ask: async (world) =>
      refused(
        world,
        await changed(world, { from: 'question', inputSchema: { type: 'object', required: ['more'] } }),
        intend('question', { question: 'Which?', options: [] }),
      ),
  },
  {
    gates: ['question', 'target'],
    code: 'QUESTION_INVALID',
    ask: async (world) =>
      refused(
        world,
        await changed(world, {
          from: 'question',
          inputSchema: { type: 'object' },
          target: { kind: 'builtin', id: 'question', version: 99 },
        }),
        intend('question', { question: 'Which?', options: [] }),
      ),
  },
  {
    gates: ['target-there', 'fence'],
    code: 'TOOL_GONE',
    ask: async (world) => refused(world, await revoked(world, { target: { kind: 'builtin', id: 'forgotten', version: 1 } }), plan()),
  },
  {
    gates: ['fence', 'owner-lease'],
    code: 'TOOL_GONE',
    ask: async (world) => refused(world, await revoked(world, {}), plan()),
  },
  {
    gates: ['owner-lease', 'target'],
    code: 'UNAVAILABLE',
    ask: async (world) => refused(world, await changed(world, { owner: ABSENT, target: NEWER, owners: { [ABSENT]: 0 } }), plan()),
  },
  {
    gates: ['target', 'policy-known'],
    code: 'TARGET_CHANGED',
    ask: async (world) => unreadable(world, await changed(world, { target: NEWER })),
  },
  {
    gates: ['policy-known', 'agent-enabled'],
    code: 'UNAVAILABLE',
    ask: async (world) => unreadable(world, await world.run(), ', "enabled" = false'),
  },
  {
    gates: ['agent-enabled', 'tool-enabled'],
    code: 'AGENT_DISABLED',
    ask: async (world) => {
      const { worker, attempt } = await world.run();
      const asked = plan();
      await worker.store(attempt, 0, [asked]);
      await world.put(worker.agentId, { disabledTools: ['update_plan'] }, { enabled: false });
      return call(world, { worker, attempt }, { asked });
    },
  },
  {
    gates: ['tool-enabled', 'permission'],
    code: 'TOOL_DISABLED',
    ask: async (world) => {
      const { worker, attempt } = await world.run();
      const asked = plan();
      await worker.store(attempt, 0, [asked]);
      await world.put(worker.agentId, { disabledTools: ['update_plan'], ...DENY });
      return call(world, { worker, attempt }, { asked });
    },
  },
  {
    gates: ['delegation', 'permission'],
    code: 'SUBAGENT_UNAVAILABLE',
    ask: async (world) => refused(world, await changed(world, { access: 'delegation', policy: DENY }), plan()),
  },
  {
    gates: ['permission', 'call-limit'],
    code: 'POLICY_DENIED',
    ask: async (world) =>
      second(world, { rules: [{ decision: 'deny', tool: ECHO, when: { text: 'second' } }], limits: { callsPerRun: 1 } }),
  },
  {
    gates: ['call-limit', 'rate-limit'],
    code: 'CALL_LIMIT',
    ask: async (world) => second(world, { limits: { callsPerRun: 1, callsPerMinute: 1 } }),
  },
];

/** Those that take a real plugin: its tool in a record where it delegates, or of a server that the policy names no more. */
export const PLUGIN_PAIRS: readonly (readonly [string, string])[] = [
  ['server-allowed', 'plugin-allowed'],
  ['plugin-allowed', 'delegation'],
];
