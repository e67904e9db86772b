import {
  worldKey,
  type CompositionInput,
  type CompositionVersions,
  type EffectiveSkill,
  type PluginState,
  type ServerCatalogue,
  type Source,
  type Subject,
  type Switches,
  type WorkerToolset,
} from '@ambit/capability';
import {
  type Agent,
  type mcpBroker,
  type Output,
  type pluginRegistry,
  type Principal,
  type Session,
  type ServerHead,
  type ServerSkill,
  type skillStore,
  type ToolDefinition,
  type toolGateway,
} from '@ambit/contracts';
import { readablePolicy } from './unreadable-policy.js';

export type Tools = Output<typeof toolGateway.listTools>;
export type Heads = Output<typeof mcpBroker.catalogueHeads>;
export type Skills = Output<typeof skillStore.effectiveSkills>;
export type Slots = Output<typeof pluginRegistry.pluginSlots>;

/** What one owner answered, or why it did not. */
export type Answered<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly detail: string };

/** The agent of a session above, with what its policy leaves to the slot that the session below fills. */
export interface Ancestor extends Agent {
  readonly slot: string | null;
}

/** For whom a run is composed. A session is absent where only the agent is asked about. */
export interface Whose {
  readonly agent: Agent;
  /** The agents of the sessions above, nearest first. */
  readonly ancestors: readonly Ancestor[];
  readonly session:
    | (Pick<Session, 'id' | 'kind' | 'skills' | 'workspaceId' | 'version'> & {
        readonly slotTools: readonly string[] | null;
        readonly loadedTools: readonly string[];
      })
    | null;
  readonly subject: Subject | null;
  /** Whose own lists of servers count; null where only the agent is asked about. */
  readonly principalId: string | null;
  readonly activeSkills: readonly string[];
}

/** The versions that decide whether the world is the one that was composed before. */
export interface Seen {
  readonly tools: Answered<Tools>;
  readonly heads: Answered<Heads>;
  readonly skills: Answered<Skills>;
  readonly slots: Answered<Slots>;
  readonly knownAgents: readonly { readonly id: string; readonly version: number }[];
}

const sessionOf = ({ session, activeSkills }: Whose): CompositionInput['session'] => ({
  kind: session?.kind ?? 'regular',
  selectedSkills: session?.skills ?? null,
  activeSkills: [...activeSkills],
  ...(session === null || session.slotTools === null ? {} : { onlyTools: [...session.slotTools].sort() }),
  ...(session === null || session.loadedTools.length === 0 ? {} : { loadedTools: [...session.loadedTools] }),
});

const frame = (whose: Whose, switches: Switches) => ({
  agent: { id: whose.agent.id, kind: whose.agent.kind },
  project: { id: whose.agent.projectId, workspaceId: whose.session?.workspaceId ?? null },
  model: { name: whose.agent.model, vision: false },
  switches,
  session: sessionOf(whose),
});

/** What identifies a world: every version that was consulted. */
export function versionsOf(whose: Whose, seen: Seen, switches: Switches): CompositionVersions {
  const { tools, heads, skills, slots } = seen;
  const answers = {
    'tool-gateway.builtin.tools': tools,
    'mcp-broker.user.servers': heads,
    'skill-store.user.skills': skills,
    'plugin-registry.user.plugins': slots,
  };
  const epochs: Record<string, number> = {};
  const failed: string[] = [];
  for (const [name, answer] of Object.entries(answers)) {
    if (answer.ok) epochs[name] = answer.value.epoch;
    else failed.push(name);
  }
  // Epochs say nothing of whose list was told: one that is a subject's own stands by its hash.
  if (heads.ok)
    for (const { serverId, catalogHash, isOwn } of heads.value.servers)
      if (isOwn === true && catalogHash !== null) epochs[`mcp-broker.${serverId}.${catalogHash}`] = 0;
  // Other agents shape a catalogue through subagents alone; each one's version stands by its own name.
  for (const { id, version } of seen.knownAgents) epochs[`session-service.${id}.agent`] = version;
  return {
    ...frame(whose, switches),
    policies: [
      { agentId: whose.agent.id, version: versionOf(whose.agent) },
      // Two slots of one parent may narrow differently.
      ...whose.ancestors.map((ancestor) => ({
        agentId: ancestor.slot === null ? ancestor.id : `${ancestor.id} ${ancestor.slot}`,
        version: versionOf(ancestor),
      })),
    ],
    epochs,
    agentsVersion: seen.knownAgents.length,
    failed,
  };
}

/** Below every version where the policy cannot be read: what was composed while it could is nothing to go by. */
const versionOf = (agent: Agent): number => (readablePolicy(agent) === null ? UNREADABLE_VERSION : agent.version);
const UNREADABLE_VERSION = -1;

export const keyOfWorld = (versions: CompositionVersions): string => worldKey(versions);

/** Who calls for skills: a model in its run, or a person by name. Some skills are for the one and not for the other. */
export type Audience = 'model' | 'person';

