import type { Call } from '@ambit/bus';
import { ArchiveRefused, digestOfBytes, pathsProblem, unpackArchive } from '@ambit/bundle';
import { fault, importPlaces, skillStore, type FileEntry, type ImportFormat, type ImportSource } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { AgentDirectory } from './agent.directory.js';
import { SkillBlobs } from './blobs.js';
import { DIALECTS, sortIntoPages, sortIntoSkills } from './domain/import-layouts.js';
import { PAGE_ENDINGS } from './domain/import-page.js';
import { readSkillFolder, type Candidate, type SourceFile } from './import.candidate.js';
import { SkillRepository } from './skill.repository.js';

/** Of everything that one import brings, packed and unpacked. */
const IMPORT_BYTES = 50 * 1024 * 1024;
const SKILLS = 256;

export interface Sourced {
  readonly candidates: readonly Candidate[];
  /** Files of no skill. */
  readonly loose: readonly string[];
}

/** Reads what a source has now: nothing is remembered between a preview and the import. */
@Injectable()
export class ImportSources {
  constructor(
    private readonly blobs: SkillBlobs,
    private readonly repository: SkillRepository,
    private readonly agents: AgentDirectory,
  ) {}

  async read(source: ImportSource, call: Call): Promise<Sourced> {
    switch (source.kind) {
      case 'agent':
        return this.#ofAgent(source.agentId, call);
      case 'files':
        return this.#ofFiles(source.format, await this.#uploaded(source.files));
      case 'archive':
        return this.#ofFiles(source.format, await this.#unpacked(source.archive));
    }
  }

  async #ofAgent(agentId: string, call: Call): Promise<Sourced> {
    await this.agents.get(agentId, call);
    const entries = await this.repository.list({ agentId }, { limit: SKILLS + 1 });
    if (entries.length > SKILLS) throw refused(`the agent has more than ${SKILLS} skills`);
    const own = entries.map(({ entry, version }): Candidate => {
      const { facts, valid, digest, tree, warnings } = version;
      const about = { folder: entry.name, name: entry.name, dropped: [], source: `agent:${agentId}/${entry.name}`, fresh: new Map() };
      return facts === null || !valid
        ? { ...about, version: null, warnings: [], failure: { code: 'SKILL_INVALID', reason: warnings[0] ?? 'it is not usable' } }
        : { ...about, version: { digest, tree, facts, valid, warnings }, warnings, failure: null };
    });
    const taken = new Set(own.map(({ name }) => name));
    const contributed = (await this.repository.contributions(null, null)).flatMap(({ owner, version }): Candidate[] => {
      const name = version.facts?.name;
      if (owner === 'builtin' || name === undefined || taken.has(name)) return [];
      const reason = `${owner} contributes it to every agent that may use the plugin; it is not the agent's own`;
      const failure = { code: 'PLUGIN_OWNED' as const, reason };
      return [{ folder: name, name, version: null, failure, dropped: [], warnings: [], source: owner, fresh: new Map() }];
    });
    return { candidates: [...own, ...contributed].slice(0, SKILLS), loose: [] };
  }

  async #uploaded(files: readonly FileEntry[]): Promise<SourceFile[]> {
    check(files);
    const digests = await this.blobs.missing(files);
    if (digests.length > 0) throw fault(skillStore.previewImport, 'BLOB_MISSING', { digests });
    return files.map((entry) => ({ entry, read: async () => (await this.blobs.read(entry.digest)) ?? new Uint8Array(), fresh: null }));
  }

  async #unpacked(archive: string): Promise<SourceFile[]> {
    const size = await this.blobs.size(archive);
    if (size === undefined) throw fault(skillStore.previewImport, 'BLOB_MISSING', { digests: [archive] });
    if (size > IMPORT_BYTES) throw refused(`the archive has ${size} bytes; at most ${IMPORT_BYTES} are taken`);
    const files = unpack((await this.blobs.read(archive)) ?? new Uint8Array()).map(([path, { bytes, executable }]) => ({
      path,
      bytes,
      executable,
    }));
    check(files.map(({ path, bytes }) => ({ path, bytes: bytes.byteLength })));
    return files.map(({ path, bytes, executable }) => ({
      entry: { path, mode: executable ? 'executable' : 'file', bytes: bytes.byteLength, digest: digestOfBytes(bytes) },
      read: () => Promise.resolve(bytes),
      fresh: bytes,
    }));
  }

  async #ofFiles(format: ImportFormat, files: readonly SourceFile[]): Promise<Sourced> {
    const place = importPlaces[format];
    const byPath = new Map(files.map((file) => [file.entry.path, file]));
    const dialect = DIALECTS[format];
    const paths = [...byPath.keys()];
    const isOfFolders = dialect === 'standard' || dialect === 'claude';
    const { skills, misspelled, loose } = isOfFolders ? sortIntoSkills(paths, place) : sortIntoPages(paths, place, dialect);
    if (skills.length + misspelled.length > SKILLS) throw refused(`there are more than ${SKILLS} skills; import them by parts`);
    if (skills.length + misspelled.length === 0)
      throw refused(
        `there is no ${isOfFolders ? 'SKILL.md' : `page (${PAGE_ENDINGS[dialect]})`} in ${place}, nor in another folder that is not hidden`,
      );
    const candidates: Candidate[] = [];
    const names = new Set<string>();
    for (const skill of skills) {
      const found = await readSkillFolder(skill, byPath, { format, dialect });
      // One that cannot be used takes no name from another.
      const isTaken = found.version !== null && found.name !== null && names.has(found.name);
      if (found.version !== null && found.name !== null) names.add(found.name);
      const reason = `another folder before it is the skill "${found.name}"`;
      candidates.push(isTaken ? { ...found, name: null, version: null, failure: { code: 'SKILL_INVALID', reason } } : found);
    }
    for (const folder of misspelled)
      candidates.push({
        ...{ folder, name: null, version: null, dropped: [], warnings: [], source: `external:${format}`, fresh: new Map() },
        failure: { code: 'SKILL_INVALID', reason: 'its file must be called SKILL.md, in these letters' },
      });
    return { candidates: candidates.map((one) => nameless(one, names)), loose };
  }
}

/** A name is one candidate's alone: of those that cannot be used, the first that no usable one has. */
function nameless(candidate: Candidate, names: Set<string>): Candidate {
  if (candidate.version !== null || candidate.name === null) return candidate;
  if (names.has(candidate.name)) return { ...candidate, name: null };
  names.add(candidate.name);
  return candidate;
}

function check(files: readonly { readonly path: string; readonly bytes: number }[]): void {
  const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total > IMPORT_BYTES) throw refused(`the files have ${total} bytes; an import takes at most ${IMPORT_BYTES}`);
  const problem = pathsProblem(files.map(({ path }) => path));
  if (problem !== undefined) throw refused(problem);
}

function unpack(archive: Uint8Array) {
  try {
    return [...unpackArchive(archive)];
  } catch (error) {
    if (error instanceof ArchiveRefused) throw refused(error.message);
    throw error;
  }
}

function refused(reason: string) {
  return fault(skillStore.previewImport, 'IMPORT_REFUSED', { reason: reason.slice(0, 1_000) });
}
