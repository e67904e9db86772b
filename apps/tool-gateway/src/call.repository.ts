import { traceIdOf } from '@ambit/bus';
import type { CallRecord, Claim, FaultBody, Outcome, Principal, Target } from '@ambit/contracts';
import { addToOutbox, appendAudit, appendAudits, DB, Prisma, type GatewayDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import { endedEntry, refusedEntry, resolvedEntry, type Resolution } from './domain/audit-entries.js';
import { claimedRow, claimOf, endedRow, parkedEvent, refusedEvent, refusedRow } from './call.rows.js';
import { recordOf, type CallRow } from './domain/call-record.js';

const OWNER = 'tool-gateway';
/** A bunch of facts is large, and a busy Postgres slow. */
const TRANSACTION = { maxWait: 10_000, timeout: 30_000 };

export interface RefusedCall {
  readonly operationId: string;
  readonly originRunId: string;
  readonly runId: string;
  readonly sessionId: string;
  readonly agentId: string;
  readonly projectId: string;
  readonly step: number;
  readonly callId: string;
  readonly tool: string;
  readonly target: Target | null;
  readonly argumentsHash: string;
  /** What people may see of the arguments. */
  readonly preview: string | undefined;
  readonly fingerprint: string;
  readonly principal: Principal;
  readonly isOfEndedRun: boolean;
  readonly rule: string | null;
  readonly gatewayId: string;
  readonly fault: FaultBody;
  readonly gate: string;
  readonly detail: string | null;
  readonly traceparent: string;
  readonly at: Date;
}

/** A call that was claimed and has its outcome. */
export interface EndedCall {
  readonly claim: Claim;
  readonly outcome: Outcome;
}

export interface ProjectedCalls {
  readonly open: readonly Claim[];
  readonly ended: readonly EndedCall[];
  /** Operations that were told to stop. */
  readonly aborted: readonly string[];
  /** What people may see of the arguments, by operation id. */
  readonly previews: ReadonlyMap<string, string>;
}

export interface CallFilter {
  readonly sessionId?: string | undefined;
  readonly runId?: string | undefined;
  readonly originRunId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly projectId?: string | undefined;
  readonly parked?: boolean | undefined;
}

/** A claim in Postgres whose outcome is not there yet. */
export interface UnendedCall {
  readonly operationId: string;
  readonly originRunId: string;
  readonly gatewayId: string;
  readonly claimedAt: Date;
}

/** Calls as people see them: the journal's facts, and what was refused before any fact. */
@Injectable()
export class CallRepository {
  constructor(@Inject(DB) private readonly db: GatewayDb) {}

  /** Writes refused calls with their audit records and events. A call that was claimed meanwhile keeps its row. */
  async refuse(calls: readonly RefusedCall[]): Promise<void> {
    await this.db.$transaction(async (transaction) => {
      await transaction.$executeRaw`${insertOf(calls.map(refusedRow))} ON CONFLICT DO NOTHING`;
      await addToOutbox(transaction, OWNER, calls.map(refusedEvent));
      await appendAudits(
        transaction,
        OWNER,
        calls.map((call) => refusedEntry({ ...call, traceId: traceIdOf(call.traceparent) })),
      );
    });
  }

  /**
   * Writes claims, outcomes and aborts as they stand in the journal, with an audit record for each call that ended; gives those that had not
   * ended here before. Repeating it changes nothing.
   */
  project({ open, ended, aborted, previews }: ProjectedCalls): Promise<EndedCall[]> {
    const rows = [
      ...open.map((claim) => claimedRow(claim, previews.get(claim.operationId))),
      ...ended.map(({ claim, outcome }) => endedRow(claim, outcome, previews.get(claim.operationId))),
    ];
    return this.db.$transaction(async (transaction) => {
      const fresh = new Set<string>();
      if (rows.length > 0) {
        const written = await transaction.$queryRaw<{ operation_id: string }[]>`
          ${insertOf(rows)}
          ON CONFLICT ("operation_id") DO UPDATE SET "rule" = EXCLUDED."rule", "interaction_id" = EXCLUDED."interaction_id", "gateway_id" = EXCLUDED."gateway_id", "claimed_at" = EXCLUDED."claimed_at", "status" = EXCLUDED."status", "is_parked" = EXCLUDED."is_parked", "fault" = EXCLUDED."fault", "result_digest" = EXCLUDED."result_digest", "result_bytes" = EXCLUDED."result_bytes", "ended_at" = EXCLUDED."ended_at", "duration_ms" = EXCLUDED."duration_ms"
          WHERE "call"."status" = 'refused' OR ("call"."status" IN ('running', 'aborting') AND EXCLUDED."status" <> 'running') RETURNING "operation_id"`;
        for (const row of written) fresh.add(row.operation_id);
      }
      if (aborted.length > 0)
        await transaction.gatewayCall.updateMany({
          where: { operationId: { in: [...aborted] }, status: 'running' },
          data: { status: 'aborting' },
        });
      const freshlyEnded = ended.filter(({ claim }) => fresh.has(claim.operationId));
      await addToOutbox(transaction, OWNER, freshlyEnded.flatMap(parkedEvent));
      await appendAudits(
        transaction,
        OWNER,
        freshlyEnded.map(({ claim, outcome }) => endedEntry(claim, outcome)),
      );
      return freshlyEnded;
    }, TRANSACTION);
  }

  /** Rejects while Postgres does not answer. */
  async answers(): Promise<void> {
    await this.db.$queryRaw`SELECT 1`;
  }

  /** How calls stand here, by operation id; one that is not here has no entry. */
  async standing(operationIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const rows = await this.db.gatewayCall.findMany({
      where: { operationId: { in: [...operationIds] } },
      select: { operationId: true, status: true },
    });
    return new Map(rows.map(({ operationId, status }) => [operationId, status]));
  }

  async find(operationId: string): Promise<CallRecord | undefined> {
    const row = await this.db.gatewayCall.findUnique({ where: { operationId } });
    return row === null ? undefined : (await this.#records([row]))[0];
  }

  /** Newest first; gives one more than asked for where there is more. */
  async list(
    { parked, ...filter }: CallFilter,
    before: { readonly at: Date; readonly operationId: string } | undefined,
    limit: number,
  ): Promise<CallRecord[]> {
    const older =
      before === undefined
        ? {}
        : { OR: [{ claimedAt: { lt: before.at } }, { claimedAt: before.at, operationId: { lt: before.operationId } }] };
    const rows = await this.db.gatewayCall.findMany({
      where: { ...filter, ...(parked === undefined ? {} : { isParked: parked }), ...older },
      orderBy: [{ claimedAt: 'desc' }, { operationId: 'desc' }],
      take: limit,
    });
    return this.#records(rows);
  }

  /** Ends a parked call by a person's word; undefined where it is not parked. */
  async resolve(operationId: string, resolution: Resolution): Promise<CallRecord | undefined> {
    const isResolved = await this.db.$transaction(async (transaction) => {
      const { count } = await transaction.gatewayCall.updateMany({
        where: { operationId, isParked: true },
        data: { isParked: false, resolution: { ...resolution } },
      });
      if (count === 0) return false;
      const row = await transaction.gatewayCall.findUniqueOrThrow({ where: { operationId } });
      await appendAudit(transaction, OWNER, resolvedEntry(row, resolution));
      return true;
    });
    return isResolved ? this.find(operationId) : undefined;
  }

  unended(limit: number): Promise<UnendedCall[]> {
    return this.db.gatewayCall.findMany({
      where: { status: { in: ['running', 'aborting'] } },
      select: { operationId: true, originRunId: true, gatewayId: true, claimedAt: true },
      orderBy: { claimedAt: 'asc' },
      take: limit,
    });
  }

  /** The claims of calls that have not ended, as far as their rows tell them, by operation id. */
  async claimsOf(operationIds: readonly string[]): Promise<Map<string, Claim>> {
    if (operationIds.length === 0) return new Map();
    const rows = await this.db.gatewayCall.findMany({
      where: { operationId: { in: [...operationIds] }, status: { in: ['running', 'aborting'] } },
    });
    return new Map(rows.map((row) => [row.operationId, claimOf(row)]));
  }

  parked(): Promise<number> {
    return this.db.gatewayCall.count({ where: { isParked: true } });
  }

  /** Marks that an origin run's chain of runs has ended. */
  async runEnded(originRunId: string, endedAt: Date): Promise<void> {
    await this.db.gatewayEndedRun.upsert({ where: { originRunId }, create: { originRunId, endedAt }, update: {} });
  }

  /** Origin runs that ended before a moment and whose claimed calls have all ended. */
  async purgeable(before: Date, limit: number): Promise<string[]> {
    const rows = await this.db.$queryRaw<{ origin_run_id: string }[]>`
      SELECT e."origin_run_id"::text FROM "tool_gateway"."ended_run" e WHERE e."purged_at" IS NULL AND e."ended_at" < ${before}
      AND NOT EXISTS (SELECT 1 FROM "tool_gateway"."call" c WHERE c."origin_run_id" = e."origin_run_id" AND c."status" IN ('running', 'aborting')) ORDER BY e."ended_at" LIMIT ${limit}`;
    return rows.map((row) => row.origin_run_id);
  }

  /** Whether every claimed call of an origin run that is known here has ended. */
  async isSettled(originRunId: string): Promise<boolean> {
    return (await this.db.gatewayCall.count({ where: { originRunId, status: { in: ['running', 'aborting'] } } })) === 0;
  }

  async purged(originRunId: string, at: Date): Promise<void> {
    await this.db.gatewayEndedRun.update({ where: { originRunId }, data: { purgedAt: at } });
  }

  async #records(rows: readonly CallRow[]): Promise<CallRecord[]> {
    const ids = rows.map((row) => row.operationId);
    const grants = await this.db.gatewayGrant.findMany({
      where: { operationId: { in: ids } },
      select: { operationId: true, decidedBy: true },
    });
    const approverOf = new Map(grants.map((row) => [row.operationId, row.decidedBy]));
    return rows.map((row) => recordOf(row, approverOf.get(row.operationId)));
  }
}

/** JSON that PostgreSQL takes: a NUL and half a character are written as the sign for what cannot be shown. */
function jsonOf(value: unknown): string {
  // Only halves are escaped: a whole character of two stands as itself.
  return JSON.stringify(value).replace(/\\u(?:0000|d[89a-f][0-9a-f]{2})/g, '\\ufffd');
}

/** The words of calls whose principal was erased since are left out. */
function insertOf(rows: readonly object[]): Prisma.Sql {
  return Prisma.sql`
    INSERT INTO "tool_gateway"."call" ("operation_id", "origin_run_id", "run_id", "session_id", "agent_id", "project_id", "step", "call_id", "tool", "target", "arguments_hash", "arguments_preview", "fingerprint", "principal", "rule", "interaction_id", "gateway_id", "claimed_at", "status", "is_parked", "fault", "result_digest", "result_bytes", "ended_at", "duration_ms")
    SELECT c."operationId", c."originRunId", c."runId", c."sessionId", c."agentId", c."projectId", c."step", c."callId", c."tool", c."target", c."argumentsHash",
      CASE WHEN e."is" THEN NULL ELSE c."argumentsPreview" END, c."fingerprint", c."principal", c."rule", c."interactionId", c."gatewayId", c."claimedAt", c."status", c."isParked",
      CASE WHEN e."is" AND c."fault" IS NOT NULL THEN jsonb_build_object('code', c."fault"->>'code', 'message', '') ELSE c."fault" END, c."resultDigest", c."resultBytes", c."endedAt", c."durationMs"
    FROM json_to_recordset(${jsonOf(rows)}::json) AS c("operationId" text, "originRunId" uuid, "runId" uuid, "sessionId" uuid, "agentId" text, "projectId" text, "step" int, "callId" text, "tool" text, "target" jsonb, "argumentsHash" text, "argumentsPreview" text, "fingerprint" text, "principal" text, "rule" text, "interactionId" uuid, "gatewayId" uuid, "claimedAt" timestamptz, "erasableFrom" timestamptz, "status" text, "isParked" bool, "fault" jsonb, "resultDigest" text, "resultBytes" int, "endedAt" timestamptz, "durationMs" float8),
    LATERAL (SELECT EXISTS (SELECT 1 FROM "tool_gateway"."erased" e WHERE e."subject" = c."principal" AND e."at" >= c."erasableFrom") AS "is") e`;
}
