import { operationId } from '@ambit/capability';
import type { Authority, IntendedCall } from '@ambit/contracts';

/** One intended call of a run's stored step. */
export interface Operation {
  readonly operationId: string;
  readonly agentId: string;
  readonly runId: string;
  readonly originRunId: string;
  readonly sessionId: string;
  readonly fingerprint: string;
  readonly step: number;
  readonly call: IntendedCall;
  /** Calls of the origin run stored before this one. */
  readonly callsInRun: number;
  readonly traceparent: string;
}

/** Names one call of a run: the origin run is the authority's, never what a caller says. */
export function operationOf(authority: Authority, at: Pick<Operation, 'step' | 'call' | 'callsInRun' | 'traceparent'>): Operation {
  const { runId, originRunId, sessionId, agentId, fingerprint } = authority;
  return { operationId: operationId(originRunId, at.step, at.call.callId), runId, originRunId, sessionId, agentId, fingerprint, ...at };
}
