import { CODE, isJson, RpcError, type Json } from './json-rpc.js';

/** The stateless revision: each request says all that there is to know of its client. */
export const MODERN = '2026-07-28';
/** Revisions that begin with `initialize`, newest first. */
export const LEGACY = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'] as const;

const META = 'io.modelcontextprotocol/';
export const META_KEY = {
  version: `${META}protocolVersion`,
  capabilities: `${META}clientCapabilities`,
  clientInfo: `${META}clientInfo`,
  serverInfo: `${META}serverInfo`,
  logLevel: `${META}logLevel`,
  subscription: `${META}subscriptionId`,
  /** Ours: a client that sends a call again names it so, and it runs once. */
  idempotencyKey: 'ambit/idempotencyKey',
  /** Ours: the decision that a call waits for. */
  interaction: 'ambit/interaction',
  /** Ours: which of the servers behind us something comes from. */
  server: 'ambit/server',
} as const;

/** What the headers of a request say of it. */
export interface McpHeaders {
  readonly version: string | undefined;
  readonly method: string | undefined;
  readonly name: string | undefined;
}

export interface Envelope {
  readonly capabilities: Json;
}

const metaOf = (params: Json): Json => (isJson(params['_meta']) ? params['_meta'] : {});

/** Whether a message is of the stateless revision or a later one: it says so in itself, or its header does. */
export function isModern({ method, params }: { readonly method: string; readonly params: Json }, headers: McpHeaders): boolean {
  const claimed = metaOf(params)[META_KEY.version];
  if (typeof claimed === 'string') return method !== 'initialize' || claimed >= MODERN;
  return method !== 'initialize' && headers.version !== undefined && headers.version >= MODERN;
}

/** The envelope of a stateless request, once its headers agree with it. Throws what is wrong with it. */
export function readEnvelope({ method, params }: { readonly method: string; readonly params: Json }, headers: McpHeaders): Envelope {
  const meta = metaOf(params);
  const version = meta[META_KEY.version];
  const capabilities = meta[META_KEY.capabilities];
  const missing = [typeof version === 'string' ? [] : [META_KEY.version], isJson(capabilities) ? [] : [META_KEY.capabilities]].flat();
  if (typeof version === 'string' && headers.version !== undefined && headers.version !== version)
    throw mismatch('MCP-Protocol-Version', headers.version, version);
  if (typeof version === 'string' && version !== MODERN)
    throw new RpcError(CODE.unsupportedVersion, `Protocol version ${version} is not served here`, {
      status: 400,
      data: { supported: [MODERN], requested: version },
    });
  if (typeof version !== 'string' || !isJson(capabilities))
    throw new RpcError(CODE.invalidParams, `A request of ${MODERN} carries ${missing.join(' and ')} in params._meta`, {
      status: 400,
      data: { missing },
    });
  if (headers.version === undefined) throw mismatch('MCP-Protocol-Version', '(missing)', version);
  if (headers.method !== method) throw mismatch('Mcp-Method', headers.method ?? '(missing)', method);
  const name = nameOf(method, params);
  const said = headers.name === undefined ? undefined : decoded(headers.name);
  if (headers.name !== undefined && said === undefined) throw mismatch('Mcp-Name', headers.name, name ?? '(none)');
  if (name !== undefined && said !== name) throw mismatch('Mcp-Name', headers.name ?? '(missing)', name);
  return { capabilities };
}

/** What `Mcp-Name` repeats of a request. */
function nameOf(method: string, params: Json): string | undefined {
  const value =
    method === 'tools/call' || method === 'prompts/get' ? params['name'] : method === 'resources/read' ? params['uri'] : undefined;
  return typeof value === 'string' ? value : undefined;
}

/** A header's value, in plain or as `=?base64?…?=`; undefined where it is neither. */
function decoded(header: string): string | undefined {
  const text = header.trim();
  if (!text.startsWith('=?')) return text;
  const encoded = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/i.exec(text)?.[1];
  if (encoded === undefined || encoded.length % 4 !== 0) return undefined;
  const bytes = Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function mismatch(header: string, said: string, body: string): RpcError {
  return new RpcError(CODE.headerMismatch, `The header ${header} says ${said}, and the body ${body}; they must agree`, {
    status: 400,
    data: { header, said, body },
  });
}
