import type { Call } from '@ambit/bus';
import type { AuditEntry } from '@ambit/db';

type Who = Pick<Call, 'actor' | 'principal' | 'via' | 'traceId'>;

/** What every audit record of this service says in the same way. */
export function auditOf(
  call: Who,
  what: { readonly action: string; readonly target: string; readonly projectId: string | null; readonly reason?: string },
): Omit<AuditEntry, 'at'> {
  return {
    actor: call.actor ?? null,
    principal: call.principal ?? null,
    via: call.via ?? null,
    projectId: what.projectId,
    action: what.action,
    target: what.target,
    beforeDigest: null,
    afterDigest: null,
    rule: null,
    reason: what.reason ?? null,
    traceId: call.traceId,
    retention: 'audit',
  };
}
