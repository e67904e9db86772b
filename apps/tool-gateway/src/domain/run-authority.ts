import type { AuthorityLink, RunAuthority } from '@ambit/capability';
import type { Authority } from '@ambit/contracts';

/** Whether a run token, by its sha256, is the newest attempt's, an older one's, or none of this run's. */
export function tokenStanding(tokens: Authority['tokens'], hash: string): RunAuthority['token'] {
  const index = tokens.findIndex((known) => known.hash === hash);
  if (index < 0) return 'unknown';
  return index === tokens.length - 1 ? 'current' : 'superseded';
}

/** The policies that bear on a run, the agent's own first. */
export function chainOf(authority: Authority, policyVersion: number = authority.policyVersion): AuthorityLink[] {
  const own = { agentId: authority.agentId, version: policyVersion, enabled: authority.enabled, policy: authority.policy };
  return [
    own,
    ...authority.ancestors.map((ancestor) => ({
      agentId: ancestor.agentId,
      version: 1,
      enabled: ancestor.enabled,
      policy: ancestor.policy,
    })),
  ];
}

/** What the gates ask of a run, read off its authority. A revoked owner's fence counts as moved by one since the mapping. */
export function runAuthorityOf(authority: Authority, token: RunAuthority['token'], toolOwner: string): RunAuthority {
  return {
    runId: authority.runId,
    sessionId: authority.sessionId,
    agentId: authority.agentId,
    agentKind: 'sdk',
    sessionKind: authority.ancestors.length > 0 ? 'subagent' : 'regular',
    principal: authority.principal.id,
    fingerprint: authority.fingerprint,
    status: authority.status,
    token,
    mode: authority.mode,
    chain: chainOf(authority),
    fences: { [toolOwner]: 0 },
    knownAgents: authority.knownAgents,
  };
}
