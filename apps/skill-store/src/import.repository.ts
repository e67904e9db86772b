import type { Call } from '@ambit/bus';
import { BlobStore, digestOfBytes, treeDigest } from '@ambit/bundle';
import { fault, skillStore, type ImportChoice, type ImportFailure, type ImportResult } from '@ambit/contracts';
import { appendAudits, DB, type Prisma, type SkillDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import { tellChange, type Change } from './change.repository.js';
import { decideImport, type Standing } from './domain/import-decision.js';
import type { UsableVersion } from './import.candidate.js';
import { enterScope } from './scope.repository.js';
import { ScriptRepository } from './script.repository.js';
import { changeOf } from './skill.change.js';
import type { Entry } from './skill.repository.js';
import { renameSkillFile } from './skill-file.writer.js';
import { saveVersionIn } from './version.row.js';

const OWNER = 'skill-store';
/** Who waits longer for another change of the same agent is told so. */
const LOCK_MS = 5_000;
const COMMIT_MS = 60_000;
/** What changes several skills of an agent holds this first. */
export const scopeLock = (agentId: string): string => `skill-import.${agentId}`;

/** A skill that is stored whole and waits for its name; the text of its SKILL.md is needed where it may get another. */
export interface Staged {
  readonly choice: ImportChoice;
  readonly version: UsableVersion;
  readonly source: string;
  readonly manifest: Uint8Array;
}
export interface Target {
  readonly standing: (name: string) => Standing | undefined;
  readonly isTaken: (name: string) => boolean;
}
interface Place {
  readonly agentId: string;
  /** Whose the scope was when the import began. */
  readonly life: number;
  readonly projectId: string;
}
interface Done {
  readonly result: ImportResult;
  readonly change?: Change;
}

/** Moves the pointers of one import, all in one transaction: after a crash the target is as before or as decided. */
@Injectable()
export class ImportRepository {
  constructor(
    @Inject(DB) private readonly db: SkillDb,
    private readonly scripts: ScriptRepository,
  ) {}

  /** The names of an agent's own skills, and those that plugins contribute. */
  target(agentId: string): Promise<Target> {
    return readTarget(this.db, agentId);
  }

  /** Decides each skill under the target's lock and installs those that may be; what is not staged has its result already. */
  async commit(place: Place, skills: readonly (Staged | ImportResult)[], call: Call): Promise<ImportResult[]> {
    return this.db
      .$transaction((transaction) => this.#all(transaction, place, { skills, call }), { timeout: COMMIT_MS, maxWait: LOCK_MS })
      .catch((error: unknown) => {
        throw isLockTimeout(error) ? fault(skillStore.executeImport, 'IMPORT_BUSY') : error;
      });
  }

  async #all(
    transaction: Prisma.TransactionClient,
    place: Place,
    { skills, call }: { readonly skills: readonly (Staged | ImportResult)[]; readonly call: Call },
  ): Promise<ImportResult[]> {
    await transaction.$executeRawUnsafe(`SET LOCAL lock_timeout = ${LOCK_MS}`);
    if ((await enterScope(transaction, place.agentId)) !== place.life) throw fault(skillStore.executeImport, 'AGENT_UNKNOWN');
    await lock(transaction, scopeLock(place.agentId));
    const target = await readTarget(transaction, place.agentId);
    const given = new Set(skills.flatMap((skill) => ('choice' in skill ? skill.choice.name : [])));
    const all: Done[] = [];
    for (const skill of skills) {
      if (!('choice' in skill)) {
        all.push({ result: skill });
        continue;
      }
      const isTaken = (name: string): boolean => target.isTaken(name) || given.has(name);
      const done = await this.#one(transaction, place, { skill, isTaken, call });
      all.push(done);
      if (done.result.as !== null) given.add(done.result.as);
    }
    await tell(
      transaction,
      all.flatMap(({ change }) => change ?? []),
    );
    return all.map(({ result }) => result);
  }

  async #one(
    transaction: Prisma.TransactionClient,
    place: Place,
    { skill, isTaken, call }: { readonly skill: Staged; readonly isTaken: (name: string) => boolean; readonly call: Call },
  ): Promise<Done> {
    const { choice, source } = skill;
    const standing = await lockedEntry(transaction, place.agentId, choice.name);
    const decision = decideImport(choice, standing ?? undefined, isTaken);
    if (decision.kind === 'fail') return { result: failed(choice, decision.code, decision.reason) };
    if (decision.kind === 'skip') return { result: { ...nothing(choice), outcome: 'skipped', reason: decision.reason } };
    const { as, outcome } = decision;
    const before = as === choice.name ? standing : await lockedEntry(transaction, place.agentId, as);
    // Somebody else's put came first: on to the next name.
    if (as !== choice.name && before !== null)
      return this.#one(transaction, place, { skill, isTaken: (name) => name === as || isTaken(name), call });
    const version = as === choice.name ? skill.version : await renamed(transaction, skill, as);
    if (version === undefined)
      return { result: failed(choice, 'SKILL_INVALID', `its SKILL.md cannot be given the name "${as}" without changing more`) };
    const key = { agentId: place.agentId, name: as };
    const values = { digest: version.digest, source, folder: null, version: (before?.version ?? 0) + 1, updatedAt: call.startedAt };
    await transaction.skillEntry.upsert({
      where: { agentId_name: key },
      create: { ...key, projectId: place.projectId, enabled: true, set: null, ...values },
      update: values,
    });
    await this.scripts.forget(transaction, { ...key, but: version.digest });
    const change = changeOf(
      { ...place, set: null },
      {
        ...{ name: as, reason: before === null ? ('installed' as const) : ('updated' as const), context: call },
        ...{ digests: [before?.digest ?? null, version.digest] as const, about: `imported from ${source}` },
      },
    );
    return { result: { ...nothing(choice), outcome, as, digest: version.digest }, change };
  }
}

