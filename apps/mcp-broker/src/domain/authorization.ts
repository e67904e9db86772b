import type { Authorization, CredentialsOf, Transport } from '@ambit/contracts';
import type { z } from 'zod';

export type Credentials = z.output<typeof CredentialsOf>;

/** How a server is signed in to: as configured, or as it is where nothing is said. */
export type Effective = Authorization | { readonly type: 'unsupported' };

const OPEN: Authorization = { type: 'interactive', credentials: 'shared', scopes: [] };
/** Renewed after four fifths of its life, so that no call has to wait for it. */
const RENEWED_AFTER = 0.8;
/** So old may a token be that a server refuses, for a newer one to be worth asking for. */
const FRESH_MS = 30_000;

/** What counts for a transport. A configured Authorization header wins over everything. */
export function authorizationOf(transport: Transport): Effective {
  if (transport.type !== 'http' && transport.type !== 'sse') return { type: 'unsupported' };
  if (Object.keys(transport.headers).some((name) => name.toLowerCase() === 'authorization')) return { type: 'none' };
  return transport.authorization ?? OPEN;
}

/** Whose credentials a server takes; what a machine signs in with is everybody's. */
export function credentialsOf(authorization: Effective): Credentials {
  return authorization.type === 'interactive' ? authorization.credentials : 'shared';
}

/** Whose credentials a call carries; undefined where it is for nobody and the server takes everybody's own. */
export function subjectFor(
  authorization: Effective,
  call: { readonly agentId: string; readonly principalId: string | undefined },
): string | undefined {
  switch (credentialsOf(authorization)) {
    case 'shared':
      return 'shared';
    case 'agent':
      return `agent:${call.agentId}`;
    case 'user':
      return call.principalId;
  }
}

/** Whether a server takes credentials of this subject. `shared` always: with them its tools are listed for those who have none. */
export function takesSubject(authorization: Effective, subject: string): boolean {
  if (subject === 'shared') return true;
  switch (credentialsOf(authorization)) {
    case 'shared':
      return false;
    case 'agent':
      return subject.startsWith('agent:');
    case 'user':
      return !subject.startsWith('agent:') && !subject.startsWith('group:');
  }
}

/** When a token ends, and when it is renewed before that; null where its issuer does not say. */
export function lifeOf(obtainedAt: Date, expiresInSeconds: number | undefined): { expiresAt: Date | null; refreshAt: Date | null } {
  if (expiresInSeconds === undefined || !Number.isFinite(expiresInSeconds)) return { expiresAt: null, refreshAt: null };
  const lifeMs = Math.max(0, expiresInSeconds) * 1_000;
  return {
    expiresAt: new Date(obtainedAt.getTime() + lifeMs),
    refreshAt: new Date(obtainedAt.getTime() + lifeMs * RENEWED_AFTER),
  };
}

/** Whether another token may help after a server refused one: one that was just issued was not too old. */
export function mayHelp(obtainedAt: Date | null, now: Date): boolean {
  return obtainedAt === null || now.getTime() - obtainedAt.getTime() > FRESH_MS;
}

export interface Bound {
  readonly generation: number;
  readonly bindingHash: string;
}

/** Credentials are good for the server that they were given for, as it was then. */
export function isBoundTo(bound: Bound, server: { readonly configGeneration: number; readonly bindingHash: string }): boolean {
  return bound.generation === server.configGeneration && bound.bindingHash === server.bindingHash;
}

const words = (scope: string | null | undefined): string[] => (scope ?? '').split(' ').filter((word) => word !== '');

/** All scopes of several lists, each once, in the order they first come; undefined where there is none. */
export function scopeUnion(...scopes: readonly (string | null | undefined)[]): string | undefined {
  const all = [...new Set(scopes.flatMap(words))].slice(0, 200);
  return all.length === 0 ? undefined : all.join(' ');
}

/** What to ask for: what the server asked for and the configuration names; what the server can give at all where neither says a thing. */
export function scopeToAsk(asked: {
  readonly configured: readonly string[];
  readonly challenged: string | null | undefined;
  readonly granted: string | null | undefined;
  readonly offered: readonly string[] | undefined;
  readonly issuerOffers: readonly string[] | undefined;
}): string | undefined {
  const named = scopeUnion(asked.configured.join(' '), asked.challenged, asked.granted) ?? scopeUnion(asked.offered?.join(' '));
  // Without it many issuers give no refresh token.
  return asked.issuerOffers?.includes('offline_access') === true ? scopeUnion(named, 'offline_access') : named;
}
