import { z } from 'zod';
import type { WorkerTool } from '../tools.js';
import { toolFailed } from './path-problem.js';
import { inFolder, readText, writeText } from './text-file.js';
import { kindOf } from './volume.js';
import { textResult, workspaceTool, type Reached, type Workspace } from './workspace.js';

const READ_TEXT_MAX = 4_500;
/** So that what was read stands in the result whole, and not behind an artifact. */
const READ_JSON_MAX = 6 * 1024;
const WRITE_MAX = 400_000;
const LIST_MAX = 500;

const path = z.string().min(1).max(4_096);
const ReadInput = z.strictObject({
  path: path.describe('A file, from the top of the workspace'),
  offset: z.int().min(1).default(1).describe('First line, from 1'),
  limit: z.int().min(1).max(2_000).default(2_000).describe('Lines at most'),
});
const WriteInput = z.strictObject({ path, content: z.string().max(WRITE_MAX) });
const EditInput = z.strictObject({
  path,
  old: z.string().min(1).max(WRITE_MAX).describe('Text that stands in the file exactly so, once'),
  new: z.string().max(WRITE_MAX),
  all: z.boolean().default(false).describe('Replace every place where it stands'),
});
const ListInput = z.strictObject({ path: path.default('.') });

/** The tools that read and write single files. */
export function fileTools(workspace: Workspace): WorkerTool[] {
  const at = async (input: { path: string }, place: { sessionId: string; workspaceId: string | null }) => ({
    paths: [await workspace.resolve(place, input.path)],
  });
  return [
    workspaceTool(
      {
        name: 'read',
        description:
          'Reads lines of a text file of the workspace, up to 4,500 characters at once; the last line says where to go on. Paths begin at the top of the workspace.',
        effect: 'read',
        access: 'file',
        parallel: true,
      },
      ReadInput,
      {
        prepare: at,
        run: (input, call) => workspace.open(call, input.path, async (spot) => textResult(window(await readText(spot), input))),
      },
    ),
    workspaceTool(
      {
        name: 'write',
        description: 'Writes a whole text file of the workspace, in place of what stood there; folders that are missing are made.',
        effect: 'write',
        access: 'file',
        parallel: false,
      },
      WriteInput,
      {
        prepare: at,
        run: (input, call) =>
          workspace.open(call, input.path, async (spot) => {
            await writeText(spot, input.content);
            return textResult(`${spot.stats === undefined ? 'Made' : 'Replaced'} ${spot.path}: ${Buffer.byteLength(input.content)} bytes`);
          }),
      },
    ),
    workspaceTool(
      {
        name: 'edit',
        description: 'Replaces a text in a file of the workspace. The old text must stand there exactly once, or `all` must be set.',
        effect: 'write',
        access: 'file',
        parallel: false,
      },
      EditInput,
      {
        prepare: at,
        run: (input, call) =>
          workspace.open(call, input.path, async (spot) => {
            const before = await readText(spot);
            const count = before.split(input.old).length - 1;
            if (count === 0) throw toolFailed(`${spot.path}: the old text does not stand there; read the file again`);
            if (count > 1 && !input.all)
              throw toolFailed(`${spot.path}: the old text stands there ${count} times; give more of it, or set all`);
            await writeText(
              spot,
              before.replaceAll(input.old, () => input.new),
            );
            return textResult(`Replaced ${count} ${count === 1 ? 'place' : 'places'} in ${spot.path}`);
          }),
      },
    ),
    workspaceTool(
      {
        name: 'ls',
        description: 'Lists what a folder of the workspace holds: kind, size and name.',
        effect: 'read',
        access: 'file',
        parallel: true,
      },
      ListInput,
      { prepare: at, run: (input, call) => workspace.open(call, input.path, async (spot) => textResult(await listing(spot))) },
    ),
  ];
}

/** Lines of a text within the room of one result, and where to go on. */
function window(text: string, { offset, limit }: { readonly offset: number; readonly limit: number }): string {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  if (offset > lines.length && offset > 1) throw toolFailed(`there are ${lines.length} lines`);
  const taken: string[] = [];
  let room = READ_TEXT_MAX;
  let bytes = READ_JSON_MAX;
  let isCut = false;
  for (const line of lines.slice(offset - 1, offset - 1 + limit)) {
    const size = Buffer.byteLength(JSON.stringify(line));
    if (line.length + 1 > room || size > bytes) {
      if (taken.length === 0) {
        taken.push(line.slice(0, 2_000));
        isCut = true;
      }
      break;
    }
    taken.push(line);
    room -= line.length + 1;
    bytes -= size;
  }
  const last = offset - 1 + taken.length;
  const notes = [
    ...(isCut ? [`line ${offset} is longer than what is shown`] : []),
    ...(last < lines.length ? [`lines ${offset}-${last} of ${lines.length}; go on with offset ${last + 1}`] : []),
  ];
  return notes.length === 0 ? taken.join('\n') : `${taken.join('\n')}\n[${notes.join('; ')}]`;
}

async function listing(spot: Reached): Promise<string> {
  return inFolder(spot, async (folder) => {
    const entries = await folder.volume.list(folder.here, LIST_MAX + 1);
    const lines: string[] = [];
    for (const { name } of entries.slice(0, LIST_MAX).sort((left, right) => (left.name < right.name ? -1 : 1))) {
      const stats = await folder.look(name);
      if (stats === undefined) continue;
      const kind = kindOf(stats);
      lines.push(`${kind.padEnd(6)} ${kind === 'file' ? String(stats.size).padStart(9) : ''.padStart(9)} ${name}`);
    }
    if (entries.length > LIST_MAX) lines.push(`[the folder holds more than ${LIST_MAX} names; use glob]`);
    return lines.length === 0 ? '[empty]' : lines.join('\n');
  });
}
