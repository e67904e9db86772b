import { z } from 'zod';
import { auditEvent, auditReading } from './audit.js';
import { Authorization, Credential, CredentialSubject, SecretRef, ServerAuthorization } from './authorization.js';
import { event, rpc, signal } from './kit/contract.js';
import { AgentId, demands, Hex64, Instant, JsonObject, Owner, page, PageInput, ProjectId, SetName, Slug, ToolDefinition, Uuid, Version } from './nouns.js';
import { mcpContent, OfferHashes } from './mcp-content.js';
import { mcpSkills } from './mcp-skills.js';
import { refusing } from './refusals.js';

const Value = z.union([z.string().max(16 * 1024), SecretRef]);
const HeaderName = z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/);

export const Instances = z
  .object({
    scope: z.enum(['shared', 'per-agent', 'per-session']).default('shared'),
    max: z.int().min(1).max(1_000).default(16),
    idleStopMs: z.int().min(1_000).max(86_400_000).default(600_000),
    memoryBytes: z.int().min(16 * 1024 * 1024).optional(),
  })
  .meta({ id: 'Instances' });
export const Timeouts = z
  .object({ startMs: z.int().min(1_000).max(300_000).default(45_000), callMs: z.int().min(1_000).max(3_600_000).default(60_000), onProgress: z.enum(['extend', 'ignore']).default('ignore') })
  .meta({ id: 'Timeouts' });

/** A closed list of a server's tools, by name. It only takes away: what may be called without asking, an agent's policy says. */
export const ToolPolicy = z.record(z.string().min(1).max(128), z.enum(['allow', 'ask', 'deny'])).meta({ id: 'ToolPolicy' });
export type ToolPolicy = z.output<typeof ToolPolicy>;

/** How to reach a server. Strict: unknown fields, `autoApprove` among them, are refused by name. */
export const Transport = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('stdio'), command: z.string().min(1).max(1_024), args: z.array(z.string().max(8_192)).max(256).default([]), env: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/), Value).default({}), package: z.object({ pluginId: z.string().max(64), digest: Hex64 }).optional() }),
  z.strictObject({ type: z.literal('http'), url: z.url().max(2_048), headers: z.record(HeaderName, Value).default({}), authorization: Authorization.optional() }),
  z.strictObject({ type: z.literal('sse'), url: z.url().max(2_048), headers: z.record(HeaderName, Value).default({}), authorization: Authorization.optional() }),
  z.strictObject({ type: z.literal('inmemory'), name: z.literal('echo') }),
]).meta({ id: 'Transport' });
export type Transport = z.output<typeof Transport>;

export const ServerSpec = z
  .strictObject({
    slug: Slug,
    projectId: ProjectId.default('default'),
    display: z.string().max(200).default(''),
    enabled: z.boolean().default(true),
    transport: Transport,
    instances: Instances.prefault({}),
    timeouts: Timeouts.prefault({}),
    /** Tools an administrator declares read-only; a server's own annotations are shown, never trusted. */
    readOnly: z.array(z.string().max(128)).max(1_000).default([]),
    /** The server is told that it may ask for completions of a model; whether it gets one, the agent’s policy says. */
    sampling: z.boolean().default(false),
    argumentsKept: z.enum(['full', 'redacted', 'digest']).default('redacted'),
    /** What the package of its plugin says of its tools: one that stands there as denied, or does not stand there, does not exist. Null: it says nothing. */
    toolPolicy: ToolPolicy.nullable().default(null),
    /** A tool whose description or schema becomes another is held back until a person accepts it. */
    holdChanges: z.boolean().default(false),
    ...demands,
    owner: Owner.default('user'),
    set: SetName.default(null),
  })
  .meta({ id: 'ServerSpec' });
export type ServerSpec = z.output<typeof ServerSpec>;

