import type { Reader } from './transactions.repository.js';

export const ownerFences = {
  /** Only ever rises. */
  async raise(db: Reader, fence: { readonly owner: string; readonly service: string; readonly fence: number }, now: Date): Promise<void> {
    await db.$executeRaw`
      INSERT INTO "session_service"."owner_fence" ("owner", "service", "fence", "at") VALUES (${fence.owner}, ${fence.service}, ${BigInt(fence.fence)}, ${now})
      ON CONFLICT ("owner", "service") DO UPDATE SET "fence" = GREATEST("session_service"."owner_fence"."fence", EXCLUDED."fence"), "at" = EXCLUDED."at"`;
  },

  async all(db: Reader): Promise<Map<string, number>> {
    const newest = new Map<string, number>();
    for (const { owner, fence } of await db.ownerFence.findMany()) newest.set(owner, Math.max(newest.get(owner) ?? 0, Number(fence)));
    return newest;
  },

  async of(db: Reader, owners: readonly string[]): Promise<Map<string, number>> {
    const rows = await db.ownerFence.findMany({ where: { owner: { in: [...owners] } } });
    const newest = new Map<string, number>();
    for (const { owner, fence } of rows) newest.set(owner, Math.max(newest.get(owner) ?? 0, Number(fence)));
    return newest;
  },
};

export const pools = {
  async remember(
    db: Reader,
    pool: { readonly agentId: string; readonly pool: string; readonly consumer: string },
    now: Date,
  ): Promise<void> {
    await db.pool.createMany({ data: [{ ...pool, createdAt: now }], skipDuplicates: true });
  },
  async forget(db: Reader, agentId: string, pool: string): Promise<void> {
    await db.pool.deleteMany({ where: { agentId, pool } });
  },
  async all(db: Reader): Promise<{ agentId: string; pool: string }[]> {
    return db.pool.findMany({ select: { agentId: true, pool: true } });
  },
};
