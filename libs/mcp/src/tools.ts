import { byCodeUnit, canonicalJson, digestOf, NotCanonical, RECORD_BOUNDS } from '@ambit/capability';
import type { ToolDefinition } from '@ambit/contracts';
import { mirroredParameters } from './parameter-headers.js';
import { isRecord } from './records.js';

/** Why something of a server's list is not in the catalogue, as one sentence. */
export interface Diagnostic {
  readonly tool: string;
  readonly message: string;
}

const NAME_CHARACTERS = 128;
const TITLE_CHARACTERS = 500;
const DESCRIPTION_CHARACTERS = 64 * 1024;

type Json = Record<string, unknown>;

/**
 * Keeps the tools that are whole and within bounds, in name order; says of every other one why it is left out.
 * Budgets are per tool: one fat tool never costs the others their place.
 */
export function admitTools(
  listed: readonly unknown[],
  /** Whether arguments have to be mirrored into headers as tools declare it, so that one which declares it wrongly cannot be called. */
  { mirrors }: { readonly mirrors: boolean } = { mirrors: false },
): {
  readonly tools: readonly ToolDefinition[];
  readonly diagnostics: readonly Diagnostic[];
} {
  const tools = new Map<string, ToolDefinition>();
  const diagnostics: Diagnostic[] = [];
  for (const item of listed) {
    const name = isRecord(item) && typeof item['name'] === 'string' ? item['name'] : '';
    const whole = isRecord(item) ? definitionOf(item, name) : 'is no object';
    const tool = mirrors && typeof whole !== 'string' ? mirrorable(whole) : whole;
    if (typeof tool === 'string')
      diagnostics.push({
        tool: name.slice(0, NAME_CHARACTERS),
        message: `The tool "${name.slice(0, NAME_CHARACTERS)}" ${tool}; it is left out`,
      });
    else if (tools.has(name)) diagnostics.push({ tool: name, message: `The tool "${name}" is listed twice; the first one stands` });
    else tools.set(name, tool);
  }
  return { tools: [...tools.values()].sort((left, right) => byCodeUnit(left.name, right.name)), diagnostics };
}

/** The definition, fields that we do not know kept in `extra`; or what is wrong with it, as the end of a sentence. */
function definitionOf(item: Json, name: string): ToolDefinition | string {
  if (name === '') return 'has no name';
  if (name.length > NAME_CHARACTERS) return `has a name longer than ${NAME_CHARACTERS} characters`;
  try {
    canonicalJson(item);
  } catch (error) {
    if (error instanceof NotCanonical) return `is ${error.message}`;
    throw error;
  }
  const { name: _name, title, description, inputSchema, outputSchema, annotations, ...rest } = item;
  if (!isRecord(inputSchema)) return 'has no input schema that is an object';
  if (typeof description === 'string' && description.length > DESCRIPTION_CHARACTERS)
    return `has a description longer than ${DESCRIPTION_CHARACTERS} characters`;
  const isTitle = typeof title === 'string' && title.length <= TITLE_CHARACTERS;
  const extra = { ...rest, ...(title === undefined || isTitle ? {} : { title }) };
  return {
    name,
    ...(isTitle ? { title } : {}),
    description: typeof description === 'string' ? description : '',
    inputSchema,
    ...(isRecord(outputSchema) ? { outputSchema } : {}),
    ...(isRecord(annotations) ? { annotations } : {}),
    ...(Object.keys(extra).length > 0 ? { extra } : {}),
  };
}

function mirrorable(tool: ToolDefinition): ToolDefinition | string {
  const parameters = mirroredParameters(tool.inputSchema);
  return typeof parameters === 'string' ? parameters : tool;
}

/** The identity of a catalogue: equal exactly when its tools are, in whatever order their keys stand. 64 hexadecimal digits. */
export function catalogueHash(tools: readonly ToolDefinition[]): string {
  return digestOf(tools, RECORD_BOUNDS);
}

/** The tools from `offset` on whose JSON fits `maxBytes`, at least one; `next` is where the next page begins, null at the end. */
export function pageOfTools(
  tools: readonly ToolDefinition[],
  offset: number,
  maxBytes: number,
): { readonly tools: ToolDefinition[]; readonly next: number | null } {
  const page: ToolDefinition[] = [];
  let bytes = 0;
  for (const tool of tools.slice(offset)) {
    bytes += Buffer.byteLength(JSON.stringify(tool)) + 1;
    if (page.length > 0 && bytes > maxBytes) return { tools: page, next: offset + page.length };
    page.push(tool);
  }
  return { tools: page, next: null };
}
