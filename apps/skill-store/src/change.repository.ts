import { eventMessage, skillStore } from '@ambit/contracts';
import { addToOutbox, appendAudit, type AuditEntry, type Prisma } from '@ambit/db';
import type { z } from 'zod';

const OWNER = 'skill-store';
/** The agent that stands for every one, in changes of contributions. */
export const EVERYBODY = '*';
/** Whose epoch a change of an owner's contributions moves: its own, and no other's. */
export const scopeOfOwner = (owner: string): string => `owner:${owner}`;

export interface Change {
  readonly at: Date;
  /** Of a contribution. */
  readonly owner?: string;
  readonly agentId: string;
  readonly reason: z.input<typeof skillStore.skillChanged.payload>['reason'];
  readonly names: readonly string[];
  readonly audit: Omit<AuditEntry, 'at'>;
}

/** Moves the epoch of the scope, and writes the event and the audit record of a change into its transaction. */
export async function tellChange(transaction: Prisma.TransactionClient, change: Change): Promise<void> {
  const now = change.at.getTime();
  const scope = change.owner === undefined ? change.agentId : scopeOfOwner(change.owner);
  const [row] = await transaction.$queryRawUnsafe<{ epoch: bigint }[]>(
    `INSERT INTO "skill_store"."epoch" ("scope", "epoch") VALUES ($1, $2) ON CONFLICT ("scope") DO UPDATE SET "epoch" = GREATEST("epoch"."epoch" + 1, $2) RETURNING "epoch"`,
    scope,
    now,
  );
  const epoch = Number(row?.epoch ?? now);
  const at = change.at.toISOString();
  const agentId = change.agentId === EVERYBODY ? 'all' : change.agentId;
  const told = eventMessage(
    skillStore.skillChanged,
    { agentId, epoch, reason: change.reason, names: [...change.names], at },
    { keys: { agentId }, id: `skill.${scope}.${epoch}`, time: change.at },
  );
  await addToOutbox(transaction, OWNER, [told]);
  await appendAudit(transaction, OWNER, { ...change.audit, at });
}
