import { MessageIn } from '@ambit/contracts';
import { z } from 'zod';
import type { Opening } from './new-session.js';
import type { Reader, Unit } from './transactions.repository.js';

const Stored = MessageIn.pick({
  principal: true,
  adapter: true,
  endpoint: true,
  sceneId: true,
  thread: true,
  skills: true,
  mode: true,
  workspaceId: true,
});
const Owners = z.record(z.string(), z.int());

export interface DraftRecord {
  readonly id: string;
  readonly principalId: string;
  readonly actorId: string | null;
  readonly agentId: string;
  readonly opening: Opening;
  readonly fingerprint: string;
  readonly owners: Readonly<Record<string, number>>;
  readonly degraded: readonly string[];
  readonly expiresAt: Date;
}

export const drafts = {
  async create(unit: Unit, draft: DraftRecord): Promise<void> {
    const { opening, owners, degraded, ...rest } = draft;
    await unit.sql.draft.create({
      data: { ...rest, opening: Stored.parse(opening), owners: { ...owners }, degraded: [...degraded], createdAt: unit.now },
    });
  },

  /** Those for an agent that is deleted. */
  async dropOf(db: Reader, agentId: string): Promise<void> {
    await db.draft.deleteMany({ where: { agentId } });
  },

  async find(db: Reader, id: string, now: Date): Promise<DraftRecord | undefined> {
    const row = await db.draft.findFirst({ where: { id, expiresAt: { gt: now } } });
    return row === null ? undefined : { ...row, opening: Stored.parse(row.opening), owners: Owners.parse(row.owners) };
  },

  /** False where it was taken before. */
  async take(unit: Unit, id: string): Promise<boolean> {
    return (await unit.sql.draft.deleteMany({ where: { id, expiresAt: { gt: unit.now } } })).count === 1;
  },

  async dropExpired(db: Reader, now: Date): Promise<void> {
    await db.draft.deleteMany({ where: { expiresAt: { lte: now } } });
  },
};
