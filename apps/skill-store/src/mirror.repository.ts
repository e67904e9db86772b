import { DB, type Prisma, type SkillDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import { SkillBlobs } from './blobs.js';
import type { Change } from './change.repository.js';
import { scopeLock, tellAll } from './import.repository.js';
import { changeOf } from './skill.change.js';
import type { Entry, Version } from './skill.repository.js';
import { saveVersionsIn } from './version.row.js';

const COMMIT_MS = 60_000;
/** Names of one event. */
const TOLD = 500;

export type Standing = Pick<Entry, 'name' | 'folder' | 'digest'>;
/** A folder as it is to stand: a skill, or the reason why it is none. */
export interface MirroredSkill {
  readonly name: string;
  readonly folder: string;
  readonly version: Version;
  /** Bytes by digest. */
  readonly contents: ReadonlyMap<string, Uint8Array>;
}
export interface MirroredChange {
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
  ) {}

  /** Every skill that an agent has, mirrored or not. */
  async standing(agentId: string): Promise<Standing[]> {
    return this.db.skillEntry.findMany({ where: { agentId }, select: { name: true, folder: true, digest: true } });
  }

  /** The agents that have mirrored skills. */
  async agents(): Promise<string[]> {
    const rows = await this.db.skillEntry.groupBy({ by: ['agentId'], where: { folder: { not: null } } });
    return rows.map(({ agentId }) => agentId);
  }

  /** Stores what is new and moves all pointers in one transaction: one event a kind of change, one audit record a skill. */
  async apply(agentId: string, { put, remove }: MirroredChange): Promise<void> {
    if (put.length + remove.length === 0) return;
    await this.blobs.addAll(new Map(put.flatMap(({ contents }) => [...contents])));
    await saveVersionsIn(
      this.db,
      put.map(({ version }) => version),
    );
    await this.db.$transaction((transaction) => move(transaction, agentId, { put, remove }), { timeout: COMMIT_MS, maxWait: COMMIT_MS });
  }
}

async function move(transaction: Prisma.TransactionClient, agentId: string, { put, remove }: MirroredChange): Promise<void> {
  const names = [...put.map(({ name }) => name), ...remove];
  const locks = [scopeLock(agentId), ...[...names].sort().map((name) => `skill.${agentId}.${name}`)];
  await transaction.$queryRawUnsafe(
    `SELECT pg_advisory_xact_lock(hashtextextended(l."key", 0))::text FROM unnest($1::text[]) WITH ORDINALITY AS l("key", n) ORDER BY n`,
    locks,
  );
  const standing = await transaction.skillEntry.findMany({ where: { agentId, name: { in: names } } });
  const before = new Map(standing.map((entry) => [entry.name, entry]));
  const about = context();
  // An upload of the name that came meanwhile is not the folder's to take away.
  const removed = remove.filter((name) => (before.get(name)?.folder ?? null) !== null);
  const off = removed.filter((name) => before.get(name)?.enabled === false);
  await transaction.skillSwitchedOff.createMany({ data: off.map((name) => ({ agentId, name })), skipDuplicates: true });
  await transaction.skillEntry.deleteMany({ where: { agentId, name: { in: removed } } });
  await putAll(transaction, agentId, { put, at: about.startedAt });
  await forgetScripts(transaction, agentId, { put, removed });
  const changed = (reason: Change['reason'], name: string, digest: string | null): Change => {
    const { projectId, set } = before.get(name) ?? { projectId: 'default', set: null };
    return changeOf({ agentId, projectId, set }, { name, reason, context: about, digests: [before.get(name)?.digest ?? null, digest] });
  };
  const [fresh, known] = [put.filter(({ name }) => !before.has(name)), put.filter(({ name }) => before.has(name))];
  await tellAll(
    transaction,
    fresh.map(({ name, version }) => changed('installed', name, version.digest)),
  );
  await tellAll(
    transaction,
    known.map(({ name, version }) => changed('updated', name, version.digest)),
  );
  for (let from = 0; from < removed.length; from += TOLD)
    await tellAll(
      transaction,
      removed.slice(from, from + TOLD).map((name) => changed('removed', name, null)),
    );
}

async function putAll(
  transaction: Prisma.TransactionClient,
  agentId: string,
  { put, at }: { readonly put: readonly MirroredSkill[]; readonly at: Date },
): Promise<void> {
  const rows = put.map(({ name, folder, version }) => ({ name, folder, digest: version.digest, source: `folder:${folder}`.slice(0, 500) }));
  await transaction.$executeRawUnsafe(
    `INSERT INTO "skill_store"."entry" ("agent_id", "name", "project_id", "digest", "enabled", "source", "set", "folder", "version", "updated_at")
     SELECT $1, p."name", 'default', p."digest",
       NOT EXISTS (SELECT 1 FROM "skill_store"."switched_off" o WHERE o."agent_id" = $1 AND o."name" = p."name"), p."source", NULL, p."folder", 1, $3::timestamptz
     FROM json_to_recordset($2::json) AS p("name" text, "folder" text, "digest" text, "source" text)
     ON CONFLICT ("agent_id", "name") DO UPDATE SET "digest" = EXCLUDED."digest", "source" = EXCLUDED."source", "set" = NULL, "folder" = EXCLUDED."folder",
       "version" = "entry"."version" + 1, "updated_at" = EXCLUDED."updated_at"`,
    agentId,
    JSON.stringify(rows),
    at.toISOString(),
  );
  await transaction.skillSwitchedOff.deleteMany({ where: { agentId, name: { in: put.map(({ name }) => name) } } });
}

/** What somebody looked at is gone with its version. */
async function forgetScripts(
  transaction: Prisma.TransactionClient,
  agentId: string,
  { put, removed }: { readonly put: readonly MirroredSkill[]; readonly removed: readonly string[] },
): Promise<void> {
  await transaction.$executeRawUnsafe(
    `DELETE FROM "skill_store"."script" s USING json_to_recordset($2::json) AS p("name" text, "digest" text)
     WHERE s."agent_id" = $1 AND s."name" = p."name" AND s."digest" IS DISTINCT FROM p."digest"`,
    agentId,
    JSON.stringify([
      ...put.map(({ name, version }) => ({ name, digest: version.digest })),
      ...removed.map((name) => ({ name, digest: null })),
    ]),
  );
}

const context = () => ({
  principal: undefined,
  actor: { id: 'system:skills-root', kind: 'system' as const, issuer: 'local', display: 'skills folder' },
  via: { kind: 'system' as const, id: 'skills-root' },
  startedAt: new Date(),
  traceId: null,
});
