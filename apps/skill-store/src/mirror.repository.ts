import { DB, type Prisma, type SkillDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import { SkillBlobs } from './blobs.js';
import { tellMany, type Change } from './change.repository.js';
import { scopeLock } from './import.repository.js';
import { enterScopes, ScopeRepository } from './scope.repository.js';
import { changeOf } from './skill.change.js';
import type { Entry, Version } from './skill.repository.js';
import { saveVersionsIn } from './version.row.js';

const COMMIT_MS = 60_000;

export type Standing = Pick<Entry, 'agentId' | 'name' | 'folder' | 'digest'>;
/** A folder as it is to stand: a skill, or the reason why it is none. */
export interface MirroredSkill {
  readonly name: string;
  readonly folder: string;
  readonly version: Version;
  /** Bytes by digest. */
  readonly contents: ReadonlyMap<string, Uint8Array>;
}
/** Of one agent. */
export interface MirroredChange {
  readonly agentId: string;
  readonly put: readonly MirroredSkill[];
  /** Names. */
  readonly remove: readonly string[];
}

/** Makes an agent's skills those of its folders, as many at once as changed together. */
@Injectable()
export class MirrorRepository {
  constructor(
    @Inject(DB) private readonly db: SkillDb,
    private readonly blobs: SkillBlobs,
    private readonly scopes: ScopeRepository,
  ) {}

  /** Every skill that some agents have, mirrored or not. */
  async standing(agentIds: readonly string[]): Promise<Standing[]> {
    const where = { agentId: { in: [...agentIds] } };
    return this.db.skillEntry.findMany({ where, select: { agentId: true, name: true, folder: true, digest: true } });
  }

  /** The agents that have mirrored skills. */
  async agents(): Promise<string[]> {
    const rows = await this.db.skillEntry.groupBy({ by: ['agentId'], where: { folder: { not: null } } });
    return rows.map(({ agentId }) => agentId);
  }

  /** Stores what is new and moves all pointers in one transaction: one event an agent and kind of change, one audit record a skill. */
  async apply(changes: readonly MirroredChange[]): Promise<void> {
    const read = changes.flatMap((change) => change.put.map((skill) => ({ ...skill, agentId: change.agentId })));
    const isBuried = await this.scopes.buried(changes.map(({ agentId }) => agentId));
    const put = read.filter((skill) => !isBuried({ ...skill, digest: skill.version.digest }));
    const remove = changes.flatMap((change) => change.remove.map((name) => ({ name, agentId: change.agentId })));
    if (put.length + remove.length === 0) return;
    await this.blobs.addAll(new Map(put.flatMap(({ contents }) => [...contents])));
    await saveVersionsIn(
      this.db,
      put.map(({ version }) => version),
    );
    await this.db.$transaction((transaction) => move(transaction, put, remove), { timeout: COMMIT_MS, maxWait: COMMIT_MS });
  }
}

interface Named {
  readonly agentId: string;
  readonly name: string;
}
type Put = MirroredSkill & Named;

async function move(transaction: Prisma.TransactionClient, put: readonly Put[], remove: readonly Named[]): Promise<void> {
  const all = [...put, ...remove];
  await lock(transaction, all);
  const standing = await transaction.skillEntry.findMany({ where: { OR: all.map(({ agentId, name }) => ({ agentId, name })) } });
  const before = new Map(standing.map((entry) => [keyOf(entry), entry]));
  // An upload of the name that came meanwhile is not the folder's to take away.
  const removed = remove.filter((one) => (before.get(keyOf(one))?.folder ?? null) !== null);
  const about = context();
  await removeAll(transaction, removed, (one) => before.get(keyOf(one))?.enabled === false);
  await putAll(transaction, put, about.startedAt);
  await forgetScripts(transaction, put, removed);
  const changed = (reason: Change['reason'], one: Named, digest: string | null): Change => {
    const { projectId, set } = before.get(keyOf(one)) ?? { projectId: 'default', set: null };
    const digests = [before.get(keyOf(one))?.digest ?? null, digest] as const;
    return changeOf({ agentId: one.agentId, projectId, set }, { name: one.name, reason, context: about, digests });
  };
  await tellMany(transaction, [
    ...put.map((one) => changed(before.has(keyOf(one)) ? 'updated' : 'installed', one, one.version.digest)),
    ...removed.map((one) => changed('removed', one, null)),
  ]);
}

const keyOf = ({ agentId, name }: Named): string => `${agentId}/${name}`;

/** The scopes' locks before those of names, each in order, so that no two wait for each other. */
async function lock(transaction: Prisma.TransactionClient, all: readonly Named[]): Promise<void> {
  const scopes = [...new Set(all.map(({ agentId }) => scopeLock(agentId)))].sort();
  const names = all.map(({ agentId, name }) => `skill.${agentId}.${name}`).sort();
  await enterScopes(
    transaction,
    all.map(({ agentId }) => agentId),
  );
  await transaction.$queryRawUnsafe(
    `SELECT pg_advisory_xact_lock(hashtextextended(l."key", 0))::text FROM unnest($1::text[]) WITH ORDINALITY AS l("key", n) ORDER BY n`,
    [...scopes, ...names],
  );
}

async function removeAll(transaction: Prisma.TransactionClient, removed: readonly Named[], isOff: (one: Named) => boolean): Promise<void> {
  if (removed.length === 0) return;
  const named = removed.map(({ agentId, name }) => ({ agentId, name }));
  await transaction.skillSwitchedOff.createMany({ data: named.filter(isOff), skipDuplicates: true });
  await transaction.skillEntry.deleteMany({ where: { OR: named } });
}

async function putAll(transaction: Prisma.TransactionClient, put: readonly Put[], at: Date): Promise<void> {
  if (put.length === 0) return;
  const rows = put.map(({ agentId, name, folder, version }) => ({
    ...{ agentId, name, folder },
    digest: version.digest,
    source: `folder:${folder}`.slice(0, 500),
  }));
  await transaction.$executeRawUnsafe(
    `INSERT INTO "skill_store"."entry" ("agent_id", "name", "project_id", "digest", "enabled", "source", "set", "folder", "version", "updated_at")
     SELECT p."agentId", p."name", 'default', p."digest",
       NOT EXISTS (SELECT 1 FROM "skill_store"."switched_off" o WHERE o."agent_id" = p."agentId" AND o."name" = p."name"), p."source", NULL, p."folder", 1, $2::timestamptz
     FROM json_to_recordset($1::json) AS p("agentId" text, "name" text, "folder" text, "digest" text, "source" text)
     ON CONFLICT ("agent_id", "name") DO UPDATE SET "digest" = EXCLUDED."digest", "source" = EXCLUDED."source", "set" = NULL, "folder" = EXCLUDED."folder",
       "version" = "entry"."version" + 1, "updated_at" = EXCLUDED."updated_at"`,
    JSON.stringify(rows),
    at.toISOString(),
  );
  await transaction.skillSwitchedOff.deleteMany({ where: { OR: put.map(({ agentId, name }) => ({ agentId, name })) } });
}

/** What somebody looked at is gone with its version. */
async function forgetScripts(transaction: Prisma.TransactionClient, put: readonly Put[], removed: readonly Named[]): Promise<void> {
  const kept = put.map(({ agentId, name, version }) => ({ agentId, name, digest: version.digest }));
  await transaction.$executeRawUnsafe(
    `DELETE FROM "skill_store"."script" s USING json_to_recordset($1::json) AS p("agentId" text, "name" text, "digest" text)
     WHERE s."agent_id" = p."agentId" AND s."name" = p."name" AND s."digest" IS DISTINCT FROM p."digest"`,
    JSON.stringify([...kept, ...removed.map(({ agentId, name }) => ({ agentId, name, digest: null }))]),
  );
}

const context = () => ({
  principal: undefined,
  actor: { id: 'system:skills-root', kind: 'system' as const, issuer: 'local', display: 'skills folder' },
  via: { kind: 'system' as const, id: 'skills-root' },
  startedAt: new Date(),
  traceId: null,
});
