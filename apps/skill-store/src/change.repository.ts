import { eventMessage, skillStore, type StoredMessage } from '@ambit/contracts';
import { addToOutbox, appendAudit, appendAudits, type AuditEntry, type Prisma } from '@ambit/db';
import type { z } from 'zod';

const OWNER = 'skill-store';
/** Names of one event. */
const TOLD = 500;
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
  await addToOutbox(transaction, OWNER, [eventOf(change, Number(row?.epoch ?? now))]);
  await appendAudit(transaction, OWNER, { ...change.audit, at: change.at.toISOString() });
}

/** The same for changes of many agents' own skills at once: one event an agent and kind of change. */
export async function tellMany(transaction: Prisma.TransactionClient, changes: readonly Change[]): Promise<void> {
  const [first] = changes;
  if (first === undefined) return;
  const byAgent = new Map<string, Change[]>();
  for (const change of together(changes)) byAgent.set(change.agentId, [...(byAgent.get(change.agentId) ?? []), change]);
  const moves = [...byAgent]
    .map(([scope, events]) => ({ scope, by: events.length }))
    .sort((one, other) => (one.scope < other.scope ? -1 : 1));
  const rows = await transaction.$queryRawUnsafe<{ scope: string; epoch: bigint }[]>(
    `INSERT INTO "skill_store"."epoch" ("scope", "epoch")
     SELECT m."scope", $2::bigint + m."by" FROM json_to_recordset($1::json) AS m("scope" text, "by" int) ORDER BY m."scope"
     ON CONFLICT ("scope") DO UPDATE SET "epoch" = GREATEST("epoch"."epoch" + (EXCLUDED."epoch" - $2::bigint), $2::bigint) RETURNING "scope", "epoch"`,
    JSON.stringify(moves),
    first.at.getTime(),
  );
  const last = new Map(rows.map(({ scope, epoch }) => [scope, Number(epoch)]));
  const events = [...byAgent].flatMap(([agentId, all]) =>
    all.map((change, index) => eventOf(change, (last.get(agentId) ?? 0) - (all.length - 1 - index))),
  );
  await addToOutbox(transaction, OWNER, events);
  await appendAudits(
    transaction,
    OWNER,
    changes.map(({ at, audit }) => ({ ...audit, at: at.toISOString() })),
  );
}

/** Changes of one agent and kind become one. */
function together(changes: readonly Change[]): Change[] {
  const all = new Map<string, Change>();
  let part = 0;
  for (const change of changes) {
    const key = (): string => `${change.agentId} ${change.reason} ${part}`;
    while ((all.get(key())?.names.length ?? 0) >= TOLD) part += 1;
    all.set(key(), { ...change, names: [...(all.get(key())?.names ?? []), ...change.names] });
  }
  return [...all.values()];
}

function eventOf(change: Change, epoch: number): StoredMessage {
  const scope = change.owner === undefined ? change.agentId : scopeOfOwner(change.owner);
  const agentId = change.agentId === EVERYBODY ? 'all' : change.agentId;
  return eventMessage(
    skillStore.skillChanged,
    { agentId, epoch, reason: change.reason, names: [...change.names], at: change.at.toISOString() },
    { keys: { agentId }, id: `skill.${scope}.${epoch}`, time: change.at },
  );
}
