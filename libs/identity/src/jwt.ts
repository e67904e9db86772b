import { createHash } from 'node:crypto';
import { fromPublic, fromSeed, type KeyPair } from '@nats-io/nkeys';
import type { Claims, ClaimsBody } from './claims.js';

const HEADER = toBase64Url(JSON.stringify({ typ: 'JWT', alg: 'ed25519-nkey' }));

export interface Signing<B extends ClaimsBody> {
  readonly name: string;
  /** Public key of whom the claims are about. */
  readonly subject: string;
  readonly body: B;
  /** Seconds since 1970. */
  readonly issuedAt: number;
  readonly expiresAt?: number;
}

/** Signs NATS claims (JWT version 2). The same input gives the same text. */
export function signClaims<B extends ClaimsBody>(signing: Signing<B>, signer: KeyPair): string {
  const claims = {
    name: signing.name,
    sub: signing.subject,
    iss: signer.getPublicKey(),
    iat: signing.issuedAt,
    ...(signing.expiresAt === undefined ? {} : { exp: signing.expiresAt }),
    nats: { ...signing.body, version: 2 },
  };
  const jti = createHash('sha256').update(JSON.stringify(claims)).digest('hex');
  const signed = `${HEADER}.${toBase64Url(JSON.stringify({ jti, ...claims }))}`;
  return `${signed}.${Buffer.from(signer.sign(Buffer.from(signed))).toString('base64url')}`;
}

/** Reads claims back; throws an Error for text that is no NATS JWT of that type or whose signature is not its issuer's. */
export function readClaims<B extends ClaimsBody>(jwt: string, type: B['type']): Claims<B> {
  const [header, payload, signature] = jwt.trim().split('.');
  if (header === undefined || payload === undefined || signature === undefined) throw new Error('not a JWT: three parts are needed');
  const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'));
  if (!isClaims<B>(claims, type)) throw new Error(`not the JWT of a NATS ${type}`);
  const isSigned = fromPublic(claims.iss).verify(Buffer.from(`${header}.${payload}`), Buffer.from(signature, 'base64url'));
  if (!isSigned) throw new Error(`the signature of the JWT is not that of ${claims.iss}`);
  return claims;
}

/** The text of a credentials file that NATS clients read: a user JWT and the seed of its key. */
export function credentialsFile(jwt: string, userKey: KeyPair): string {
  const seed = Buffer.from(userKey.getSeed()).toString('utf8');
  return [
    '-----BEGIN NATS USER JWT-----',
    jwt,
    '------END NATS USER JWT------',
    '',
    'The seed below proves this identity to NATS. Keep it secret.',
    '',
    '-----BEGIN USER NKEY SEED-----',
    seed,
    '------END USER NKEY SEED------',
    '',
  ].join('\n');
}

/** The user JWT and key of a credentials file; throws an Error when it is not one. */
export function readCredentialsFile(text: string): { readonly jwt: string; readonly userKey: KeyPair } {
  const jwt = /BEGIN NATS USER JWT-+\s+(\S+)/.exec(text)?.[1];
  const seed = /BEGIN USER NKEY SEED-+\s+(\S+)/.exec(text)?.[1];
  if (jwt === undefined || seed === undefined) throw new Error('not a NATS credentials file');
  return { jwt, userKey: fromSeed(Buffer.from(seed)) };
}

// Only servers and our own keys sign what is read here, so its kind and issuer are looked at, not every field.
function isClaims<B extends ClaimsBody>(value: unknown, type: B['type']): value is Claims<B> {
  if (typeof value !== 'object' || value === null || !('iss' in value) || !('nats' in value)) return false;
  const { iss, nats } = value;
  return typeof iss === 'string' && typeof nats === 'object' && nats !== null && 'type' in nats && nats.type === type;
}

function toBase64Url(text: string): string {
  return Buffer.from(text).toString('base64url');
}