export const ServerState = z.enum(['disabled', 'idle', 'connecting', 'connected', 'degraded', 'failed', 'needs-auth']);
export const Server = ServerSpec.extend({
  id: Uuid,
  /** A person switched it off: neither its configuration nor its plugin switches it on again. */
  switchedOff: z.boolean().default(false),
  configGeneration: z.int().min(1),
  bindingHash: Hex64,
  state: ServerState,
  /** Why it is not connected, in one sentence without secrets. */
  reason: z.string().max(1_000).nullable(),
  catalogHash: Hex64.nullable(),
  /** Who says what its tools are: the server itself, or the package of its plugin as long as it was not started. */
  catalogFrom: z.enum(['server', 'package']).nullable().optional(),
  tools: z.int().min(0),
  /** Names that its tools would have and that belong to the platform, each with the name the tool is shown under instead. */
  refusedNames: z.array(z.object({ tool: z.string().max(128), name: z.string().max(200), reserved: z.string().max(64), shownAs: z.string().max(64), reason: z.string().max(500) })).max(400),
  stale: z.boolean(),
  /** Tools that are held back, each with the digest of what it is now. */
  held: z.array(z.object({ tool: z.string().max(128), digest: Hex64 })).max(1_000).default([]),
  /** Hashes of what else it offers, beside its tools. */
  offers: OfferHashes.optional(),
  authorization: ServerAuthorization.default({ state: 'none', reason: null, credentials: 'shared', issuer: null, authenticated: 0 }),
  runsAs: z.string().max(200).nullable(),
  protocol: z.string().max(20).nullable(),
  version: Version,
  createdAt: Instant,
  updatedAt: Instant,
}).meta({ id: 'Server' });
export type Server = z.output<typeof Server>;

export const Secret = z.object({ name: Slug, projectId: ProjectId, from: z.enum(['env', 'file', 'store']), key: z.string().max(500).nullable(), keyId: z.string().max(64).nullable(), set: SetName, version: Version, updatedAt: Instant }).meta({ id: 'Secret', description: 'A write-only record: its value is never returned' });
export type Secret = z.output<typeof Secret>;

/** The versions that ingress consults of one server. */
export const ServerHead = z
  .object({ serverId: Uuid, slug: Slug, projectId: ProjectId, owner: Owner, enabled: z.boolean(), configGeneration: z.int(), bindingHash: Hex64, catalogHash: Hex64.nullable(), /** The list was read with the subject's own credentials, and others see another. */ isOwn: z.boolean().optional(), state: ServerState, reason: z.string().nullable(), stale: z.boolean(), readOnly: z.array(z.string()), toolPolicy: ToolPolicy.nullable().optional(), scope: z.enum(['shared', 'per-agent', 'per-session']), offers: OfferHashes.optional(), ...demands })
  .meta({ id: 'ServerHead' });
export type ServerHead = z.output<typeof ServerHead>;

const serverUnknown = { status: 404, retry: 'never', message: 'There is no such server' } as const;
const notHeld = { status: 404, retry: 'never', message: 'No tool of this name is held back' } as const;
const secretUnknown = { status: 400, retry: 'never', message: 'The configuration names a secret that does not exist', data: z.object({ name: z.string() }) } as const;
/** Characters of a text that is signed: what a webhook carries, and room. */
const SIGNED_CHARACTERS = 256 * 1024;
const conflict = { status: 409, retry: 'never', message: 'It changed since you read it; read it again', data: z.object({ version: z.int() }) } as const;

const flowUnknown = { status: 404, retry: 'never', message: 'No sign-in waits for this answer: it was answered, cancelled or begun more than ten minutes ago' } as const;

/** What stands before a call may be sent: the pin, and the lease that the owner of the instance holds. */
const Pin = { serverId: Uuid, configGeneration: z.int().min(1), bindingHash: Hex64 };

