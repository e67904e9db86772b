import { FaultBodySchema, Principal, RunStatus, type Run } from '@ambit/contracts';
import type { Place } from './domain/cursor.js';
import { runChanged, runStateFact } from './domain/facts.js';
import { moved, type Attempt, type Move, type RunRecord } from './domain/run-state.js';
import { newestFirst, olderThan } from './session.repository.js';
import type { Reader, Unit } from './transactions.repository.js';

type RunRow = NonNullable<Awaited<ReturnType<Reader['run']['findUnique']>>>;
type AttemptRow = NonNullable<Awaited<ReturnType<Reader['runAttempt']['findFirst']>>>;

function runOf(row: RunRow): RunRecord {
  const { kind, status, principal, fault, createdAt, startedAt, endedAt, requeueAt: _requeueAt, usedAt: _usedAt, ...rest } = row;
  return {
    ...rest,
    kind: kind === 'edge' ? 'edge' : 'worker',
    status: RunStatus.parse(status),
    principal: Principal.parse(principal),
    fault: fault === null ? null : FaultBodySchema.parse(fault),
    createdAt: createdAt.toISOString(),
    startedAt: startedAt?.toISOString() ?? null,
    endedAt: endedAt?.toISOString() ?? null,
  };
}

function attemptOf({ number, tokenHash, workerId, openedAt, closedAt }: AttemptRow): Attempt {
  return { number, tokenHash, workerId, openedAt: openedAt.toISOString(), closedAt: closedAt?.toISOString() ?? null };
}

/** What leaves the service of a run. */
export function publicRun(run: RunRecord): Run {
  const {
    id,
    originRunId,
    sessionId,
    agentId,
    projectId,
    kind,
    status,
    attempt,
    fingerprint,
    fingerprints,
    degraded,
    pool,
    principal,
    resumes,
    fault,
    agentVersion,
    createdAt,
    startedAt,
    endedAt,
  } = run;
  return {
    id,
    originRunId,
    sessionId,
    agentId,
    projectId,
    kind,
    status,
    attempt,
    fingerprint,
    fingerprints: [...fingerprints],
    degraded,
    pool,
    principal,
    resumes,
    fault,
    agentVersion,
    createdAt,
    startedAt,
    endedAt,
  };
}

const OPEN = { endedAt: null } as const;

export interface RunFilter {
  readonly sessionId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly projectId?: string | undefined;
  readonly status?: RunStatus | undefined;
  readonly before?: Place | undefined;
  readonly limit: number;
}