async function renamed(transaction: Prisma.TransactionClient, skill: Staged, name: string): Promise<UsableVersion | undefined> {
  const bytes = renameSkillFile(skill.manifest, name);
  if (bytes === undefined) return undefined;
  const digest = digestOfBytes(bytes);
  await new BlobStore(transaction, OWNER).add(bytes);
  const tree = skill.version.tree.map((file) => (file.path === 'SKILL.md' ? { ...file, bytes: bytes.byteLength, digest } : file));
  const version = { ...skill.version, tree, digest: treeDigest(tree), facts: { ...skill.version.facts, name } };
  await saveVersionIn(transaction, version);
  return version;
}

/** One event for the agent, one audit record a skill; at most 1,000 of them. */
async function tell(transaction: Prisma.TransactionClient, changes: readonly Change[]): Promise<void> {
  const [first, ...others] = changes;
  if (first === undefined) return;
  const reason = changes.every((change) => change.reason === first.reason) ? first.reason : 'installed';
  await tellChange(transaction, { ...first, reason, names: changes.flatMap(({ names }) => names) });
  await appendAudits(
    transaction,
    OWNER,
    others.map(({ at, audit }) => ({ ...audit, at: at.toISOString() })),
  );
}

async function readTarget(db: Pick<SkillDb, 'skillEntry' | 'skillContribution'>, agentId: string): Promise<Target> {
  const entries = await db.skillEntry.findMany({ where: { agentId }, select: { name: true, digest: true, folder: true } });
  const contributed = new Set((await db.skillContribution.findMany({ select: { name: true } })).map(({ name }) => name));
  const byName = new Map(entries.map(({ name, digest, folder }) => [name, { digest, folder }]));
  return { standing: (name) => byName.get(name), isTaken: (name) => byName.has(name) || contributed.has(name) };
}

/** What the agent has under a name, with the lock that every change of this name takes. */
async function lockedEntry(transaction: Prisma.TransactionClient, agentId: string, name: string): Promise<Entry | null> {
  await lock(transaction, `skill.${agentId}.${name}`);
  return transaction.skillEntry.findUnique({ where: { agentId_name: { agentId, name } } });
}

async function lock(transaction: Prisma.TransactionClient, key: string): Promise<void> {
  await transaction.$queryRawUnsafe(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))::text`, key);
}

/** PostgreSQL's lock_not_available, wherever the driver's adapter put it. */
function isLockTimeout(error: unknown): boolean {
  return error instanceof Error && /lock timeout|55P03/.test(`${error.message} ${JSON.stringify('meta' in error ? error.meta : '')}`);
}

function nothing({ name }: ImportChoice): ImportResult {
  return { name, outcome: 'skipped', as: null, digest: null, code: null, reason: null };
}

/** The result of a skill that was not imported. */
export function failed(choice: ImportChoice, code: ImportFailure, reason: string): ImportResult {
  return { ...nothing(choice), outcome: 'failed', code, reason: reason.slice(0, 500) };
}
