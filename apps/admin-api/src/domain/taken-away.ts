import type { AuditRecord } from '@ambit/contracts';
import { z } from 'zod';

/** What an act took away, or may have: an agent or server that was changed may have been narrowed. */
export type Taking =
  | {
      readonly kind: 'token' | 'edge-token' | 'grant' | 'notify' | 'session' | 'principal' | 'plugin' | 'agent' | 'server';
      readonly id: string;
    }
  | { readonly kind: 'credential' | 'skill'; readonly agentId: string; readonly name: string }
  | { readonly kind: 'secret'; readonly projectId: string; readonly name: string };

const BY_ACTION: Readonly<Record<string, (target: string) => Taking | undefined>> = {
  'token.revoked': (id) => withId('token', id),
  'edge-token.revoked': (id) => withId('edge-token', id),
  'access.revoked': (id) => withId('grant', id),
  'notify.removed': (target) => withId('notify', after(target, 'notify:')),
  'worker.revoked': (target) => pair(target, ([agentId, name]) => ({ kind: 'credential', agentId, name })),
  'principal.erase': (target) => ({ kind: 'principal', id: after(target, 'principal:') }),
  'session.delete': (target) => ({ kind: 'session', id: after(target, 'session:') }),
  'agent.update': (target) => ({ kind: 'agent', id: after(target, 'agent:') }),
  'agent.delete': (target) => ({ kind: 'agent', id: after(target, 'agent:') }),
  'server.put': (target) => ({ kind: 'server', id: after(target, 'server:') }),
  'server.delete': (target) => ({ kind: 'server', id: after(target, 'server:') }),
  'secret.delete': (target) => pair(after(target, 'secret:'), ([projectId, name]) => ({ kind: 'secret', projectId, name })),
  'skill.disabled': (target) => pair(target, ([agentId, name]) => ({ kind: 'skill', agentId, name })),
  'skill.removed': (target) => pair(target, ([agentId, name]) => ({ kind: 'skill', agentId, name })),
  'plugin.disabled': (id) => ({ kind: 'plugin', id }),
  'plugin.uninstalled': (id) => ({ kind: 'plugin', id }),
};

/** What has to be taken away again because of an act that a restored database does not know of. */
export function takingOf({ action, target }: Pick<AuditRecord, 'action' | 'target'>): Taking | undefined {
  return Object.hasOwn(BY_ACTION, action) ? BY_ACTION[action]?.(target) : undefined;
}

const after = (target: string, prefix: string): string => (target.startsWith(prefix) ? target.slice(prefix.length) : target);

/** Where the target is no id, nothing can be found by it. */
const withId = (kind: 'token' | 'edge-token' | 'grant' | 'notify', id: string): Taking | undefined =>
  z.uuid().safeParse(id).success ? { kind, id } : undefined;

function pair(target: string, make: (parts: readonly [string, string]) => Taking): Taking | undefined {
  const [first, second, ...more] = target.split('/');
  return first === undefined || second === undefined || more.length > 0 ? undefined : make([first, second]);
}