export const runs = {
  async find(db: Reader, id: string): Promise<RunRecord | undefined> {
    const row = await db.run.findUnique({ where: { id } });
    return row === null ? undefined : runOf(row);
  },

  async list(db: Reader, { sessionId, agentId, projectId, status, before, limit }: RunFilter): Promise<RunRecord[]> {
    const where = {
      ...(sessionId === undefined ? {} : { sessionId }),
      ...(agentId === undefined ? {} : { agentId }),
      ...(projectId === undefined ? {} : { projectId }),
      ...(status === undefined ? {} : { status }),
      ...olderThan(before),
    };
    return (await db.run.findMany({ where, orderBy: newestFirst, take: limit })).map(runOf);
  },

  /** The run that a session works on or waits with; a session has one at most. What MCP clients do through the edge goes on beside it. */
  async openOf(db: Reader, sessionId: string): Promise<RunRecord | undefined> {
    const row = await db.run.findFirst({ where: { sessionId, kind: 'worker', ...OPEN }, orderBy: newestFirst });
    return row === null ? undefined : runOf(row);
  },

  /** The newest open run of MCP clients in a session, as far as it was made after a moment; with when it was last used. */
  async edgeOf(db: Reader, sessionId: string, madeAfter: Date): Promise<{ run: RunRecord; usedAt: Date } | undefined> {
    const row = await db.run.findFirst({
      where: { sessionId, kind: 'edge', status: 'running', ...OPEN, createdAt: { gt: madeAfter } },
      orderBy: newestFirst,
    });
    return row === null ? undefined : { run: runOf(row), usedAt: row.usedAt ?? row.createdAt };
  },

  async used(db: Reader, id: string, at: Date): Promise<void> {
    await db.run.updateMany({ where: { id }, data: { usedAt: at } });
  },

  /** Open runs of MCP clients that nobody has used since a moment, and in which nothing waits for a decision. */
  async disused(db: Reader, since: Date): Promise<string[]> {
    const rows = await db.$queryRaw<{ id: string }[]>`
      SELECT r."id" FROM "session_service"."run" r WHERE r."status" = 'running' AND r."kind" = 'edge' AND r."ended_at" IS NULL
        AND COALESCE(r."used_at", r."created_at") < ${since}
        AND NOT EXISTS (SELECT 1 FROM "session_service"."interaction" i WHERE i."run_id" = r."id" AND i."settled_at" IS NULL) LIMIT 100`;
    return rows.map(({ id }) => id);
  },

  async openIds(db: Reader, where: { readonly agentId: string } | { readonly sessionIds: readonly string[] }): Promise<string[]> {
    const filter = 'agentId' in where ? { agentId: where.agentId } : { sessionId: { in: [...where.sessionIds] } };
    return (await db.run.findMany({ where: { ...filter, ...OPEN }, select: { id: true } })).map(({ id }) => id);
  },

  /** Some of the runs that have not ended, oldest first. */
  async someOpen(db: Reader, limit: number): Promise<string[]> {
    return (await db.run.findMany({ where: OPEN, select: { id: true }, orderBy: { createdAt: 'asc' }, take: limit })).map(({ id }) => id);
  },

  /** Every run of a session, as what it left behind is found by. */
  async left(
    db: Reader,
    sessionId: string,
  ): Promise<{ runId: string; originRunId: string; agentId: string; pool: string; hasJob: boolean }[]> {
    const rows = await db.run.findMany({
      where: { sessionId },
      select: { id: true, originRunId: true, agentId: true, pool: true, status: true, kind: true },
    });
    return rows.map(({ id, status, kind, ...rest }) => ({
      ...rest,
      runId: id,
      hasJob: kind === 'worker' && (status === 'queued' || status === 'running'),
    }));
  },

  /** Open runs of an agent's sessions or of one session, and of all the sessions below; a session stands before those that it started. */
  async openUnder(db: Reader, { agentId, sessionId }: { readonly agentId?: string; readonly sessionId?: string }): Promise<string[]> {
    const rows = await db.$queryRaw<{ id: string }[]>`
      WITH RECURSIVE under AS (
        SELECT s."id" FROM "session_service"."session" s WHERE s."agent_id" = ${agentId ?? null}::text OR s."id" = ${sessionId ?? null}::uuid
        UNION SELECT c."id" FROM "session_service"."session" c JOIN under u ON c."parent_session_id" = u."id")
      SELECT r."id" FROM "session_service"."run" r JOIN under u ON u."id" = r."session_id" WHERE r."ended_at" IS NULL ORDER BY r."session_id", r."id"`;
    return rows.map(({ id }) => id);
  },

  /** Open runs whose mapping names an owner. */
  async openOfOwner(db: Reader, owner: string): Promise<string[]> {
    const rows = await db.$queryRaw<{ id: string }[]>`
      SELECT r."id" FROM "session_service"."run" r JOIN "session_service"."mapping" m ON m."session_id" = r."session_id" AND m."fingerprint" = r."fingerprint"
      WHERE r."ended_at" IS NULL AND jsonb_exists(m."owners", ${owner})`;
    return rows.map(({ id }) => id);
  },

  async resumeOf(db: Reader, id: string): Promise<string | undefined> {
    return (await db.run.findUnique({ where: { resumes: id }, select: { id: true } }))?.id;
  },

  /** Creates the run and tells its first state; false where it exists, which only a resume run can. */
  async create(unit: Unit, run: RunRecord): Promise<boolean> {
    const { principal, fault, fingerprints, degraded, roles, createdAt, startedAt: _startedAt, endedAt: _endedAt, ...rest } = run;
    const data = {
      ...rest,
      principal,
      fingerprints: [...fingerprints],
      degraded: [...degraded],
      roles: [...roles],
      createdAt: new Date(createdAt),
      ...(fault === null ? {} : { fault: asJson(fault) }),
    };
    if ((await unit.sql.run.createMany({ data: [data], skipDuplicates: true })).count === 0) return false;
    unit.tell(runStateFact(run, unit.now), runChanged(run, unit.now));
    return true;
  },

  /** Moves the authority of a run that the caller has locked: the row, its next state fact, and the event where the status changed. */
  async move(
    unit: Unit,
    run: RunRecord,
    { reason, requeueAt, ...move }: Move & { readonly reason?: string; readonly requeueAt?: Date },
  ): Promise<RunRecord> {
    const next = moved(run, move, unit.now);
    await runs.store(unit, next, requeueAt ?? null);
    unit.tell(runStateFact(next, unit.now, reason));
    if (next.status !== run.status || next.attempt !== run.attempt || next.fingerprint !== run.fingerprint)
      unit.tell(runChanged(next, unit.now));
    return next;
  },

  /** Writes what changes in a run's life without moving its authority. */
  async store(unit: Unit, run: RunRecord, requeueAt: Date | null = null): Promise<void> {
    const { id, status, attempt, stateVersion, fingerprint, fault, jobVersion, uncounted, startedAt, endedAt } = run;
    await unit.sql.run.update({
      where: { id },
      data: {
        status,
        attempt,
        stateVersion,
        fingerprint,
        jobVersion,
        uncounted,
        requeueAt,
        fingerprints: [...run.fingerprints],
        startedAt: startedAt === null ? null : new Date(startedAt),
        endedAt: endedAt === null ? null : new Date(endedAt),
        ...(fault === null ? {} : { fault: asJson(fault) }),
      },
    });
  },

  /** Locks the session, then the run, and reads it as it is then. */
  async lock(db: Reader, id: string): Promise<RunRecord | undefined> {
    await db.$queryRaw`SELECT 1 FROM "session_service"."session" WHERE "id" = (SELECT "session_id" FROM "session_service"."run" WHERE "id" = ${id}::uuid) FOR UPDATE`;
    await db.$queryRaw`SELECT 1 FROM "session_service"."run" WHERE "id" = ${id}::uuid FOR UPDATE`;
    return runs.find(db, id);
  },

  /**
   * Whether an agent may work on one run more beside these; counted and begun one after the other, so that two that begin at once are counted too.
   * Subagents' runs are their parents' to count: a parent that waits for them must not keep them waiting.
   */
  async hasRoom(db: Reader, { id, agentId, sessionId }: Pick<RunRecord, 'id' | 'agentId' | 'sessionId'>, limit: number): Promise<boolean> {
    await db.$executeRaw`SELECT pg_advisory_xact_lock(hashtextextended(${`session-service.starts ${agentId}`}, 0))`;
    const [row] = await db.$queryRaw<{ isFree: boolean }[]>`
      SELECT (SELECT "kind" FROM "session_service"."session" WHERE "id" = ${sessionId}::uuid) = 'subagent' OR (
        SELECT count(*) FROM "session_service"."run" r JOIN "session_service"."session" s ON s."id" = r."session_id"
        WHERE r."agent_id" = ${agentId} AND r."status" = 'running' AND r."kind" = 'worker' AND r."ended_at" IS NULL AND r."id" <> ${id}::uuid AND s."kind" <> 'subagent'
      ) < ${limit} AS "isFree"`;
    return row?.isFree === true;
  },

  async attempts(db: Reader, runId: string): Promise<Attempt[]> {
    const rows = await db.runAttempt.findMany({ where: { runId }, orderBy: { number: 'desc' }, take: 16 });
    return rows.map(attemptOf).toReversed();
  },

  async openAttempt(unit: Unit, runId: string, attempt: Pick<Attempt, 'number' | 'tokenHash' | 'workerId'>): Promise<void> {
    await runs.closeAttempts(unit, runId);
    await unit.sql.runAttempt.create({ data: { ...attempt, runId, openedAt: unit.now } });
  },

  async closeAttempts(unit: Unit, runId: string): Promise<void> {
    await unit.sql.runAttempt.updateMany({ where: { runId, closedAt: null }, data: { closedAt: unit.now } });
  },

  /** Running runs whose newest attempt was opened before a time and is open still, oldest first. */
  async working(db: Reader, openedBefore: Date): Promise<{ id: string; attempt: number }[]> {
    return db.$queryRaw<{ id: string; attempt: number }[]>`
      SELECT r."id", r."attempt" FROM "session_service"."run" r JOIN "session_service"."run_attempt" a ON a."run_id" = r."id" AND a."number" = r."attempt"
      WHERE r."status" = 'running' AND r."ended_at" IS NULL AND a."closed_at" IS NULL AND a."opened_at" < ${openedBefore} ORDER BY a."opened_at" LIMIT 5000`;
  },

  /** Running runs whose newest attempt was closed before a time, and whose job should have come again by then. */
  async forsaken(db: Reader, closedBefore: Date): Promise<string[]> {
    const rows = await db.$queryRaw<{ id: string }[]>`
      SELECT r."id" FROM "session_service"."run" r JOIN "session_service"."run_attempt" a ON a."run_id" = r."id" AND a."number" = r."attempt"
      WHERE r."status" = 'running' AND r."ended_at" IS NULL AND a."closed_at" < ${closedBefore} LIMIT 100`;
    return rows.map(({ id }) => id);
  },

  /** Which of these runs ended before a moment, or are gone with their session. */
  async over(db: Reader, ids: readonly string[], before: Date): Promise<{ id: string; originRunId: string }[]> {
    const rows = await db.run.findMany({ where: { id: { in: [...ids] } }, select: { id: true, originRunId: true, endedAt: true } });
    const known = new Map(rows.map((row) => [row.id, row]));
    return ids.flatMap((id) => {
      const row = known.get(id);
      if (row === undefined) return [{ id, originRunId: id }];
      return row.endedAt !== null && row.endedAt < before ? [{ id, originRunId: row.originRunId }] : [];
    });
  },

  /** Runs that have been queued since before a moment, and do not rest; the oldest first. */
  async queuedSince(db: Reader, before: Date, limit: number): Promise<{ id: string; agentId: string; pool: string }[]> {
    return db.run.findMany({
      where: { status: 'queued', ...OPEN, requeueAt: null, createdAt: { lt: before } },
      select: { id: true, agentId: true, pool: true },
      orderBy: { createdAt: 'asc' },
      take: limit,
    });
  },

  async toRequeue(db: Reader, now: Date): Promise<string[]> {
    return (await db.run.findMany({ where: { requeueAt: { lte: now }, status: 'queued' }, select: { id: true }, take: 100 })).map(
      ({ id }) => id,
    );
  },

  /** Suspended runs that nothing waits for any more, and that no run goes on with yet. */
  async toResume(db: Reader): Promise<string[]> {
    const rows = await db.$queryRaw<{ id: string }[]>`
      SELECT r."id" FROM "session_service"."run" r WHERE r."status" = 'suspended' AND r."ended_at" IS NULL
        AND NOT EXISTS (SELECT 1 FROM "session_service"."interaction" i WHERE i."run_id" = r."id" AND i."settled_at" IS NULL) LIMIT 100`;
    return rows.map(({ id }) => id);
  },
};

const asJson = (value: { readonly code: string; readonly message: string; readonly data?: unknown }): object =>
  JSON.parse(JSON.stringify(value));
