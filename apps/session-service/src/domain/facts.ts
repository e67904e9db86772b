import { excerptOf } from '@ambit/capability';
import {
  eventMessage,
  jobMessage,
  journalSubject,
  sessionService,
  toolGateway,
  type Agent,
  type Delegation,
  type ContentBlock,
  type DeferredCall,
  type Interaction,
  type RunJob,
  type Session,
  type StoredMessage,
} from '@ambit/contracts';
import { stateOf, type RunRecord } from './run-state.js';
import type { NewEntry } from './tape.js';

// A listener reads the rest from the tape.
const PREVIEW_BYTES = 4_000;

/** What is told of a change, shaped for the outbox of its own transaction. Ids name the change, so telling it twice tells it once. */

export function runStateFact(run: RunRecord, now: Date, reason?: string): StoredMessage {
  return {
    subject: journalSubject.runState(run.id),
    payload: JSON.stringify(stateOf(run, now, reason)),
    // The newest state replaces the older ones, so a claim that expects an older sequence is refused.
    headers: { 'content-type': 'application/json', 'Nats-Rollup': 'sub' },
    messageId: `${run.id}.state.${run.stateVersion}`,
  };
}

export function runChanged(run: RunRecord, now: Date): StoredMessage {
  const { id: runId, originRunId, sessionId, agentId, status, attempt, fingerprint, resumes, fault } = run;
  const payload = { runId, originRunId, sessionId, agentId, status, attempt, fingerprint, resumes, fault, at: now.toISOString() };
  return eventMessage(sessionService.runChanged, payload, { keys: { runId }, id: `${runId}.changed.${run.stateVersion}`, time: now });
}

export function runJob(
  run: RunRecord,
  job: Omit<RunJob, 'schemaVersion' | 'runId' | 'originRunId' | 'sessionId' | 'fingerprint'>,
  traceparent?: string,
): StoredMessage {
  const payload: RunJob = {
    schemaVersion: 1,
    runId: run.id,
    originRunId: run.originRunId,
    sessionId: run.sessionId,
    fingerprint: run.fingerprints[0] ?? run.fingerprint,
    ...job,
  };
  const id = run.jobVersion === 1 ? run.id : `${run.id}.${run.jobVersion}`;
  return jobMessage(sessionService.runExecute, payload, {
    keys: { agentId: run.agentId, pool: run.pool },
    id,
    time: new Date(run.createdAt),
    traceparent,
  });
}

export function deferredJob(call: DeferredCall, traceparent?: string): StoredMessage {
  return jobMessage(toolGateway.executeDeferred, call, {
    keys: { sessionId: call.sessionId },
    id: `${call.interactionId}.deferred`,
    time: new Date(call.decidedAt),
    traceparent,
  });
}

export function tapeAppended(sessionId: string, entry: NewEntry & { readonly id: number }, now: Date): StoredMessage[] {
  if (entry.runId === null) return [];
  const { runId, kind, step, role } = entry;
  const payload = {
    sessionId,
    runId,
    entryId: entry.id,
    kind,
    step,
    role,
    preview: excerptOf(entry.text, PREVIEW_BYTES),
    at: now.toISOString(),
  };
  return [eventMessage(sessionService.tapeAppended, payload, { keys: { runId }, id: `${sessionId}.tape.${entry.id}`, time: now })];
}

export function interactionRequested(interaction: Interaction, url: string | null, now: Date): StoredMessage {
  return eventMessage(
    sessionService.interactionRequested,
    { interaction, url },
    { keys: { runId: interaction.runId }, id: `${interaction.id}.requested`, time: now },
  );
}

export function interactionSettled(interaction: Interaction, now: Date): StoredMessage {
  const { id: interactionId, runId, sessionId, operationId, status, decidedBy } = interaction;
  const payload = { interactionId, runId, sessionId, operationId, status, decidedBy, at: now.toISOString() };
  return eventMessage(sessionService.interactionSettled, payload, { keys: { runId }, id: `${interactionId}.${status}`, time: now });
}

export function messagePosted(
  run: RunRecord,
  session: Session,
  posted: { readonly content: ContentBlock[]; readonly now: Date },
): StoredMessage {
  const { adapter, endpoint, sceneId, thread } = session;
  const keys = { sessionId: session.id };
  const payload = {
    ...keys,
    runId: run.id,
    agentId: run.agentId,
    adapter,
    endpoint,
    sceneId,
    thread,
    replyTo: run.replyTo,
    principal: run.principal,
  };
  return eventMessage(
    sessionService.messagePosted,
    { ...payload, content: posted.content, at: posted.now.toISOString() },
    { keys, id: `${run.id}.posted`, time: posted.now },
  );
}

export function agentChanged(agent: Agent, isDeleted: boolean, now: Date): StoredMessage {
  const { id: agentId, version, policyVersion } = agent;
  const payload = { agentId, version, policyVersion, deleted: isDeleted, at: now.toISOString() };
  return eventMessage(sessionService.agentChanged, payload, {
    keys: { agentId },
    id: `${agentId}.${agent.createdAt}.${version}.${isDeleted ? 'deleted' : 'changed'}`,
    time: now,
  });
}

export interface Published {
  readonly agentId: string;
  readonly fingerprint: string;
  readonly tools: number;
  readonly skills: number;
}

/** Two transactions may tell the same in one millisecond: `by` is the one that tells. */
interface Telling {
  readonly id: string;
  readonly now: Date;
}

export function snapshotPublished({ agentId, fingerprint, tools, skills }: Published, { id: by, now }: Telling): StoredMessage {
  const payload = { agentId, fingerprint, tools, skills, at: now.toISOString() };
  return eventMessage(sessionService.snapshotPublished, payload, {
    keys: { agentId },
    id: `${fingerprint}.published.${by}`,
    time: now,
  });
}

export function mappingPublished(
  mapping: { readonly sessionId: string; readonly agentId: string; readonly fingerprint: string },
  { id: by, now }: Telling,
): StoredMessage {
  const { sessionId } = mapping;
  return eventMessage(
    sessionService.mappingPublished,
    { ...mapping, at: now.toISOString() },
    { keys: { sessionId }, id: `${sessionId}.${mapping.fingerprint}.${by}`, time: now },
  );
}

/** `turn` tells two changes of one delegation apart. */
export function delegationChanged(delegation: Delegation, turn: string, now: Date): StoredMessage {
  const { id: delegationId, sessionId, status } = delegation;
  const payload = { sessionId, delegationId, status, tasks: delegation.tasks.map((task) => task.status), at: now.toISOString() };
  return eventMessage(sessionService.delegationChanged, payload, { keys: { sessionId }, id: `${delegationId}.${turn}`, time: now });
}
