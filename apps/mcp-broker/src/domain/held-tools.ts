import { digestOf, RECORD_BOUNDS } from '@ambit/capability';
import { Hex64, ToolDefinition } from '@ambit/contracts';
import { z } from 'zod';

/** A tool whose definition is another than the one that was accepted. */
export const HeldTool = z.object({ tool: z.string(), digest: Hex64, before: ToolDefinition.nullable(), after: ToolDefinition });
export type HeldTool = z.output<typeof HeldTool>;
export const HeldTools = z.array(HeldTool);
/** The digest of the definition that was accepted, by tool. */
export const Accepted = z.record(z.string(), Hex64);
export type Accepted = z.output<typeof Accepted>;

/** What a person accepts of a tool: all that a model is told of it. */
export function toolDigest({ name, description, inputSchema, outputSchema }: ToolDefinition): string {
  return digestOf({ name, description, inputSchema, outputSchema: outputSchema ?? null }, RECORD_BOUNDS);
}

export const acceptedOf = (tools: readonly ToolDefinition[]): Accepted =>
  Object.fromEntries(tools.map((tool) => [tool.name, toolDigest(tool)]));

/** Parts a list that was read into what is shown and what waits for a person. A tool that was never seen before is accepted as it comes. */
export function holdBack(
  tools: readonly ToolDefinition[],
  known: { readonly accepted: Accepted; readonly shown: readonly ToolDefinition[]; readonly held: readonly HeldTool[] },
): { readonly shown: ToolDefinition[]; readonly held: HeldTool[]; readonly accepted: Accepted } {
  const accepted = new Map(Object.entries(known.accepted));
  const shown: ToolDefinition[] = [];
  const held: HeldTool[] = [];
  for (const tool of tools) {
    const digest = toolDigest(tool);
    const isAccepted = accepted.get(tool.name) === undefined || accepted.get(tool.name) === digest;
    if (isAccepted) {
      accepted.set(tool.name, digest);
      shown.push(tool);
      continue;
    }
    const before = known.shown.find(({ name }) => name === tool.name) ?? known.held.find((one) => one.tool === tool.name)?.before ?? null;
    held.push({ tool: tool.name, digest, before, after: tool });
  }
  return { shown, held, accepted: Object.fromEntries(accepted) };
}
