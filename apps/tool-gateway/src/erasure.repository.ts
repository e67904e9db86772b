import { DB, type GatewayDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';

/** Removes what calls were given and what failures said, and leaves what ties records together: ids, digests, how it ended. */
@Injectable()
export class ErasureRepository {
  constructor(@Inject(DB) private readonly db: GatewayDb) {}

  /** What was kept of a principal's calls; gives how many calls had something. */
  async principal(principal: string): Promise<number> {
    return this.db.$transaction(async (transaction) => {
      const count = await transaction.$executeRaw`
        DELETE FROM "tool_gateway"."call_arguments" a USING "tool_gateway"."call" c WHERE c."operation_id" = a."operation_id" AND c."principal" = ${principal}`;
      await transaction.$executeRaw`
        UPDATE "tool_gateway"."call" SET "fault" = jsonb_build_object('code', "fault"->>'code', 'message', '') WHERE "principal" = ${principal} AND "fault" IS NOT NULL`;
      await transaction.$executeRaw`
        UPDATE "tool_gateway"."grant" SET "decided_by" = jsonb_set("decided_by", '{display}', '""') WHERE "decided_by"->>'id' = ${principal}`;
      await transaction.$executeRaw`
        UPDATE "tool_gateway"."call" SET "resolution" = jsonb_set("resolution", '{by,display}', '""') WHERE "resolution"->'by'->>'id' = ${principal}`;
      return count;
    });
  }

  /** Ends the life of what is stored for sessions now; the sweeper of artifacts takes it from there. Gives how many artifacts. */
  async sessions(sessionIds: readonly string[], now: Date): Promise<number> {
    const where = { sessionId: { in: [...sessionIds] } };
    return this.db.$transaction(async (transaction) => {
      await transaction.gatewayPlan.deleteMany({ where });
      await transaction.gatewayUploadPart.deleteMany({ where });
      return (await transaction.gatewayArtifact.updateMany({ where, data: { expiresAt: now } })).count;
    });
  }

  /** Arguments that are older than their retention. */
  async argumentsBefore(before: Date): Promise<number> {
    return (await this.db.gatewayArguments.deleteMany({ where: { createdAt: { lt: before } } })).count;
  }
}
