import { CallRecord, FaultBodySchema, Principal, Target } from '@ambit/contracts';

/** A call's row as its table has it. */
export interface CallRow {
  readonly operationId: string;
  readonly originRunId: string;
  readonly runId: string;
  readonly sessionId: string;
  readonly agentId: string;
  readonly projectId: string;
  readonly step: number;
  readonly callId: string;
  readonly tool: string;
  readonly target: unknown;
  readonly argumentsHash: string;
  readonly argumentsPreview: string | null;
  readonly fingerprint: string;
  readonly principal: string;
  readonly rule: string | null;
  readonly interactionId: string | null;
  readonly status: string;
  readonly isParked: boolean;
  readonly fault: unknown;
  readonly resultDigest: string | null;
  readonly resultBytes: number | null;
  readonly resolution: unknown;
  readonly claimedAt: Date;
  readonly endedAt: Date | null;
  readonly durationMs: number | null;
}

/** The record of a call for people; `approver` is the stored principal of its grant. */
export function recordOf(row: CallRow, approver: unknown): CallRecord {
  const {
    operationId,
    originRunId,
    runId,
    sessionId,
    agentId,
    projectId,
    step,
    callId,
    tool,
    argumentsHash,
    argumentsPreview,
    fingerprint,
    principal,
    rule,
    interactionId,
  } = row;
  return CallRecord.parse({
    operationId,
    originRunId,
    runId,
    sessionId,
    agentId,
    projectId,
    step,
    callId,
    tool,
    argumentsHash,
    argumentsPreview,
    fingerprint,
    principal,
    rule,
    interactionId,
    target: Target.nullable().parse(row.target),
    approvedBy: Principal.safeParse(approver).data?.id ?? null,
    status: row.status,
    parked: row.isParked,
    fault: FaultBodySchema.nullable().parse(row.fault),
    result: row.resultDigest === null ? null : { digest: row.resultDigest, bytes: row.resultBytes ?? 0 },
    resolution: row.resolution,
    claimedAt: row.claimedAt.toISOString(),
    endedAt: row.endedAt?.toISOString() ?? null,
    durationMs: row.durationMs,
  });
}
