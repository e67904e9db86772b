import picomatch from 'picomatch';
import { RE2JS } from 're2js';
import { Fault, refusals } from '@ambit/contracts';
import { z } from 'zod';
import type { WorkerTool } from '../tools.js';
import { inFolder, readHandle } from './text-file.js';
import { foldCase, type OpenFolder } from './open-folder.js';
import { PathProblem, toolFailed } from './path-problem.js';
import { codeOf } from './volume.js';
import { textResult, workspaceTool, type Reached, type Workspace } from './workspace.js';

const VISITED_MAX = 50_000;
const DEPTH_MAX = 64;
const FOUND_MAX = 1_000;
const LINE_MAX = 300;
const GREP_BYTES_MAX = 8 * 1024 * 1024;
/** Looked into only where the pattern or the path names them. */
const PASSED_OVER: readonly string[] = ['.git', 'node_modules'];

const path = z.string().min(1).max(4_096).default('.').describe('The folder to look below, from the top of the workspace');
const GlobInput = z.strictObject({ pattern: z.string().min(1).max(500).describe('As in src/**/*.ts, from the folder'), path });
const GrepInput = z.strictObject({
  pattern: z.string().min(1).max(1_000).describe('A regular expression in RE2’s syntax'),
  path,
  glob: z.string().min(1).max(500).optional().describe('Only files whose path fits'),
  ignoreCase: z.boolean().default(false),
  limit: z.int().min(1).max(FOUND_MAX).default(200).describe('Lines at most'),
});

interface Found {
  /** From the top of the workspace. */
  readonly path: string;
  readonly folder: OpenFolder;
  readonly name: string;
}

/** The tools that look for files and in files. No link is followed, so all they find lies in the folder they look in. */
export function searchTools(workspace: Workspace): WorkerTool[] {
  return [
    workspaceTool(
      {
        name: 'glob',
        description:
          'Lists files of the workspace whose paths fit a pattern. Links are not followed; .git and node_modules are passed over unless named.',
        effect: 'read',
        access: 'file',
        parallel: true,
      },
      GlobInput,
      {
        prepare: async (input, place) => {
          matcherOf(input.pattern);
          return { paths: [await workspace.resolve(place, input.path)] };
        },
        run: (input, call, signal) =>
          workspace.open(call, input.path, async (spot) => {
            const matches = matcherOf(input.pattern);
            const found: string[] = [];
            const visit = await visitFiles(spot, { named: `${input.path}/${input.pattern}`, signal }, ({ path: file }) => {
              if (matches(relativeTo(spot.path, file))) found.push(file);
              return Promise.resolve(found.length < FOUND_MAX);
            });
            return textResult(linesOf(found.sort(), visit));
          }),
      },
    ),
    workspaceTool(
      {
        name: 'grep',
        description:
          'Finds lines that fit a regular expression, in files of the workspace: path, line number, line. Links are not followed; .git and node_modules are passed over unless named.',
        effect: 'read',
        access: 'file',
        parallel: true,
      },
      GrepInput,
      {
        prepare: async (input, place) => {
          expressionOf(input);
          if (input.glob !== undefined) matcherOf(input.glob);
          return { paths: [await workspace.resolve(place, input.path)] };
        },
        run: (input, call, signal) =>
          workspace.open(call, input.path, async (spot) => {
            const expression = expressionOf(input);
            const matches = input.glob === undefined ? () => true : matcherOf(input.glob);
            const lines: string[] = [];
            const visit = await visitFiles(spot, { named: `${input.path}/${input.glob ?? ''}`, signal }, async (found) => {
              if (matches(relativeTo(spot.path, found.path))) await grepFile(found, { expression, lines, limit: input.limit });
              return lines.length < input.limit;
            });
            return textResult(linesOf(lines, visit));
          }),
      },
    ),
  ];
}

/** Matching takes time that grows with the number of stars in a segment: few are enough for any file. */
function matcherOf(pattern: string): (path: string) => boolean {
  const segments = pattern.split('/');
  if (pattern.startsWith('/') || pattern.split(/[/{},()|\\]/).includes('..'))
    throw badPattern('a pattern stays below its folder: no / in front and no ..');
  const stars = segments.map((segment) => (segment === '**' ? 0 : segment.split('*').length - 1));
  if (stars.some((count) => count > 4) || segments.filter((segment) => segment.includes('**')).length > 4)
    throw badPattern('a pattern has at most four ** and four * in a name');
  return picomatch(pattern, { dot: true, noextglob: true, nonegate: true, strictSlashes: true });
}