/** The inputs of the composition, read off what each owner answered. */
export function compositionOf(
  whose: Whose,
  seen: Seen,
  rest: {
    readonly switches: Switches;
    readonly catalogues: ReadonlyMap<string, readonly ToolDefinition[]>;
    readonly skills: ReadonlyMap<string, readonly ServerSkill[]>;
    /** @default 'model' */
    readonly audience?: Audience;
  },
): CompositionInput {
  const { audience = 'model' } = rest;
  return {
    ...frame(whose, rest.switches),
    policies: [whose.agent, ...whose.ancestors].map(readablePolicy),
    subject: whose.subject,
    builtins: builtinsOf(seen.tools),
    toolsets: source(seen.tools, ({ toolsets }) => toolsets.map(toolsetOf)),
    servers: source(seen.heads, ({ servers }) => servers.map((head) => serverOf(head, rest.catalogues.get(head.serverId)))),
    skills: withServerSkills(
      source(seen.skills, ({ skills }) => skills.map((skill) => skillOf(skill, audience))),
      seen,
      { skills: rest.skills, audience },
    ),
    plugins: source(seen.slots, ({ plugins }) =>
      plugins.map(({ id, version, state, agents }): PluginState => ({ id, version, state, agents })),
    ),
    knownAgents: seen.knownAgents.map(({ id }) => id),
  };
}

function source<A, T>(answer: Answered<A>, items: (value: A) => readonly T[]): Source<T> {
  return answer.ok ? { state: 'ok', items: items(answer.value) } : { state: 'failed', detail: answer.detail };
}

function builtinsOf(answer: Seen['tools']): CompositionInput['builtins'] {
  if (!answer.ok) return { state: 'failed', detail: answer.detail };
  const missing = answer.value.unavailable.map(({ group, detail }) => ({ name: group, detail }));
  return { state: 'ok', items: answer.value.tools, missing };
}

/** The gateway lists toolsets from the oldest to the newest. */
const toolsetOf = ({ agentId, digest, live, tools }: Tools['toolsets'][number], index: number): WorkerToolset => ({
  agentId,
  digest,
  live,
  epoch: index + 1,
  tools,
});

/** A server that is away keeps offering its last good list: whether it can be reached is found out by calling it. */
function serverOf(head: ServerHead, tools: readonly ToolDefinition[] | undefined): ServerCatalogue {
  const { serverId, slug, owner, configGeneration, bindingHash, catalogHash, enabled, state, stale, platforms, scopes, permissions } = head;
  const readOnly = new Set(head.readOnly);
  return {
    ...{ serverId, slug, owner, configGeneration, bindingHash, catalogHash, enabled, state, stale },
    ...{ platforms: platforms ?? null, scopes: scopes ?? null, permissions: permissions ?? null },
    tools: (tools ?? []).map((definition) => ({ definition, readOnly: readOnly.has(definition.name) })),
    prompts: [],
    toolPolicy: head.toolPolicy ?? null,
  };
}

function skillOf(skill: Skills['skills'][number], audience: Audience): EffectiveSkill {
  const { name, origin, owner, digest, description, platforms, scopes, permissions, scripts } = skill;
  return {
    name,
    origin,
    owner,
    digest,
    description,
    enabled: audience === 'model' || skill.userInvocable,
    scripts,
    platforms,
    scopes: scopes ?? null,
    permissions: permissions ?? null,
  };
}

/** Skills of servers are there also while the store of owned ones is away. */
function withServerSkills(
  owned: Source<EffectiveSkill>,
  { heads }: Seen,
  { skills, audience }: { readonly skills: ReadonlyMap<string, readonly ServerSkill[]>; readonly audience: Audience },
): Source<EffectiveSkill> {
  const remote = (heads.ok ? heads.value.servers : []).flatMap((head) =>
    (skills.get(head.serverId) ?? []).map((skill) => serverSkillOf(head, { skill, audience })),
  );
  if (owned.state === 'ok') return { ...owned, items: [...owned.items, ...remote] };
  return remote.length === 0 ? owned : { state: 'ok', items: remote, missing: [{ name: 'owned', detail: owned.detail }] };
}

function serverSkillOf(
  { serverId, owner }: ServerHead,
  { skill, audience }: { readonly skill: ServerSkill; readonly audience: Audience },
): EffectiveSkill {
  const { name, digest, description, uri, path } = skill;
  const modelInvocable = audience === 'model' ? skill.modelInvocable : skill.userInvocable;
  return { name, origin: 'mcp', owner, digest, description, enabled: true, serverId, uri, path, modelInvocable };
}

/** Adapters through which programs speak: nothing that demands a place or a platform is for them. */
const WITHOUT_PLACE: ReadonlySet<string> = new Set(['http', 'mcp', 'schedule']);

/** What the filters may read of a message and its sender. */
export function subjectOf(message: {
  readonly adapter: string;
  readonly scene: 'private' | 'group' | 'channel';
  readonly sceneId: string;
  readonly principal: Principal;
  readonly roles: readonly string[];
}): Subject | null {
  const { adapter, scene, sceneId, principal, roles } = message;
  if (WITHOUT_PLACE.has(adapter)) return null;
  // An application's id never passes for a person's.
  const userId = principal.kind === 'person' ? principal.id.replace(/^user:/, '') : principal.id;
  return { adapter, scene, sceneId, userId, roles: [...roles], platformPermits: [] };
}
