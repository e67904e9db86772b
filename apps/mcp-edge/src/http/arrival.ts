import type { IncomingMessage, ServerResponse } from 'node:http';
import type { McpHeaders } from '../domain/protocol.js';
import type { Naming } from '../domain/shown-tools.js';
import type { Caller } from '../edge-tokens.service.js';

/** An HTTP request of a client that was let in. */
export interface Arrival {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly caller: Caller;
  readonly bearer: string;
  readonly naming: Naming;
  readonly headers: McpHeaders;
  /** `Mcp-Session-Id`. */
  readonly session: string | undefined;
  readonly takesStream: boolean;
}

export function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}
