import { Fault, PreparedTarget, refusals, type ToolRegistration, type worker } from '@ambit/contracts';
import { z } from 'zod';
import type { CallInput, WorkerTool } from '../tools.js';
import { Folders, type FoldersOptions, type Place } from './folders.js';
import { foldCase, OpenFolder } from './open-folder.js';
import { asFault, PathProblem } from './path-problem.js';
import { walk, type Spot } from './walk.js';

export type { CallInput };
export type Prepared = z.output<typeof worker.prepareTool.output>;

export interface Reached extends Spot {
  readonly closed: ReadonlySet<string>;
}

/** Finds what calls point at, and hands a decided call what it was decided for, opened. */
export class Workspace {
  readonly folders: Folders;
  readonly #outside: boolean;
  readonly #options: FoldersOptions;

  constructor(options: FoldersOptions & { readonly outside: boolean }) {
    this.folders = new Folders(options);
    this.#outside = options.outside;
    this.#options = options;
  }

  /** Whether the folder of a place is on this machine. */
  holds(place: Place): Promise<boolean> {
    return this.folders.has(place);
  }

  /** Where a path leads, without touching anything: relative inside the workspace, absolute outside. */
  async resolve(place: Place, path: string): Promise<string> {
    return this.#reach(place, path, { outside: this.#outside, closed: new Set(), use: (spot) => Promise.resolve(spot.path) });
  }

  /** Opens what a decided call points at. Refused, where it leads elsewhere by now than when it was decided. */
  async open<T>(call: CallInput, path: string, use: (reached: Reached) => Promise<T>): Promise<T> {
    const { decided, closed, outside } = decisionOf(call);
    return this.#reach(call, path, {
      outside: outside && this.#outside,
      closed,
      use: (spot) => {
        // Paths of a command are what its words may lead to; it runs in its folder alone.
        const expected = decided.cwd === null ? decided.paths : [decided.cwd];
        if (!expected.includes(spot.path)) throw new PathProblem('changed', path);
        return use({ ...spot, closed });
      },
    });
  }

  async #reach<T>(
    place: Place,
    path: string,
    how: { readonly outside: boolean; readonly closed: ReadonlySet<string>; readonly use: (spot: Spot) => Promise<T> },
  ): Promise<T> {
    try {
      return await this.folders.use(place, async (root) => {
        try {
          return await walk({ root, closed: how.closed }, path, how.use);
        } catch (error) {
          if (!(error instanceof PathProblem) || error.kind !== 'outside' || !how.outside) throw error;
        }
        return this.#fromTheTop(root, path, how);
      });
    } catch (error) {
      throw asFault(error, path);
    }
  }

  /** Where reaching outside was allowed, the walk begins at the top, and its path is absolute unless it comes back into the workspace. */
  async #fromTheTop<T>(
    workspace: OpenFolder,
    path: string,
    { closed, use }: { readonly closed: ReadonlySet<string>; readonly use: (spot: Spot) => Promise<T> },
  ): Promise<T> {
    const top = await OpenFolder.open(this.#options.volume, '/');
    const from = workspace.place.path;
    try {
      return await walk({ root: top, closed }, path.startsWith('/') ? path : `${from}/${path}`, (spot) => {
        const absolute = spot.path === '.' ? '/' : `/${spot.path}`;
        const inside = absolute === from ? '.' : absolute.startsWith(`${from}/`) ? absolute.slice(from.length + 1) : absolute;
        return use({ ...spot, path: inside });
      });
    } finally {
      await top.close();
    }
  }
}

/** What the gateway decided of a call; a call that nobody decided on is not carried out. */
export function decisionOf({ prepared, bounds }: CallInput): {
  readonly decided: Prepared;
  readonly closed: ReadonlySet<string>;
  readonly outside: boolean;
} {
  const decided = PreparedTarget.safeParse(prepared).data;
  if (decided === undefined || bounds === undefined) throw new Fault('TARGET_CHANGED', refusals.TARGET_CHANGED);
  return { decided, closed: new Set(bounds.closed.map(foldCase)), outside: bounds.outside };
}

/** Reads a tool's arguments as its schema says; the gateway has checked them against the same schema. */
function argumentsOf<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  const reason = read.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ');
  throw new Fault('BAD_ARGUMENTS', refusals.BAD_ARGUMENTS, { reason: reason.slice(0, 500) });
}

/** A tool of the workspace: its registration, and arguments read before they are used. */
export function workspaceTool<S extends z.ZodType>(
  definition: Pick<ToolRegistration, 'name' | 'description' | 'effect' | 'access' | 'parallel'>,
  schema: S,
  does: {
    readonly prepare: (input: z.output<S>, place: Place) => Promise<Partial<Prepared>>;
    readonly run: (input: z.output<S>, call: CallInput, signal: AbortSignal) => ReturnType<WorkerTool['run']>;
  },
): WorkerTool {
  const inputSchema: Record<string, unknown> = { ...z.toJSONSchema(schema, { io: 'input' }) };
  delete inputSchema.$schema;
  return {
    definition: { ...definition, inputSchema },
    prepare: async (input) => ({
      paths: [],
      cwd: null,
      argv: [],
      command: null,
      ...(await does.prepare(argumentsOf(schema, input.arguments), input)),
    }),
    run: (call, signal) => does.run(argumentsOf(schema, call.arguments), call, signal),
  };
}

/** A result that is one text. */
export function textResult(text: string, more: { readonly isError?: boolean; readonly structuredContent?: unknown } = {}) {
  return { content: [{ type: 'text', text }], ...more };
}
