import { Prisma } from '@ambit/db';
import type { Reader } from './transactions.repository.js';

const TEXT = JSON.stringify({ content: [{ type: 'text', text: '[erased]' }] });

/** What is left of a tape entry: its place, whose call it is and how that ended, and nothing that anybody said. */
const ERASED = Prisma.sql`
  "text" = '', "retention" = 'erased', "content" = CASE "kind"
    WHEN 'tool_call' THEN json_build_object('callId', "content"->>'callId', 'name', "content"->>'name', 'arguments', '{}')
    WHEN 'tool_result' THEN json_build_object('callId', "content"->>'callId', 'status', "content"->>'status')
    ELSE ${TEXT}::json END`;

/** Removes content and leaves what ties records together. */
export const erasure = {
  /** Sessions that are a principal's, oldest first. */
  async sessionsOf(db: Reader, principal: string, limit: number): Promise<string[]> {
    const rows = await db.session.findMany({
      where: { principalId: principal },
      select: { id: true },
      orderBy: { createdAt: 'asc' },
      take: limit,
    });
    return rows.map(({ id }) => id);
  },

  /** Runs for a principal that have not ended, in whoever's session. */
  async openRunsOf(db: Reader, principal: string): Promise<string[]> {
    const rows = await db.$queryRaw<{ id: string }[]>`
      SELECT "id"::text FROM "session_service"."run" WHERE "ended_at" IS NULL AND "principal"->>'id' = ${principal}
      UNION SELECT r."id"::text FROM "session_service"."run" r JOIN "session_service"."session" s ON s."id" = r."session_id" WHERE r."ended_at" IS NULL AND s."principal_id" = ${principal}`;
    return rows.map(({ id }) => id);
  },

  /** Messages that wait: a principal's, in whoever's session, and all in its own. */
  async queuedOf(db: Reader, principal: string): Promise<void> {
    await db.$executeRaw`
      DELETE FROM "session_service"."queued_message" WHERE "message"->'principal'->>'id' = ${principal}
        OR "session_id" IN (SELECT "id" FROM "session_service"."session" WHERE "principal_id" = ${principal})`;
  },

  /** What a principal said, and what its runs did, wherever it stands; gives how many entries. */
  async principal(db: Reader, principal: string): Promise<number> {
    const entries = await db.$executeRaw`
      UPDATE "session_service"."tape_entry" t SET ${ERASED} WHERE t."retention" <> 'erased' AND (
        t."session_id" IN (SELECT "id" FROM "session_service"."session" WHERE "principal_id" = ${principal})
        OR t."run_id" IN (SELECT "id" FROM "session_service"."run" WHERE "principal"->>'id' = ${principal}))`;
    await db.$executeRaw`
      UPDATE "session_service"."interaction" SET "arguments_preview" = '{}', "question" = NULL, "asked_back" = NULL, "answer" = NULL, "reason" = NULL, "principal" = jsonb_set("principal", '{display}', '""')
      WHERE "principal"->>'id' = ${principal} OR "session_id" IN (SELECT "id" FROM "session_service"."session" WHERE "principal_id" = ${principal})`;
    await db.$executeRaw`UPDATE "session_service"."interaction" SET "decided_by" = jsonb_set("decided_by", '{display}', '""') WHERE "decided_by"->>'id' = ${principal}`;
    await erasure.queuedOf(db, principal);
    await db.receipt.deleteMany({ where: { principalId: principal } });
    await db.$executeRaw`UPDATE "session_service"."run" SET "principal" = jsonb_set("principal", '{display}', '""'), "reply_to" = NULL WHERE "principal"->>'id' = ${principal}`;
    await db.$executeRaw`
      UPDATE "session_service"."session" SET "principal" = jsonb_set("principal", '{display}', '""'), "conversation_key" = NULL, "scene_id" = '', "thread" = NULL
      WHERE "principal_id" = ${principal}`;
    await db.draft.deleteMany({ where: { principalId: principal } });
    await db.$executeRaw`
      UPDATE "session_service"."delegation_task" t SET "title" = '', "prompt" = '', "expected_output" = NULL, "result" = NULL FROM "session_service"."delegation" d
      WHERE d."id" = t."delegation_id" AND d."principal"->>'id' = ${principal}`;
    await db.$executeRaw`UPDATE "session_service"."delegation" SET "principal" = jsonb_set("principal", '{display}', '""') WHERE "principal"->>'id' = ${principal}`;
    return entries;
  },

  /** Content of tapes that is older than its retention; that of runs that are going stays. */
  async entriesBefore(db: Reader, before: Date, limit: number): Promise<number> {
    return db.$executeRaw`
      UPDATE "session_service"."tape_entry" t SET ${ERASED} WHERE (t."session_id", t."id") IN (
        SELECT e."session_id", e."id" FROM "session_service"."tape_entry" e WHERE e."at" < ${before} AND e."retention" = 'messages'
          AND NOT EXISTS (SELECT 1 FROM "session_service"."run" r WHERE r."session_id" = e."session_id" AND r."ended_at" IS NULL) LIMIT ${limit})`;
  },

  /** What was shown to people who decided, likewise. */
  async interactionsBefore(db: Reader, before: Date): Promise<void> {
    await db.$executeRaw`
      UPDATE "session_service"."interaction" SET "arguments_preview" = '{}', "question" = NULL, "asked_back" = NULL, "answer" = NULL
      WHERE "settled_at" < ${before} AND ("arguments_preview" <> '{}' OR "question" IS NOT NULL OR "answer" IS NOT NULL)`;
  },

  /** Mappings that nobody used since, and the snapshots that no mapping names any more. */
  async snapshotsBefore(db: Reader, before: Date): Promise<number> {
    await db.$executeRaw`
      DELETE FROM "session_service"."mapping" m WHERE m."at" < ${before}
        AND NOT EXISTS (SELECT 1 FROM "session_service"."run" r WHERE r."session_id" = m."session_id" AND r."ended_at" IS NULL)`;
    return db.$executeRaw`
      DELETE FROM "session_service"."snapshot" s WHERE s."swept_at" < ${before}
        AND NOT EXISTS (SELECT 1 FROM "session_service"."mapping" m WHERE m."agent_id" = s."agent_id" AND m."fingerprint" = s."fingerprint")`;
  },
};
