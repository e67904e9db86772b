import type { Agent, Principal } from '@ambit/contracts';
import type { RunRecord } from './domain/run-state.js';
import type { Prepared } from './ingress.service.js';
import type { SessionRecord } from './session.repository.js';

export interface Beginning {
  readonly agent: Agent;
  readonly session: SessionRecord;
  readonly prepared: Prepared;
  readonly principal: Principal;
}

/** The pool whose workers can take a session's runs. */
const poolOf = (session: Pick<SessionRecord, 'workspaceId'>): string => session.workspaceId ?? 'shared';

/** A run as it begins, with the snapshot that was prepared for it; `more` is what this one has of its own. */
export function newRun(
  { agent, session, prepared, principal }: Beginning,
  now: Date,
  more: Pick<RunRecord, 'id' | 'kind' | 'status'> & Partial<Pick<RunRecord, 'originRunId' | 'roles' | 'replyTo' | 'resumes'>>,
): RunRecord {
  const { fingerprint, degraded } = prepared.projection;
  return {
    originRunId: more.id,
    sessionId: session.id,
    agentId: agent.id,
    projectId: session.projectId,
    attempt: 0,
    fingerprint,
    fingerprints: [fingerprint],
    degraded: [...degraded],
    pool: poolOf(session),
    principal,
    roles: [],
    replyTo: null,
    resumes: null,
    fault: null,
    stateVersion: 1,
    agentVersion: agent.version,
    policyVersion: agent.policyVersion,
    jobVersion: 1,
    uncounted: 0,
    createdAt: now.toISOString(),
    startedAt: null,
    endedAt: null,
    ...more,
  };
}
