import { digestOfBytes, treeDigest, treeProblem } from '@ambit/bundle';
import { SkillName, type FileEntry, type ImportFailure, type ImportFormat } from '@ambit/contracts';
import { WITHOUT_EFFECT } from './domain/import-dialect.js';
import type { Dialect, SkillFolder } from './domain/import-layouts.js';
import { PAGE_ENDINGS } from './domain/import-page.js';
import { readSkillFile } from './skill-file.reader.js';
import { adaptPage, adaptSkillFile, type AdaptedFile } from './skill-file.writer.js';
import type { Version } from './skill.repository.js';

/** A file of a source; `fresh` holds bytes that the store may not have yet. */
export interface SourceFile {
  readonly entry: FileEntry;
  readonly read: () => Promise<Uint8Array>;
  readonly fresh: Uint8Array | null;
}
export type UsableVersion = Version & { readonly facts: NonNullable<Version['facts']> };
/** A skill that an import could take, or why it cannot. */
export interface Candidate {
  readonly folder: string;
  readonly name: string | null;
  readonly version: UsableVersion | null;
  readonly failure: { readonly code: ImportFailure; readonly reason: string } | null;
  readonly dropped: readonly string[];
  readonly warnings: readonly string[];
  /** Where it comes from, as the target will say. */
  readonly source: string;
  /** Digest → bytes that have to be stored first. */
  readonly fresh: ReadonlyMap<string, Uint8Array>;
}

/** Reads one folder of a tool as a skill of the specification; the validator of every skill has the last word. */
export async function readSkillFolder(
  { folder, files, dropped }: SkillFolder,
  source: ReadonlyMap<string, SourceFile>,
  { format, dialect }: { readonly format: ImportFormat; readonly dialect: Dialect },
): Promise<Candidate> {
  const fresh = new Map<string, Uint8Array>();
  const entries: FileEntry[] = [];
  let manifest: Uint8Array = new Uint8Array();
  const lost = [...dropped.map((path) => `${path.slice(0, 150)} is a tool's file`)];
  for (const [path, inSkill] of files) {
    const file = source.get(path);
    if (file === undefined) continue;
    if (inSkill !== 'SKILL.md') {
      entries.push({ ...file.entry, path: inSkill });
      if (file.fresh !== null) fresh.set(file.entry.digest, file.fresh);
      continue;
    }
    const adapted = adapt(await file.read(), dialect, path);
    manifest = adapted.bytes;
    lost.push(...adapted.dropped);
    const digest = digestOfBytes(manifest);
    entries.push({ ...file.entry, path: inSkill, bytes: manifest.byteLength, digest });
    fresh.set(digest, manifest);
  }
  const verdict = readSkillFile(manifest, folder === '' || dialect in PAGE_ENDINGS ? null : folder.slice(folder.lastIndexOf('/') + 1));
  const facts = 'invalid' in verdict ? null : verdict.facts;
  const name = facts?.name ?? nameOf(folder);
  const about = { folder, name, dropped: lost, source: `external:${format}/${facts?.name ?? folder}`.slice(0, 500), fresh };
  const problem = treeProblem(entries) ?? ('invalid' in verdict ? verdict.invalid : undefined);
  if (problem !== undefined || facts === null || 'invalid' in verdict)
    return { ...about, version: null, warnings: [], failure: { code: 'SKILL_INVALID', reason: problem ?? 'it is not usable' } };
  const { warnings } = verdict;
  const version = { digest: treeDigest(entries), tree: entries, facts, valid: true, warnings };
  // What is told as dropped needs no second telling.
  return {
    ...about,
    version,
    warnings: warnings.filter((one) => !WITHOUT_EFFECT.some((field) => one.includes(`"${field}"`))),
    failure: null,
  };
}

function adapt(bytes: Uint8Array, dialect: Dialect, path: string): AdaptedFile {
  if (dialect !== 'standard' && dialect !== 'claude') return adaptPage(bytes, { dialect, path });
  return adaptSkillFile(bytes, { dialect, folder: path.split('/').slice(0, -1).join('/') });
}

/** Of a skill that cannot be read, its folder's. */
function nameOf(folder: string): string | null {
  const name = SkillName.safeParse(folder.slice(folder.lastIndexOf('/') + 1));
  return name.success ? name.data : null;
}
