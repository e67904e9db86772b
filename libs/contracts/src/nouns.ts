import { z } from 'zod';
import { nestedList } from './kit/nested-list.js';
import { storedText } from './kit/stored-text.js';

/** Nouns that more than one owner speaks of. A noun of one owner stands in that owner's file. */

export const Slug = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'lower-case letters, digits and hyphens, a letter or digit first, at most 63');
export const AgentId = Slug.meta({ id: 'AgentId', description: 'Id of an agent, unique in the installation' });
export const ProjectId = Slug.meta({ id: 'ProjectId', description: 'Id of a project' });
export const Uuid = z.uuid();
export const Hex64 = z.string().regex(/^[0-9a-f]{64}$/, '64 lower-case hexadecimal digits');
export const Instant = z.iso.datetime().meta({ description: 'UTC, ISO 8601' });

/** Who owns a slot. Set by the host, never by the author. */
export const Owner = z.string().max(200).regex(/^(builtin|user|plugin:[a-z0-9][a-z0-9.-]{0,63}|worker:[a-z0-9][a-z0-9-]{0,62})$/, 'builtin, user, plugin:<id> or worker:<agentId>');
export type Owner = z.infer<typeof Owner>;

export const Principal = z
  .object({
    id: storedText(z.string().min(1).max(200).regex(/^(user|app|worker|system|group):[^\s]+$/, 'user:<id>, app:<id>, worker:<id> or system:<id>')),
    kind: z.enum(['person', 'application', 'worker', 'system']),
    issuer: storedText(z.string().max(200)).default('local'),
    display: storedText(z.string().max(200)).default(''),
  })
  .meta({ id: 'Principal', description: 'Who something is for' });
export type Principal = z.output<typeof Principal>;

/** Through what a write came. */
export const Via = z.object({ kind: z.enum(['token', 'worker', 'apply', 'system']), id: z.string().min(1).max(200) }).meta({ id: 'Via' });
export type Via = z.output<typeof Via>;

/** From the narrowest to the widest. */
export const PermissionMode = z.enum(['default', 'auto_approve', 'full_access']);
export type PermissionMode = z.infer<typeof PermissionMode>;

export const Exposure = z.enum(['user-configurable', 'system-model', 'diagnostic', 'runtime-only']);
export type Exposure = z.infer<typeof Exposure>;

/** What a call may do to the world. MCP tools count as `write` unless an administrator declares them read-only. */
export const ToolEffect = z.enum(['read', 'write']);
export type ToolEffect = z.infer<typeof ToolEffect>;

export const JsonObject = z.record(z.string(), z.unknown());
export type JsonObject = z.infer<typeof JsonObject>;

const Prefixes = z.array(z.string().trim().min(1).max(1_000)).min(1).max(100);
/**
 * What a rule may say of one argument, found by its dotted path: a value it equals, a list it is one of, a command that begins with certain words, or a
 * path at or below certain folders.
 */
export const Condition = z.union([
  z.string(),
  z.number(),
  z.boolean(),
  z.array(z.union([z.string(), z.number(), z.boolean()])).min(1).max(100),
  z
    .strictObject({ begins: Prefixes })
    .meta({ description: 'A shell command. An allowing rule holds where everything that it starts begins with the words of one of these; a denying or asking rule where anything may' }),
  z
    .strictObject({ under: Prefixes })
    .meta({ description: 'A path, as the worker resolved it in the workspace. An allowing rule holds where all of the call’s paths stand at or below one of these folders; a denying or asking rule where any may' }),
]);
export type Condition = z.output<typeof Condition>;

/** One rule of an agent's policy. Deny beats ask beats allow, whatever their order. */
export const Rule = z
  .object({
    decision: z.enum(['deny', 'ask', 'allow']),
    tool: z.string().min(1).max(128).meta({ description: 'Glob over the tool name; * matches any run of characters' }),
    when: z.record(z.string().max(200), Condition).default({}),
    approvers: z.array(z.string().max(200)).max(50).default([]).meta({ description: '`requester`, `user:<id>` or `group:<id>`; empty = anyone entitled to approve' }),
    not: z.literal('requester').nullable().default(null),
    expiresMs: z.int().min(1_000).max(30 * 86_400_000).nullable().default(null),
  })
  .meta({ id: 'Rule' });
