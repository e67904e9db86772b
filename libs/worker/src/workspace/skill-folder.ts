import { createHash } from 'node:crypto';
import { chmod, lstat, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Fault, refusals } from '@ambit/contracts';
import type { CallInput } from './workspace.js';

/** What a worker that died left of a call goes with a later one's. */
const LEFT_MS = 3_600_000;

export interface SkillFolder {
  readonly path: string;
  end(): Promise<void>;
}

/**
 * Lays out the files of a skill for one call, each held against its digest, in a folder that no session works in. Nothing of it is writable by
 * the user whom commands run as, where that is another than the worker's.
 */
export async function skillFolder(root: string, { skill, staged }: CallInput): Promise<SkillFolder | undefined> {
  if (skill === undefined) return undefined;
  const top = join(root, 'skills');
  await mkdir(top, { recursive: true, mode: 0o755 });
  await sweep(top);
  const path = await mkdtemp(join(top, `${skill.name}-`));
  const end = (): Promise<void> => rm(path, { recursive: true, force: true });
  try {
    await chmod(path, 0o755);
    for (const file of skill.files) {
      const bytes = staged?.get(file.digest) ?? (file.bytes === 0 ? Buffer.alloc(0) : undefined);
      if (bytes === undefined || createHash('sha256').update(bytes).digest('hex') !== file.digest)
        throw new Fault('TARGET_CHANGED', refusals.TARGET_CHANGED, undefined, `${file.path} did not arrive as the skill has it`);
      const at = join(path, ...segments(file.path));
      await mkdir(dirname(at), { recursive: true, mode: 0o755 });
      await writeFile(at, bytes, { flag: 'wx', mode: file.mode === 'executable' ? 0o555 : 0o444 });
    }
    return { path, end };
  } catch (error) {
    await end();
    throw error;
  }
}

function segments(path: string): string[] {
  const parts = path.split('/');
  if (parts.some((part) => part === '' || part === '.' || part === '..' || part.includes('\0')))
    throw new Fault('TARGET_CHANGED', refusals.TARGET_CHANGED, undefined, `${path} leads out of the skill`);
  return parts;
}

async function sweep(top: string): Promise<void> {
  for (const name of await readdir(top)) {
    const at = join(top, name);
    const made = await lstat(at).catch(() => undefined);
    if (made !== undefined && Date.now() - made.mtimeMs > LEFT_MS) await rm(at, { recursive: true, force: true });
  }
}
