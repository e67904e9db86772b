import { digestOfBytes, treeProblem } from '@ambit/bundle';
import { SkillName } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { SkillBlobs } from './blobs.js';
import { namesOfRefused, type Refusal } from './domain/skill-folder.js';
import { Refused, scanScope, Unsettled, type Entered, type Found, type FoundFile, type FoundSkill } from './folder.reader.js';
import type { OpenFolder } from './open-folder.js';
import { readSkillFile } from './skill-file.reader.js';
import { SkillRepository, type Standing } from './skill.repository.js';
import { SkillService } from './skill.service.js';

/** A file that changed so lately may change again without its times telling. */
const SETTLES_MS = 2_000;
/** Folders of a scope that are listed with the reason why they are none. */
const LISTED_REFUSED = 200;

type Invalid = Refusal & { readonly reason: string; /** Because of another folder, not of itself. */ readonly isTwice?: boolean };
interface Known {
  readonly signature: string;
  readonly isSettled: boolean;
  /** What came of it. */
  readonly is: { readonly name: string; readonly digest: string } | Invalid;
}
/** What a pass is working with. */
interface Pass {
  readonly agentId: string;
  readonly standing: ReadonlyMap<string, Standing>;
  readonly before: ReadonlyMap<string, Known>;
  readonly now: Map<string, Known>;
  /** Of usable skills. */
  readonly names: Set<string>;
  readonly refused: Invalid[];
  /** Folders whose skill stays as it stands. */
  readonly unsettled: Set<string>;
}
export interface Outcome {
  /** Whether anything on disk was other than when this scope was last looked at. */
  readonly moved: boolean;
  /** Whether something of it changed while it was looked at, so that it has to be looked at again. */
  readonly isUnsettled: boolean;
}

/** Makes an agent's mirrored skills those of its scope's folders. What stands and did not move on disk is not read again. */
@Injectable()
export class ScopeMirror {
  private readonly known = new Map<string, ReadonlyMap<string, Known>>();

  constructor(
    @Inject(LOG) private readonly log: Logger,
    private readonly blobs: SkillBlobs,
    private readonly repository: SkillRepository,
    private readonly skills: SkillService,
  ) {}

  /** A scope that is missing is an empty one; one that is refused has nothing but the reason. */
  async mirror(agentId: string, scope: OpenFolder | Refused | undefined, entered: Entered): Promise<Outcome> {
    const before = this.known.get(agentId) ?? new Map<string, Known>();
    const standing = new Map((await this.repository.standing(agentId)).map((entry) => [entry.name, entry]));
    const pass: Pass = { agentId, standing, before, now: new Map(), names: new Set(), refused: [], unsettled: new Set() };
    if (scope instanceof Refused) pass.refused.push({ folder: '', claims: null, reason: scope.message });
    else if (scope !== undefined) for await (const found of scanScope(scope, entered)) await this.#take(pass, found);
    await this.#removeOthers(pass, await this.#listRefused(pass));
    if (pass.now.size > 0) this.known.set(agentId, pass.now);
    else this.known.delete(agentId);
    return { moved: !isSame(before, pass.now), isUnsettled: pass.unsettled.size > 0 };
  }

