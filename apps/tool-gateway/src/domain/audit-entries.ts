import { digestOf, NotCanonical, sha256Hex } from '@ambit/capability';
import type { AuditRecord, Claim, FaultBody, Outcome, Principal } from '@ambit/contracts';

type Entry = Omit<AuditRecord, 'schemaVersion' | 'owner' | 'sequence' | 'previousHash' | 'hash'>;

const KINDS: ReadonlyMap<string, Principal['kind']> = new Map([
  ['user', 'person'],
  ['group', 'person'],
  ['app', 'application'],
  ['worker', 'worker'],
]);

/** A principal of whom only the id is at hand. */
function principalOf(id: string): Principal {
  const kind = KINDS.get(id.slice(0, id.indexOf(':'))) ?? 'system';
  return { id, kind, issuer: 'local', display: '' };
}

/** What others say may hold a NUL, which no text of PostgreSQL can. */
function storable(text: string): string {
  return text.replaceAll('\u0000', '\ufffd');
}

/** How a person ended a parked call. */
export interface Resolution {
  readonly as: 'completed' | 'failed';
  readonly by: Principal;
  readonly note: string;
  readonly at: string;
}

/** That a parked call was ended by somebody's word. */
export function resolvedEntry(
  call: Pick<Claim, 'operationId' | 'principal' | 'projectId' | 'tool' | 'argumentsHash' | 'rule'>,
  { as, by, note, at }: Resolution,
): Entry {
  return {
    at,
    actor: by,
    principal: principalOf(call.principal),
    via: null,
    projectId: call.projectId,
    action: `call.resolve.${as}`,
    target: `${call.tool} ${call.operationId}`,
    beforeDigest: call.argumentsHash,
    afterDigest: null,
    rule: call.rule,
    reason: note,
    traceId: null,
    retention: 'audit',
  };
}

/** A server may answer what has no canonical form, half a character for instance: then the text as it was sent is what is digested. */
function contentDigest(content: Outcome['content']): string | null {
  if (content === undefined) return null;
  try {
    return digestOf(content);
  } catch (error) {
    if (error instanceof NotCanonical) return sha256Hex(JSON.stringify(content));
    throw error;
  }
}

/** That a claimed call ended, and how. */
export function endedEntry(claim: Claim, outcome: Outcome): Entry {
  return {
    at: outcome.at,
    actor: { id: `worker:${claim.agentId}`, kind: 'worker', issuer: 'local', display: '' },
    principal: principalOf(claim.principal),
    via: { kind: 'worker', id: claim.runId },
    projectId: claim.projectId,
    action: `call.${outcome.status}`,
    target: `${claim.tool} ${claim.operationId}`.slice(0, 500),
    beforeDigest: claim.argumentsHash,
    afterDigest: outcome.artifact?.digest ?? contentDigest(outcome.content),
    rule: claim.rule,
    reason: outcome.fault === undefined ? null : storable(`${outcome.fault.code}: ${outcome.fault.message}`.slice(0, 2_000)),
    traceId: null,
    retention: 'audit',
  };
}

export interface RefusalFacts {
  readonly agentId: string;
  readonly runId: string;
  readonly projectId: string;
  readonly tool: string;
  readonly operationId: string;
  readonly principal: Principal;
  readonly argumentsHash: string;
  readonly rule: string | null;
  readonly fault: FaultBody;
  readonly gate: string;
  readonly detail: string | null;
  readonly traceId: string | null;
  readonly at: Date;
}

/** That a call was refused before any effect, by which gate and why. */
export function refusedEntry(facts: RefusalFacts): Entry {
  return {
    at: facts.at.toISOString(),
    actor: { id: `worker:${facts.agentId}`, kind: 'worker', issuer: 'local', display: '' },
    principal: facts.principal,
    via: { kind: 'worker', id: facts.runId },
    projectId: facts.projectId,
    action: 'call.refused',
    target: `${facts.tool} ${facts.operationId}`.slice(0, 500),
    beforeDigest: facts.argumentsHash,
    afterDigest: null,
    rule: facts.rule,
    reason: storable(`${facts.fault.code} at gate ${facts.gate}${facts.detail === null ? '' : `: ${facts.detail}`}`.slice(0, 2_000)),
    traceId: facts.traceId,
    retention: 'audit',
  };
}
