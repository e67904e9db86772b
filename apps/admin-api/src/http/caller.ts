import type { Action, Principal, RoleGrant, Via } from '@ambit/contracts';
import { platformFault } from '@ambit/contracts';
import { isEntitled, mayActFor, standsFor, type Place } from '../domain/entitlement.js';

/** Who a request's token speaks for. */
export class Caller {
  constructor(
    readonly principal: Principal,
    readonly groups: readonly string[],
    readonly grants: readonly RoleGrant[],
    readonly via: Via,
  ) {}

  /** Headers of every call made for this request. */
  get identity(): { readonly principal: Principal; readonly actor: Principal; readonly via: Via } {
    return { principal: this.principal, actor: this.principal, via: this.via };
  }

  may(action: Action, place: Place = {}): boolean {
    return isEntitled(this.grants, action, place);
  }

  require(action: Action, place: Place = {}): void {
    if (this.may(action, place)) return;
    const where = [
      place.projectId === undefined ? '' : `in project ${place.projectId}`,
      place.agentId === undefined ? '' : `for agent ${place.agentId}`,
    ]
      .filter(Boolean)
      .join(' ');
    throw platformFault(
      'FORBIDDEN',
      undefined,
      `${this.principal.id} has no role that may ${action}${where === '' ? ' everywhere; name a project or agent that it may' : ` ${where}`}`,
    );
  }

  mayActFor(principalId: string, place: Place = {}): boolean {
    return mayActFor({ id: this.principal.id, grants: this.grants }, principalId, place);
  }

  /** Whether it may sign in as a principal. */
  standsFor(principalId: string, place: Place = {}): boolean {
    return standsFor({ id: this.principal.id, grants: this.grants }, principalId, place);
  }

  /** What belongs to a session: readers of its project and agent, and those who may act for its principal. */
  requireSession(
    session: { readonly projectId: string; readonly agentId: string; readonly principal: Principal },
    action: Action = 'read',
  ): void {
    if (this.may(action, session) || this.mayActFor(session.principal.id, session)) return;
    throw platformFault('FORBIDDEN', undefined, `${this.principal.id} has no role that may ${action} this session`);
  }
}