export type Rule = z.output<typeof Rule>;

/** `null` = all, `[]` = none, names. Over HTTP and in yaml these are `all`, `none` and a list. */
export const NameList = z.array(z.string().min(1).max(200)).max(1_000).nullable();
export type NameList = z.output<typeof NameList>;

export const Limits = z
  .object({
    runsAtOnce: z.int().min(1).max(10_000).default(100),
    callsPerRun: z.int().min(1).max(10_000).default(128),
    callsPerMinute: z.int().min(1).max(1_000_000).default(6_000),
  })
  .meta({ id: 'Limits' });
export type Limits = z.output<typeof Limits>;

const ONE_VALUE = '[^,()\\s](?:[^,()]*[^,()\\s])?';
/** What a message and its sender must have. Values are alternatives; a permit that names nobody, or that nothing reads, is refused where it is registered. */
export const Permit = z
  .string()
  .max(200)
  .regex(
    new RegExp(
      `^\\s*(?:(?:adapter|user|role)\\([^()]*[^\\s,()][^()]*\\)|(?:private|group|channel)\\([^()]*\\)|platform\\([\\s,]*${ONE_VALUE}\\s*,[\\s,]*${ONE_VALUE}[\\s,]*\\))\\s*$`,
    ),
    'adapter(…), private|group|channel(…), user(…), role(…) or platform(adapter, permit)',
  )
  .meta({ id: 'Permit' });

/** What a capability of any kind may demand of the message that a run answers. Missing and empty demand nothing. */
export const demands = {
  platforms: z.array(z.string().max(100)).max(20).optional().meta({ description: 'Adapters, one of which the message came through' }),
  scopes: z.array(z.enum(['private', 'group', 'channel'])).max(3).optional().meta({ description: 'Kinds of scene, one of which it came from' }),
  permissions: z.array(Permit).max(20).optional().meta({ description: 'Permits, all of which must hold' }),
};

export const SubagentSlot = z.object({ agent: z.union([z.literal('self'), AgentId]), servers: NameList.optional(), description: z.string().max(200).default(''), ...demands });

/** Which presets of plugins an agent may start as subagents: by globs over their names. Denying beats allowing, and what none names is denied. */
const Presets = z
  .record(z.string().min(1).max(128), z.enum(['allow', 'deny']))
  .refine((globs) => Object.keys(globs).length <= 100, 'at most a hundred globs')
  .default({});

/** A specialist that a plugin brings: the agent that starts it works as it, in a session of its own. It never takes a message from outside. */
export const AgentPreset = z
  .object({
    name: Slug,
    description: z.string().max(200).default(''),
    instructions: z.string().max(16 * 1024).default(''),
    tools: z.array(z.string().min(1).max(128)).max(200).nullable().default(null).meta({ description: 'Globs: it sees no other tools of those that its agent has; null = it says nothing of them' }),
    ...demands,
  })
  .meta({ id: 'AgentPreset' });
export type AgentPreset = z.output<typeof AgentPreset>;

/** What servers get that ask for something back while they work on the agent's calls. Questions to a person need no permission: the person gives it. */
export const ServerRequests = z
  .object({
    sampling: z.enum(['deny', 'ask']).default('deny').meta({ description: 'ask: a completion that a server wants is an interaction, answered by whoever can' }),
    roots: z.array(z.string().regex(/^file:\/\/\/\S{0,2000}$/)).max(16).default([]).meta({ description: 'file:// addresses; {workspaceId} in one stands for the session’s workspace' }),
  })
  .meta({ id: 'ServerRequests' });
export type ServerRequests = z.output<typeof ServerRequests>;

