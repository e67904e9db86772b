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
