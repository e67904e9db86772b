import { Bus, type Call } from '@ambit/bus';
import {
  fault,
  skillStore,
  type Agent,
  type ImportCandidate,
  type ImportChoice,
  type ImportResult,
  type ImportSource,
  type Parsed,
  type Returns,
} from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { AgentDirectory } from './agent.directory.js';
import { SkillBlobs } from './blobs.js';
import { freeName, type Standing } from './domain/import-decision.js';
import type { Candidate } from './import.candidate.js';
import { failed, ImportRepository, type Staged } from './import.repository.js';
import { ImportSources } from './import.source.js';
import { ScopeRepository } from './scope.repository.js';
import { SkillRepository } from './skill.repository.js';

const NOTES = 20;
const LOOSE = 50;

/** Shows what an import would do, and does it: each skill for itself, all that can be done in one step. */
@Injectable()
export class ImportService {
  /** Settles with the last archive that is or will be worked on. */
  #archives: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly agents: AgentDirectory,
    private readonly sources: ImportSources,
    private readonly blobs: SkillBlobs,
    private readonly skills: SkillRepository,
    private readonly repository: ImportRepository,
    private readonly scopes: ScopeRepository,
    private readonly bus: Bus,
  ) {}

  preview(request: Parsed<typeof skillStore.previewImport>, call: Call): Promise<Returns<typeof skillStore.previewImport>> {
    return this.#inTurn(request.source, call, () => this.#preview(request, call));
  }

  execute(request: Parsed<typeof skillStore.executeImport>, call: Call): Promise<Returns<typeof skillStore.executeImport>> {
    return this.#inTurn(request.source, call, () => this.#execute(request, call));
  }

  /** An archive is unpacked in memory, so that there is one at a time. */
  #inTurn<T>(source: ImportSource, call: Call, work: () => Promise<T>): Promise<T> {
    if (source.kind !== 'archive') return work();
    const mine = this.#archives.then(() => {
      call.signal.throwIfAborted();
      return work();
    });
    this.#archives = mine.catch(() => undefined);
    return mine;
  }

  async #preview(request: Parsed<typeof skillStore.previewImport>, call: Call): Promise<Returns<typeof skillStore.previewImport>> {
    await this.#target(request, call);
    const { candidates, loose } = await this.sources.read(request.source, call);
    const wanted = request.names === undefined ? null : new Set<string | null>(request.names);
    const shown = candidates.filter(({ name }) => wanted === null || wanted.has(name));
    const target = await this.repository.target(request.agentId);
    const given = new Set(shown.flatMap(({ name }) => name ?? []));
    return {
      skills: shown.map((candidate) => previewOf(candidate, target.standing, (name) => target.isTaken(name) || given.has(name))),
      dropped: shorten(loose, LOOSE),
    };
  }

  async #execute(request: Parsed<typeof skillStore.executeImport>, call: Call): Promise<Returns<typeof skillStore.executeImport>> {
    const life = await this.scopes.life(request.agentId);
    const { projectId } = await this.#target(request, call);
    const { candidates } = await this.sources.read(request.source, call);
    const byName = new Map(candidates.map((candidate) => [candidate.name, candidate]));
    const staged: (Staged | ImportResult)[] = [];
    for (const [index, choice] of request.skills.entries()) {
      call.signal.throwIfAborted();
      staged.push(await this.#stage(choice, byName.get(choice.name)));
      const { importId } = request;
      const progress = { done: index + 1, total: request.skills.length, name: choice.name };
      if (importId !== undefined)
        this.bus.signal(skillStore.importProgressed, { importId, ...progress }, { keys: { importId }, within: call });
    }
    const results = await this.repository.commit({ agentId: request.agentId, life, projectId }, staged, call);
    return { results, failed: results.filter(({ outcome }) => outcome === 'failed').length };
  }

  async #target({ agentId, source }: Parsed<typeof skillStore.previewImport>, call: Call): Promise<Agent> {
    const agent = await this.agents.holder(agentId, call);
    if (source.kind === 'agent' && source.agentId === agentId) throw fault(skillStore.previewImport, 'IMPORT_SAME_AGENT');
    return agent;
  }

  /** Stores what a skill is made of; until a name points to it, it is listed nowhere. */
  async #stage(choice: ImportChoice, candidate: Candidate | undefined): Promise<Staged | ImportResult> {
    if (candidate === undefined) return failed(choice, 'SKILL_NOT_FOUND', 'the source has no such skill (any more); preview again');
    const { version, failure, fresh, source } = candidate;
    if (version === null)
      return failed(choice, failure?.code ?? 'SKILL_INVALID', `${failure?.reason ?? 'it is not usable'}; preview again`);
    if (version.digest !== choice.digest)
      return failed(choice, 'SOURCE_CHANGED', 'the skill is not the one that was previewed any more; preview again');
    for (const digest of await this.blobs.missing(version.tree)) {
      const bytes = fresh.get(digest);
      if (bytes !== undefined) await this.blobs.add(bytes);
    }
    await this.skills.saveVersion(version);
    const manifest = version.tree.find(({ path }) => path === 'SKILL.md');
    const text = choice.onConflict === 'rename' && manifest !== undefined ? await this.blobs.read(manifest.digest) : undefined;
    return { choice, version, source, manifest: text ?? new Uint8Array() };
  }
}

function previewOf(
  candidate: Candidate,
  standing: (name: string) => Standing | undefined,
  isTaken: (name: string) => boolean,
): ImportCandidate {
  const { folder, name, version, failure, dropped, warnings } = candidate;
  const there = name === null || version === null ? undefined : standing(name);
  return {
    name,
    folder,
    status: version === null ? 'unavailable' : there === undefined ? 'ready' : 'conflict',
    digest: version?.digest ?? null,
    replaces: there?.digest ?? null,
    suggestedName: name === null || there === undefined ? null : (freeName(name, undefined, isTaken) ?? null),
    code: failure?.code ?? null,
    reason: failure?.reason.slice(0, 500) ?? null,
    dropped: shorten(dropped, NOTES),
    warnings: shorten(warnings, NOTES),
    files: version?.tree.length ?? 0,
    bytes: version?.tree.reduce((sum, file) => sum + file.bytes, 0) ?? 0,
  };
}

/** At most so many notes of at most 200 characters; the last says how many more there are. */
function shorten(notes: readonly string[], most: number): string[] {
  const cut = notes.map((note) => (note.length > 200 ? `${note.slice(0, 199)}…` : note));
  return cut.length <= most ? cut : [...cut.slice(0, most - 1), `and ${cut.length - most + 1} more`];
}
