import type { Principal } from '@ambit/contracts';
import { appendAudits, DB, type GatewayDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import { principalOf } from './domain/audit-entries.js';

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

  /** Calls of a session whose end nobody knew. */
  async indeterminate(sessionId: string): Promise<string[]> {
    const rows = await this.db.gatewayCall.findMany({ where: { sessionId, status: 'indeterminate' }, select: { operationId: true } });
    return rows.map(({ operationId }) => operationId);
  }

  /** Closes what is parked by the word of whoever deleted the session, and forgets arguments. Repeating it changes nothing. */
  async close(sessionId: string, by: Principal, at: Date): Promise<void> {
    await this.db.$transaction(async (transaction) => {
      const parked = await transaction.gatewayCall.findMany({ where: { sessionId, isParked: true } });
      const operationIds = parked.map(({ operationId }) => operationId);
      const resolution = { as: 'failed', by: { ...by }, note: NOTE, at: at.toISOString() };
      await transaction.gatewayCall.updateMany({ where: { operationId: { in: operationIds } }, data: { isParked: false, resolution } });
      await transaction.$executeRaw`
        DELETE FROM "tool_gateway"."call_arguments" a USING "tool_gateway"."call" c WHERE c."operation_id" = a."operation_id" AND c."session_id" = ${sessionId}::uuid`;
      await transaction.$executeRaw`
        UPDATE "tool_gateway"."grant" g SET "settled_at" = ${at}, "result" = 'cancelled' FROM "tool_gateway"."call" c
        WHERE c."operation_id" = g."operation_id" AND c."session_id" = ${sessionId}::uuid AND g."settled_at" IS NULL`;
      await appendAudits(
        transaction,
        OWNER,
        parked.map((call) => ({
          ...{ at: at.toISOString(), actor: by, principal: principalOf(call.principal), via: null, projectId: call.projectId },
          ...{
            action: 'call.resolve.failed',
            target: `${call.tool} ${call.operationId}`,
            beforeDigest: call.argumentsHash,
            afterDigest: null,
          },
          ...{ rule: call.rule, reason: NOTE, traceId: null, retention: 'audit' as const },
        })),
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
