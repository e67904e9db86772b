import { expect, it } from '@jest/globals';
import { isOwn, NO_TOKEN, startVerdict, tokenRefusal, tokensOf } from './attempt.js';
import { moved, remainingMs, RUN_MS, stateOf, type Attempt, type RunRecord } from './run-state.js';

const id = (last: number) => `01890000-0000-7000-8000-00000000000${last}`;
const at = '2026-01-01T00:00:00.000Z';
const run: RunRecord = {
  ...{
    id: id(1),
    originRunId: id(1),
    sessionId: id(2),
    agentId: 'a',
    projectId: 'default',
    kind: 'worker',
    status: 'running',
    attempt: 2,
    fingerprint: 'f',
    fingerprints: ['e', 'f'],
    degraded: [],
  },
  ...{
    pool: 'shared',
    principal: { id: 'user:u', kind: 'person', issuer: 'local', display: '' },
    roles: [],
    replyTo: null,
    resumes: null,
    fault: null,
    stateVersion: 3,
  },
  ...{ agentVersion: 1, policyVersion: 1, jobVersion: 1, uncounted: 0, createdAt: at, startedAt: at, endedAt: null },
};
const attempt = (number: number, closedAt: string | null): Attempt => ({
  number,
  tokenHash: `h${number}`,
  workerId: null,
  openedAt: at,
  closedAt,
});
const attempts = [attempt(1, at), attempt(2, null)];
const ref = { runId: id(1), originRunId: id(1), sessionId: id(2), fingerprint: 'f' };

it('a run is its agent’s, in its session, with any fingerprint it was given', () => {
  expect(isOwn(run, 'a', ref)).toBe(true);
  expect(isOwn(run, 'a', { ...ref, fingerprint: 'e' })).toBe(true);
  for (const forged of [{ sessionId: id(3) }, { fingerprint: 'x' }, { originRunId: id(4) }])
    expect(isOwn(run, 'a', { ...ref, ...forged })).toBe(false);
  expect(isOwn(run, 'b', ref)).toBe(false);
  expect(isOwn(undefined, 'a', ref)).toBe(false);
});

it('a token says what it may: unknown, stale, ended', () => {
  expect(tokenRefusal(run, attempts, 'h2')).toBeNull();
  expect(tokenRefusal(run, attempts, 'h1')).toBe('STALE_INSTANCE');
  expect(tokenRefusal(run, attempts, 'other')).toBe('TOOL_NOT_IN_SNAPSHOT');
  expect(tokenRefusal({ ...run, status: 'suspended' }, attempts, 'h2')).toBe('TURN_ENDED');
  expect(tokenRefusal(run, [attempt(1, at), attempt(2, at)], 'h2')).toBe('STALE_INSTANCE');
});

it('while the newest attempt is closed, its token is an older one for the gateway too', () => {
  expect(tokensOf(run, attempts).at(-1)).toEqual({ attempt: 2, hash: 'h2' });
  expect(tokensOf(run, [attempt(1, at), attempt(2, at)]).at(-1)).toEqual({ attempt: 3, hash: NO_TOKEN });
});

it('three deliveries are all; those that could not work count for none', () => {
  expect(startVerdict({ ...run, attempt: 2 }, true)).toBe('open');
  expect(startVerdict({ ...run, attempt: 3 }, true)).toBe('exhausted');
  expect(startVerdict({ ...run, attempt: 3, uncounted: 1 }, true)).toBe('open');
  expect(startVerdict(run, false)).toBe('disabled');
  expect(startVerdict({ ...run, endedAt: at }, true)).toBe('TURN_ENDED');
});

it('every move has the next version, and an end its time', () => {
  const now = new Date('2026-01-01T00:10:00.000Z');
  const ended = moved(run, { status: 'failed' }, now);
  expect(ended).toMatchObject({ stateVersion: 4, status: 'failed', endedAt: now.toISOString() });
  expect(stateOf(ended, now, 'because')).toMatchObject({ version: 4, status: 'failed', reason: 'because' });
  expect(remainingMs(run, now)).toBe(RUN_MS - 600_000);
  // An MCP client's run is not one piece of work: each of its calls has all the time of one.
  expect(remainingMs({ ...run, kind: 'edge' }, now)).toBe(RUN_MS);
  expect(remainingMs({ kind: 'worker', status: 'suspended', startedAt: at }, now)).toBe(RUN_MS);
});
