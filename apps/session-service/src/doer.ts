import type { Call } from '@ambit/bus';
import type { Doer } from './transactions.repository.js';

/** Who a request says acts, for the audit record. A worker's request says nothing of that. */
export const doerOf = (call: Pick<Call, 'principal' | 'actor' | 'via' | 'traceId'>): Doer => ({
  principal: call.principal,
  actor: call.actor,
  via: call.via,
  traceId: call.traceId,
});

/** The service itself, acting on its own account. */
export const SYSTEM: Doer = {
  actor: { id: 'system:session-service', kind: 'system', issuer: 'local', display: 'session-service' },
  via: { kind: 'system', id: 'session-service' },
};
