import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import type { OpenFolder } from './open-folder.js';
import { PathProblem, toolFailed } from './path-problem.js';
import type { Spot } from './walk.js';

const READ_BYTES_MAX = 16 * 1024 * 1024;

/** The file's text; bytes that are no text, and more than the limit, are refused. */
export async function readText(spot: Spot, limit = READ_BYTES_MAX): Promise<string> {
  return readHandle(await openFile(spot), spot.path, limit);
}

async function openFile(spot: Spot): Promise<FileHandle> {
  if (spot.stats === undefined) throw new PathProblem('missing', spot.path);
  if (spot.name === '') throw new PathProblem('not-a-file', spot.path);
  return spot.folder.file(spot.name);
}

export async function readHandle(handle: FileHandle, name: string, limit = READ_BYTES_MAX): Promise<string> {
  try {
    const { size } = await handle.stat();
    if (size > limit) throw toolFailed(`${name}: ${size} bytes are more than can be read at once; search it with grep`);
    const buffer = Buffer.alloc(Math.min(size + 1, limit + 1));
    let length = 0;
    for (;;) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length, null);
      length += bytesRead;
      if (bytesRead === 0 || length === buffer.length) break;
    }
    const bytes = buffer.subarray(0, Math.min(length, limit));
    if (bytes.subarray(0, 8_192).includes(0)) throw toolFailed(`${name}: it is no text`);
    return bytes.toString('utf8');
  } finally {
    await handle.close();
  }
}

/** Puts a new file in the place of the old one in one step: whoever reads sees the one or the other, and no link is written through. */
export async function writeText(spot: Spot, content: string): Promise<void> {
  if (spot.name === '') throw new PathProblem('not-a-file', spot.path);
  if (spot.stats !== undefined && !spot.stats.isFile()) throw new PathProblem('not-a-file', spot.path);
  const folders: OpenFolder[] = [];
  try {
    let folder = spot.folder;
    const names = [spot.name, ...spot.missing];
    const name = names.pop() ?? spot.name;
    for (const missing of names) {
      folder = await folder.makeAlike(missing);
      folders.push(folder);
    }
    const mode = spot.stats === undefined ? 0o644 : Number(spot.stats.mode & 0o777n);
    const temporary = `.${randomUUID()}.tmp`;
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
    const handle = await folder.volume.open(folder.at(temporary), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    try {
      await folder.verify();
      if (spot.stats !== undefined) await handle.chmod(mode);
      await folder.giveOwner(handle);
      await handle.writeFile(content);
      await handle.sync();
      await handle.close();
      await folder.volume.rename(folder.at(temporary), folder.at(name));
    } catch (error) {
      await handle.close().catch(() => undefined);
      await folder.volume.unlink(folder.at(temporary)).catch(() => undefined);
      throw error;
    }
  } finally {
    await Promise.all(folders.map((folder) => folder.close()));
  }
}

/** Opens the folder that a spot is, for as long as it is used. */
export async function inFolder<T>(spot: Spot, use: (folder: OpenFolder) => Promise<T>): Promise<T> {
  if (spot.name === '') return use(spot.folder);
  if (spot.stats === undefined) throw new PathProblem('missing', spot.path);
  if (!spot.stats.isDirectory()) throw new PathProblem('not-a-folder', spot.path);
  const folder = await spot.folder.folder(spot.name);
  try {
    return await use(folder);
  } finally {
    await folder.close();
  }
}
