import { z } from 'zod';
import { toToken } from './kit/token.js';
import { AgentId, Hex64, Instant, Target, Uuid } from './nouns.js';

/** Facts of runs and operations, one message a subject in AMBIT_JOURNAL. Digests and small results only. */

export const RunStatus = z.enum(['queued', 'running', 'suspended', 'completed', 'failed', 'cancelled', 'parked']);
export type RunStatus = z.infer<typeof RunStatus>;

/** Fact of session-service: moves (rolls up) with every change of what the run may do; claims are fenced on its sequence. */
export const RunState = z.object({
  schemaVersion: z.literal(1),
  runId: Uuid,
  sessionId: Uuid,
  agentId: AgentId,
  /** Grows by one with every republication; the row in Postgres holds the same number. */
  version: z.int().min(1),
  status: RunStatus,
  attempt: z.int().min(0),
  reason: z.string().max(200).optional(),
  at: Instant,
});
export type RunState = z.output<typeof RunState>;

/** Fact of the gateway, written after all gates and immediately before the effect. */
export const Claim = z.object({
  schemaVersion: z.literal(1),
  operationId: Hex64,
  runId: Uuid,
  originRunId: Uuid,
  sessionId: Uuid,
  agentId: AgentId,
  projectId: z.string().max(63),
  attempt: z.int().min(0),
  step: z.int().min(0),
  callId: z.string().max(200),
  tool: z.string().max(128),
  target: Target,
  argumentsHash: Hex64,
  fingerprint: Hex64,
  rule: z.string().max(500).nullable(),
  interactionId: Uuid.nullable(),
  principal: z.string().max(200),
  gatewayId: Uuid,
  /** Which of its gateway's claims it is, so that no two have the same words. */
  serial: z.int().min(0).default(0),
  at: Instant,
});
export type Claim = z.output<typeof Claim>;

export const OutcomeStatus = z.enum(['completed', 'failed', 'cancelled', 'indeterminate']);

/**
 * Fact of the gateway: what is known of a claimed call's end. `content` is the model's view: whole up to 8 KiB, else a
 * stub, with the complete result in `artifact`. session-service reads outcomes from here onto the tape (tape.read,
 * run.start, run.step, run.finish), so that no call waits for Postgres.
 */
export const Outcome = z.object({
  schemaVersion: z.literal(1),
  operationId: Hex64,
  originRunId: Uuid,
  status: OutcomeStatus,
  content: z.array(z.looseObject({ type: z.string().max(100) })).optional(),
  structuredContent: z.unknown().optional(),
  artifact: z.object({ digest: Hex64, bytes: z.int().min(0) }).optional(),
  fault: z.object({ code: z.string().max(100), message: z.string().max(2_000), data: z.unknown().optional() }).optional(),
  /** Nothing was done: the tool found that it needs a permission, and the call goes on under an operation id of its own. No result of the call. */
  asks: z.object({ reason: z.string().max(500), /** What it needs is that the principal signs in to the tool’s server. */ signIn: z.boolean().optional() }).optional(),
  durationMs: z.number().min(0),
  gatewayId: Uuid,
  at: Instant,
});
export type Outcome = z.output<typeof Outcome>;

export const Abort = z.object({ schemaVersion: z.literal(1), operationId: Hex64, originRunId: Uuid, reason: z.string().max(200), by: z.string().max(200), at: Instant });
export type Abort = z.output<typeof Abort>;

/** Results up to this size stand inline in an outcome. */
export const INLINE_RESULT_BYTES = 8 * 1024;

const OPERATION = 'ambit.jrn.v1.op';
export const journalSubject = {
  runState: (runId: string) => `ambit.jrn.v1.run.${toToken(runId)}.state`,
  claim: (originRunId: string, operationId: string) => `${OPERATION}.${toToken(originRunId)}.${toToken(operationId)}.claim`,
  abort: (originRunId: string, operationId: string) => `${OPERATION}.${toToken(originRunId)}.${toToken(operationId)}.abort`,
  outcome: (originRunId: string, operationId: string) => `${OPERATION}.${toToken(originRunId)}.${toToken(operationId)}.outcome`,
  operationsOf: (originRunId: string) => `${OPERATION}.${toToken(originRunId)}.>`,
  allOperations: `${OPERATION}.*.*.*`,
  allRunStates: 'ambit.jrn.v1.run.*.state',
} as const;

/** Keys of the leases, epochs and fences in their buckets; every part passes through toToken. */
export const leaseKey = {
  instance: (instanceId: string) => `instance.${toToken(instanceId)}`,
  gateway: (gatewayId: string) => `gateway.${toToken(gatewayId)}`,
  run: (runId: string) => `run.${toToken(runId)}`,
  worker: (agentId: string, workerId: string) => `worker.${toToken(agentId)}.${toToken(workerId)}`,
  owner: (owner: string) => `owner.${toToken(owner)}`,
} as const;
export const epochKey = {
  epoch: (service: string, owner: string, feature: string) => `${toToken(service)}.${toToken(owner)}.${toToken(feature)}`,
  fence: (service: string, owner: string) => `${toToken(service)}.${toToken(owner)}._fence`,
} as const;

/** `head` and part keys of a snapshot in its bucket: gzip of the canonical bytes in parts of at most 512 KiB. */
export const snapshotKey = {
  head: (agentId: string, fingerprint: string) => `${toToken(agentId)}.${toToken(fingerprint)}.head`,
  part: (agentId: string, fingerprint: string, index: number) => `${toToken(agentId)}.${toToken(fingerprint)}.${index}`,
} as const;
export const SnapshotHead = z.object({ parts: z.int().min(1).max(1_000), bytes: z.int().min(1) });
export const mappingKey = (sessionId: string, fingerprint: string) => `${toToken(sessionId)}.${toToken(fingerprint)}`;

/** The record that session S was given fingerprint F. */
export const Mapping = z.object({ schemaVersion: z.literal(1), sessionId: Uuid, agentId: AgentId, fingerprint: Hex64, owners: z.record(z.string(), z.int()), at: Instant });
export type Mapping = z.output<typeof Mapping>;
