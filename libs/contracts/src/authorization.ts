import { z } from 'zod';
import { Instant, Slug, Uuid } from './nouns.js';

/** A secret is referred to by name, never written into configuration. */
export const SecretRef = z.object({ secret: Slug }).meta({ id: 'SecretRef' });

const ClientId = z.string().min(1).max(2_048);
const Scopes = z.array(z.string().regex(/^[\x21\x23-\x5B\x5D-\x7E]{1,200}$/, 'a scope has no spaces, quotes or backslashes')).max(100).default([]);
/** Where the authorization server is given, credentials go to it alone, whatever the MCP server says later. */
const Issuer = z.url().max(2_048).optional();

/** Whose credentials a connection to a server carries: everybody's, each agent's own, or each principal's own. */
export const CredentialsOf = z.enum(['shared', 'agent', 'user']);

/** How we come to an access token for a server behind a URL. Left out: by a person's sign-in, once for everybody, if the server ever asks for one. */
export const Authorization = z
  .discriminatedUnion('type', [
    z.strictObject({ type: z.literal('none') }),
    z.strictObject({ type: z.literal('interactive'), credentials: CredentialsOf.default('shared'), clientId: ClientId.optional(), clientSecret: SecretRef.optional(), scopes: Scopes, issuer: Issuer }),
    z.strictObject({ type: z.literal('client_credentials'), clientId: ClientId, clientSecret: SecretRef, scopes: Scopes, issuer: Issuer }),
    z.strictObject({ type: z.literal('private_key_jwt'), clientId: ClientId, privateKey: SecretRef, algorithm: z.enum(['RS256', 'RS384', 'RS512', 'PS256', 'ES256', 'ES384', 'EdDSA']).default('RS256'), scopes: Scopes, issuer: Issuer }),
  ])
  .meta({ id: 'Authorization' });
export type Authorization = z.output<typeof Authorization>;

/** `unsupported`: it wants credentials and does not say where from. `none`: it never asked for any. */
export const AuthorizationState = z.enum(['unsupported', 'none', 'required', 'authenticating', 'authenticated', 'error']);
export type AuthorizationState = z.output<typeof AuthorizationState>;

/** `shared`, `agent:<id>`, or the id of a principal. */
export const CredentialSubject = z.string().max(200).regex(/^(shared|(agent|user|app|worker|system|group):[^\s]+)$/, 'shared, agent:<id> or a principal’s id');

/** What is known of one subject's credentials; nothing of it is secret. */
export const Credential = z
  .object({
    serverId: Uuid,
    subject: CredentialSubject,
    state: AuthorizationState,
    /** Why it is not authenticated, in one sentence without secrets. */
    reason: z.string().max(1_000).nullable(),
    issuer: z.string().max(2_048).nullable(),
    scopes: z.array(z.string().max(200)).max(200),
    /** When the access token ends; null where the authorization server did not say. It is renewed before, where that is possible. */
    expiresAt: Instant.nullable(),
    updatedAt: Instant,
  })
  .meta({ id: 'Credential', description: 'What is known of one subject’s credentials; tokens are never returned' });
export type Credential = z.output<typeof Credential>;

/** How a server stands with authorization as a whole. */
export const ServerAuthorization = z
  .object({ state: AuthorizationState, reason: z.string().max(1_000).nullable(), credentials: CredentialsOf, issuer: z.string().max(2_048).nullable(), /** Subjects that have a token now. */ authenticated: z.int().min(0) })
  .meta({ id: 'ServerAuthorization' });
export type ServerAuthorization = z.output<typeof ServerAuthorization>;
