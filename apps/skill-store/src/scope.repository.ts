import { DB, type Prisma, type SkillDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import { tellChange, type Change } from './change.repository.js';

/** Names that one event tells. */
const TOLD = 1_000;
const lifeLock = (agentId: string): string => `skill-life.${agentId}`;

/** Whose a scope is: the agents of one id, one after another. */
@Injectable()
export class ScopeRepository {
  constructor(@Inject(DB) private readonly db: SkillDb) {}

  /** How many agents of this id were deleted so far: asked before something is begun for one of them, and held against {@link enterScope} when it is done. */
  async life(agentId: string): Promise<number> {
    return readLife(this.db, agentId);
  }

  /** Removes all that an agent has, once; answers how many skills it had. */
  async remove(change: Omit<Change, 'names'>, createdAt: Date): Promise<number> {
    const { agentId } = change;
    return this.db.$transaction(async (transaction) => {
      await transaction.$queryRawUnsafe(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))::text`, lifeLock(agentId));
      const before = await transaction.skillRemovedScope.findUnique({ where: { agentId } });
      // Asked for again: by now the id may be another agent's.
      if (before !== null && before.createdAt >= createdAt) return 0;
      const entries = await transaction.skillEntry.findMany({ where: { agentId }, orderBy: { name: 'asc' } });
      await transaction.skillBuried.createMany({
        data: entries.flatMap(({ name, digest, folder }) => (folder === null ? [] : [{ agentId, name, digest }])),
        skipDuplicates: true,
      });
      await transaction.skillEntry.deleteMany({ where: { agentId } });
      await transaction.skillScript.deleteMany({ where: { agentId } });
      await transaction.skillSwitchedOff.deleteMany({ where: { agentId } });
      const values = { createdAt, removals: (before?.removals ?? 0) + 1 };
      await transaction.skillRemovedScope.upsert({ where: { agentId }, create: { agentId, ...values }, update: values });
      await tellChange(transaction, { ...change, names: entries.slice(0, TOLD).map(({ name }) => name) });
      return entries.length;
    });
  }

  /** What of these agents' folders was another's, who was deleted. */
  async buried(agentIds: readonly string[]): Promise<(skill: Buried) => boolean> {
    const rows = await this.db.skillBuried.findMany({ where: { agentId: { in: [...agentIds] } } });
    const keys = new Set(rows.map(keyOf));
    return (skill) => keys.has(keyOf(skill));
  }
}

interface Buried {
  readonly agentId: string;
  readonly name: string;
  readonly digest: string;
}
const keyOf = ({ agentId, name, digest }: Buried): string => `${agentId}/${name} ${digest}`;

/** Keeps a scope from being removed until the transaction ends; answers whose it is. */
export async function enterScope(transaction: Prisma.TransactionClient, agentId: string): Promise<number> {
  await enterScopes(transaction, [agentId]);
  return readLife(transaction, agentId);
}

/** The same for several. */
export async function enterScopes(transaction: Prisma.TransactionClient, agentIds: readonly string[]): Promise<void> {
  await transaction.$queryRawUnsafe(
    `SELECT pg_advisory_xact_lock_shared(hashtextextended(l."key", 0))::text FROM unnest($1::text[]) AS l("key")`,
    [...new Set(agentIds)].map(lifeLock),
  );
}

async function readLife(db: Pick<SkillDb, 'skillRemovedScope'>, agentId: string): Promise<number> {
  return (await db.skillRemovedScope.findUnique({ where: { agentId } }))?.removals ?? 0;
}
