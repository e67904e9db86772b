import type { Principal } from '@ambit/contracts';
import { appendAudits, DB, type GatewayDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import { resolvedEntry, type Resolution } from './domain/audit-entries.js';

const OWNER = 'tool-gateway';
const NOTE = 'the session was deleted';

/** What Postgres holds of a session's calls beside the record of them, which stays with the audit. */
@Injectable()
export class SessionRepository {
  constructor(@Inject(DB) private readonly db: GatewayDb) {}

  /** Calls of a session whose end does not stand here yet. */
  unended(sessionId: string): Promise<number> {
    return this.db.gatewayCall.count({ where: { sessionId, status: { in: ['running', 'aborting'] } } });
  }

  /** The agents that called for the session: another has it once it was moved. */
  async agentsOf(sessionId: string): Promise<string[]> {
    const rows = await this.db.gatewayCall.findMany({ where: { sessionId }, distinct: ['agentId'], select: { agentId: true } });
    return rows.map(({ agentId }) => agentId);
  }

  /** Calls of a session whose end nobody knew. */
  async indeterminate(sessionId: string): Promise<string[]> {
    const rows = await this.db.gatewayCall.findMany({ where: { sessionId, status: 'indeterminate' }, select: { operationId: true } });
    return rows.map(({ operationId }) => operationId);
  }

  /** Closes what is parked by the word of whoever deleted the session, and forgets arguments. Repeating it changes nothing. */
  async close(sessionId: string, by: Principal, at: Date): Promise<void> {
    await this.db.$transaction(async (transaction) => {
      const resolution: Resolution = { as: 'failed', by, note: NOTE, at: at.toISOString() };
      // Only what is parked at this moment: what a person ended just now keeps that person's word.
      const closed = await transaction.gatewayCall.updateManyAndReturn({
        where: { sessionId, isParked: true },
        data: { isParked: false, resolution: { ...resolution, by: { ...by } } },
      });
      await transaction.gatewayCall.updateMany({ where: { sessionId, argumentsPreview: { not: null } }, data: { argumentsPreview: null } });
      await transaction.$executeRaw`
        UPDATE "tool_gateway"."grant" g SET "settled_at" = ${at}, "result" = 'cancelled' FROM "tool_gateway"."call" c
        WHERE c."operation_id" = g."operation_id" AND c."session_id" = ${sessionId}::uuid AND g."settled_at" IS NULL`;
      await appendAudits(
        transaction,
        OWNER,
        closed.map((call) => resolvedEntry(call, resolution)),
      );
    });
  }

  /** Notes origin runs as ended and emptied. */
  async purged(originRunIds: readonly string[], at: Date): Promise<void> {
    for (const originRunId of originRunIds)
      await this.db.gatewayEndedRun.upsert({
        where: { originRunId },
        create: { originRunId, endedAt: at, purgedAt: at },
        update: { purgedAt: at },
      });
  }
}
