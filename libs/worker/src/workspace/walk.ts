import type { BigIntStats } from 'node:fs';
import { foldCase, type OpenFolder } from './open-folder.js';
import { PathProblem } from './path-problem.js';

const LINKS_MAX = 40;
const SEGMENTS_MAX = 256;

/** Where a path led: the folder that holds it, opened, and the name in it. */
export interface Spot {
  readonly folder: OpenFolder;
  /** '' = the folder itself. */
  readonly name: string;
  /** Folders below `name` that are not there yet, and the file in them. */
  readonly missing: readonly string[];
  /** Canonical: every link followed, every name as its folder spells it; '.' = where the walk began. */
  readonly path: string;
  /** Undefined: nothing is there. */
  readonly stats: BigIntStats | undefined;
}

/** Takes a path from folder to opened folder, follows links itself, and never steps above the folder where it began. */
class Walk {
  readonly #opened: OpenFolder[] = [];
  readonly #pending: string[] = [];
  #links = 0;

  constructor(
    readonly root: OpenFolder,
    readonly closed: ReadonlySet<string>,
    readonly path: string,
  ) {}

  async spot(): Promise<Spot> {
    this.#enter(this.path);
    for (let name = this.#pending.pop(); name !== undefined; name = this.#pending.pop()) {
      if (name === '..') {
        await this.#up();
        continue;
      }
      const folder = this.#here;
      const stats = await folder.look(name);
      if (stats === undefined) return this.#nothing(name);
      if (stats.isSymbolicLink()) {
        this.#links += 1;
        if (this.#links > LINKS_MAX) throw new PathProblem('too-many-links', this.path);
        const target = await folder.volume.readlink(folder.at(name));
        if (target.startsWith('/')) await this.#restart();
        this.#enter(target);
        continue;
      }
      const spelled = await folder.spelling(name, stats);
      this.#refuseClosed(spelled);
      if (this.#pending.length === 0) return { folder, name: spelled, missing: [], path: folder.under(spelled), stats };
      if (!stats.isDirectory()) throw new PathProblem('not-a-folder', folder.under(spelled));
      this.#opened.push(await folder.folder(spelled));
    }
    const folder = this.#here;
    const stats = await folder.handle.stat({ bigint: true });
    return { folder, name: '', missing: [], path: folder.under() === '' ? '.' : folder.under(), stats };
  }

  async close(): Promise<void> {
    await Promise.all(this.#opened.splice(0).map((folder) => folder.close()));
  }

  get #here(): OpenFolder {
    return this.#opened.at(-1) ?? this.root;
  }

  /** Puts a path before what is still to go; an absolute one must lead below the root. */
  #enter(path: string): void {
    const absolute = path.startsWith('/') ? beneath(this.root.place.path, path) : path;
    if (absolute === undefined || path.includes('\0')) throw new PathProblem('outside', this.path);
    const names = absolute.split('/').filter((name) => name !== '' && name !== '.');
    this.#pending.push(...names.reverse());
    if (this.#pending.length > SEGMENTS_MAX) throw new PathProblem('too-many-links', this.path);
  }

  async #up(): Promise<void> {
    const left = this.#opened.pop();
    if (left === undefined) throw new PathProblem('outside', this.path);
    await left.close();
  }

  async #restart(): Promise<void> {
    await this.close();
  }

  #nothing(name: string): Spot {
    const missing = this.#pending.splice(0).reverse();
    if (missing.includes('..')) throw new PathProblem('missing', this.path);
    for (const one of [name, ...missing]) this.#refuseClosed(one);
    const folder = this.#here;
    return { folder, name, missing, path: folder.under(name, ...missing), stats: undefined };
  }

  #refuseClosed(name: string): void {
    if (this.closed.has(foldCase(name))) throw new PathProblem('closed', this.path);
  }
}

/** The rest of an absolute path below a folder; undefined where it leads elsewhere. */
function beneath(root: string, path: string): string | undefined {
  if (root === '/') return path.slice(1);
  if (path === root) return '';
  return path.startsWith(`${root}/`) ? path.slice(root.length + 1) : undefined;
}

/** Finds where a path leads below a folder and hands it on with its folder open; throws a {@link PathProblem} where it leads out. */
export async function walk<T>(
  from: { readonly root: OpenFolder; readonly closed?: ReadonlySet<string> },
  path: string,
  use: (spot: Spot) => Promise<T>,
): Promise<T> {
  const walking = new Walk(from.root, from.closed ?? new Set(), path);
  try {
    return await use(await walking.spot());
  } finally {
    await walking.close();
  }
}
