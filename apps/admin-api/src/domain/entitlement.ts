import type { Action, RoleGrant } from '@ambit/contracts';

type Role = RoleGrant['role'];

/** What each role may do. `auditor` changes nothing; `client` sends for its users and sees only what is theirs. */
const ACTIONS: Readonly<Record<Role, readonly Action[]>> = {
  admin: ['read', 'operate', 'decide', 'send', 'administer', 'audit'],
  operator: ['read', 'operate', 'decide', 'send'],
  approver: ['read', 'decide'],
  viewer: ['read'],
  auditor: ['read', 'audit'],
  client: ['send'],
};

/** Where something is to be done; what is undefined is everywhere. */
export interface Place {
  readonly projectId?: string | undefined;
  readonly agentId?: string | undefined;
}

/** Whether any of the grants allows the action at that place. A grant for one project or some agents allows nothing everywhere. */
export function isEntitled(grants: readonly RoleGrant[], action: Action, place: Place): boolean {
  return grants.some((grant) => ACTIONS[grant.role].includes(action) && covers(grant, place));
}

/** Whether any grant allows the action at some place: what is asked before a request is read. */
export function isEntitledSomewhere(grants: readonly RoleGrant[], action: Action): boolean {
  return grants.some((grant) => ACTIONS[grant.role].includes(action));
}

/** Whether a caller may act for a principal: for itself, for anybody as an operator, or for whom its grant names. */
export function mayActFor(
  caller: { readonly id: string; readonly grants: readonly RoleGrant[] },
  principalId: string,
  place: Place,
): boolean {
  if (caller.id === principalId) return true;
  return caller.grants.some(
    (grant) =>
      ACTIONS[grant.role].includes('send') &&
      covers(grant, place) &&
      (grant.role !== 'client' || grant.onBehalfOf.some((pattern) => matches(pattern, principalId))),
  );
}

/** Whether a caller stands for a principal itself: it is it, or an application that a grant names for it. No other role has anybody's accounts. */
export function standsFor(
  caller: { readonly id: string; readonly grants: readonly RoleGrant[] },
  principalId: string,
  place: Place,
): boolean {
  if (caller.id === principalId) return true;
  return caller.grants.some(
    (grant) => grant.role === 'client' && covers(grant, place) && grant.onBehalfOf.some((pattern) => matches(pattern, principalId)),
  );
}

function covers(grant: RoleGrant, place: Place): boolean {
  if (grant.projectId !== null && grant.projectId !== place.projectId) return false;
  return grant.agents === null || (place.agentId !== undefined && grant.agents.includes(place.agentId));
}

/** `user:*` names every user; nothing else is a pattern. */
function matches(pattern: string, id: string): boolean {
  return pattern.endsWith('*') ? id.startsWith(pattern.slice(0, -1)) : pattern === id;
}
