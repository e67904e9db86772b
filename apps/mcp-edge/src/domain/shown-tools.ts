import { byCodeUnit, type SnapshotRecord, type SnapshotTool } from '@ambit/capability';
import type { EdgeNames, ToolDefinition } from '@ambit/contracts';
import type { Json } from './json-rpc.js';

/** Definitions as servers gave them, by server and tool. */
export type Definitions = ReadonlyMap<string, ReadonlyMap<string, ToolDefinition>>;

export interface ShownTool {
  /** What the client calls it. */
  readonly name: string;
  readonly tool: SnapshotTool;
  readonly definition: Json;
}

/** Whose names a client sees, and of which server they come first where several have the same. */
export interface Naming {
  readonly names: EdgeNames;
  readonly first: string | undefined;
}

/**
 * The tools of a snapshot as a client is shown them, by name. Plain names are the servers' own, where no other tool has them; of two that share
 * one, that of the server which comes first keeps it, and where none does both keep their qualified names.
 */
export function shownTools(record: SnapshotRecord, definitions: Definitions, naming: Naming): ShownTool[] {
  const slugs = new Map(record.servers.map(({ serverId, slug }) => [serverId, slug]));
  const visible = record.tools.filter(({ exposure }) => exposure === 'user-configurable' || exposure === 'system-model');
  const plain = naming.names === 'plain' ? plainNames(visible, { slugs, first: naming.first }) : new Map<SnapshotTool, string>();
  return visible
    .map((tool) => {
      const name = plain.get(tool) ?? tool.name;
      return { name, tool, definition: { ...definitionOf(tool, definitions), name } };
    })
    .sort((left, right) => byCodeUnit(left.name, right.name));
}

function plainNames(
  tools: readonly SnapshotTool[],
  { slugs, first }: { readonly slugs: ReadonlyMap<string, string>; readonly first: string | undefined },
): Map<SnapshotTool, string> {
  const claims = new Map<string, SnapshotTool[]>();
  for (const tool of tools) {
    // An alias is the name that the agent's administrator gave it.
    if (tool.target.kind !== 'mcp' || tool.name !== tool.qualifiedName) continue;
    claims.set(tool.target.tool, [...(claims.get(tool.target.tool) ?? []), tool]);
  }
  const taken = new Set(tools.map(({ name }) => name));
  const names = new Map<SnapshotTool, string>();
  for (const [name, rivals] of claims) {
    const preferred = rivals.find(({ target }) => target.kind === 'mcp' && first !== undefined && slugs.get(target.serverId) === first);
    const winner = rivals.length === 1 ? rivals[0] : preferred;
    if (winner !== undefined && !taken.has(name)) names.set(winner, name);
  }
  return names;
}

/** As its server wrote it, unknown fields and all; what the snapshot says of it where that is not to be had. */
function definitionOf(tool: SnapshotTool, definitions: Definitions): Json {
  const { target, description, inputSchema, outputSchema } = tool;
  const given = target.kind === 'mcp' ? definitions.get(target.serverId)?.get(target.tool) : undefined;
  if (given === undefined) return { description, inputSchema, ...(outputSchema === null ? {} : { outputSchema }) };
  const { extra, name: _name, ...known } = given;
  return { ...known, ...extra };
}
