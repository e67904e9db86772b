import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { OpenFolder } from './open-folder.js';
import { toolFailed } from './path-problem.js';
import { codeOf, type Volume } from './volume.js';

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
  /** Nobody is given it any more: closed by whoever uses it last. */
  isLeft: boolean;
}

const HELD_MAX = 256;
const PLAIN = /^[a-z0-9][a-z0-9_-]{0,63}$/;

/** The folders of sessions, each opened once and kept open: no change of a path swaps one for another. */
export class Folders {
  readonly #held = new Map<string, Held>();

  constructor(private readonly options: FoldersOptions) {}

  async use<T>(place: Place, work: (folder: OpenFolder) => Promise<T>): Promise<T> {
    const key = place.workspaceId === null ? `session ${place.sessionId}` : `workspace ${place.workspaceId}`;
    return this.#use({ key, open: () => this.#open(place) }, work);
  }

  /**
   * Whether a place is on this machine, without making anything: a named workspace is where its folder can be opened, and where none are named all of them
   * are, each from its first use on. Throws where the folder is there and cannot be opened.
   */
  async has({ workspaceId }: Place): Promise<boolean> {
    const { workspaces, volume } = this.options;
    if (workspaceId === null || workspaces === undefined) return true;
    const path = Object.hasOwn(workspaces, workspaceId) ? workspaces[workspaceId] : undefined;
    if (path === undefined) return false;
    try {
      await (await OpenFolder.open(volume, path)).close();
      return true;
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return false;
      throw error;
    }
  }

  /** What is in use is closed by its last user. */
  async close(): Promise<void> {
    const all = [...this.#held.values()];
    this.#held.clear();
    await Promise.all(all.map((held) => this.#leave(held)));
  }

  async #use<T>(
    what: { readonly key: string; readonly open: () => Promise<OpenFolder> },
    work: (folder: OpenFolder) => Promise<T>,
  ): Promise<T> {
    const held = (await this.#known(what.key)) ?? (await this.#hold(what));
    try {
      return await work(await held.opening);
    } finally {
      await this.#release(held);
    }
  }

  /** One that is open and still there, counted as used. */
  async #known(key: string): Promise<Held | undefined> {
    const known = this.#held.get(key);
    if (known === undefined) return undefined;
    known.users += 1;
    try {
      const { handle } = await known.opening;
      if ((await handle.stat()).nlink > 0) return known;
    } catch (error) {
      await this.#release(known);
      throw error;
    }
    // Its owner removed it, and perhaps made another.
    if (this.#held.get(key) === known) this.#held.delete(key);
    known.isLeft = true;
    await this.#release(known);
    return undefined;
  }

  /** One that is opened now, unless somebody else did meanwhile; counted as used. */
  async #hold({ key, open }: { readonly key: string; readonly open: () => Promise<OpenFolder> }): Promise<Held> {
    await this.#makeRoom();
    const present = this.#held.get(key);
    const held = present ?? { opening: open(), users: 0, isLeft: false };
    held.users += 1;
    if (present === undefined) {
      this.#held.set(key, held);
      held.opening.catch(() => (this.#held.get(key) === held ? this.#held.delete(key) : false));
    }
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

  async #release(held: Held): Promise<void> {
    held.users -= 1;
    if (held.isLeft) await this.#leave(held);
  }

  async #leave(held: Held): Promise<void> {
    held.isLeft = true;
    if (held.users === 0) await held.opening.then((folder) => folder.close()).catch(() => undefined);
  }

  async #open({ sessionId, workspaceId }: Place): Promise<OpenFolder> {
    const { workspaces, volume, owner } = this.options;
    if (workspaceId !== null && workspaces !== undefined) {
      const path = Object.hasOwn(workspaces, workspaceId) ? workspaces[workspaceId] : undefined;
      if (path === undefined) throw toolFailed(`this worker has no workspace ${workspaceId}`);
      return OpenFolder.open(volume, path);
    }
    return this.#use({ key: 'root', open: () => this.#openRoot() }, async (root) => {
      const kind = await root.make(workspaceId === null ? 'sessions' : 'workspaces');
      try {
        const made = await kind.make(folderName(workspaceId ?? sessionId));
        if (owner !== undefined) await made.handle.chown(owner.uid, owner.gid);
        return new OpenFolder(volume, made.handle, { path: made.place.path, relative: '', parent: null });
      } finally {
        await kind.close();
      }
    });
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
