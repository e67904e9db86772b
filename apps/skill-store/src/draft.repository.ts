import { DB, type SkillDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';

export interface Draft {
  readonly sessionId: string;
  readonly name: string;
  readonly digest: string;
  readonly expiresAt: Date;
}

/** Pointers from (session, name) to versions; each ends by itself. */
@Injectable()
export class DraftRepository {
  constructor(@Inject(DB) private readonly db: SkillDb) {}

  /** Puts a draft in the place of its session's earlier one of that name; false where the session has `limit` others. */
  async put(draft: Draft, limit: number): Promise<boolean> {
    const { sessionId, name } = draft;
    return this.db.$transaction(async (transaction) => {
      await transaction.$queryRawUnsafe(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))::text`, `skill-drafts.${sessionId}`);
      if ((await transaction.skillDraft.count({ where: { sessionId, name: { not: name } } })) >= limit) return false;
      await transaction.skillDraft.upsert({ where: { sessionId_name: { sessionId, name } }, create: draft, update: draft });
      return true;
    });
  }

  find(sessionId: string, name: string): Promise<Draft | null> {
    return this.db.skillDraft.findUnique({ where: { sessionId_name: { sessionId, name } } });
  }

  list(sessionId: string): Promise<Draft[]> {
    return this.db.skillDraft.findMany({ where: { sessionId }, orderBy: { name: 'asc' } });
  }

  /** Of one digest alone where it is given: what was written since stays. */
  async remove(sessionId: string, name: string, digest?: string): Promise<boolean> {
    const { count } = await this.db.skillDraft.deleteMany({ where: { sessionId, name, ...(digest === undefined ? {} : { digest }) } });
    return count > 0;
  }

  async removeExpired(now: Date): Promise<void> {
    await this.db.skillDraft.deleteMany({ where: { expiresAt: { lte: now } } });
  }
}
