import type { FileEntry, Skill } from '@ambit/contracts';
import { FileEntry as FileEntrySchema, SkillFacts } from '@ambit/contracts';
import { DB, type Prisma, type SkillDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';
import { EVERYBODY, scopeOfOwner, tellChange, type Change } from './change.repository.js';
import { enterScope } from './scope.repository.js';
import { ScriptRepository } from './script.repository.js';
import { saveVersionIn } from './version.row.js';

export interface Version {
  readonly digest: string;
  readonly tree: readonly FileEntry[];
  readonly facts: z.output<typeof SkillFacts> | null;
  readonly valid: boolean;
  readonly warnings: readonly string[];
}
export type Entry = Prisma.SkillEntryGetPayload<object>;
export interface EntryWithVersion {
  readonly entry: Entry;
  readonly version: Version;
  /** The scripts of this version that may be run, by path. */
  readonly scripts: readonly string[];
}
const Tree = z.array(FileEntrySchema);
const Warnings = z.array(z.string());
const readVersion = (row: Prisma.SkillVersionGetPayload<object>): Version => ({
  digest: row.digest,
  tree: Tree.parse(row.tree),
  facts: row.facts === null ? null : SkillFacts.parse(row.facts),
  valid: row.valid,
  warnings: Warnings.parse(row.warnings),
});

/** Where skills stand: immutable versions, one pointer an (agent, name), contributions, epochs. */
@Injectable()
export class SkillRepository {
  constructor(
    @Inject(DB) private readonly db: SkillDb,
    private readonly scripts: ScriptRepository,
  ) {}

  async saveVersion(version: Version): Promise<void> {
    await saveVersionIn(this.db, version);
  }

  async version(digest: string): Promise<Version | undefined> {
    const row = await this.db.skillVersion.findUnique({ where: { digest } });
    return row === null ? undefined : readVersion(row);
  }

  async find(agentId: string, name: string): Promise<EntryWithVersion | undefined> {
    const entry = await this.db.skillEntry.findUnique({ where: { agentId_name: { agentId, name } } });
    const version = entry === null ? undefined : await this.version(entry.digest);
    if (entry === null || version === undefined) return undefined;
    return { entry, version, scripts: (await this.scripts.of([agentId]))(entry) };
  }

  /** Entries in order of (agent, name), after `after`, with their versions. */
  async list(
    where: { readonly agentId?: string; readonly projectId?: string; readonly set?: string },
    page: { readonly after?: { readonly agentId: string; readonly name: string }; readonly limit: number },
  ): Promise<EntryWithVersion[]> {
    const entries = await this.db.skillEntry.findMany({
      where,
      orderBy: [{ agentId: 'asc' }, { name: 'asc' }],
      take: page.limit,
      ...(page.after === undefined ? {} : { cursor: { agentId_name: page.after }, skip: 1 }),
    });
    const [versions, scriptsOf] = await Promise.all([
      this.versions(entries.map((entry) => entry.digest)),
      this.scripts.of([...new Set(entries.map(({ agentId }) => agentId))]),
    ]);
    return entries.flatMap((entry) => {
      const version = versions.get(entry.digest);
      return version === undefined ? [] : [{ entry, version, scripts: scriptsOf(entry) }];
    });
  }

  async contributions(
    projectId: string | null,
    owners: readonly string[] | null,
  ): Promise<{ readonly owner: Skill['owner']; readonly projectId: string; readonly version: Version }[]> {
    const rows = await this.db.skillContribution.findMany({
      where: { ...(projectId === null ? {} : { projectId }), ...(owners === null ? {} : { owner: { in: [...owners] } }) },
      orderBy: { name: 'asc' },
    });
    const versions = await this.versions(rows.map((row) => row.digest));
    return rows.flatMap((row) => {
      const version = versions.get(row.digest);
      return version === undefined ? [] : [{ owner: row.owner, projectId: row.projectId, version }];
    });
  }

  /** Moves with the agent's epoch and with those of the owners, null for all of them: their sum, for the latest of them alone could hide an earlier one's move. */
  async epoch(agentId: string, owners: readonly string[] | null): Promise<number> {
    const ofOwners = owners === null ? { startsWith: scopeOfOwner('') } : { in: owners.map(scopeOfOwner) };
    const rows = await this.db.skillEpoch.findMany({ where: { OR: [{ scope: agentId }, { scope: ofOwners }] } });
    return rows.reduce((sum, row) => sum + Number(row.epoch), 0);
  }

  /** Decides on the locked entry and whose scope it is, writes what was decided, and tells it: pointer, epoch, event and audit in one transaction. */
  async change(
    change: Change,
    decide: (entry: Entry | null, life: number) => Prisma.SkillEntryUncheckedCreateInput | 'delete',
  ): Promise<void> {
    const [name] = change.names;
    if (name === undefined) return;
    await this.db.$transaction(async (transaction) => {
      const life = await enterScope(transaction, change.agentId);
      await transaction.$queryRawUnsafe(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))::text`, `skill.${change.agentId}.${name}`);
      const key = { agentId_name: { agentId: change.agentId, name } };
      const decided = decide(await transaction.skillEntry.findUnique({ where: key }), life);
      if (decided === 'delete') await transaction.skillEntry.deleteMany({ where: key.agentId_name });
      else await transaction.skillEntry.upsert({ where: key, create: decided, update: decided });
      // What a person does now counts for more than what they did with an earlier skill of this name.
      await transaction.skillSwitchedOff.deleteMany({ where: key.agentId_name });
      await this.scripts.forget(transaction, { ...key.agentId_name, but: decided === 'delete' ? null : decided.digest });
      await tellChange(transaction, change);
    });
  }

  /** Replaces everything an owner contributes; `[]` withdraws it. Answers how many there were. */
  async replaceContributions(
    change: Change & { readonly owner: string },
    rows: readonly Prisma.SkillContributionUncheckedCreateInput[],
  ): Promise<number> {
    return this.db.$transaction(async (transaction) => {
      const { count } = await transaction.skillContribution.deleteMany({ where: { owner: change.owner } });
      if (rows.length > 0) await transaction.skillContribution.createMany({ data: [...rows] });
      if (count > 0 || rows.length > 0) await tellChange(transaction, { ...change, agentId: EVERYBODY });
      return count;
    });
  }

  private async versions(digests: readonly string[]): Promise<Map<string, Version>> {
    const rows = await this.db.skillVersion.findMany({ where: { digest: { in: [...new Set(digests)] } } });
    return new Map(rows.map((row) => [row.digest, readVersion(row)]));
  }
}
