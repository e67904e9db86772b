import type { Reader } from './transactions.repository.js';

export const knownJournal = {
  /** Which journal our rows belong to. Undefined in an installation that has not seen one yet. */
  async find(db: Reader): Promise<string | undefined> {
    return (await db.knownJournal.findUnique({ where: { id: 1 }, select: { created: true } }))?.created;
  },

  /** One replica at a time. */
  async alone(db: Reader): Promise<void> {
    await db.$executeRaw`SELECT pg_advisory_xact_lock(hashtextextended('session-service.rebuild', 0))`;
  },

  async remember(db: Reader, created: string, at: Date): Promise<void> {
    await db.knownJournal.upsert({ where: { id: 1 }, create: { id: 1, created, at }, update: { created, at } });
  },
};
