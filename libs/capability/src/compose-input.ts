import type { AgentPreset, Exposure, Owner, Reason, ServerState, ToolDefinition, ToolEffect, ToolRegistration } from '@ambit/contracts';
import type { z } from 'zod';
import type { Filterable, Subject, SubjectField } from './filters.js';
import type { CataloguePolicy } from './policy.js';
import type { Access, ModelFacts, SkillOrigin, SnapshotRecord, Switches } from './snapshot.js';
import type { SessionKind } from './subagents.js';

/** What one owner answered, or that it could not: a source that failed takes nothing from the others. */
export type Source<T> =
  | {
      readonly state: 'ok';
      readonly items: readonly T[];
      /** Parts of the source that are missing, while the rest is whole. */
      readonly missing?: readonly { readonly name: string; readonly detail: string }[];
    }
  | { readonly state: 'failed'; readonly detail: string };

/** A tool of the platform itself, as its registration declares it. */
export interface BuiltinRegistration extends Filterable {
  readonly name: string;
  readonly version: number;
  readonly exposure: Exposure;
  readonly description: string;
  readonly inputSchema: ToolDefinition['inputSchema'];
  readonly outputSchema?: ToolDefinition['outputSchema'];
  readonly effect: ToolEffect;
  readonly access: Access;
  /** May overlap with other calls of its batch. */
  readonly parallel: boolean;
  /** The tool is there only while this skill is active in the session. */
  readonly requiresSkill?: string;
  /** The tool is there only while skills are switched on. */
  readonly needsSkills?: boolean;
  /** The tool is there only where a skill of the run has an enabled script, and a worker that brings `exec` can run it. */
  readonly needsScripts?: boolean;
  /** The tool is there only where a tool of the run is deferred. */
  readonly needsDeferred?: boolean;
}

export interface ServerTool extends Filterable {
  readonly definition: ToolDefinition;
  /** An administrator declared it so; the server's own word does not count. */
  readonly readOnly: boolean;
}

export interface ServerPrompt {
  readonly name: string;
  readonly description: string;
}

/** One server's last good catalogue. */
export interface ServerCatalogue extends Filterable {
  readonly serverId: string;
  readonly slug: string;
  readonly owner: Owner;
  readonly configGeneration: number;
  readonly bindingHash: string;
  /** Null: it was never listed with success. */
  readonly catalogHash: string | null;
  readonly enabled: boolean;
  readonly state: z.infer<typeof ServerState>;
  /** A refresh failed or has not ended yet: the list is the last good one. */
  readonly stale: boolean;
  readonly tools: readonly ServerTool[];
  readonly prompts: readonly ServerPrompt[];
  /** The closed list of a plugin's server: an undeclared tool is denied. Null: no such list. */
  readonly toolPolicy: Readonly<Record<string, 'allow' | 'ask' | 'deny'>> | null;
}

export type WorkerTool = Pick<
  ToolRegistration,
  'name' | 'description' | 'inputSchema' | 'outputSchema' | 'effect' | 'access' | 'parallel' | 'platforms' | 'scopes' | 'permissions'
>;

/** The tools that an agent's worker brought. Of several, a live one comes first, then the one with the highest epoch. */
export interface WorkerToolset {
  readonly agentId: string;
  readonly digest: string;
  readonly live: boolean;
  readonly epoch?: number;
  readonly tools: readonly WorkerTool[];
}

export interface EffectiveSkill extends Filterable {
  readonly name: string;
  readonly origin: SkillOrigin;
  readonly owner: Owner;
  readonly digest: string;
  readonly description: string;
  readonly enabled: boolean;
  /** Scripts that an administrator enabled, by path. */
  readonly scripts?: readonly string[];
  /** Of a server's skill: whose it is, where it stands, its whole path for names that clash, and whether a model may use it. */
  readonly serverId?: string;
  readonly uri?: string;
  readonly path?: string;
  readonly modelInvocable?: boolean;
}

export interface PluginState extends Filterable {
  readonly id: string;
  readonly version: string;
  readonly state: 'enabled' | 'disabled' | 'unavailable';
  /** The specialists that it brings. */
  readonly agents?: readonly AgentPreset[];
}

/** Everything that shapes one run's catalogue, each part from its owner. */
export interface CompositionInput {
  readonly agent: { readonly id: string; readonly kind: 'sdk' | 'acp' };
  /** The agent's own policy first, then each ancestor's. Null: it could not be read. */
  readonly policies: readonly (CataloguePolicy | null)[];
  readonly project: { readonly id: string; readonly workspaceId: string | null };
  readonly model: ModelFacts;
  readonly switches: Switches;
  readonly session: {
    readonly kind: SessionKind;
    /** Null: all that the policy allows. */
    readonly selectedSkills: readonly string[] | null;
    readonly activeSkills: readonly string[];
    /** Globs of the tools that a preset leaves; absent where the session is none's. */
    readonly onlyTools?: readonly string[];
    /** Deferred tools that the session has loaded, by the name that it sees. @default none */
    readonly loadedTools?: readonly string[];
  };
  readonly subject: Subject | null;
  readonly builtins: Source<BuiltinRegistration>;
  readonly servers: Source<ServerCatalogue>;
  readonly toolsets: Source<WorkerToolset>;
  readonly skills: Source<EffectiveSkill>;
  readonly plugins: Source<PluginState>;
  readonly knownAgents: readonly string[];
}

export type ReasonCode =
  | 'INCLUDED'
  | 'ACCESS_REFUSED'
  | 'AGENT_KIND'
  | 'ALIAS_TAKEN'
  | 'ALIAS_UNKNOWN'
  | 'DEFERRED'
  | 'DUPLICATE_NAME'
  | 'EXPOSURE_HIDDEN'
  | 'EXPOSURE_MISMATCH'
  | 'EXPOSURE_UNLISTED'
  | 'FILTERED_PERMISSION'
  | 'FILTERED_PLATFORM'
  | 'FILTERED_SCOPE'
  | 'NAME_RESERVED'
  | 'NOT_THIS_AGENT'
  | 'NOT_IN_PRESET'
  | 'NOTHING_DEFERRED'
  | 'PLUGIN_DISABLED'
  | 'PLUGIN_NOT_ALLOWED'
  | 'PLUGIN_POLICY_DENIED'
  | 'PLUGIN_UNAVAILABLE'
  | 'POLICY_UNREADABLE'
  | 'PRESET_NOT_ALLOWED'
  | 'SCHEMA_INVALID'
  | 'SCRIPTS_UNAVAILABLE'
  | 'SERVER_DEGRADED'
  | 'SERVER_DISABLED'
  | 'SERVER_NEEDS_AUTH'
  | 'SERVER_NOT_ALLOWED'
  | 'SKILL_DISABLED'
  | 'SKILL_NOT_ACTIVE'
  | 'SKILL_NOT_ALLOWED'
  | 'SKILL_NOT_SELECTED'
  | 'SKILL_UNKNOWN'
  | 'SLOT_INVALID'
  | 'SOURCE_FAILED'
  | 'SUBAGENT_UNAVAILABLE'
  | 'SUPERSEDED'
  | 'SWITCHED_OFF'
  | 'TOOL_DISABLED';

/** Why one candidate is in the record, or is not. Every candidate has exactly one; `name` is the name as the run sees it, or would have. */
export type CompositionReason = Omit<Reason, 'code'> & { readonly code: ReasonCode };

export interface Composition {
  readonly record: SnapshotRecord;
  readonly reasons: readonly CompositionReason[];
  /** What of the subject the filters read: a projection may be shared by subjects that are equal in these. */
  readonly consulted: readonly SubjectField[];
}
