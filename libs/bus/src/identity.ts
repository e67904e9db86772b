import { HEADER, Principal, Via } from '@ambit/contracts';
import type { MsgHdrs } from '@nats-io/nats-core';
import type { z } from 'zod';

/** For whom, by whom and through what a request is made. Set by our own services alone. */
export interface Identity {
  readonly principal?: Principal | undefined;
  readonly actor?: Principal | undefined;
  readonly via?: Via | undefined;
}

// Three bounded strings and a kind; a header above this is no identity of ours.
const MAX_HEADER_LENGTH = 4_096;

/** Writes the identity that is there into `headers`, each part as base64url of its JSON. */
export function writeIdentity(headers: MsgHdrs, identity: Identity): void {
  if (identity.principal !== undefined) headers.set(HEADER.principal, encode(identity.principal));
  if (identity.actor !== undefined) headers.set(HEADER.actor, encode(identity.actor));
  if (identity.via !== undefined) headers.set(HEADER.via, encode(identity.via));
}

/** Reads one header back; one that is absent or malformed is nobody. */
export function readPrincipal(headers: MsgHdrs | undefined, name: typeof HEADER.principal | typeof HEADER.actor): Principal | undefined {
  return decode(headers?.get(name), Principal);
}

/** Reads through what a write came; absent or malformed is undefined. */
export function readVia(headers: MsgHdrs | undefined): Via | undefined {
  return decode(headers?.get(HEADER.via), Via);
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function decode<T extends z.ZodType>(text: string | undefined, schema: T): z.output<T> | undefined {
  if (text === undefined || text === '' || text.length > MAX_HEADER_LENGTH) return undefined;
  try {
    return schema.safeParse(JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))).data;
  } catch {
    return undefined;
  }
}
