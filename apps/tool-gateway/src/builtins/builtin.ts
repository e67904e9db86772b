import type { SnapshotRecord } from '@ambit/capability';
import type { Authority, JsonObject, ToolRegistration } from '@ambit/contracts';
import type { Dispatcher } from '../dispatch/dispatch.js';
import type { ToolResult } from '../domain/call-end.js';

/** For whom a built-in runs, and until when. */
export interface BuiltinContext {
  /** The claimed operation: the same call again carries the same. */
  readonly operationId: string;
  readonly sessionId: string;
  readonly authority: Authority;
  readonly snapshot: SnapshotRecord;
  readonly signal: AbortSignal;
}

export type BuiltinHandler = (input: Readonly<JsonObject>, context: BuiltinContext) => Promise<ToolResult>;
/** A diagnostic tool is run for a person, outside any run. */
export type DiagnosticHandler = (input: Readonly<JsonObject>, sessionId: string) => Promise<ToolResult>;

/** A tool of the gateway itself. Its exposure stands in its registration; what it does is here or nowhere. */
export type Builtin = { readonly registration: ToolRegistration } & (
  | { readonly kind: 'model'; readonly handler: BuiltinHandler }
  | { readonly kind: 'diagnostic'; readonly handler: DiagnosticHandler }
  /** Carried out by a worker, as a command. */
  | { readonly kind: 'command'; readonly by: Dispatcher }
  /** Becomes an interaction before any dispatch. */
  | { readonly kind: 'intercepted' }
  /** Only the platform's own code may do what this name stands for. */
  | { readonly kind: 'runtime' }
);

/** A result of one text, with the same as data where there is some. */
export function textResult(text: string, structuredContent?: unknown): ToolResult {
  return { content: [{ type: 'text', text }], isError: false, ...(structuredContent === undefined ? {} : { structuredContent }) };
}

/** A result that tells the model what was wrong with its call. */
export function errorResult(text: string): ToolResult {
  return { content: [{ type: 'text', text }], isError: true };
}

/** A JSON Schema of an object with these properties and nothing else. */
export function objectSchema(properties: JsonObject, required: readonly string[] = []): JsonObject {
  return { type: 'object', properties, required: [...required], additionalProperties: false };
}
