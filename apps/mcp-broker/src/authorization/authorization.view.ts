import { AuthorizationState, type Credential, type ServerAuthorization } from '@ambit/contracts';
import { authorizationOf, credentialsOf, isBoundTo } from '../domain/authorization.js';
import { specOf, type ServerRow } from '../server.view.js';
import type { CredentialRepository, CredentialRow } from './credential.repository.js';

type Facts = Awaited<ReturnType<CredentialRepository['facts']>>;
const CHANGED = 'The server is another one than when somebody signed in; sign in again';

/** One subject's credentials as people see them. */
export function credentialView(
  row: CredentialRow,
  server: ServerRow,
  at: { readonly now: Date; readonly isSigningIn: boolean },
): Credential {
  return {
    serverId: row.serverId,
    subject: row.subject,
    ...stateOf(row, server, at),
    issuer: row.issuer === '' ? null : row.issuer,
    scopes: (row.scope ?? '')
      .split(' ')
      .filter((scope) => scope !== '')
      .slice(0, 200),
    expiresAt: row.expiresAt?.toISOString() ?? null,
    updatedAt: row.updatedAt.toISOString(),
  };
}

function stateOf(
  row: CredentialRow,
  server: ServerRow,
  at: { readonly now: Date; readonly isSigningIn: boolean },
): Pick<Credential, 'state' | 'reason'> {
  if (at.isSigningIn) return { state: 'authenticating', reason: null };
  if (!isBoundTo(row, server)) return { state: 'required', reason: CHANGED };
  return { state: AuthorizationState.parse(row.state), reason: row.reason };
}

/** A server's authorization as a whole: of everybody's credentials where it takes those, else of what it asked for last. */
export function authorizationView(server: ServerRow, facts: Facts, now: Date): ServerAuthorization {
  const authorization = authorizationOf(specOf(server).transport);
  const credentials = credentialsOf(authorization);
  const nothing = { reason: null, credentials, issuer: null, authenticated: 0 };
  if (authorization.type === 'unsupported') return { ...nothing, state: 'unsupported' };
  if (authorization.type === 'none') return { ...nothing, state: 'none' };
  const mine = (row: { readonly serverId: string; readonly generation: number }): boolean =>
    row.serverId === server.id && row.generation === server.configGeneration;
  const challenge = facts.challenges.find(mine);
  const authenticated = facts.authenticated.filter(mine).reduce((sum, { _count }) => sum + _count, 0);
  const shared = facts.shared.find((row) => row.serverId === server.id);
  const signingIn = facts.flows.some((flow) => mine(flow) && (credentials !== 'shared' || flow.subject === 'shared'));
  const issuer = (shared?.issuer ?? '') === '' ? (challenge?.issuer ?? null) : (shared?.issuer ?? null);
  const known = { credentials, issuer, authenticated };
  if (signingIn) return { ...known, state: 'authenticating', reason: null };
  if (credentials === 'shared' && shared !== undefined) return { ...known, ...stateOf(shared, server, { now, isSigningIn: false }) };
  if (authenticated > 0) return { ...known, state: 'authenticated', reason: null };
  if (challenge === undefined) return { ...known, state: 'none', reason: null };
  return { ...known, state: AuthorizationState.parse(challenge.state), reason: challenge.reason };
}
