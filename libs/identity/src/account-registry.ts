import type { AccountBody, Claims } from './claims.js';
import { readClaims } from './jwt.js';

/** The part of a connection of the system account that is needed here. */
export interface SystemConnection {
  request(subject: string, payload: string, options: { readonly timeout: number }): Promise<{ string(): string }>;
}

const TIMEOUT_MS = 5_000;

/** The account JWT that the servers hold now. */
export async function lookUpAccount(connection: SystemConnection, accountKey: string): Promise<string | undefined> {
  const answer = await connection.request(`$SYS.REQ.ACCOUNT.${accountKey}.CLAIMS.LOOKUP`, '', { timeout: TIMEOUT_MS });
  const text = answer.string();
  return text === '' ? undefined : text;
}

/** Hands the servers a new account JWT, and answers when one has stored it. Throws an Error with the server's reason when it refuses. */
export async function pushAccount(connection: SystemConnection, jwt: string): Promise<void> {
  const answer = await connection.request('$SYS.REQ.CLAIMS.UPDATE', jwt, { timeout: TIMEOUT_MS });
  const reply: unknown = JSON.parse(answer.string());
  if (typeof reply === 'object' && reply !== null && 'error' in reply)
    throw new Error(`nats-server refused the account JWT: ${JSON.stringify(reply.error)}`);
}

/** The issue time, in seconds, that makes a new JWT of this account win over `current`: servers keep the one issued later. */
export function issuedAfter(current: string | undefined, nowSeconds: number): number {
  if (current === undefined) return nowSeconds;
  return Math.max(nowSeconds, readAccount(current).iat + 1);
}

/** The claims of an account JWT. */
export function readAccount(jwt: string): Claims<AccountBody> {
  return readClaims<AccountBody>(jwt, 'account');
}