  async #take(pass: Pass, found: Found): Promise<void> {
    const { folder } = found;
    if ('unsettled' in found) pass.unsettled.add(folder);
    else if ('refused' in found)
      this.#keep(pass, { signature: found.refused, isSettled: true, is: { folder, claims: null, reason: found.refused } });
    else {
      const known = pass.before.get(folder);
      const isAsBefore = known?.isSettled === true && known.signature === found.signature && stands(pass, known);
      const next = isAsBefore ? known : await this.#read(pass, found);
      if (next === undefined) pass.unsettled.add(folder);
      else this.#keep(pass, next, folder);
    }
  }

  #keep(pass: Pass, known: Known, folder = ''): void {
    if ('reason' in known.is) {
      pass.refused.push(known.is);
      pass.now.set(known.is.folder, known);
    } else {
      pass.names.add(known.is.name);
      pass.now.set(folder, known);
    }
  }

  /** Undefined where it changed while it was read, or could not be stored just now. */
  async #read(pass: Pass, found: FoundSkill): Promise<Known | undefined> {
    const { folder, signature, changedAt } = found;
    try {
      const files = await found.read();
      const manifest = files.find(({ path }) => path === 'SKILL.md')?.bytes;
      const is = await this.#judge(pass, { folder, files, manifest });
      const isTwice = 'reason' in is && is.isTwice;
      return { signature, is, isSettled: !isTwice && changedAt < Date.now() - SETTLES_MS };
    } catch (error) {
      if (!(error instanceof Unsettled)) this.log.error({ error, agentId: pass.agentId, folder }, 'a skill folder could not be stored');
      return undefined;
    }
  }

  async #judge(
    { agentId, names }: Pass,
    { folder, files, manifest }: { readonly folder: string; readonly files: readonly FoundFile[]; readonly manifest: Buffer | undefined },
  ): Promise<Known['is']> {
    const invalid = (reason: string, claims: string | null = null): Invalid => ({ folder, claims, reason });
    if (manifest === undefined) return invalid('SKILL.md is no file');
    const verdict = readSkillFile(manifest, null);
    if ('invalid' in verdict) return invalid(verdict.invalid, claimOf(manifest));
    const { name } = verdict.facts;
    if (names.has(name)) return { ...invalid(`another folder before it is the skill "${name}"`, name), isTwice: true };
    const entries = files.map(({ path, executable, bytes }) => ({
      path,
      mode: executable ? ('executable' as const) : ('file' as const),
      bytes: bytes.byteLength,
      digest: digestOfBytes(bytes),
    }));
    const problem = treeProblem(entries);
    if (problem !== undefined) return invalid(problem, name);
    const missing = new Set(await this.blobs.missing(entries));
    for (const { bytes } of files) if (missing.delete(digestOfBytes(bytes))) await this.blobs.add(bytes);
    const source = `folder:${folder}`.slice(0, 500);
    const { digest } = await this.skills.put({ agentId, projectId: 'default', files: entries, source, set: null, folder }, context());
    return { name, digest };
  }

  /** Gives the names that refused folders are listed under. */
  async #listRefused(pass: Pass): Promise<ReadonlySet<string>> {
    const listed = pass.refused.slice(0, LISTED_REFUSED);
    const others = [...pass.standing.values()].filter(({ folder }) => folder === null || pass.unsettled.has(folder));
    const names = namesOfRefused(listed, new Set([...pass.names, ...others.map(({ name }) => name)]), sha256);
    for (const { folder, reason } of listed) {
      const name = names.get(folder) ?? '';
      const standing = pass.standing.get(name);
      const digest = sha256(`refused ${reason}`);
      if (standing?.digest === digest && standing.folder === folder) continue;
      this.log.warn({ agentId: pass.agentId, folder, reason }, 'a skill folder was not taken');
      await this.skills.putInvalid({ agentId: pass.agentId, name, folder, digest, reason }, context());
    }
    return new Set(names.values());
  }

  async #removeOthers({ agentId, standing, names, unsettled }: Pass, refused: ReadonlySet<string>): Promise<void> {
    for (const { name, folder } of standing.values()) {
      if (folder === null || names.has(name) || refused.has(name) || unsettled.has(folder)) continue;
      await this.skills.remove(agentId, name, context());
    }
  }
}

function stands({ standing, names }: Pass, { is }: Known): boolean {
  if ('reason' in is) return true;
  const entry = standing.get(is.name);
  return !names.has(is.name) && entry?.digest === is.digest && entry.folder !== null;
}

function isSame(before: ReadonlyMap<string, Known>, now: ReadonlyMap<string, Known>): boolean {
  return before.size === now.size && [...now].every(([folder, { signature }]) => before.get(folder)?.signature === signature);
}

/** What a SKILL.md that cannot be used calls itself. */
function claimOf(manifest: Buffer): string | null {
  const [, name] = /^name:[ \t]*["']?([a-z0-9-]{1,64})["']?[ \t]*\r?$/m.exec(manifest.subarray(0, 4_096).toString('utf8')) ?? [];
  return SkillName.safeParse(name).data ?? null;
}

function sha256(text: string): string {
  return digestOfBytes(Buffer.from(text));
}

const context = () => ({
  principal: undefined,
  actor: { id: 'system:skills-root', kind: 'system' as const, issuer: 'local', display: 'skills folder' },
  via: { kind: 'system' as const, id: 'skills-root' },
  startedAt: new Date(),
  traceId: null,
});
