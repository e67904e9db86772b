import { byCodeUnit } from '@ambit/capability';
import { ToolDefinition } from '@ambit/contracts';
import type { Prisma } from '@ambit/db';
import { catalogueHash } from '@ambit/mcp';
import { z } from 'zod';
import { acceptedOf, holdBack } from './domain/held-tools.js';
import { acceptedToolsOf, heldToolsOf, type ServerRow } from './server.view.js';

const Tools = z.array(ToolDefinition);

/** Puts tools that were held back among those that are shown, in the order of every list; gives what the server's row says of the list then. */
export async function showTools(
  transaction: Prisma.TransactionClient,
  { id, configGeneration }: Pick<ServerRow, 'id' | 'configGeneration'>,
  { tools, at }: { readonly tools: readonly ToolDefinition[]; readonly at: Date },
): Promise<{ readonly catalogHash: string; readonly tools: number }> {
  const key = { serverId_subject: { serverId: id, subject: 'shared' } };
  const standing = await transaction.brokerCatalogue.findUnique({ where: key });
  const others = standing === null ? [] : Tools.parse(JSON.parse(standing.tools));
  const names = new Set(tools.map(({ name }) => name));
  const all = [...others.filter(({ name }) => !names.has(name)), ...tools].sort((left, right) => byCodeUnit(left.name, right.name));
  const data = { catalogHash: catalogueHash(all), generation: configGeneration, tools: JSON.stringify(all), readAt: at };
  await transaction.brokerCatalogue.upsert({ where: key, create: { serverId: id, subject: 'shared', ...data }, update: data });
  return { catalogHash: data.catalogHash, tools: all.length };
}

/** What of a list that was read is held back. The list that stands was accepted where nobody has held back anything yet. */
export function partTools(
  row: ServerRow,
  before: { readonly generation: number; readonly tools: string } | null,
  tools: readonly ToolDefinition[],
) {
  const isOfThis = before?.generation === row.configGeneration;
  const standing = isOfThis ? Tools.parse(JSON.parse(before.tools)) : [];
  const known = acceptedToolsOf(row);
  const accepted = Object.keys(known).length === 0 ? acceptedOf(standing) : known;
  const parted = holdBack(tools, { accepted, shown: standing, held: heldToolsOf(row) });
  const stored = { acceptedTools: JSON.stringify(parted.accepted), heldTools: JSON.stringify(parted.held) };
  return { shown: parted.shown, stored, ...stored };
}
