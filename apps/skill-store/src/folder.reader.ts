import type { BigIntStats } from 'node:fs';
import { digestOfBytes, TREE_LIMITS } from '@ambit/bundle';
import { isScanned, isSkillPart, SCAN_DEPTH, SCOPES } from './domain/skill-folder.js';
import type { OpenFolder } from './open-folder.js';

/** Of one scope; what is beyond is not looked at. */
const SCAN_LIMITS = { skills: 1_000, folders: 20_000 } as const;

export interface FoundFile {
  /** Below the skill's folder, with forward slashes. */
  readonly path: string;
  readonly executable: boolean;
  readonly bytes: Buffer;
}
export interface FoundSkill {
  /** Below the scope's root, with forward slashes; '' where the root itself is one skill. */
  readonly folder: string;
  /** Moves with any change of any of its files, as far as the system tells without reading them. */
  readonly signature: string;
  /** When any of them last changed, in ms. */
  readonly changedAt: number;
  /** Only until the next one is asked for. Rejects with Refused, or with Unsettled where it changed meanwhile. */
  readonly read: () => Promise<FoundFile[]>;
}
export interface RefusedFolder {
  readonly folder: string;
  readonly refused: string;
}
/** It changed while it was looked at. */
export interface UnsettledFolder {
  readonly folder: string;
  readonly unsettled: string;
}
export type Found = FoundSkill | RefusedFolder | UnsettledFolder;
/** Told of each folder before it is read, so that no change of it goes unnoticed. */
export type Entered = (folder: OpenFolder, counts: (name: string) => boolean) => void;

/** Why a folder cannot be a skill, in words for people. */
export class Refused extends Error {}
/** It changed while it was read: what was read of it is of no one moment. */
export class Unsettled extends Error {}

/** Finds the skills of a scope in order of their paths, whatever order the system lists them in. */
export async function* scanScope(root: OpenFolder, entered: Entered): AsyncGenerator<Found> {
  const seen = { skills: 0, folders: 0 };
  yield* walk(root, '', 0);

  async function* walk(folder: OpenFolder, at: string, depth: number): AsyncGenerator<Found> {
    if (seen.skills > SCAN_LIMITS.skills || seen.folders > SCAN_LIMITS.folders) return;
    if ((seen.folders += 1) > SCAN_LIMITS.folders) {
      yield { folder: at, refused: `a scope has at most ${SCAN_LIMITS.folders} folders` };
      return;
    }
    entered(folder, (name) => isScanned(name) || name === 'SKILL.md');
    const items = await folder.items();
    if (items.some(({ name }) => name === 'SKILL.md')) {
      if ((seen.skills += 1) > SCAN_LIMITS.skills) yield { folder: at, refused: `a scope has at most ${SCAN_LIMITS.skills} skills` };
      else yield* one(folder, at);
      return;
    }
    for (const { name, kind } of items.filter((item) => isScanned(item.name))) {
      const below = at === '' ? name : `${at}/${name}`;
      if (kind === 'link') yield { folder: below, refused: `"${name}" is a link; links are not followed` };
      if (kind === 'folder' && depth < SCAN_DEPTH) yield* into(folder, name, { at: below, depth: depth + 1 });
    }
  }

  async function* into(above: OpenFolder, name: string, to: { readonly at: string; readonly depth: number }): AsyncGenerator<Found> {
    const folder = await opened(above.folder(name), name);
    if (folder === undefined) return;
    if (folder instanceof Refused) {
      yield { folder: to.at, refused: folder.message };
      return;
    }
    try {
      yield* walk(folder, to.at, to.depth);
    } finally {
      await folder.close();
    }
  }

  async function* one(folder: OpenFolder, at: string): AsyncGenerator<Found> {
    try {
      const { signature, changedAt } = await lookThrough(folder, entered);
      yield { folder: at, signature, changedAt, read: () => readThrough(folder, signature) };
    } catch (error) {
      if (error instanceof Refused) yield { folder: at, refused: error.message };
      else if (error instanceof Unsettled) yield { folder: at, unsettled: error.message };
      else throw error;
    }
  }
}

type Visit = (folder: OpenFolder, name: string, path: string) => Promise<void>;

async function lookThrough(root: OpenFolder, entered: Entered): Promise<{ readonly signature: string; readonly changedAt: number }> {
  const lines: string[] = [];
  let changedAt = 0;
  let total = 0n;
  await visitFiles(root, entered, async (folder, name, path) => {
    const info = await folder.infoOf(name);
    lines.push(lineOf(path, info));
    if ((total += info.size) > BigInt(TREE_LIMITS.bytes)) throw tooLarge();
    changedAt = Math.max(changedAt, Number(info.ctimeMs));
  });
  return { signature: digestOfBytes(Buffer.from(lines.join('\n'))), changedAt };
}