/** What an agent may use. A policy that cannot be read allows nothing. */
export const Policy = z
  .object({
    mode: PermissionMode.default('default'),
    rules: z.array(Rule).max(500).default([]),
    servers: NameList.default([]),
    plugins: NameList.default([]),
    skills: NameList.default([]),
    disabledTools: z.array(z.string().max(128)).max(500).default([]),
    /** Globs of tools that a session sees by name alone until it loads them; what is built in is never one of them. */
    deferredTools: z.array(z.string().min(1).max(128)).max(100).default([]),
    aliases: z.record(z.string().regex(/^[A-Za-z0-9_-]{1,64}$/), z.string().max(128)).default({}),
    subagents: z.record(Slug, SubagentSlot).default({}),
    presets: Presets,
    limits: Limits.prefault({}),
    whileBusy: z.enum(['queue', 'refuse', 'steer']).default('queue'),
    serverRequests: ServerRequests.optional(),
  })
  .meta({ id: 'Policy' });
export type Policy = z.output<typeof Policy>;

/** Which inbound messages reach an agent. Fields of a rule all hold; an agent's rules are alternatives. */
/** A place's id as its platform writes it; a number counts as its text. */
export const SceneId = z.union([z.string().max(200), z.int().transform(String)], 'write a text of at most 200 characters, or a whole number');

export const MatchRule = z
  .object({
    adapter: z.string().min(1).max(100).optional(),
    endpoint: z.string().min(1).max(200).optional(),
    scene: z.enum(['private', 'group', 'channel']).optional(),
    sceneId: SceneId.refine((id) => id !== '', 'an empty id is no place').optional(),
    hasMedia: z.array(z.enum(['image', 'audio', 'video', 'text'])).max(4).optional(),
    contentContains: z.string().min(1).max(500).optional(),
  })
  .refine((rule) => Object.values(rule).some((value) => value !== undefined), 'a match rule needs at least one field')
  .meta({ id: 'MatchRule' });
export type MatchRule = z.output<typeof MatchRule>;

/** Match rules of a document; what is stored and answered of them is flat. */
export const matchRules = <T extends z.ZodType>(rule: T) => nestedList(rule, 100);

/** A tool as its server or registration defines it; unknown fields of a server's definition survive in `extra`. */
export const ToolDefinition = z
  .object({
    name: z.string().min(1).max(128),
    title: z.string().max(500).optional(),
    description: z.string().max(64 * 1024).default(''),
    inputSchema: JsonObject,
    outputSchema: JsonObject.optional(),
    annotations: JsonObject.optional(),
    extra: JsonObject.optional(),
  })
  .meta({ id: 'ToolDefinition' });
export type ToolDefinition = z.output<typeof ToolDefinition>;

/** The pinned target of a tool in a snapshot: what will run, not only of which kind. */
export const Target = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('builtin'),
    id: z.string().max(128),
    version: z.int().min(1),
    /** Of a script that waits for a decision: the hash of what a worker prepared. A snapshot’s target has none. */
    prepared: Hex64.optional(),
  }),
  z.object({ kind: z.literal('mcp'), serverId: Uuid, configGeneration: z.int().min(1), bindingHash: Hex64, tool: z.string().max(128) }),
  z.object({
    kind: z.literal('worker'),
    agentId: AgentId,
    toolsetDigest: Hex64,
    tool: z.string().max(128),
    /** Of a call that waits for a decision: the hash of what its worker prepared. A snapshot’s target has none. */
    prepared: Hex64.optional(),
  }),
]);
export type Target = z.output<typeof Target>;

export const Version = z.int().min(1).meta({ description: 'Moves by one with every change; send it back as ifVersion to change only what was seen' });
export const SetName = Slug.nullable().meta({ description: 'The ambit.yaml set that applied this, if one did' });
export const RetentionClass = z.enum(['messages', 'arguments', 'artifacts', 'snapshots', 'audit']);

/** Pages: `cursor` is opaque; absent in the answer = the end. */
export const PageInput = { cursor: z.string().max(500).optional(), limit: z.int().min(1).max(200).default(50) };
export const page = <T extends z.ZodType>(item: T) => z.object({ items: z.array(item), cursor: z.string().optional() });

/** A failure carried inside a result. */
export const FaultBodySchema = z.object({ code: z.string(), message: z.string(), data: z.unknown().optional() }).meta({ id: 'FaultBody' });
