import type { Call } from '@ambit/bus';
import type { Change } from './change.repository.js';

/** Who changes something, through what, and when. */
export type Context = Pick<Call, 'principal' | 'actor' | 'via' | 'startedAt'> & { readonly traceId: string | null };

/** One change of an agent's skill, with its audit record. */
export function changeOf(
  entry: { readonly agentId: string; readonly projectId: string | null; readonly set: string | null },
  what: {
    readonly name: string;
    readonly reason: Change['reason'];
    readonly context: Context;
    readonly digests: readonly [string | null, string | null];
    /** What of the skill it is about, where it is not about all of it. */
    readonly about?: string;
  },
): Change {
  const { name, reason, context, digests, about } = what;
  const { principal, actor, via, traceId, startedAt } = context;
  return {
    at: startedAt,
    agentId: entry.agentId,
    reason,
    names: [name],
    audit: {
      actor: actor ?? null,
      principal: principal ?? null,
      via: via ?? null,
      projectId: entry.projectId,
      action: `skill.${reason}`,
      target: `${entry.agentId}/${name}`,
      beforeDigest: digests[0],
      afterDigest: digests[1],
      rule: null,
      reason: about ?? null,
      traceId,
      retention: 'audit',
    },
  };
}
