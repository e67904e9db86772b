import { constants, type BigIntStats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { PathProblem } from './path-problem.js';
import { codeOf, type Volume } from './volume.js';

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
/** Where a descriptor can be walked from, a name is looked up in the very folder that was opened, wherever its path leads by now. */
const BY_DESCRIPTOR = process.platform === 'linux';
const NAMES_MAX = 20_000;

/** A folder that was opened, and is the same one whatever happens to its path. */
export class OpenFolder {
  constructor(
    readonly volume: Volume,
    readonly handle: FileHandle,
    readonly place: {
      /** Where it stood when it was opened. */
      readonly path: string;
      /** The same from the folder that the walk began in; '' there. */
      readonly relative: string;
      readonly parent: OpenFolder | null;
    },
  ) {}

  /** Opens a folder by a path that its owner vouches for. */
  static async open(volume: Volume, path: string): Promise<OpenFolder> {
    const real = await volume.realpath(path);
    return new OpenFolder(volume, await volume.open(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW), { path: real, relative: '', parent: null });
  }

  /** A path that reaches a name in this folder. */
  at(name: string): string {
    return BY_DESCRIPTOR ? `/proc/self/fd/${this.handle.fd}/${name}` : join(this.place.path, name);
  }
  /** A path that reaches this folder itself. */
  get here(): string {
    return BY_DESCRIPTOR ? `/proc/self/fd/${this.handle.fd}` : this.place.path;
  }
  /** The path of a name, from where the walk began. */
  under(...names: readonly string[]): string {
    return [this.place.relative, ...names].filter((part) => part !== '').join('/');
  }

  /** What stands at a name, a link as itself; undefined: nothing. */
  async look(name: string): Promise<BigIntStats | undefined> {
    try {
      return await this.volume.lstat(this.at(name));
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw error;
    }
  }

  /** Opens the folder of that name; one that has become a link meanwhile is refused. */
  async folder(name: string): Promise<OpenFolder> {
    const handle = await this.#open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const opened = new OpenFolder(this.volume, handle, { path: join(this.place.path, name), relative: this.under(name), parent: this });
    return settled(opened, handle, () => opened.verify());
  }

  /** Opens the ordinary file of that name for reading; a link is refused, and nothing else is waited for. */
  async file(name: string): Promise<FileHandle> {
    const handle = await this.#open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    return settled(handle, handle, async () => {
      const stats = await handle.stat({ bigint: true });
      if (!stats.isFile()) throw new PathProblem('not-a-file', this.under(name));
      await this.verify();
      if (!BY_DESCRIPTOR) await this.#verifyName(name, stats);
    });
  }

  /** Makes a folder of that name where there is none, and opens it. */
  async make(name: string): Promise<OpenFolder> {
    await this.#mkdir(name);
    return this.folder(name);
  }

  /** The same; one that is made belongs to the owner of this folder. */
  async makeAlike(name: string): Promise<OpenFolder> {
    const isMade = await this.#mkdir(name);
    const folder = await this.folder(name);
    return isMade ? settled(folder, folder.handle, () => this.giveOwner(folder.handle)) : folder;
  }

  /** What a worker makes in a folder that is another user's is that user's: its commands run as that user. */
  async giveOwner(handle: FileHandle): Promise<void> {
    if (process.getuid?.() !== 0) return;
    const { uid, gid } = await this.handle.stat();
    await handle.chown(uid, gid);
  }

  /** The name as the folder spells it: a volume that ignores case finds it under others too. */
  async spelling(name: string, stats: BigIntStats): Promise<string> {
    const other = swapCase(name);
    if (other === name) return name;
    const twin = await this.look(other);
    if (twin === undefined || twin.ino !== stats.ino || twin.dev !== stats.dev) return name;
    const names = (await this.volume.list(this.here, NAMES_MAX)).map((entry) => entry.name);
    return names.includes(name) ? name : (names.find((one) => foldCase(one) === foldCase(name)) ?? name);
  }

  /** Where folders are reached by their paths: whether each of them still is the one that was opened. */
  async verify(): Promise<void> {
    if (BY_DESCRIPTOR) return;
    const { path, relative, parent } = this.place;
    const [opened, now] = [await this.handle.stat({ bigint: true }), await this.volume.lstat(path)];
    if (now.isSymbolicLink() || opened.ino !== now.ino || opened.dev !== now.dev) throw new PathProblem('changed', relative);
    await parent?.verify();
  }

  async close(): Promise<void> {
    await this.handle.close();
  }

  /** Whether it was made: not where something stands there already. */
  async #mkdir(name: string): Promise<boolean> {
    try {
      await this.volume.mkdir(this.at(name));
      return true;
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return false;
      throw error;
    }
  }

  async #verifyName(name: string, opened: BigIntStats): Promise<void> {
    const now = await this.volume.lstat(this.at(name));
    if (now.isSymbolicLink() || now.ino !== opened.ino || now.dev !== opened.dev) throw new PathProblem('changed', this.under(name));
  }

  async #open(name: string, flags: number): Promise<FileHandle> {
    try {
      return await this.volume.open(this.at(name), flags);
    } catch (error) {
      // It was no link, and a folder where one was wanted, when it was looked at.
      if (['ELOOP', 'ENOTDIR', 'EMLINK'].includes(codeOf(error))) throw new PathProblem('changed', this.under(name));
      if (codeOf(error) === 'ENXIO') throw new PathProblem('not-a-file', this.under(name));
      throw error;
    }
  }
}

/** What two names have in common that a volume without case takes for one. */
export function foldCase(name: string): string {
  const folded = name.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC');
  return folded.replace(/\p{Default_Ignorable_Code_Point}/gu, '').replace(/[. ]+$/, '');
}

function swapCase(name: string): string {
  const upper = name.toUpperCase();
  return upper === name ? name.toLowerCase() : upper;
}

async function settled<T>(value: T, handle: FileHandle, check: () => Promise<void>): Promise<T> {
  try {
    await check();
    return value;
  } catch (error) {
    await handle.close();
    throw error;
  }
}
