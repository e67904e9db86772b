import { SNAPSHOT_FORMAT } from '@ambit/capability';
import { z } from 'zod';
import type { Place } from './domain/cursor.js';
import type { Published } from './domain/facts.js';
import type { Reader } from './transactions.repository.js';

const Owners = z.record(z.string(), z.int());

export interface SnapshotRow extends Published {
  readonly text: string;
}
export interface MappingRecord {
  readonly sessionId: string;
  readonly fingerprint: string;
  readonly agentId: string;
  readonly owners: Readonly<Record<string, number>>;
  readonly at: string;
}
export type MappingKey = Pick<MappingRecord, 'sessionId' | 'fingerprint'>;
export interface Given extends Published {
  readonly sessionId: string | null;
  readonly at: string;
}

export const snapshots = {
  async find(db: Reader, fingerprint: string): Promise<SnapshotRow | undefined> {
    return (
      (await db.snapshot.findUnique({
        where: { fingerprint },
        select: { fingerprint: true, agentId: true, text: true, tools: true, skills: true },
      })) ?? undefined
    );
  },

  /** True where it is new. */
  async store(db: Reader, snapshot: SnapshotRow, now: Date): Promise<boolean> {
    const data = { ...snapshot, format: SNAPSHOT_FORMAT, bytes: Buffer.byteLength(snapshot.text), createdAt: now };
    return (await db.snapshot.createMany({ data: [data], skipDuplicates: true })).count === 1;
  },

  /**
   * Joins everybody who gives this snapshot to a session now; none of them meets a sweep of it. Undefined where its row is gone, else
   * whether the bucket had to give it up.
   */
  async share(db: Reader, fingerprint: string): Promise<{ readonly isSwept: boolean } | undefined> {
    await db.$executeRaw`SELECT pg_advisory_xact_lock_shared(hashtextextended(${`session-service.snapshot.${fingerprint}`}, 0))`;
    const row = await db.snapshot.findUnique({ where: { fingerprint }, select: { sweptAt: true } });
    return row === null ? undefined : { isSwept: row.sweptAt !== null };
  },

  /** Waits until nobody gives this snapshot to a session, and keeps them out until the transaction ends. */
  async alone(db: Reader, fingerprint: string): Promise<{ readonly sweptAt: Date | null } | undefined> {
    await db.$executeRaw`SELECT pg_advisory_xact_lock(hashtextextended(${`session-service.snapshot.${fingerprint}`}, 0))`;
    return (await db.snapshot.findUnique({ where: { fingerprint }, select: { sweptAt: true } })) ?? undefined;
  },

  async mark(db: Reader, fingerprint: string, sweptAt: Date | null): Promise<void> {
    await db.snapshot.updateMany({ where: { fingerprint }, data: { sweptAt } });
  },

  /** Which of these snapshots were last used before a moment, and by no run that is going. */
  async unused(db: Reader, fingerprints: readonly string[], before: Date): Promise<string[]> {
    const rows = await db.$queryRaw<{ fingerprint: string }[]>`
      SELECT s."fingerprint" FROM "session_service"."snapshot" s WHERE s."fingerprint" = ANY(${[...fingerprints]}::text[]) AND s."created_at" < ${before}
        AND NOT EXISTS (SELECT 1 FROM "session_service"."mapping" m WHERE m."agent_id" = s."agent_id" AND m."at" >= ${before} AND m."fingerprint" = s."fingerprint")
        AND NOT EXISTS (SELECT 1 FROM "session_service"."run" r WHERE r."agent_id" = s."agent_id" AND r."ended_at" IS NULL AND s."fingerprint" = ANY(r."fingerprints"))`;
    return rows.map(({ fingerprint }) => fingerprint);
  },

  async known(db: Reader, fingerprints: readonly string[]): Promise<Set<string>> {
    const rows = await db.snapshot.findMany({ where: { fingerprint: { in: [...fingerprints] } }, select: { fingerprint: true } });
    return new Set(rows.map(({ fingerprint }) => fingerprint));
  },

  /** Which of these mappings have a row that somebody may still use: newer than a moment, or of a session with a run that is going. Locks the others. */
  async unusedMappings(db: Reader, keys: readonly MappingKey[], before: Date): Promise<MappingKey[]> {
    return db.$queryRaw<MappingKey[]>`
      SELECT m."session_id"::text AS "sessionId", m."fingerprint" FROM "session_service"."mapping" m
      JOIN unnest(${keys.map(({ sessionId }) => sessionId)}::uuid[], ${keys.map(({ fingerprint }) => fingerprint)}::text[]) AS k("session", "fingerprint")
        ON m."session_id" = k."session" AND m."fingerprint" = k."fingerprint"
      WHERE m."at" < ${before} AND NOT EXISTS (SELECT 1 FROM "session_service"."run" r WHERE r."session_id" = m."session_id" AND r."ended_at" IS NULL)
      FOR UPDATE OF m`;
  },

  async knownMappings(db: Reader, keys: readonly MappingKey[]): Promise<MappingKey[]> {
    return db.mapping.findMany({
      where: { OR: keys.map(({ sessionId, fingerprint }) => ({ sessionId, fingerprint })) },
      select: { sessionId: true, fingerprint: true },
    });
  },

  /** What an agent's runs, or one session, were given, newest first. */
  async given(
    db: Reader,
    filter: { sessionId?: string | undefined; agentId?: string | undefined; before?: Place | undefined; limit: number },
  ): Promise<Given[]> {
    const { sessionId, agentId, before, limit } = filter;
    const rows = await db.$queryRaw<{ fingerprint: string; agentId: string; sessionId: string; tools: number; skills: number; at: Date }[]>`
      SELECT m."fingerprint", m."agent_id" AS "agentId", m."session_id" AS "sessionId", s."tools", s."skills", m."at"
      FROM "session_service"."mapping" m JOIN "session_service"."snapshot" s ON s."fingerprint" = m."fingerprint"
      WHERE (${sessionId ?? null}::uuid IS NULL OR m."session_id" = ${sessionId ?? null}::uuid) AND (${agentId ?? null}::text IS NULL OR m."agent_id" = ${agentId ?? null})
        AND (${before?.at ?? null}::timestamptz IS NULL OR (m."at", m."session_id") < (${before?.at ?? null}::timestamptz, ${before?.id ?? null}::uuid))
      ORDER BY m."at" DESC, m."session_id" DESC LIMIT ${limit}`;
    return rows.map((row) => ({ ...row, at: row.at.toISOString() }));
  },

  async mapping(db: Reader, sessionId: string, fingerprint: string): Promise<MappingRecord | undefined> {
    const row = await db.mapping.findUnique({ where: { sessionId_fingerprint: { sessionId, fingerprint } } });
    return row === null ? undefined : mappingOf(row);
  },

  /** Takes away what a session was given; gives the fingerprints. */
  async unmap(db: Reader, sessionId: string): Promise<string[]> {
    const rows = await db.mapping.findMany({ where: { sessionId }, select: { fingerprint: true } });
    await db.mapping.deleteMany({ where: { sessionId } });
    return rows.map(({ fingerprint }) => fingerprint);
  },

  async newestMapping(db: Reader, sessionId: string): Promise<MappingRecord | undefined> {
    const row = await db.mapping.findFirst({ where: { sessionId }, orderBy: { at: 'desc' } });
    return row === null ? undefined : mappingOf(row);
  },

  async map(db: Reader, mapping: MappingRecord): Promise<void> {
    const { sessionId, fingerprint, agentId, owners, at } = mapping;
    const data = { agentId, owners: { ...owners }, at: new Date(at) };
    await db.mapping.upsert({
      where: { sessionId_fingerprint: { sessionId, fingerprint } },
      create: { sessionId, fingerprint, ...data },
      update: data,
    });
  },
};

function mappingOf(row: { sessionId: string; fingerprint: string; agentId: string; owners: unknown; at: Date }): MappingRecord {
  return { ...row, owners: Owners.parse(row.owners), at: row.at.toISOString() };
}
