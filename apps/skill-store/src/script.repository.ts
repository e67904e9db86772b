import { DB, type Prisma, type SkillDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import { tellChange, type Change } from './change.repository.js';
import { enterScope } from './scope.repository.js';

interface OfVersion {
  readonly agentId: string;
  readonly name: string;
  readonly digest: string;
}

/** Which scripts of which versions may be run: a row of an (agent, skill, path) names the one digest that somebody looked at. */
@Injectable()
export class ScriptRepository {
  constructor(@Inject(DB) private readonly db: SkillDb) {}

  /** The paths enabled for some agents' skills, by version, in order. */
  async of(agentIds: readonly string[]): Promise<(version: OfVersion) => string[]> {
    const rows = await this.db.skillScript.findMany({ where: { agentId: { in: [...agentIds] } }, orderBy: { path: 'asc' } });
    return ({ agentId, name, digest }) =>
      rows.flatMap((row) => (row.agentId === agentId && row.name === name && row.digest === digest ? [row.path] : []));
  }

  async isEnabled({ agentId, name, digest, path }: OfVersion & { readonly path: string }): Promise<boolean> {
    const row = await this.db.skillScript.findUnique({ where: { agentId_name_path: { agentId, name, path } } });
    return row?.digest === digest;
  }

  /** Says of one script that it may be run, of this version alone. False where the agent was deleted since its `life` was read. */
  async enable(
    change: Change,
    { agentId, name, digest, path, life }: OfVersion & { readonly path: string; readonly life: number },
  ): Promise<boolean> {
    return this.db.$transaction(async (transaction) => {
      if ((await enterScope(transaction, agentId)) !== life) return false;
      const key = { agentId, name, path };
      const values = { ...key, digest, enabledAt: change.at };
      await transaction.skillScript.upsert({ where: { agentId_name_path: key }, create: values, update: values });
      await tellChange(transaction, change);
      return true;
    });
  }

  /** Takes that back. */
  async disable(change: Change, key: { readonly agentId: string; readonly name: string; readonly path: string }): Promise<void> {
    await this.db.$transaction(async (transaction) => {
      const { count } = await transaction.skillScript.deleteMany({ where: key });
      if (count > 0) await tellChange(transaction, change);
    });
  }

  /** What somebody looked at is gone with its version: it does not come back with it. */
  async forget(
    transaction: Prisma.TransactionClient,
    { but, ...of }: { readonly agentId: string; readonly name: string; readonly but: string | null },
  ): Promise<void> {
    await transaction.skillScript.deleteMany({ where: { ...of, ...(but === null ? {} : { digest: { not: but } }) } });
  }
}
