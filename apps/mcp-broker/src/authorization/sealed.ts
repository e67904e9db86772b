import { z } from 'zod';

/** Who we are to an issuer. */
export const ClientIdentity = z.object({
  client_id: z.string().min(1).max(2_048),
  client_secret: z.string().max(4_096).optional(),
  client_secret_expires_at: z.number().optional(),
  token_endpoint_auth_method: z.string().max(100).optional(),
});
export type ClientIdentity = z.output<typeof ClientIdentity>;

/** What is sealed of a token. */
export const SealedToken = z.object({ accessToken: z.string(), refreshToken: z.string().optional(), client: ClientIdentity });
export type SealedToken = z.output<typeof SealedToken>;

/** What is sealed of a sign-in under way: it is finished with what it was begun with, whatever is said meanwhile. */
export const SealedFlow = z.object({
  codeVerifier: z.string(),
  redirectUri: z.string(),
  client: ClientIdentity,
  isRegistered: z.boolean(),
  issuer: z.string(),
  tellsIssuer: z.boolean(),
  tokenEndpoint: z.string(),
  authMethods: z.array(z.string()).optional(),
  resource: z.string(),
  scope: z.string().optional(),
});
export type SealedFlow = z.output<typeof SealedFlow>;

/** Envelopes open for their own place alone. */
export const sealName = {
  token: (serverId: string, subject: string): string => `credential/${serverId}/${subject}`,
  flow: (stateHash: string): string => `flow/${stateHash}`,
  client: (serverId: string, issuer: string): string => `client/${serverId}/${issuer}`,
};

/** The parts of an issuer's document that a token request reads. */
export function tokenMetadata({ issuer, tokenEndpoint, authMethods }: Pick<SealedFlow, 'issuer' | 'tokenEndpoint' | 'authMethods'>) {
  return {
    issuer,
    // The sign-in itself is over; a document without these is none.
    authorization_endpoint: tokenEndpoint,
    response_types_supported: ['code'],
    token_endpoint: tokenEndpoint,
    ...(authMethods === undefined ? {} : { token_endpoint_auth_methods_supported: authMethods }),
  };
}
