import type { Exposure, ToolEffect } from '@ambit/contracts';
import type { Access } from './snapshot.js';

/** Moves by one with every change of the table: it is part of every snapshot. */
export const RESERVED_TABLE_VERSION = 2;

/** The workspace tool that runs commands; scripts of skills are run through it, and its rules hold for them too. */
export const COMMAND_TOOL = 'exec';

interface Reserved {
  readonly exposure: Exposure;
  /** Who may register the name: the platform alone, or (for tools that act in the worker's workspace) the agent's own worker. */
  readonly by: 'platform' | 'workspace';
  /** What a workspace tool of this name reaches and does, whoever brings it. */
  readonly reach?: { readonly access: Access; readonly effect: ToolEffect };
}

const platform = (exposure: Exposure, ...names: readonly string[]) =>
  names.map((name): [string, Reserved] => [name, { exposure, by: 'platform' }]);
const workspace = (access: Access, effect: ToolEffect, ...names: readonly string[]) =>
  names.map((name): [string, Reserved] => [name, { exposure: 'user-configurable', by: 'workspace', reach: { access, effect } }]);

/**
 * Every name that a built-in tool can ever have, whether it is enabled or not, with the one exposure it may be registered under.
 * Nothing else may take one of these names: not a server, a plugin, a worker, nor an alias.
 */
export const RESERVED_TABLE: ReadonlyMap<string, Reserved> = new Map([
  ...workspace('file', 'read', 'read', 'glob', 'grep', 'ls'),
  ...workspace('file', 'write', 'write', 'edit'),
  ...workspace('command', 'write', COMMAND_TOOL),
  // Looks after what `exec` was allowed to start in the same session, and reaches nothing else.
  ...workspace('session', 'write', 'process'),
  ...platform('user-configurable', 'question', 'update_plan'),
  ...platform('user-configurable', 'skill_list', 'skill_view', 'skill_run', 'skill_manage', 'skill_draft'),
  ...platform('system-model', 'tape_search', 'tape_context', 'subagent_orchestrator', 'artifact_read', 'tool_discover', 'tool_load'),
  ...platform('user-configurable', 'settings_open', 'settings_read', 'settings_write'),
  ...platform('diagnostic', 'tape_info', 'tape_anchors'),
  ...platform('runtime-only', 'tape_handoff'),
]);

/** The folded names of {@link RESERVED_TABLE}. */
export const RESERVED_NAMES: ReadonlySet<string> = new Set(RESERVED_TABLE.keys());

/** Families of built-in names: a name that begins so is reserved before its tool exists. */
export const RESERVED_PREFIXES: readonly string[] = ['tape_', 'settings_', 'ambit_'];

/** Whether a worker may register a workspace tool of the platform's so: under its own name a tool reaches what the platform says that it does. */
export function workspaceToolProblem(tool: { readonly name: string; readonly access: Access; readonly effect: ToolEffect }): boolean {
  const reach = RESERVED_TABLE.get(tool.name)?.reach;
  return reach !== undefined && (reach.access !== tool.access || reach.effect !== tool.effect);
}

/** Why a built-in may not be registered so; null where it may. An unlisted name is an error, never silently configurable. */
export function registrationProblem(name: string, exposure: Exposure): 'EXPOSURE_UNLISTED' | 'EXPOSURE_MISMATCH' | null {
  const reserved = RESERVED_TABLE.get(name);
  if (reserved === undefined) return 'EXPOSURE_UNLISTED';
  return reserved.exposure === exposure ? null : 'EXPOSURE_MISMATCH';
}
