import { constants } from 'node:fs';
import { open, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import type { FileEntry } from '@ambit/contracts';
import { causeOf } from '../cause.js';
import { digestOfBytes } from '../upload.js';

export interface FolderFile {
  readonly entry: FileEntry;
  readonly bytes: Uint8Array;
}

const FOLDER_FILES = 4_096;
const FOLDER_BYTES = 64 * 1024 * 1024;
const FOLDER_DEPTH = 32;
/** Of tools, not of the author. */
const LEFT_OUT: ReadonlySet<string> = new Set(['.git', '.DS_Store', 'node_modules']);

/**
 * Every file below a folder, by path in code-unit order; `leftOut` is told of what is a tool's and not the author's. Follows no link; an
 * Error says which file cannot be taken and why.
 */
export async function readFolder(folder: string, leftOut: (path: string) => void = () => undefined): Promise<readonly FolderFile[]> {
  const files: FolderFile[] = [];
  let total = 0;
  const walk = async (relative: string, depth: number): Promise<void> => {
    if (depth > FOLDER_DEPTH) throw new Error(`${relative} lies more than ${FOLDER_DEPTH} folders deep`);
    for await (const found of await opendir(join(folder, relative))) {
      const path = relative === '' ? found.name : `${relative}/${found.name}`;
      if (LEFT_OUT.has(found.name)) {
        leftOut(path);
        continue;
      }
      if (found.isDirectory()) await walk(path, depth + 1);
      else {
        const file = await readPlainFile(join(folder, path), FOLDER_BYTES - total);
        total += file.bytes.byteLength;
        files.push({
          entry: { path, mode: file.isExecutable ? 'executable' : 'file', bytes: file.bytes.byteLength, digest: digestOfBytes(file.bytes) },
          bytes: file.bytes,
        });
        if (files.length > FOLDER_FILES) throw new Error(`there are more than ${FOLDER_FILES} files`);
      }
    }
  };
  const root = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW).catch((error: unknown) => {
    throw new Error(`${folder} is no folder (${causeOf(error)}); links are not followed`);
  });
  await root.close();
  await walk('', 0);
  if (files.length === 0) throw new Error(`${folder} holds no file`);
  return files.sort((left, right) => (left.entry.path < right.entry.path ? -1 : 1));
}

/** The bytes of a plain file, opened once without following a link and checked as opened. */
export async function readPlainFile(
  path: string,
  mostBytes: number,
): Promise<{ readonly bytes: Uint8Array; readonly isExecutable: boolean }> {
  // Without O_NONBLOCK, a pipe of that name would hold the reader until somebody writes.
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch((error: unknown) => {
    throw new Error(
      causeOf(error) === 'ELOOP'
        ? `${path} is a link, and links are not followed; put a copy there`
        : `${path} cannot be read (${causeOf(error)})`,
    );
  });
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new Error(`${path} is no plain file`);
    if (found.size > mostBytes) throw new Error(`${path} makes it more than ${mostBytes} bytes`);
    const bytes = new Uint8Array(found.size);
    const { bytesRead } = await file.read(bytes, 0, found.size, 0);
    if (bytesRead !== found.size) throw new Error(`${path} changed while it was read; try again`);
    return { bytes, isExecutable: (found.mode & 0o111) !== 0 };
  } finally {
    await file.close();
  }
}
