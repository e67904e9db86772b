import { constants, existsSync, type BigIntStats } from 'node:fs';
import { lstat, open, readdir, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { byName } from './domain/skill-folder.js';

/** Where the system names what a process holds open, a path can begin at a folder itself instead of at its name. */
const DESCRIPTORS = existsSync('/proc/self/fd') ? '/proc/self/fd' : undefined;
/** Not blocking, so that a pipe put in a file's place cannot hold the reader. */
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const FOLDER = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_DIRECTORY;

export interface FolderItem {
  readonly name: string;
  readonly kind: 'file' | 'folder' | 'link' | 'other';
}

/**
 * A folder that is held open. What lies in it is reached through what is held, one name at a time and following no link, so that no
 * change of a name on the way down can lead out of it.
 */
export class OpenFolder {
  private constructor(
    private readonly handle: FileHandle,
    /** Its name when it was opened; only to tell people. */
    readonly path: string,
    private readonly above: OpenFolder | undefined,
    private readonly info: BigIntStats,
  ) {}

  /** Rejects with the system's error: ENOENT where nothing is there, ENOTDIR or ELOOP where a link or no folder is. */
  static async at(path: string): Promise<OpenFolder> {
    return OpenFolder.#open(path, path, undefined);
  }

  static async #open(at: string, path: string, above: OpenFolder | undefined): Promise<OpenFolder> {
    const handle = await open(at, FOLDER);
    try {
      const folder = new OpenFolder(handle, path, above, await handle.stat({ bigint: true }));
      await folder.#stands();
      return folder;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** The path that means this folder for as long as it is held. */
  get held(): string {
    return DESCRIPTORS === undefined ? this.path : join(DESCRIPTORS, String(this.handle.fd));
  }

  /** The same only for the same folder; another one in its place has another. */
  get identity(): string {
    return identity(this.info);
  }

  async folder(name: string): Promise<OpenFolder> {
    return OpenFolder.#open(join(this.held, name), join(this.path, name), this);
  }

  async file(name: string): Promise<FileHandle> {
    const handle = await open(join(this.held, name), FILE);
    try {
      await this.#stands();
      return handle;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async infoOf(name: string): Promise<BigIntStats> {
    return lstat(join(this.held, name), { bigint: true });
  }

  /** What lies in it, in order of the names. */
  async items(): Promise<FolderItem[]> {
    const items = await readdir(this.held, { withFileTypes: true });
    return items
      .map((item) => ({
        name: item.name,
        kind: item.isSymbolicLink()
          ? ('link' as const)
          : item.isDirectory()
            ? ('folder' as const)
            : item.isFile()
              ? ('file' as const)
              : ('other' as const),
      }))
      .sort(byName);
  }

  async close(): Promise<void> {
    await this.handle.close();
  }

  /** Where a path cannot begin at what is held, each folder on the way must still stand under its name after the opening. */
  async #stands(): Promise<void> {
    if (DESCRIPTORS !== undefined || this.above === undefined) return;
    const now = await lstat(this.path, { bigint: true });
    if (now.ino !== this.info.ino || now.dev !== this.info.dev)
      throw Object.assign(new Error('a folder was replaced'), { code: 'ENOTDIR' });
    await this.above.#stands();
  }
}

/** Numbers of files come back once they are free; with the time of birth they do not. */
export function identity({ dev, ino, birthtimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${birthtimeNs}`;
}
