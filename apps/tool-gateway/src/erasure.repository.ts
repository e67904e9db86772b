import { DB, type GatewayDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';

/** Removes what calls were given and what failures said, and leaves what ties records together: ids, digests, how it ended. */
@Injectable()
export class ErasureRepository {
  constructor(@Inject(DB) private readonly db: GatewayDb) {}

  /** What was kept of a principal's calls; gives how many calls had something. Calls that are still on their way here come without. */
  async principal(principal: string, now: Date): Promise<number> {
    await this.db.gatewayErased.upsert({ where: { subject: principal }, create: { subject: principal, at: now }, update: { at: now } });
    // Whoever writes calls at this moment may not have seen that: the statements below begin when they are done.
    await this.db.$transaction((transaction) => transaction.$executeRaw`LOCK TABLE "tool_gateway"."call" IN SHARE MODE`);
    return this.db.$transaction(async (transaction) => {
      const count = await transaction.$executeRaw`
        UPDATE "tool_gateway"."call" SET "arguments_preview" = NULL WHERE "principal" = ${principal} AND "arguments_preview" IS NOT NULL`;
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

  /** Arguments of calls that were claimed in a span of time which is over. */
  argumentsBetween(from: Date, to: Date): Promise<number> {
    return this.db.$executeRaw`
      UPDATE "tool_gateway"."call" SET "arguments_preview" = NULL WHERE "claimed_at" >= ${from} AND "claimed_at" < ${to} AND "arguments_preview" IS NOT NULL`;
  }
}
