import { DB, type GatewayDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';

/** Looked at again and again, so that none has to be looked for in years of calls. */
const WINDOW_MS = 2 * 86_400_000;

/** Runs of whose end this service was not told. */
@Injectable()
export class UnheardRepository {
  constructor(@Inject(DB) private readonly db: GatewayDb) {}

  /** Origin runs with ids after one, without a known end, whose calls were all claimed before a moment; with the run of their newest call. */
  async some(
    before: Date,
    { after, limit }: { readonly after: string; readonly limit: number },
  ): Promise<{ originRunId: string; runId: string }[]> {
    return this.db.$queryRaw<{ originRunId: string; runId: string }[]>`
      SELECT DISTINCT ON (c."origin_run_id") c."origin_run_id"::text AS "originRunId", c."run_id"::text AS "runId" FROM "tool_gateway"."call" c
      WHERE c."claimed_at" BETWEEN ${new Date(before.getTime() - WINDOW_MS)} AND ${before}
        AND c."origin_run_id" > ${after}::uuid
        AND NOT EXISTS (SELECT 1 FROM "tool_gateway"."ended_run" e WHERE e."origin_run_id" = c."origin_run_id")
        AND NOT EXISTS (SELECT 1 FROM "tool_gateway"."call" l WHERE l."origin_run_id" = c."origin_run_id" AND l."claimed_at" >= ${before})
      ORDER BY c."origin_run_id", c."claimed_at" DESC LIMIT ${limit}`;
  }
}
