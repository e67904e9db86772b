import { z } from 'zod';

/** Where a package lists the tools of one of its servers, as that server’s own `tools/list` gives them. */
export const catalogueFile = (serverId: string): string => `mcp-catalogues/${serverId}.json`;
const FILE = /^mcp-catalogues\/([^/]+)\.json$/;
/** Bytes of such a file; a list travels in one message. */
export const CATALOGUE_BYTES = 256 * 1024;
const TOOLS = 1_000;

const Json = z.record(z.string(), z.json());
const Listed = z.looseObject({ tools: z.array(z.unknown()).max(TOOLS) });
/** What a tool has to have to be one; everything else of it is kept as it stands. */
const Tool = z.looseObject({ name: z.string().min(1).max(128), inputSchema: Json });

export type ListedTool = z.output<typeof Json>;

/** The server that a file of a package lists the tools of; undefined where it is none of those. */
export const listedServer = (path: string): string | undefined => FILE.exec(path)?.[1];

/** Reads a packaged list: a bad file gives none, a bad tool costs only itself. `problems` are sentences. */
export function readCatalogue(text: string): { readonly tools: readonly ListedTool[] | undefined; readonly problems: readonly string[] } {
  const listed = Listed.safeParse(parse(text));
  if (!listed.success)
    return {
      tools: undefined,
      problems: [`it is no object with at most ${TOOLS} "tools", as tools/list gives them; the server is started to be listed`],
    };
  const problems: string[] = [];
  const tools = listed.data.tools.flatMap((value, index) => {
    const tool = Tool.safeParse(value);
    const whole = Json.safeParse(value);
    if (tool.success && whole.success) return [whole.data];
    problems.push(`tool ${index + 1} has no name of 1 to 128 characters or no inputSchema that is an object; it is left out`);
    return [];
  });
  return { tools, problems };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
