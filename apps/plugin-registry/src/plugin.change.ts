import type { Call } from '@ambit/bus';
import type { PluginChange } from './plugin.repository.js';

/** On whose behalf something happens to a plugin, and within which request, if any. */
export interface Cause extends Pick<Call, 'principal' | 'actor' | 'via' | 'traceId' | 'startedAt'> {
  readonly within?: Call;
}

export const byRequest = (call: Call): Cause => ({
  principal: call.principal,
  actor: call.actor,
  via: call.via,
  traceId: call.traceId,
  startedAt: call.startedAt,
  within: call,
});

/** What the registry does by itself. */
export const byItself = (startedAt: Date): Cause => ({
  principal: undefined,
  actor: undefined,
  via: { kind: 'system', id: 'plugin-registry' },
  traceId: '',
  startedAt,
});

/** A change as event and audit record tell it. */
export function changeOf(
  action: PluginChange['action'],
  about: { readonly cause: Cause; readonly before?: string; readonly after?: string; readonly reason?: string | null },
): PluginChange {
  const { principal, actor, via, traceId, startedAt } = about.cause;
  return {
    at: startedAt,
    action,
    audit: {
      actor: actor ?? null,
      principal: principal ?? null,
      via: via ?? null,
      projectId: null,
      beforeDigest: about.before ?? null,
      afterDigest: about.after ?? null,
      rule: null,
      reason: about.reason ?? null,
      traceId,
      retention: 'audit',
    },
  };
}
