import { z } from 'zod';
import { event, rpc } from './kit/contract.js';
import { AgentId, FaultBodySchema, Hex64, Instant, Slug, Uuid } from './nouns.js';
import { refusing } from './refusals.js';

/** What session-service says of work that a session delegates to subagents; a part of its contracts. */

/** Bounds of one delegation and of one parent's. */
export const DELEGATION = {
  tasks: 5,
  active: 3,
  kept: 20,
  summaryChars: 2_000,
  timeoutMs: { min: 1_000, max: 30 * 60_000, default: 5 * 60_000 },
  waitMs: { min: 0, max: 5 * 60_000, default: 60_000 },
} as const;

/** One piece of work for one subagent. */
export const DelegatedTask = z
  .object({
    slotId: Slug.meta({ description: 'The subagent that does it, as the agent’s policy names it' }),
    title: z.string().trim().min(1).max(200),
    prompt: z.string().trim().min(1).max(64 * 1024),
    expectedOutput: z.string().max(4_000).optional(),
  })
  .meta({ id: 'DelegatedTask' });
export type DelegatedTask = z.output<typeof DelegatedTask>;

export const DelegationMode = z.enum(['parallel', 'chain']);
export const DelegationStatus = z.enum(['running', 'completed', 'failed', 'cancelled', 'timed_out']);
export type DelegationStatus = z.infer<typeof DelegationStatus>;
/** `pending`: it waits for the task before it; `waiting`: its run waits for a person. */
export const TaskStatus = z.enum(['pending', 'running', 'waiting', 'completed', 'failed', 'cancelled', 'timed_out']);
export type TaskStatus = z.infer<typeof TaskStatus>;

export const DelegationTask = z.object({
  index: z.int().min(0),
  slotId: Slug,
  agentId: AgentId,
  title: z.string(),
  status: TaskStatus,
  /** The child session, once it was made. */
  sessionId: Uuid.nullable(),
  /** The first 2,000 characters of what the subagent said last. */
  summary: z.string().max(DELEGATION.summaryChars).nullable(),
  fault: FaultBodySchema.nullable(),
});
export type DelegationTask = z.output<typeof DelegationTask>;

/** One use of the orchestrator: up to five tasks, each in a child session of its own. */
export const Delegation = z
  .object({
    id: Uuid,
    /** The session that delegated; nobody else finds it. */
    sessionId: Uuid,
    runId: Uuid,
    operationId: Hex64,
    mode: DelegationMode,
    /** It goes on when the run that started it has completed. */
    background: z.boolean(),
    status: DelegationStatus,
    tasks: z.array(DelegationTask).max(DELEGATION.tasks),
    createdAt: Instant,
    deadlineAt: Instant,
    endedAt: Instant.nullable(),
  })
  .meta({ id: 'Delegation' });
export type Delegation = z.output<typeof Delegation>;

const unknownDelegation = { status: 404, retry: 'never', message: 'This session has no such delegation' } as const;
const Own = z.object({ sessionId: Uuid, id: Uuid });

export const delegation = {
  startDelegation: rpc('ambit.rpc.session-service.v1.delegation.start', {
    summary: 'Start child sessions for a claimed call of the orchestrator; idempotent by operation id',
    input: z.object({
      runId: Uuid,
      operationId: Hex64,
      mode: DelegationMode.default('parallel'),
      background: z.boolean().default(false),
      timeoutMs: z.int().min(DELEGATION.timeoutMs.min).max(DELEGATION.timeoutMs.max).default(DELEGATION.timeoutMs.default),
      tasks: z.array(DelegatedTask).min(1).max(DELEGATION.tasks),
    }),
    output: Delegation,
    errors: refusing('SUBAGENT_UNAVAILABLE', 'TURN_ENDED', 'TOOL_NOT_IN_SNAPSHOT', 'DELEGATION_LIMIT'),
    idempotent: true,
    timeoutMs: 15_000,
  }),
  listDelegations: rpc('ambit.rpc.session-service.v1.delegation.list', { summary: 'A session’s delegations, newest first: those at work and the last twenty that ended', input: z.object({ sessionId: Uuid }), output: z.object({ items: z.array(Delegation).max(DELEGATION.active + DELEGATION.kept) }), idempotent: true }),
  getDelegation: rpc('ambit.rpc.session-service.v1.delegation.get', { summary: 'One delegation of a session', input: Own, output: Delegation, errors: { DELEGATION_UNKNOWN: unknownDelegation }, idempotent: true }),
  delegationLog: rpc('ambit.rpc.session-service.v1.delegation.log', {
    summary: 'What happened in the child session of one task, oldest first',
    input: Own.extend({ task: z.int().min(0).max(DELEGATION.tasks - 1).default(0), after: z.int().min(0).default(0), limit: z.int().min(1).max(100).default(50) }),
    output: z.object({ entries: z.array(z.object({ id: z.int(), kind: z.string(), text: z.string().max(2_000), at: Instant })), next: z.int().nullable() }),
    errors: { DELEGATION_UNKNOWN: unknownDelegation }, idempotent: true,
  }),
  killDelegation: rpc('ambit.rpc.session-service.v1.delegation.kill', { summary: 'Cancel the children of a delegation that is at work', input: Own.extend({ reason: z.string().max(200).default('killed by its parent') }), output: Delegation, errors: { DELEGATION_UNKNOWN: unknownDelegation }, idempotent: true, timeoutMs: 15_000 }),

  delegationChanged: event('ambit.evt.session-service.v1.delegation.changed.{sessionId}', { summary: 'A delegation began, a task of it ended, or it ended', payload: z.object({ sessionId: Uuid, delegationId: Uuid, status: DelegationStatus, tasks: z.array(TaskStatus).max(DELEGATION.tasks), at: Instant }) }),
};
