import { byCodeUnit, canonicalJson, digestOf, NotCanonical, RECORD_BOUNDS } from '@ambit/capability';
import type { JsonObject } from '@ambit/contracts';
import { isRecord } from './records.js';
import type { McpSession } from './session.js';
import type { Diagnostic } from './tools.js';

/** Prompts, or resources with their templates, of one server as last read whole: definitions as the server sent them, in the order of their names. */
export interface Offers {
  readonly items: readonly JsonObject[];
  readonly templates: readonly JsonObject[];
  readonly diagnostics: readonly Diagnostic[];
  /** sha256 of the canonical JSON of both lists, lower-case hex. */
  readonly hash: string;
}

const DEFINITION_BYTES = 64 * 1024;
const NAME_CHARACTERS = 8_192;

/** Reads all prompts of a server, or all resources and templates. Throws what the transport or server throws. */
export async function readOffers(
  session: McpSession,
  kind: 'prompts' | 'resources',
  signal: AbortSignal,
): Promise<{ readonly list: Offers; readonly ttlMs: number | undefined }> {
  const listed = await session.listAll(kind, signal);
  const templates = kind === 'resources' ? await session.listAll('resourceTemplates', signal) : undefined;
  const items = admit(listed.items, kind === 'prompts' ? 'name' : 'uri');
  const shapes = admit(templates?.items ?? [], 'uriTemplate');
  return {
    list: {
      items: items.kept,
      templates: shapes.kept,
      diagnostics: [...listed.notes, ...(templates?.notes ?? []), ...items.diagnostics, ...shapes.diagnostics],
      hash: digestOf([items.kept, shapes.kept], RECORD_BOUNDS),
    },
    ttlMs: listed.ttlMs,
  };
}

function admit(
  listed: readonly unknown[],
  key: 'name' | 'uri' | 'uriTemplate',
): { readonly kept: readonly JsonObject[]; readonly diagnostics: readonly Diagnostic[] } {
  const kept = new Map<string, JsonObject>();
  const diagnostics: Diagnostic[] = [];
  for (const item of listed) {
    const name = isRecord(item) && typeof item[key] === 'string' ? item[key] : '';
    const problem = problemOf(item, name) ?? (kept.has(name) ? 'is listed twice; the first one stands' : undefined);
    if (problem === undefined && isRecord(item)) kept.set(name, item);
    else diagnostics.push({ tool: name.slice(0, 128), message: `"${name.slice(0, 128)}" ${problem ?? 'is no object'}` });
  }
  const inOrder = [...kept.entries()].sort(([left], [right]) => byCodeUnit(left, right));
  return { kept: inOrder.map(([, definition]) => definition), diagnostics };
}

/** What is wrong with a definition, as the end of a sentence. */
function problemOf(item: unknown, name: string): string | undefined {
  if (!isRecord(item)) return 'is no object';
  if (name === '') return 'has no name; it is left out';
  if (name.length > NAME_CHARACTERS) return `has a name longer than ${NAME_CHARACTERS} characters; it is left out`;
  try {
    if (Buffer.byteLength(canonicalJson(item)) > DEFINITION_BYTES)
      return `has a definition larger than ${DEFINITION_BYTES} bytes; it is left out`;
    return undefined;
  } catch (error) {
    if (error instanceof NotCanonical) return `is ${error.message}; it is left out`;
    throw error;
  }
}