function expressionOf({ pattern, ignoreCase }: { readonly pattern: string; readonly ignoreCase: boolean }): RE2JS {
  try {
    return RE2JS.compile(pattern, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
  } catch (error) {
    throw badPattern(error instanceof Error ? error.message : 'not a regular expression');
  }
}

const badPattern = (reason: string): Fault => new Fault('BAD_ARGUMENTS', refusals.BAD_ARGUMENTS, { reason: reason.slice(0, 500) });

const relativeTo = (from: string, file: string): string => (from === '.' ? file : file.slice(from.length + 1));

interface Visit {
  readonly isWhole: boolean;
  readonly visited: number;
}

/** Visits the files below a spot, or the one file that it is, in the order of their names; ends early when told so. */
async function visitFiles(
  spot: Reached,
  how: { readonly named: string; readonly signal: AbortSignal },
  see: (found: Found) => Promise<boolean>,
): Promise<Visit> {
  if (spot.name !== '' && spot.stats?.isFile() === true) {
    await see({ path: spot.path, folder: spot.folder, name: spot.name });
    return { isWhole: true, visited: 1 };
  }
  const passedOver = new Set(PASSED_OVER.filter((name) => !how.named.split('/').includes(name)));
  let visited = 0;
  const enter = async (folder: OpenFolder, prefix: string, depth: number): Promise<boolean> => {
    const entries = await folder.volume.list(folder.here, VISITED_MAX);
    for (const { name, kind } of entries.sort((left, right) => (left.name < right.name ? -1 : 1))) {
      how.signal.throwIfAborted();
      visited += 1;
      if (visited > VISITED_MAX) return false;
      if (spot.closed.has(foldCase(name))) continue;
      const here = prefix === '' ? name : `${prefix}/${name}`;
      if (kind === 'file' && !(await see({ path: here, folder, name }))) return false;
      if (kind !== 'folder' || passedOver.has(name) || depth >= DEPTH_MAX) continue;
      const inner = await passing(folder.folder(name));
      if (inner === undefined) continue;
      try {
        if (!(await enter(inner, here, depth + 1))) return false;
      } finally {
        await inner.close();
      }
    }
    return true;
  };
  const isWhole = await inFolder(spot, (start) => enter(start, spot.path === '.' ? '' : spot.path, 0));
  return { isWhole, visited };
}

/** Adds the lines of one file that fit. A file that is opened is judged as opened; what is no text, or too large, is passed over. */
async function grepFile(
  { path: file, folder, name }: Found,
  search: { readonly expression: RE2JS; readonly lines: string[]; readonly limit: number },
): Promise<void> {
  const handle = await passing(folder.file(name));
  if (handle === undefined) return;
  const { size } = await handle.stat();
  if (size > GREP_BYTES_MAX) return handle.close();
  const text = await readHandle(handle, file).catch((error: unknown) => {
    if (error instanceof Fault) return '';
    throw error;
  });
  for (const [index, line] of text.split('\n').entries()) {
    if (search.lines.length >= search.limit) return;
    if (search.expression.test(line.length > 100_000 ? line.slice(0, 100_000) : line))
      search.lines.push(`${file}:${index + 1}: ${line.slice(0, LINE_MAX)}`);
  }
}

/** What is gone, not to be read, or has become a link since it was listed is passed over. */
async function passing<T>(opening: Promise<T>): Promise<T | undefined> {
  try {
    return await opening;
  } catch (error) {
    if (error instanceof PathProblem || ['ENOENT', 'EACCES', 'EPERM'].includes(codeOf(error))) return undefined;
    throw error;
  }
}

function linesOf(lines: readonly string[], { isWhole, visited }: Visit): string {
  if (lines.length === 0 && !isWhole) throw toolFailed('the folder is too large to look through; name one further down');
  const more = isWhole ? [] : [visited > VISITED_MAX ? `[stopped after ${VISITED_MAX} names]` : '[there may be more]'];
  return lines.length === 0 ? '[nothing]' : [...lines, ...more].join('\n');
}