export const mcpBroker = {
  putServer: rpc('ambit.rpc.mcp-broker.v1.server.put', {
    summary: 'Create or change a server by (project, slug); an identity change moves its generation',
    input: ServerSpec.extend({
      ifVersion: z.int().min(0).optional(),
      ifGeneration: z.int().min(0).optional().meta({ description: 'The generation that this one follows; 0 = only if there is none' }),
      packaged: z.array(JsonObject).max(1_000).optional().meta({ description: 'Its tools as its package lists them: it is started at its first call, and each tool is compared with the live one before it is called' }),
    }), output: Server,
    errors: {
      VERSION_CONFLICT: conflict,
      GENERATION_CONFLICT: { status: 409, retry: 'never', message: 'Another generation of this server was committed meanwhile; read it again', data: z.object({ configGeneration: z.int().min(0) }) },
      SLUG_TAKEN: { status: 409, retry: 'never', message: 'Another owner has a server of this name in the project', data: z.object({ owner: z.string() }) },
      SECRET_UNKNOWN: secretUnknown,
      URL_REFUSED: { status: 400, retry: 'never', message: 'This URL may not be called', data: z.object({ reason: z.string() }) },
      HEADER_REFUSED: { status: 400, retry: 'never', message: 'A header value may not hold line breaks or control characters', data: z.object({ header: z.string() }) },
    },
  }),
  getServer: rpc('ambit.rpc.mcp-broker.v1.server.get', { summary: 'One server by id or by (project, slug)', input: z.union([z.object({ id: Uuid }), z.object({ projectId: ProjectId, slug: Slug })]), output: Server, errors: { SERVER_UNKNOWN: serverUnknown }, idempotent: true }),
  listServers: rpc('ambit.rpc.mcp-broker.v1.server.list', { summary: 'Servers, a page at a time', input: z.object({ projectId: ProjectId.optional(), owner: Owner.optional(), set: Slug.optional(), ...PageInput }), output: page(Server), idempotent: true }),
  deleteServer: rpc('ambit.rpc.mcp-broker.v1.server.delete', { summary: 'Remove a server, stop its instances and move its owner’s fence', input: z.object({ id: Uuid }), output: z.object({ deleted: z.boolean() }), errors: { SERVER_UNKNOWN: serverUnknown, PLUGIN_OWNED: { status: 409, retry: 'never', message: 'A plugin contributes this server; disable the plugin instead, or switch the server off', data: z.object({ owner: Owner }) } }, timeoutMs: 20_000 }),
  testServer: rpc('ambit.rpc.mcp-broker.v1.server.test', { summary: 'Connect now, list, and say how it went', input: z.object({ id: Uuid }), output: Server, errors: { SERVER_UNKNOWN: serverUnknown }, timeoutMs: 60_000 }),

  getHeldTool: rpc('ambit.rpc.mcp-broker.v1.tool.held', { summary: 'What a tool that is held back was when it was accepted, and what it is now', input: z.object({ id: Uuid, tool: z.string().min(1).max(128) }), output: z.object({ tool: z.string(), digest: Hex64, before: ToolDefinition.nullable(), after: ToolDefinition }), errors: { SERVER_UNKNOWN: serverUnknown, TOOL_NOT_HELD: notHeld }, idempotent: true }),
  acceptTool: rpc('ambit.rpc.mcp-broker.v1.tool.accept', {
    summary: 'Accept what a tool that is held back is now, by the digest that was looked at', input: z.object({ id: Uuid, tool: z.string().min(1).max(128), digest: Hex64 }), output: Server,
    errors: { SERVER_UNKNOWN: serverUnknown, TOOL_NOT_HELD: notHeld, DEFINITION_MOVED: { status: 409, retry: 'never', message: 'The tool has become another once more; look at it again', data: z.object({ digest: Hex64 }) } },
  }),
  switchServer: rpc('ambit.rpc.mcp-broker.v1.server.switch', { summary: 'Switch a server off or on by hand, whoever its owner is; it stays off until it is switched on again', input: z.object({ id: Uuid, on: z.boolean() }), output: Server, errors: { SERVER_UNKNOWN: serverUnknown }, idempotent: true, timeoutMs: 20_000 }),
  startAuthorization: rpc('ambit.rpc.mcp-broker.v1.authorization.start', {
    summary: 'Begin a sign-in to a server for one subject; another one that is under way for it is cancelled',
    input: z.object({
      serverId: Uuid, subject: CredentialSubject,
      redirectUri: z.url().max(2_048),
      clientMetadataUrl: z.url().max(2_048).nullable().meta({ description: 'Where our client document is published; null where we are not reached over https' }),
      interactionId: Uuid.optional().meta({ description: 'The interaction that this sign-in answers' }),
    }),
    output: z.object({ url: z.url().max(8_192), issuer: z.string().max(2_048), expiresAt: Instant }),
    errors: {
      SERVER_UNKNOWN: serverUnknown,
      AUTHORIZATION_UNSUPPORTED: { status: 409, retry: 'never', message: 'There is no sign-in to this server', data: z.object({ reason: z.string() }) },
      SUBJECT_REFUSED: { status: 400, retry: 'never', message: 'This server does not take credentials of this subject', data: z.object({ credentials: z.string() }) },
    },
    timeoutMs: 30_000,
  }),
  describeAuthorization: rpc('ambit.rpc.mcp-broker.v1.authorization.describe', {
    summary: 'What a sign-in that waits for its answer is for',
    input: z.object({ state: z.string().max(500) }),
    output: z.object({ serverId: Uuid, slug: Slug, subject: CredentialSubject, issuer: z.string().max(2_048) }),
    errors: { FLOW_UNKNOWN: flowUnknown }, idempotent: true,
  }),
  finishAuthorization: rpc('ambit.rpc.mcp-broker.v1.authorization.finish', {
    summary: 'What the authorization server sent the person back with; taken once',
    input: z.object({ state: z.string().max(500), code: z.string().max(8_192).optional(), iss: z.string().max(2_048).optional(), error: z.string().max(500).optional() }),
    output: z.object({ serverId: Uuid, slug: Slug, subject: CredentialSubject, interactionId: Uuid.nullable() }),
    errors: {
      FLOW_UNKNOWN: flowUnknown,
      AUTHORIZATION_FAILED: { status: 400, retry: 'never', message: 'The sign-in failed; begin another one', data: z.object({ reason: z.string() }) },
    },
    timeoutMs: 30_000,
  }),
  listAuthorizations: rpc('ambit.rpc.mcp-broker.v1.authorization.list', { summary: 'Whose credentials a server has, and how they stand', input: z.object({ serverId: Uuid, ...PageInput }), output: page(Credential), errors: { SERVER_UNKNOWN: serverUnknown }, idempotent: true }),
  removeAuthorization: rpc('ambit.rpc.mcp-broker.v1.authorization.remove', { summary: 'Forget a subject’s credentials of a server and end what runs with them', input: z.object({ serverId: Uuid, subject: CredentialSubject }), output: z.object({ removed: z.boolean() }), errors: { SERVER_UNKNOWN: serverUnknown }, idempotent: true, timeoutMs: 20_000 }),
  erasePrincipal: rpc('ambit.rpc.mcp-broker.v1.principal.erase', { summary: 'Forget a principal’s credentials of every server and end what runs with them', input: z.object({ principal: z.string().max(200) }), output: z.object({ credentials: z.int().min(0) }), idempotent: true, timeoutMs: 20_000 }),

  putSecret: rpc('ambit.rpc.mcp-broker.v1.secret.put', {
    summary: 'Declare a secret, or set its value; rotating one restarts instances and moves no generation',
    input: z.object({ name: Slug, projectId: ProjectId.default('default'), from: z.enum(['env', 'file', 'store']), key: z.string().max(500).nullable().default(null), value: z.string().max(64 * 1024).optional(), set: SetName.default(null) }), output: Secret,
    errors: { SECRET_SOURCE: { status: 400, retry: 'never', message: 'env and file need a key; store takes a value', data: z.object({ reason: z.string() }) } }, idempotent: true,
  }),
  listSecrets: rpc('ambit.rpc.mcp-broker.v1.secret.list', { summary: 'Secrets by name, without their values', input: z.object({ projectId: ProjectId.optional(), set: Slug.optional(), ...PageInput }), output: page(Secret), idempotent: true }),
  deleteSecret: rpc('ambit.rpc.mcp-broker.v1.secret.delete', { summary: 'Remove a secret that no configuration names', input: z.object({ name: Slug, projectId: ProjectId }), output: z.object({ deleted: z.boolean() }), errors: { SECRET_IN_USE: { status: 409, retry: 'never', message: 'A server or webhook still refers to this secret', data: z.object({ servers: z.array(z.string()), webhooks: z.array(z.string()).optional() }) } } }),

  signWithSecret: rpc('ambit.rpc.mcp-broker.v1.secret.sign', {
    summary: 'Sign a text with a secret; answers the signature alone, because no value leaves its owner',
    input: z.object({ projectId: ProjectId, name: Slug, text: z.string().min(1).max(SIGNED_CHARACTERS) }),
    output: z.object({ signature: z.string().max(100).meta({ description: 'base64 of HMAC-SHA256 over the UTF-8 text; a value that begins with whsec_ is a key in base64, any other is the key itself' }) }),
    errors: { SECRET_UNKNOWN: secretUnknown, SECRET_UNREADABLE: { status: 409, retry: 'later', message: 'The secret is declared, and its value cannot be read', data: z.object({ reason: z.string() }) } }, idempotent: true,
  }),

  catalogueHeads: rpc('ambit.rpc.mcp-broker.v1.catalogue.heads', { summary: 'Versions of every server of a project, for ingress; asks no server', input: z.object({ projectId: ProjectId, limit: z.int().min(1).max(1_000).default(1_000), /** For whom: a server that takes everybody's own credentials may show each other tools. */ agentId: AgentId.optional(), principalId: z.string().max(200).optional() }), output: z.object({ epoch: z.int(), servers: z.array(ServerHead), mcpSkills: z.boolean().default(false).meta({ description: 'Skills of servers are switched on' }) }), idempotent: true }),
  cataloguePage: rpc('ambit.rpc.mcp-broker.v1.catalogue.page', {
    summary: 'The last good tools of one server, at most 256 KiB at a time', input: z.object({ serverId: Uuid, catalogHash: Hex64, offset: z.int().min(0).default(0) }),
    output: z.object({ tools: z.array(ToolDefinition), next: z.int().nullable() }), errors: { SERVER_UNKNOWN: serverUnknown, CATALOGUE_MOVED: { status: 409, retry: 'later', message: 'The catalogue changed; read the heads again' } }, idempotent: true,
  }),

  ensureInstance: rpc('ambit.rpc.mcp-broker.v1.instance.ensure.{serverId}', {
    summary: 'Make sure that one owner serves the instance; any replica answers',
    input: z.object({ configGeneration: z.int().min(1), bindingHash: Hex64, agentId: AgentId, sessionId: Uuid, /** For whom the call is: whose own credentials it carries where the server takes everybody's own. */ principalId: z.string().max(200).optional() }),
    output: z.object({ instanceId: Hex64, leaseRevision: z.int().min(1), callTimeoutMs: z.int(), onProgress: z.enum(['extend', 'ignore']), compares: z.boolean().optional().meta({ description: 'Calls say which definition of their tool was pinned: the server’s list comes from a package' }) }),
    errors: refusing('TARGET_CHANGED', 'SERVER_UNAVAILABLE', 'TOOL_GONE', 'AUTHORIZATION_REQUIRED'), idempotent: true, timeoutMs: 60_000,
  }),
  executeCall: rpc('ambit.rpc.mcp-broker.v1.call.execute.{instanceId}', {
    summary: 'One MCP tool call by the owner of the instance, under the gateway’s claim; the last gate compares pin and lease immediately before the effect',
    input: z.object({ ...Pin, leaseRevision: z.int().min(1), operationId: Hex64, gatewayId: Uuid, tool: z.string().min(1).max(128), arguments: JsonObject, callTimeoutMs: z.int().min(1_000).max(3_600_000), onProgress: z.enum(['extend', 'ignore']).default('ignore'), sessionId: Uuid.optional().meta({ description: 'Whose call it is: what a server asks back is asked of that session alone' }), definition: Hex64.optional().meta({ description: 'The definition of the tool that was pinned; where the live one is another, nothing is sent' }) }),
    /** `result` is the server's tools/call result untouched; over 256 KiB only `large` is set and the bytes are read by pages. */
    output: z.object({ result: JsonObject.optional(), large: z.object({ digest: Hex64, bytes: z.int(), isError: z.boolean() }).optional() }),
    errors: { STALE_LEASE: { status: 409, retry: 'later', message: 'Another owner serves this instance; ensure it again, nothing was sent' }, ...refusing('TARGET_CHANGED', 'SERVER_UNAVAILABLE', 'INDETERMINATE', 'CALL_TIMEOUT', 'RESULT_TOO_LARGE', 'TOOL_FAILED', 'TOOL_GONE', 'AUTHORIZATION_REQUIRED', 'CATALOG_DRIFT') },
    timeoutMs: 3_600_000,
  }),
  resultPage: rpc('ambit.rpc.mcp-broker.v1.call.result.{instanceId}', { summary: 'Bytes of a large result, kept by its owner for 60 s', input: z.object({ operationId: Hex64, offset: z.int().min(0) }), output: z.object({ data: z.string().max(350_000).meta({ description: 'base64 of at most 256 KiB' }), next: z.int().nullable() }), errors: { RESULT_GONE: { status: 410, retry: 'never', message: 'The result is no longer held; the call has happened' } }, idempotent: true }),
  revokeOwner: rpc('ambit.rpc.mcp-broker.v1.owner.revoke', { summary: 'Close an owner’s servers, abort their open calls, then answer', input: z.object({ owner: Owner, fence: z.int().min(1), remove: z.boolean().default(false) }), output: z.object({ closed: z.int().min(0) }), idempotent: true, timeoutMs: 20_000 }),

  ...mcpContent,
  ...mcpSkills,

  catalogueChanged: event('ambit.evt.mcp-broker.v1.catalogue.changed.{serverId}', { summary: 'A server’s catalogue, state or configuration moved', payload: z.object({ serverId: Uuid, slug: Slug, projectId: ProjectId, owner: Owner, configGeneration: z.int(), catalogHash: Hex64.nullable(), offers: OfferHashes.optional(), state: ServerState, epoch: z.int(), at: Instant }) }),
  listAudit: auditReading('mcp-broker'),
  auditAppended: auditEvent('mcp-broker'),

  cancelCall: signal('ambit.ctl.mcp-broker.v1.call.cancel.{instanceId}', { summary: 'Stop one call at the owner of its instance', payload: z.object({ operationId: Hex64, reason: z.string().max(200) }) }),
  closeInstance: signal('ambit.ctl.mcp-broker.v1.instance.close.{serverId}', { summary: 'Whoever owns instances of this server closes those of an older generation, or all', payload: z.object({ serverId: Uuid, keepGeneration: z.int().nullable(), /** Only what runs with the credentials of this subject. */ subject: CredentialSubject.optional(), /** Only this one of them. */ instanceId: Hex64.optional(), reason: z.string().max(200) }) }),
};