async function readThrough(root: OpenFolder, signature: string): Promise<FoundFile[]> {
  const files: FoundFile[] = [];
  const lines: string[] = [];
  let total = 0;
  const visit: Visit = async (folder, name, path) => {
    const { bytes, info } = await readFile(folder, name, TREE_LIMITS.bytes - total);
    total += bytes.byteLength;
    files.push({ path, executable: (info.mode & 0o100n) !== 0n, bytes });
    lines.push(lineOf(path, info));
  };
  try {
    await visitFiles(root, () => undefined, visit);
  } catch (error) {
    // What was fine a moment ago and is not now has changed; the next look says what it became.
    throw error instanceof Refused ? new Unsettled(error.message) : error;
  }
  if (digestOfBytes(Buffer.from(lines.join('\n'))) !== signature) throw new Unsettled('it changed while it was read');
  return files;
}

async function visitFiles(root: OpenFolder, entered: Entered, visit: Visit): Promise<void> {
  let count = 0;
  await walk(root, '', 0);

  async function walk(folder: OpenFolder, at: string, depth: number): Promise<void> {
    if (depth > TREE_LIMITS.depth) throw new Refused(`folders are more than ${TREE_LIMITS.depth} deep`);
    entered(folder, isSkillPart);
    for (const { name, kind } of await folder.items()) {
      // A root that is one skill holds the scopes of other agents, which are none of its files.
      if (!isSkillPart(name) || (at === '' && name === SCOPES)) continue;
      const path = at === '' ? name : `${at}/${name}`;
      if (name.includes('\uFFFD')) throw new Refused(`"${path}" is no UTF-8 name`);
      if (kind === 'link') throw new Refused(`"${path}" is a link; links are not followed`);
      if (kind === 'other') throw new Refused(`"${path}" is neither a file nor a folder`);
      if (kind === 'file') {
        if ((count += 1) > TREE_LIMITS.files) throw new Refused(`there are more than ${TREE_LIMITS.files} files`);
        await present(visit(folder, name, path), path);
        continue;
      }
      const below = await present(folder.folder(name), path);
      try {
        await walk(below, path, depth + 1);
      } finally {
        await below.close();
      }
    }
  }
}

/** Reads at most `limit` bytes of what was opened; says what it was after the last of them. */
async function readFile(folder: OpenFolder, name: string, limit: number): Promise<{ readonly bytes: Buffer; readonly info: BigIntStats }> {
  const file = await folder.file(name);
  try {
    const { size } = await file.stat();
    if (size > limit) throw tooLarge();
    const bytes = Buffer.alloc(size);
    let have = 0;
    while (have < size) {
      const { bytesRead } = await file.read(bytes, have, size - have, have);
      if (bytesRead === 0) throw new Unsettled(`"${name}" became shorter while it was read`);
      have += bytesRead;
    }
    return { bytes, info: await file.stat({ bigint: true }) };
  } finally {
    await file.close();
  }
}

/** A file with a second name may be somebody else's: what it says can be changed from where nobody looks. */
function lineOf(path: string, info: BigIntStats): string {
  if (!info.isFile()) throw new Refused(`"${path}" is a link or no file`);
  if (info.nlink > 1n) throw new Refused(`"${path}" has a second name (a hard link); put a copy in its place`);
  return [path, info.dev, info.ino, info.size, info.mode, info.mtimeNs, info.ctimeNs].join('\0');
}

function tooLarge(): Refused {
  return new Refused(`the files have more than ${TREE_LIMITS.bytes} bytes`);
}

/** The folder, or undefined where it is gone by now, or why it is refused. */
export async function opened(opening: Promise<OpenFolder>, name: string): Promise<OpenFolder | Refused | undefined> {
  try {
    return await opening;
  } catch (error) {
    const refused = refusalOf(error, name);
    if (refused === undefined) throw error;
    return refused === 'gone' ? undefined : refused;
  }
}

async function present<T>(act: Promise<T>, path: string): Promise<T> {
  try {
    return await act;
  } catch (error) {
    const refused = refusalOf(error, path);
    if (refused === undefined) throw error;
    throw refused === 'gone' ? new Unsettled(`"${path}" went away while it was looked at`) : refused;
  }
}

/** What the tree itself is to blame for; anything else is the machine's trouble, and says nothing of the tree. */
function refusalOf(error: unknown, path: string): Refused | 'gone' | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  switch (error.code) {
    case 'ENOENT':
      return 'gone';
    case 'ELOOP':
    case 'ENOTDIR':
    case 'EMLINK':
      return new Refused(`"${path}" is a link or no folder; links are not followed`);
    case 'EACCES':
    case 'EPERM':
      return new Refused(`"${path}" may not be read by this service`);
    case 'ENAMETOOLONG':
      return new Refused(`"${path.slice(0, 100)}…" has too long a name`);
    case 'ENXIO':
    case 'ENODEV':
      return new Refused(`"${path}" is neither a file nor a folder`);
    default:
      return undefined;
  }
}
