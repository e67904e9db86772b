import { Principal } from '@ambit/contracts';
import { z } from 'zod';
import { uuidV7 } from './ids.js';
import type { Reader, Unit } from './transactions.repository.js';

const Runs = z.array(z.object({ runId: z.uuid(), originRunId: z.uuid(), agentId: z.string(), pool: z.string(), hasJob: z.boolean() }));

/** What is to be removed elsewhere for a session that was moved, cleared or deleted. */
export interface Aftercare {
  readonly id: string;
  readonly sessionId: string;
  readonly whole: boolean;
  readonly runs: z.output<typeof Runs>;
  readonly fingerprints: readonly string[];
  readonly by: Principal | null;
  readonly at: Date;
}

export const aftercares = {
  async add(unit: Unit, owed: Omit<Aftercare, 'id' | 'at'>): Promise<Aftercare> {
    const { runs, fingerprints, by, ...rest } = owed;
    const added = { ...owed, id: uuidV7(unit.now.getTime()), at: unit.now };
    await unit.sql.aftercare.create({
      data: { ...rest, id: added.id, at: unit.now, runs: [...runs], fingerprints: [...fingerprints], ...(by === null ? {} : { by }) },
    });
    return added;
  },

  /** Those that wait since before a time, oldest first. */
  async open(db: Reader, before: Date): Promise<Aftercare[]> {
    const rows = await db.aftercare.findMany({ where: { at: { lt: before } }, orderBy: { at: 'asc' }, take: 100 });
    return rows.map((row) => ({ ...row, runs: Runs.parse(row.runs), by: row.by === null ? null : Principal.parse(row.by) }));
  },

  async done(db: Reader, id: string): Promise<void> {
    await db.aftercare.deleteMany({ where: { id } });
  },

  /** Messages of the outbox about these subjects that are published already; the rest of the outbox goes by itself after ten minutes. */
  async dropTold(db: Reader, subjects: readonly string[]): Promise<void> {
    await db.$executeRaw`DELETE FROM "session_service"."outbox" WHERE "settled_at" IS NOT NULL AND "error" IS NULL AND "subject" = ANY(${[...subjects]}::text[])`;
  },
};
