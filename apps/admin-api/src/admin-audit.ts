import type { AuditEntry } from '@ambit/db';
import type { Caller } from './http/caller.js';

/** The audit entry of a write that came over HTTP. */
export function auditOf(
  request: { readonly caller: Caller; readonly now: Date; readonly traceId: string },
  what: { readonly action: string; readonly target: string; readonly projectId?: string | null; readonly reason?: string | null },
): AuditEntry {
  const { principal, actor, via } = request.caller.identity;
  return {
    at: request.now.toISOString(),
    principal,
    actor,
    via,
    projectId: what.projectId ?? null,
    action: what.action,
    target: what.target,
    beforeDigest: null,
    afterDigest: null,
    rule: null,
    reason: what.reason ?? null,
    traceId: request.traceId,
    retention: 'audit',
  };
}
