import { digestOfBytes, treeDigest, treeProblem } from '@ambit/bundle';
import { SkillName } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { namesOfRefused, type Refusal } from './domain/skill-folder.js';
import { Refused, scanScope, Unsettled, type Entered, type Found, type FoundFile, type FoundSkill } from './folder.reader.js';
import { isMuch, type MirrorBatch } from './mirror.batch.js';
import type { MirroredSkill, Standing } from './mirror.repository.js';
import type { OpenFolder } from './open-folder.js';
import { readSkillFile } from './skill-file.reader.js';

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
  readonly batch: MirrorBatch;
  readonly standing: ReadonlyMap<string, Standing>;
  readonly before: ReadonlyMap<string, Known>;
  readonly now: Map<string, Known>;
  /** Of usable skills. */
  readonly names: Set<string>;
  readonly refused: Invalid[];
  /** Folders whose skill stays as it stands. */
  readonly unsettled: Set<string>;
  /** Read, and not stored yet. */
  readonly read: MirroredSkill[];
}
/** Of one look at one agent's scope. */
export interface Look {
  readonly agentId: string;
  readonly standing: readonly Standing[];
  readonly batch: MirrorBatch;
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

  constructor(@Inject(LOG) private readonly log: Logger) {}

  /** A scope that is missing is an empty one; one that is refused has nothing but the reason. */
  async mirror({ agentId, standing, batch }: Look, scope: OpenFolder | Refused | undefined, entered: Entered): Promise<Outcome> {
    const before = this.known.get(agentId) ?? new Map<string, Known>();
    const byName = new Map(standing.map((entry) => [entry.name, entry]));
    const pass: Pass = {
      agentId,
      batch,
      standing: byName,
      before,
      now: new Map(),
      names: new Set(),
      refused: [],
      unsettled: new Set(),
      read: [],
    };
    if (scope instanceof Refused) await this.#take(pass, { folder: '', refused: scope.message });
    else if (scope !== undefined) for await (const found of scanScope(scope, entered)) await this.#take(pass, found);
    const refused = this.#refusedOf(pass);
    const kept = new Set([...pass.names, ...refused.map(({ name }) => name)]);
    const gone = standing.filter(({ name, folder }) => folder !== null && !kept.has(name) && !pass.unsettled.has(folder));
    const put = [...pass.read, ...refused.filter(({ name, folder, version }) => !isThere(byName.get(name), folder, version.digest))];
    await batch.add({ agentId, put, remove: gone.map(({ name }) => name) }, () => {
      if (pass.now.size > 0) this.known.set(agentId, pass.now);
      else this.known.delete(agentId);
    });
    return { moved: !isSame(before, pass.now), isUnsettled: pass.unsettled.size > 0 };
  }

  async #take(pass: Pass, found: Found): Promise<void> {
    const { folder } = found;
    if ('unsettled' in found) pass.unsettled.add(folder);
    else if ('refused' in found)
      keep(pass, folder, { signature: found.refused, isSettled: true, is: { folder, claims: null, reason: found.refused } });
    else {
      const known = pass.before.get(folder);
      const isAsBefore = known?.isSettled === true && known.signature === found.signature && stands(pass, folder, known);
      const next = isAsBefore ? known : await this.#read(pass, found);
      if (next === undefined) pass.unsettled.add(folder);
      else keep(pass, folder, next);
    }
  }

  /** Undefined where it changed while it was read. */
  async #read(pass: Pass, found: FoundSkill): Promise<Known | undefined> {
    const { folder, signature, changedAt } = found;
    let files: FoundFile[];
    try {
      files = await found.read();
    } catch (error) {
      if (error instanceof Unsettled) return undefined;
      throw error;
    }
    const is = judge(pass, folder, files);
    if ('version' in is && !isThere(pass.standing.get(is.name), folder, is.version.digest)) {
      pass.read.push(is);
      if (isMuch(pass.read)) await pass.batch.add({ agentId: pass.agentId, put: pass.read.splice(0), remove: [] });
    }
    const isTwice = 'reason' in is && is.isTwice === true;
    const kept = 'version' in is ? { name: is.name, digest: is.version.digest } : is;
    return { signature, is: kept, isSettled: !isTwice && changedAt < Date.now() - SETTLES_MS };
  }

  /** What refused folders are listed as. */
  #refusedOf(pass: Pass): MirroredSkill[] {
    const listed = pass.refused.slice(0, LISTED_REFUSED);
    const others = [...pass.standing.values()].filter(({ folder }) => folder === null || pass.unsettled.has(folder));
    const names = namesOfRefused(listed, new Set([...pass.names, ...others.map(({ name }) => name)]), sha256);
    return listed.map(({ folder, reason }) => {
      const warnings = [reason.slice(0, 500)];
      const version = { digest: sha256(`refused ${reason}`), tree: [], facts: null, valid: false, warnings };
      const name = names.get(folder) ?? '';
      if (!isThere(pass.standing.get(name), folder, version.digest))
        this.log.warn({ agentId: pass.agentId, folder, reason }, 'a skill folder was not taken');
      return { name, folder, version, contents: new Map() };
    });
  }
}

function keep(pass: Pass, folder: string, known: Known): void {
  pass.now.set(folder, known);
  if ('reason' in known.is) pass.refused.push(known.is);
  else pass.names.add(known.is.name);
}

function judge({ names }: Pass, folder: string, files: readonly FoundFile[]): MirroredSkill | Invalid {
  const invalid = (reason: string, claims: string | null = null): Invalid => ({ folder, claims, reason });
  const manifest = files.find(({ path }) => path === 'SKILL.md')?.bytes;
  if (manifest === undefined) return invalid('SKILL.md is no file');
  const verdict = readSkillFile(manifest, null);
  if ('invalid' in verdict) return invalid(verdict.invalid, claimOf(manifest));
  const { facts, warnings } = verdict;
  if (names.has(facts.name)) return { ...invalid(`another folder before it is the skill "${facts.name}"`, facts.name), isTwice: true };
  const contents = new Map<string, Buffer>();
  const tree = files.map(({ path, executable, bytes }) => {
    const digest = digestOfBytes(bytes);
    contents.set(digest, bytes);
    return { path, mode: executable ? ('executable' as const) : ('file' as const), bytes: bytes.byteLength, digest };
  });
  const problem = treeProblem(tree);
  if (problem !== undefined) return invalid(problem, facts.name);
  return { name: facts.name, folder, version: { digest: treeDigest(tree), tree, facts, valid: true, warnings }, contents };
}

function isThere(standing: Standing | undefined, folder: string, digest: string): boolean {
  return standing?.folder === folder && standing.digest === digest;
}

function stands({ standing, names }: Pass, folder: string, { is }: Known): boolean {
  return 'reason' in is || (!names.has(is.name) && isThere(standing.get(is.name), folder, is.digest));
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
