import { fault, mcpBroker, type ServerSpec, type Transport } from '@ambit/contracts';
import { bindingHash, nextGeneration } from './identity.js';

export interface ServerBefore {
  readonly spec: ServerSpec;
  readonly configGeneration: number;
  readonly version: number;
}

export interface PutFacts {
  readonly before: ServerBefore | undefined;
  readonly spec: ServerSpec;
  readonly ifVersion: number | undefined;
  readonly ifGeneration: number | undefined;
  /** Names of the project's secrets. */
  readonly secrets: ReadonlySet<string>;
  /** Says why a URL may not be called; undefined where it may, or where its host is a name that is resolved later. */
  readonly urlProblem: (url: string) => string | undefined;
}

export interface PutDecision {
  readonly configGeneration: number;
  readonly bindingHash: string;
  readonly version: number;
  /** It is another server now, or may not run any more: what runs has to end. */
  readonly endsInstances: boolean;
  /** What runs has to be told something else of what it may do: it is started anew. */
  readonly restarts: boolean;
}

/** Decides whether a configuration may be stored, and what that changes. Throws the contract's faults. */
export function decidePut(facts: PutFacts): PutDecision {
  const { before, spec, ifVersion, ifGeneration } = facts;
  const version = before?.version ?? 0;
  if (ifVersion !== undefined && ifVersion !== version) throw fault(mcpBroker.putServer, 'VERSION_CONFLICT', { version });
  const generation = before?.configGeneration ?? 0;
  if (ifGeneration !== undefined && ifGeneration !== generation)
    throw fault(mcpBroker.putServer, 'GENERATION_CONFLICT', { configGeneration: generation });
  if (before !== undefined && before.spec.owner !== spec.owner)
    throw fault(mcpBroker.putServer, 'SLUG_TAKEN', { owner: before.spec.owner });
  for (const name of secretsOf(spec.transport)) if (!facts.secrets.has(name)) throw fault(mcpBroker.putServer, 'SECRET_UNKNOWN', { name });
  if (spec.transport.type === 'http' || spec.transport.type === 'sse') {
    checkUrl(spec.transport.url, facts.urlProblem);
    checkHeaders(spec.transport.headers);
  }
  const configGeneration = nextGeneration(
    before === undefined ? undefined : { transport: before.spec.transport, configGeneration: before.configGeneration },
    spec.transport,
  );
  const isOther = before !== undefined && before.configGeneration !== configGeneration;
  const isOff = before?.spec.enabled === true && !spec.enabled;
  return {
    configGeneration,
    bindingHash: bindingHash(spec.transport),
    version: version + 1,
    endsInstances: isOther || isOff,
    restarts: before !== undefined && before.spec.sampling !== spec.sampling,
  };
}

/** Names of the secrets that a transport refers to, each once. */
export function secretsOf(transport: Transport): readonly string[] {
  const values = transport.type === 'stdio' ? transport.env : transport.type === 'inmemory' ? {} : transport.headers;
  const named = [...Object.values(values), ...credentialsIn(transport)];
  return [...new Set(named.flatMap((value) => (typeof value === 'string' ? [] : [value.secret])))];
}

function credentialsIn(transport: Transport): readonly { readonly secret: string }[] {
  const authorization = transport.type === 'http' || transport.type === 'sse' ? transport.authorization : undefined;
  switch (authorization?.type) {
    case undefined:
    case 'none':
      return [];
    case 'interactive':
      return authorization.clientSecret === undefined ? [] : [authorization.clientSecret];
    case 'client_credentials':
      return [authorization.clientSecret];
    case 'private_key_jwt':
      return [authorization.privateKey];
  }
}

function checkUrl(url: string, urlProblem: PutFacts['urlProblem']): void {
  const { protocol } = new URL(url);
  const refuse = (reason: string): never => {
    throw fault(mcpBroker.putServer, 'URL_REFUSED', { reason });
  };
  if (protocol !== 'http:' && protocol !== 'https:') refuse('MCP servers are reached over http or https');
  const problem = urlProblem(url);
  if (problem !== undefined) refuse(problem);
}

// Line breaks would begin a new header; other control characters are illegal in one.
const isControl = (code: number): boolean => code === 0x7f || (code < 0x20 && code !== 0x09);

/** True when a text may stand as a header's value. */
export function isHeaderValue(value: string): boolean {
  for (let index = 0; index < value.length; index++) if (isControl(value.charCodeAt(index)) || value.charCodeAt(index) > 0xff) return false;
  return true;
}

/** Headers that belong to the protocol and the connection; a configuration that sets one would break both. */
const OURS = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'mcp-session-id',
  'mcp-protocol-version',
  'mcp-method',
  'mcp-name',
  'last-event-id',
]);

function checkHeaders(headers: Readonly<Record<string, unknown>>): void {
  const seen = new Set<string>();
  for (const [header, value] of Object.entries(headers)) {
    const name = header.toLowerCase();
    if (seen.has(name)) throw fault(mcpBroker.putServer, 'HEADER_REFUSED', { header }, `The header ${header} stands there twice`);
    if (OURS.has(name)) throw fault(mcpBroker.putServer, 'HEADER_REFUSED', { header }, `The header ${header} is the protocol’s own`);
    if (typeof value === 'string' && !isHeaderValue(value)) throw fault(mcpBroker.putServer, 'HEADER_REFUSED', { header });
    seen.add(name);
  }
}
