import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { OpenFolder } from './open-folder.js';
import { toolFailed } from './path-problem.js';
import type { Volume } from './volume.js';

/** Whose folder: a session's own, or that of the workspace it works in. */
export interface Place {
  readonly sessionId: string;
  readonly workspaceId: string | null;
}

export interface FoldersOptions {
  readonly root: string;
  readonly workspaces: Readonly<Record<string, string>> | undefined;
  readonly volume: Volume;
  readonly owner: { readonly uid: number; readonly gid: number } | undefined;
}

interface Held {
  readonly opening: Promise<OpenFolder>;
  users: number;
  /** No longer the session’s: closed by whoever uses it last. */
  isLeft: boolean;
}

const HELD_MAX = 256;
const PLAIN = /^[a-z0-9][a-z0-9_-]{0,63}$/;

/** The folders of sessions, each opened once and kept open: no change of a path swaps one for another. */
export class Folders {
  readonly #held = new Map<string, Held>();
  #root: Promise<OpenFolder> | undefined;

  constructor(private readonly options: FoldersOptions) {}

  async use<T>(place: Place, work: (folder: OpenFolder) => Promise<T>): Promise<T> {
    const key = place.workspaceId === null ? `session ${place.sessionId}` : `workspace ${place.workspaceId}`;
    const held = await this.#hold(key, place);
    held.users += 1;
    try {
      return await work(await held.opening);
    } finally {
      held.users -= 1;
      if (held.isLeft) await this.#leave(held);
    }
  }

  async close(): Promise<void> {
    const folders = [...this.#held.values()].map((held) => held.opening);
    this.#held.clear();
    if (this.#root !== undefined) folders.push(this.#root);
    this.#root = undefined;
    await Promise.allSettled(folders.map(async (opening) => (await opening).close()));
  }

  async #hold(key: string, place: Place): Promise<Held> {
    const known = this.#held.get(key);
    if (known !== undefined) {
      const folder = await known.opening;
      // Its owner removed it, and perhaps made another.
      if ((await folder.handle.stat()).nlink > 0) return known;
      if (this.#held.get(key) === known) {
        this.#held.delete(key);
        await this.#leave(known);
      }
    }
    await this.#makeRoom();
    const present = this.#held.get(key);
    if (present !== undefined) return present;
    const held: Held = { opening: this.#open(place), users: 0, isLeft: false };
    this.#held.set(key, held);
    held.opening.catch(() => this.#held.delete(key));
    return held;
  }

  async #makeRoom(): Promise<void> {
    for (const [key, held] of this.#held) {
      if (this.#held.size < HELD_MAX) return;
      if (held.users > 0) continue;
      this.#held.delete(key);
      await this.#leave(held);
    }
  }

  async #leave(held: Held): Promise<void> {
    held.isLeft = true;
    if (held.users === 0) await held.opening.then((folder) => folder.close()).catch(() => undefined);
  }

  async #open({ sessionId, workspaceId }: Place): Promise<OpenFolder> {
    const { workspaces, volume } = this.options;
    if (workspaceId !== null && workspaces !== undefined) {
      const path = Object.hasOwn(workspaces, workspaceId) ? workspaces[workspaceId] : undefined;
      if (path === undefined) throw toolFailed(`this worker has no workspace ${workspaceId}`);
      return OpenFolder.open(volume, path);
    }
    this.#root ??= this.#openRoot();
    const root = await this.#root;
    const kind = await root.make(workspaceId === null ? 'sessions' : 'workspaces');
    try {
      const made = await kind.make(folderName(workspaceId ?? sessionId));
      if (this.options.owner !== undefined) await made.handle.chown(this.options.owner.uid, this.options.owner.gid);
      return new OpenFolder(volume, made.handle, { path: made.place.path, relative: '', parent: null });
    } finally {
      await kind.close();
    }
  }

  async #openRoot(): Promise<OpenFolder> {
    await mkdir(this.options.root, { recursive: true, mode: 0o755 });
    return OpenFolder.open(this.options.volume, this.options.root);
  }
}

/** A name that is one folder's alone on every volume: two ids that differ in case, or hold what a path gives meaning to, never meet. */
function folderName(id: string): string {
  return PLAIN.test(id) ? id : `=${createHash('sha256').update(id).digest('hex').slice(0, 40)}`;
}
