import type { RunRef } from '@ambit/contracts';
import type { z } from 'zod';
import { hasEnded, MAX_DELIVERIES, type Attempt, type RunRecord } from './run-state.js';

export type Ref = z.output<typeof RunRef>;

/** Why a worker's call about a run goes no further. */
export type WorkerRefusal = 'TOOL_NOT_IN_SNAPSHOT' | 'TURN_ENDED' | 'STALE_INSTANCE';

/** Tells whether what a worker names is one run of its own agent, in the session and with a snapshot it was given. */
export function isOwn(run: RunRecord | undefined, agentId: string, ref: Ref): run is RunRecord {
  return (
    run !== undefined &&
    run.agentId === agentId &&
    run.kind === 'worker' &&
    run.id === ref.runId &&
    run.originRunId === ref.originRunId &&
    run.sessionId === ref.sessionId &&
    run.fingerprints.includes(ref.fingerprint)
  );
}

/** What a token allows. One the run never had says no more than a run that does not exist. */
export function tokenRefusal(run: RunRecord, attempts: readonly Attempt[], tokenHash: string): WorkerRefusal | null {
  const attempt = attempts.find((one) => one.tokenHash === tokenHash);
  if (attempt === undefined) return 'TOOL_NOT_IN_SNAPSHOT';
  if (attempt.number !== run.attempt) return 'STALE_INSTANCE';
  if (hasEnded(run) || run.status === 'suspended') return 'TURN_ENDED';
  // The attempt was closed under it: its job comes again, and a worker that is late must not acknowledge it.
  return attempt.closedAt !== null || run.status !== 'running' ? 'STALE_INSTANCE' : null;
}

export type StartVerdict = 'open' | 'disabled' | 'exhausted' | WorkerRefusal;

/** Whether a job's taker may open the next attempt. */
export function startVerdict(run: RunRecord, isEnabled: boolean): StartVerdict {
  if (hasEnded(run) || run.status === 'suspended') return 'TURN_ENDED';
  if (!isEnabled) return 'disabled';
  return run.attempt - run.uncounted >= MAX_DELIVERIES ? 'exhausted' : 'open';
}

/** The hash of no token: stands for the attempt to come while the newest is closed, so that its token is an older one everywhere. */
export const NO_TOKEN = '0'.repeat(64);

/** The token hashes that the gateway compares with, newest last. */
export function tokensOf(run: RunRecord, attempts: readonly Attempt[]): { attempt: number; hash: string }[] {
  const known = [...attempts]
    .sort((left, right) => left.number - right.number)
    .map(({ number, tokenHash }) => ({ attempt: number, hash: tokenHash }));
  const newest = attempts.find(({ number }) => number === run.attempt);
  const isClosed = newest !== undefined && newest.closedAt !== null;
  return [...known, ...(isClosed ? [{ attempt: run.attempt + 1, hash: NO_TOKEN }] : [])].slice(-16);
}
