import { MessageIn } from '@ambit/contracts';
import type { Reader, Unit } from './transactions.repository.js';

/** The answer that a message was given, under its sender's key. */
export interface Receipt {
  readonly sessionId: string;
  readonly runId: string | null;
  readonly agentId: string;
  readonly queued: boolean;
  readonly position: number;
}

export const inbound = {
  async receipt(db: Reader, principalId: string, key: string): Promise<Receipt | undefined> {
    const row = await db.receipt.findUnique({
      where: { principalId_key: { principalId, key } },
      select: { sessionId: true, runId: true, agentId: true, queued: true, position: true },
    });
    return row ?? undefined;
  },

  /** False where a request with the same key was answered meanwhile. */
  async keep(unit: Unit, sender: { readonly principalId: string; readonly key: string }, receipt: Receipt): Promise<boolean> {
    return (await unit.sql.receipt.createMany({ data: [{ ...sender, ...receipt, at: unit.now }], skipDuplicates: true })).count === 1;
  },

  async queued(db: Reader, sessionId: string): Promise<number> {
    return db.queuedMessage.count({ where: { sessionId } });
  },

  async enqueue(unit: Unit, sessionId: string, message: MessageIn): Promise<void> {
    const { queueHead } = await unit.sql.session.update({
      where: { id: sessionId },
      data: { queueHead: { increment: 1 } },
      select: { queueHead: true },
    });
    await unit.sql.queuedMessage.create({
      data: { sessionId, place: queueHead, message: JSON.parse(JSON.stringify(message)), at: unit.now },
    });
  },

  async dropQueue(unit: Unit, sessionId: string): Promise<void> {
    await unit.sql.queuedMessage.deleteMany({ where: { sessionId } });
  },

  /** The message that waits longest. */
  async first(db: Reader, sessionId: string): Promise<{ readonly place: number; readonly message: MessageIn } | undefined> {
    const row = await db.queuedMessage.findFirst({ where: { sessionId }, orderBy: { place: 'asc' } });
    return row === null ? undefined : { place: row.place, message: MessageIn.parse(row.message) };
  },

  async take(unit: Unit, sessionId: string, place: number): Promise<boolean> {
    return (await unit.sql.queuedMessage.deleteMany({ where: { sessionId, place } })).count === 1;
  },

  /** The run that a queued message became: its sender's repetition is told so. */
  async answer(unit: Unit, sender: { readonly principalId: string; readonly key: string }, runId: string): Promise<void> {
    await unit.sql.receipt.updateMany({ where: sender, data: { runId, queued: false, position: 0 } });
  },

  /** Sessions with waiting messages and nothing that works. */
  async idleWithQueue(db: Reader): Promise<string[]> {
    const rows = await db.$queryRaw<{ sessionId: string }[]>`
      SELECT DISTINCT q."session_id" AS "sessionId" FROM "session_service"."queued_message" q
      WHERE NOT EXISTS (SELECT 1 FROM "session_service"."run" r WHERE r."session_id" = q."session_id" AND r."ended_at" IS NULL) LIMIT 100`;
    return rows.map(({ sessionId }) => sessionId);
  },

  /** A key is remembered for a week, longer than anybody repeats a request. */
  async forget(db: Reader, before: Date): Promise<void> {
    await db.receipt.deleteMany({ where: { at: { lt: before } } });
  },
};
