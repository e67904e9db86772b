import type { Target } from '@ambit/contracts';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { parseArguments } from './arguments.js';
import { digestOf, RECORD_BOUNDS } from './canonical.js';

/** The id of one intended call, 64 hexadecimal digits: neither a redelivered nor a resumed run makes another for the same call. */
export function operationId(originRunId: string, step: number, callId: string): string {
  return digestOf([originRunId, step, callId]);
}

/** The id under which a call goes on whose tool asked when it was already called, and had done nothing: its first id has its end. */
export function askedOperationId(asking: string): string {
  return digestOf([asking, 'asked']);
}

/** The hash of a call's arguments: equal for equal JSON in any spelling. Throws {@link BadArguments} on text that is no legal arguments object. */
export function argumentsHash(input: string | Readonly<Record<string, unknown>>): string {
  return digestOf(typeof input === 'string' ? parseArguments(input) : input);
}

export interface InstanceIdentity {
  readonly serverId: string;
  readonly configGeneration: number;
  /** What the instance is for: `shared`, `agent:<id>` or `session:<id>`. */
  readonly scope: string;
  /** Whose credentials it carries: `shared`, `agent:<id>` or a principal's id. */
  readonly credentialSubject: string;
}

/** The id of one MCP server instance, 64 hexadecimal digits: instances never mix generations, scopes or credentials. */
export function instanceId({ serverId, configGeneration, scope, credentialSubject }: InstanceIdentity): string {
  return digestOf([serverId, configGeneration, scope, credentialSubject]);
}

/** What identifies a server's tool beside its name: equal exactly when name and schemas are, in whatever order their keys stand. 64 hexadecimal digits. */
export function definitionHash(tool: { readonly name: string; readonly inputSchema: unknown; readonly outputSchema?: unknown }): string {
  return digestOf({ name: tool.name, inputSchema: tool.inputSchema, outputSchema: tool.outputSchema ?? null }, RECORD_BOUNDS);
}

/** The id of the one run that resumes a suspended run: a UUID of version 8, so every process that makes it makes the same. */
export function resumeRunId(suspendedRunId: string): string {
  return uuidV8(sha256(utf8ToBytes(suspendedRunId)));
}

/** A UUID of version 8 whose other 122 bits come from the first 16 bytes given. */
export function uuidV8(digest: Uint8Array): string {
  const bytes = digest.slice(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytesToHex(bytes);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** What a person approves: the pinned target, and of a prepared call what it would touch. */
export function approvedTarget(target: Target, prepared: string | undefined): Target {
  return target.kind !== 'mcp' && prepared !== undefined ? { ...target, prepared } : target;
}

/** What a grant names of its target: any change of server, generation, binding or tool is another target. */
export function targetHash(target: unknown): string {
  return digestOf(target);
}
