import type { Reader } from './transactions.repository.js';

/** An agent that was deleted, as long as others may still have something of it. */
export interface Leaving {
  readonly id: string;
  readonly createdAt: Date;
}

const AT_ONCE = 100;

export const leavings = {
  async add(db: Reader, { id, createdAt }: Leaving, at: Date): Promise<void> {
    await db.deletedAgent.create({ data: { id, createdAt, at } });
  },

  async has(db: Reader, id: string): Promise<boolean> {
    return (await db.deletedAgent.findUnique({ where: { id } })) !== null;
  },

  /** Those that wait since before a time, oldest first. */
  async open(db: Reader, before: Date): Promise<Leaving[]> {
    return db.deletedAgent.findMany({ where: { at: { lt: before } }, orderBy: { at: 'asc' }, take: AT_ONCE });
  },

  async done(db: Reader, { id, createdAt }: Leaving): Promise<void> {
    await db.deletedAgent.deleteMany({ where: { id, createdAt } });
  },
};
