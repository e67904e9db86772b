import { excessOf } from './bounds.js';

/** A tool exactly as its server describes it; fields this package does not know survive. */
export type McpTool = Readonly<Record<string, unknown>> & { readonly name: string; readonly inputSchema: Readonly<Record<string, unknown>> };

/** Why something of a server's list is not in the catalogue, as one sentence. */
export interface Diagnostic {
  readonly tool?: string;
  readonly message: string;
}

const NAME_CHARACTERS = 128;
const DESCRIPTION_CHARACTERS = 64 * 1024;

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isTool(value: Record<string, unknown>): value is Record<string, unknown> & McpTool {
  return typeof value['name'] === 'string' && isRecord(value['inputSchema']);
}

/** Keeps the tools that are whole and within bounds, in name order; says of every other one why it is left out. */
export function admitTools(listed: readonly unknown[]): { readonly tools: readonly McpTool[]; readonly diagnostics: readonly Diagnostic[] } {
  const tools = new Map<string, McpTool>();
  const diagnostics: Diagnostic[] = [];
  for (const item of listed) {
    if (!isRecord(item) || typeof item['name'] !== 'string' || item['name'] === '') {
      diagnostics.push({ message: 'An entry of the tool list has no name and is left out' });
      continue;
    }
    const name = item['name'];
    const problem = problemOf(item, name, tools.has(name));
    if (problem !== undefined) diagnostics.push({ tool: name.slice(0, NAME_CHARACTERS), message: problem });
    else if (isTool(item)) tools.set(name, item);
  }
  return { tools: [...tools.values()].sort((a, b) => (a.name < b.name ? -1 : 1)), diagnostics };
}

function problemOf(item: Record<string, unknown>, name: string, isKnown: boolean): string | undefined {
  if (name.length > NAME_CHARACTERS) return `The name of the tool "${name.slice(0, NAME_CHARACTERS)}…" is longer than ${NAME_CHARACTERS} characters; it is left out`;
  if (isKnown) return `The tool "${name}" is listed twice; the first one stands`;
  const excess = excessOf(item);
  if (excess !== undefined) return `The tool "${name}" ${excess}; it is left out`;
  if (!isTool(item)) return `The tool "${name}" has no input schema that is an object; it is left out`;
  const description = item['description'];
  if (typeof description === 'string' && description.length > DESCRIPTION_CHARACTERS) return `The description of the tool "${name}" is longer than ${DESCRIPTION_CHARACTERS} characters; it is left out`;
  return undefined;
}
