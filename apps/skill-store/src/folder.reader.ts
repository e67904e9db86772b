import { constants } from 'node:fs';
import { lstat, open, readdir, realpath } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { TREE_LIMITS } from '@ambit/bundle';

/** How deep skills are looked for below a scope's root. */
const SCAN_DEPTH = 10;

export interface FoundFile {
  /** Below the skill's folder, with forward slashes. */
  readonly path: string;
  readonly executable: boolean;
  readonly bytes: Buffer;
}
export interface FoundSkill {
  /** Below the scope's root, with forward slashes; '' where the root itself is one skill. */
  readonly folder: string;
  readonly files: readonly FoundFile[];
}
export interface Scan {
  readonly skills: readonly FoundSkill[];
  /** Folder → why it was not taken. */
  readonly refused: ReadonlyMap<string, string>;
}

class Refused extends Error {}

/** Finds the skills below a root, in order of their paths. No link is followed anywhere; what is read is opened once and checked as opened. */
export async function scanFolder(root: string): Promise<Scan> {
  const skills: FoundSkill[] = [];
  const refused = new Map<string, string>();
  const info = await lstat(root).catch(() => undefined);
  if (info === undefined) return { skills, refused };
  if (!info.isDirectory()) return { skills, refused: new Map([['', 'the root is a link or no folder']]) };
  const real = await realpath(root);
  await walk(real, 0);
  return { skills, refused };

  async function walk(folder: string, depth: number): Promise<void> {
    const names = (await readdir(folder)).sort();
    if (names.includes('SKILL.md')) {
      const at = slashes(relative(real, folder));
      try {
        skills.push({ folder: at, files: await readTree(folder) });
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        refused.set(at, error.message);
      }
      return;
    }
    if (depth >= SCAN_DEPTH) return;
    for (const name of names.filter(isScanned)) {
      const path = join(folder, name);
      if ((await lstat(path)).isDirectory()) await walk(path, depth + 1);
    }
  }
}

/** Staging and backup folders are never listed. */
function isScanned(name: string): boolean {
  return !name.startsWith('.') && !name.includes('.backup-');
}

async function readTree(folder: string): Promise<FoundFile[]> {
  const files: FoundFile[] = [];
  let total = 0;
  await walk(folder, 0);
  return files;

  async function walk(current: string, depth: number): Promise<void> {
    if (depth > TREE_LIMITS.depth) throw new Refused(`folders are more than ${TREE_LIMITS.depth} deep`);
    for (const name of (await readdir(current)).sort()) {
      if (name === '.git' || name === '.DS_Store') continue;
      const path = join(current, name);
      const info = await lstat(path);
      if (info.isSymbolicLink()) throw new Refused(`"${slashes(relative(folder, path))}" is a link; links are not followed`);
      if (info.isDirectory()) await walk(path, depth + 1);
      else if (info.isFile()) {
        total += info.size;
        if (files.length >= TREE_LIMITS.files || total > TREE_LIMITS.bytes)
          throw new Refused(`more than ${TREE_LIMITS.files} files or ${TREE_LIMITS.bytes} bytes`);
        files.push({ path: slashes(relative(folder, path)), executable: (info.mode & 0o100) !== 0, bytes: await readOnce(path) });
      }
    }
  }
}

/** A path that became a link, or something else than a file, since it was listed is refused as opened. */
async function readOnce(path: string): Promise<Buffer> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW).catch((error: unknown) => {
    throw new Refused(`a file could not be opened: ${error instanceof Error && 'code' in error ? String(error.code) : 'unknown'}`);
  });
  try {
    const info = await file.stat();
    if (!info.isFile() || info.size > TREE_LIMITS.bytes) throw new Refused('a file changed while it was read');
    return await file.readFile();
  } finally {
    await file.close();
  }
}

function slashes(path: string): string {
  return path.split(sep).join('/');
}
