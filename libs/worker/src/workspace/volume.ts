import { lstat, mkdir, open, opendir, readlink, realpath, rename, unlink, type FileHandle } from 'node:fs/promises';
import type { BigIntStats } from 'node:fs';

/** One name in a folder. */
export interface Entry {
  readonly name: string;
  readonly kind: 'file' | 'folder' | 'link' | 'other';
}

/** What is asked of a file system; by default the machine's own. */
export interface Volume {
  open(path: string, flags: number, mode?: number): Promise<FileHandle>;
  lstat(path: string): Promise<BigIntStats>;
  readlink(path: string): Promise<string>;
  realpath(path: string): Promise<string>;
  /** At most so many names, in no order. */
  list(path: string, maximum: number): Promise<Entry[]>;
  mkdir(path: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
}

/** The file systems of this machine. */
export const machine: Volume = {
  open,
  lstat: (path) => lstat(path, { bigint: true }),
  readlink,
  realpath,
  mkdir: async (path) => {
    await mkdir(path, { mode: 0o700 });
  },
  rename,
  unlink,
  list: async (path, maximum) => {
    const entries: Entry[] = [];
    for await (const entry of await opendir(path)) {
      entries.push({ name: entry.name, kind: kindOf(entry) });
      if (entries.length >= maximum) break;
    }
    return entries;
  },
};

/** What an entry or its status says that it is. */
export function kindOf(what: { isFile(): boolean; isDirectory(): boolean; isSymbolicLink(): boolean }): Entry['kind'] {
  if (what.isFile()) return 'file';
  if (what.isDirectory()) return 'folder';
  return what.isSymbolicLink() ? 'link' : 'other';
}

/** The code of a file system's error; '' where it is none. */
export function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string' ? error.code : '';
}
