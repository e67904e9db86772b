import { AgentId, Exposure, Hex64, JsonObject, Owner, ProjectId, Slug, Target, ToolAccess, ToolEffect, Uuid } from '@ambit/contracts';
import { z } from 'zod';
import { fingerprint } from './canonical.js';
import { sha256Hex } from './sha256.js';

export const SNAPSHOT_FORMAT = 'ambit.snapshot';
export const SNAPSHOT_SCHEMA_VERSION = 1;

/** What a tool reaches, which decides how a permission mode treats it. */
export type Access = z.infer<typeof ToolAccess>;

/** A tool that a run may see. The name is what the model says; `qualifiedName` differs only where the agent declared an alias. */
export const SnapshotTool = z.object({
  name: z.string().min(1).max(64),
  qualifiedName: z.string().min(1).max(64),
  exposure: Exposure,
  description: z.string(),
  inputSchema: JsonObject,
  outputSchema: JsonObject.nullable(),
  effect: ToolEffect,
  access: ToolAccess,
  /** May overlap with other calls of its batch; only ever true with the effect `read`. */
  parallel: z.boolean(),
  owner: Owner,
  target: Target,
  /** Its plugin wants a person to be asked; absent where it does not. */
  pluginVerdict: z.literal('ask').optional(),
});
export type SnapshotTool = z.output<typeof SnapshotTool>;

export const SnapshotDeferred = z.object({ name: z.string().min(1).max(64), description: z.string() });
export type SnapshotDeferred = z.output<typeof SnapshotDeferred>;

export const SkillOrigin = z.enum(['owned', 'plugin', 'builtin', 'mcp']);
export type SkillOrigin = z.infer<typeof SkillOrigin>;

export const SnapshotSkill = z.object({
  name: z.string().min(1).max(200),
  origin: SkillOrigin,
  owner: Owner,
  digest: Hex64,
  description: z.string(),
  /** Of a server's skill: which one, of which server. */
  mcp: z.object({ serverId: Uuid, uri: z.string().max(2_048) }).optional(),
  /** What of it may be run, by path; absent where nothing is. */
  scripts: z.array(z.string().max(200)).optional(),
});
export type SnapshotSkill = z.output<typeof SnapshotSkill>;

export const SnapshotPrompt = z.object({
  name: z.string().min(1).max(64),
  description: z.string(),
  owner: Owner,
  serverId: Uuid,
  configGeneration: z.int().min(1),
  bindingHash: Hex64,
  prompt: z.string(),
});
export type SnapshotPrompt = z.output<typeof SnapshotPrompt>;

export const SnapshotPlugin = z.object({ id: z.string().min(1).max(64), version: z.string().max(100) });
export const SnapshotServer = z.object({ serverId: Uuid, slug: Slug, owner: Owner, configGeneration: z.int().min(1), catalogHash: Hex64 });
/** Of a subagent that a plugin brings: whose it is, what it is told, and which tools it sees of its agent's. */
export const SnapshotPreset = z.object({ owner: Owner, instructions: z.string(), tools: z.array(z.string()).nullable() });
export type SnapshotPreset = z.output<typeof SnapshotPreset>;
export const SnapshotSubagent = z.object({ name: Slug, agent: AgentId, description: z.string(), preset: SnapshotPreset.optional() });
export const Switches = z.object({ skills: z.boolean(), mcp: z.boolean(), mcpSkills: z.boolean() });
export type Switches = z.output<typeof Switches>;

/** Facts of the model that may change the catalogue. Ambit calls no model: the name is handed through. */
export const ModelFacts = z.object({ name: z.string().max(200), vision: z.boolean() });
export type ModelFacts = z.output<typeof ModelFacts>;

/**
 * Everything one run may see, and nothing of what it may do: authority is read at dispatch. Two sessions with the same world share one record.
 * Lists are sorted by name, by code unit. Its id is the hash of its canonical JSON.
 */
export const SnapshotRecord = z.object({
  format: z.literal(SNAPSHOT_FORMAT),
  schemaVersion: z.literal(SNAPSHOT_SCHEMA_VERSION),
  agentId: AgentId,
  cataloguePolicyHash: Hex64,
  /** Where the run works: its workers and their tools belong to a workspace. A record of before has none. */
  project: z.object({ id: ProjectId, workspaceId: z.string().max(200).nullable().optional() }),
  model: ModelFacts,
  tools: z.array(SnapshotTool),
  /** Tools that the run could have and does not see whole until its session loads them; absent where there are none. */
  deferred: z.array(SnapshotDeferred).optional(),
  skills: z.array(SnapshotSkill),
  promptCommands: z.array(SnapshotPrompt),
  plugins: z.array(SnapshotPlugin),
  servers: z.array(SnapshotServer),
  /** `null`: this run may start none, whatever its policy lists. */
  subagents: z.array(SnapshotSubagent).nullable(),
  switches: Switches,
  reservedTableVersion: z.int().min(1),
});
export type SnapshotRecord = z.output<typeof SnapshotRecord>;

/** Why stored bytes are not the snapshot they were asked for as. */
export class SnapshotMismatch extends Error {
  override readonly name = 'SnapshotMismatch';
}

/** Reads a snapshot from its canonical text: the hash of the text as it came must be the fingerprint. Throws {@link SnapshotMismatch} otherwise. */
export function readSnapshot(canonicalText: string, expected: string): SnapshotRecord {
  const actual = sha256Hex(canonicalText);
  if (actual !== expected) throw new SnapshotMismatch(`the snapshot's bytes hash to ${actual}, not to ${expected}`);
  return SnapshotRecord.parse(JSON.parse(canonicalText));
}

/** Tells whether a record is the one that a fingerprint names. */
export function isSnapshot(record: SnapshotRecord, expected: string): boolean {
  return fingerprint(record) === expected;
}

/** The tool of that name in the record: what the mapping gate asks. */
export function toolOf(record: SnapshotRecord, name: string): SnapshotTool | null {
  return record.tools.find((tool) => tool.name === name) ?? null;
}

/** The owners that a record's tools, skills, prompts and servers came from: whose fences its run depends on. */
export function ownersOf(record: SnapshotRecord): string[] {
  const owners = [...record.tools, ...record.skills, ...record.promptCommands, ...record.servers].map((entry) => entry.owner);
  return [...new Set([...owners, ...record.plugins.map((plugin) => `plugin:${plugin.id}`)])].sort();
}
