import { RunState, type Run, type RunStatus } from '@ambit/contracts';
import type { FaultBodySchema } from '@ambit/contracts';
import type { z } from 'zod';

export type FaultIn = z.output<typeof FaultBodySchema>;

/** A run as its owner keeps it: the public noun and what only the lifecycle needs. */
export interface RunRecord extends Omit<Run, 'fingerprints'> {
  readonly stateVersion: number;
  readonly fingerprints: readonly string[];
  readonly roles: readonly string[];
  readonly replyTo: string | null;
  readonly agentVersion: number;
  readonly policyVersion: number;
  readonly jobVersion: number;
  /** Attempts that could not work at all, and count for no delivery. */
  readonly uncounted: number;
}

export interface Attempt {
  readonly number: number;
  readonly tokenHash: string;
  readonly workerId: string | null;
  readonly openedAt: string;
  readonly closedAt: string | null;
}

/** Deliveries of one job before its run is given up. */
export const MAX_DELIVERIES = 3;
/** How long a run may work, from its first attempt. */
export const RUN_MS = 30 * 60_000;

const ENDED: readonly RunStatus[] = ['completed', 'failed', 'cancelled', 'parked'];

/** A run that ended takes no more of anything. A suspended one has ended once another goes on with it. */
export const hasEnded = (run: Pick<Run, 'status' | 'endedAt'>): boolean => run.endedAt !== null || ENDED.includes(run.status);

export interface Move {
  readonly status?: RunStatus;
  readonly attempt?: number;
  readonly fault?: FaultIn | null;
  readonly ended?: boolean;
  readonly fingerprint?: string;
}

/** The run after a move of its authority: every move has the next state version. */
export function moved(run: RunRecord, move: Move, now: Date): RunRecord {
  const status = move.status ?? run.status;
  return {
    ...run,
    status,
    stateVersion: run.stateVersion + 1,
    attempt: move.attempt ?? run.attempt,
    fault: move.fault === undefined ? run.fault : move.fault,
    fingerprint: move.fingerprint ?? run.fingerprint,
    startedAt: run.startedAt ?? (status === 'running' ? now.toISOString() : null),
    endedAt: move.ended === true || ENDED.includes(status) ? (run.endedAt ?? now.toISOString()) : run.endedAt,
  };
}

/** The run's `state` fact. */
export function stateOf(run: RunRecord, now: Date, reason?: string): RunState {
  return {
    schemaVersion: 1,
    runId: run.id,
    sessionId: run.sessionId,
    agentId: run.agentId,
    version: run.stateVersion,
    status: run.status,
    attempt: run.attempt,
    ...(reason === undefined ? {} : { reason: reason.slice(0, 200) }),
    at: now.toISOString(),
  };
}

/** Milliseconds left of the run's time. One that waits for people spends none; in one of MCP clients each call has all of it. */
export function remainingMs(run: Pick<RunRecord, 'status' | 'startedAt' | 'kind'>, now: Date): number {
  if (run.kind === 'edge' || run.status !== 'running' || run.startedAt === null) return RUN_MS;
  return Math.max(0, Math.round(RUN_MS - (now.getTime() - Date.parse(run.startedAt))));
}
