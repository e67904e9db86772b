import { eventMessage, toolGateway, Claim, type Outcome, type StoredMessage } from '@ambit/contracts';
import type { CallRow } from './domain/call-record.js';
import type { EndedCall, RefusedCall } from './call.repository.js';

/** Every erasure of its principal is younger than this. */
const EVER = new Date(0).toISOString();

/** A claim as its row has it; `preview` is what people may see of the arguments. */
export function claimedRow({ at, schemaVersion: _version, attempt: _attempt, serial: _serial, ...claim }: Claim, preview?: string) {
  return { ...claim, claimedAt: at, erasableFrom: at, status: 'running', isParked: false, argumentsPreview: preview };
}

export function endedRow(claim: Claim, { status, fault, artifact, at, durationMs }: Outcome, preview?: string) {
  return {
    ...claimedRow(claim, preview),
    status,
    isParked: status === 'indeterminate',
    fault,
    resultDigest: artifact?.digest,
    resultBytes: artifact?.bytes,
    endedAt: at,
    durationMs,
  };
}

/** What a run that has ended still asks for may come after the erasure that ended it. */
export function refusedRow({ at, principal, preview, isOfEndedRun, ...call }: RefusedCall) {
  const { gate: _gate, detail: _detail, traceparent: _traceparent, ...row } = call;
  return {
    ...row,
    principal: principal.id,
    argumentsPreview: preview,
    erasableFrom: isOfEndedRun ? EVER : at.toISOString(),
    status: 'refused',
    isParked: false,
    claimedAt: at,
    endedAt: at,
    durationMs: 0,
  };
}

/** The attempt is not kept in the row: nothing that is told of an end names it. */
export function claimOf({ claimedAt, target, ...row }: CallRow): Claim {
  return Claim.parse({ ...row, schemaVersion: 1, attempt: 0, serial: 0, target, at: claimedAt.toISOString() });
}

export function parkedEvent({ claim, outcome }: EndedCall): StoredMessage[] {
  if (outcome.status !== 'indeterminate') return [];
  const { operationId, runId, sessionId, agentId, projectId, tool } = claim;
  const { at } = outcome;
  return [
    eventMessage(
      toolGateway.callParked,
      { operationId, runId, sessionId, agentId, projectId, tool, at },
      { keys: { operationId }, id: `${operationId}.parked`, time: new Date(at) },
    ),
  ];
}

export function refusedEvent(call: RefusedCall): StoredMessage {
  const { runId, sessionId, agentId, operationId, callId, tool, fault, rule, at } = call;
  return eventMessage(
    toolGateway.callEnded,
    {
      runId,
      sessionId,
      agentId,
      calls: [{ operationId, callId, tool, status: 'refused', fault, rule, durationMs: null, at: at.toISOString() }],
    },
    { keys: { runId }, id: `${operationId}.refused`, time: at, traceparent: call.traceparent },
  );
}
