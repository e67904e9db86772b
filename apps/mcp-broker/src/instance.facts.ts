import { instanceId as idOf } from '@ambit/capability';
import { Fault, fault, mcpBroker, type ServerSpec } from '@ambit/contracts';
import { isDatabaseError } from '@ambit/db';
import { sentenceOf, StartFailed } from '@ambit/mcp';
import { authorizationOf, credentialsOf } from './domain/authorization.js';
import { specOf, type ServerRow } from './server.view.js';

export interface Wanted {
  readonly instanceId: string;
  /** Whose credentials it carries. */
  readonly subject: string;
}

export interface Start extends Wanted {
  readonly spec: ServerSpec;
  readonly values: Readonly<Record<string, string>>;
}

export function instanceIdOf(row: ServerRow, scope: string, credentialSubject: string): string {
  return idOf({ serverId: row.id, configGeneration: row.configGeneration, scope, credentialSubject });
}

/** Whose credentials a server takes, where it is one that is signed in to. */
export function signInOf(row: ServerRow): 'shared' | 'agent' | 'user' | undefined {
  const authorization = authorizationOf(specOf(row).transport);
  return authorization.type === 'unsupported' || authorization.type === 'none' ? undefined : credentialsOf(authorization);
}

export function signInWanted(row: ServerRow, reason: string): Fault {
  return fault(mcpBroker.ensureInstance, 'AUTHORIZATION_REQUIRED', { serverId: row.id, credentials: signInOf(row) ?? 'shared', reason });
}

export function unavailable(reason: string): Fault {
  return fault(mcpBroker.ensureInstance, 'SERVER_UNAVAILABLE', { reason });
}

export function reasonOf(error: unknown): string {
  if (error instanceof StartFailed) return error.message;
  if (isDatabaseError(error)) return 'The broker could not read or write its records; it is tried again';
  if (!(error instanceof Fault)) return sentenceOf(error);
  const { data } = error;
  if (typeof data === 'object' && data !== null && 'reason' in data && typeof data.reason === 'string') return data.reason;
  return error.code === 'UNAVAILABLE' ? 'No process that runs stdio servers is there just now' : error.message;
}
