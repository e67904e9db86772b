import { Answer, AskedBack, InteractionKind, InteractionStatus, Principal, Question, Target, type Interaction } from '@ambit/contracts';
import type { z } from 'zod';
import type { Prisma } from '@ambit/db';
import type { Place } from './domain/cursor.js';
import type { Reader, Unit } from './transactions.repository.js';

type Row = NonNullable<Awaited<ReturnType<Reader['interaction']['findUnique']>>>;

/** An interaction with what only its owner reads of it. */
export interface InteractionRecord extends Interaction {
  readonly position: number;
  readonly target: z.output<typeof Target> | null;
  /** Who provides the tool that is asked about. */
  readonly owner: string | null;
  /** The call has its result on the tape. */
  readonly settledAt: string | null;
}

function recordOf(row: Row, blockedBy: string | null): InteractionRecord {
  const { settledAt, createdAt, expiresAt, decidedAt, reason: _reason, ...rest } = row;
  return {
    ...rest,
    kind: InteractionKind.parse(row.kind),
    status: InteractionStatus.parse(row.status),
    question: row.question === null ? null : Question.parse(row.question),
    askedBack: row.askedBack === null ? null : AskedBack.parse(JSON.parse(row.askedBack)),
    principal: Principal.parse(row.principal),
    target: row.target === null ? null : Target.parse(row.target),
    decidedBy: row.decidedBy === null ? null : Principal.parse(row.decidedBy),
    answer: row.answer === null ? null : Answer.parse(row.answer),
    blockedBy: row.status === 'pending' ? blockedBy : null,
    decidedAt: decidedAt?.toISOString() ?? null,
    settledAt: settledAt?.toISOString() ?? null,
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
  };
}

/** What leaves the service of an interaction. */
export function publicInteraction({
  position: _position,
  target,
  owner: _owner,
  settledAt: _settledAt,
  ...interaction
}: InteractionRecord): Interaction {
  return interaction.kind === 'authorize' && target?.kind === 'mcp' ? { ...interaction, serverId: target.serverId } : interaction;
}

async function withBlockers(db: Reader, rows: readonly Row[]): Promise<InteractionRecord[]> {
  const waiting = [...new Set(rows.filter((row) => row.status === 'pending').map((row) => row.sessionId))];
  if (waiting.length === 0) return rows.map((row) => recordOf(row, null));
  const lines = await inLine(db, waiting);
  return rows.map((row) => {
    const line = lines.filter(({ sessionId }) => sessionId === row.sessionId);
    const stands = line.some(({ id }) => id === row.id);
    return recordOf(row, stands ? (line.find(({ position }) => position < row.position)?.id ?? null) : null);
  });
}

/**
 * The pending ones of sessions that are answered one after the other, in order: those of a worker's batches. What is asked while its asker waits has no
 * batch, and of what MCP clients call each call is one.
 */
async function inLine(db: Reader, sessionIds: readonly string[]): Promise<{ id: string; sessionId: string; position: number }[]> {
  return db.$queryRaw<{ id: string; sessionId: string; position: number }[]>`
    SELECT i."id", i."session_id" AS "sessionId", i."position" FROM "session_service"."interaction" i JOIN "session_service"."run" r ON r."id" = i."run_id"
    WHERE i."session_id" = ANY(${[...sessionIds]}::uuid[]) AND i."status" = 'pending' AND NOT i."is_live" AND r."kind" = 'worker' ORDER BY i."position"`;
}

export interface InteractionFilter {
  readonly projectId?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly runId?: string | undefined;
  readonly status?: string | undefined;
  readonly after?: Place | undefined;
  readonly limit: number;
}

export type NewInteraction = Omit<
  InteractionRecord,
  'position' | 'blockedBy' | 'decidedBy' | 'decidedAt' | 'answer' | 'settledAt' | 'status' | 'createdAt'
>;

/** An answer was JSON when it came, and its shape was checked then. */
function storable({ selected, text, content }: z.output<typeof Answer>): Prisma.InputJsonObject {
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- a record of unknown that came as JSON is JSON
  return { selected, text, ...(content === undefined ? {} : { content: content as Prisma.InputJsonObject }) };
}

export const interactions = {
  async find(db: Reader, id: string): Promise<InteractionRecord | undefined> {
    const row = await db.interaction.findUnique({ where: { id } });
    return row === null ? undefined : (await withBlockers(db, [row]))[0];
  },

  async list(db: Reader, { projectId, sessionId, runId, status, after, limit }: InteractionFilter): Promise<InteractionRecord[]> {
    const where = {
      ...(projectId === undefined ? {} : { projectId }),
      ...(sessionId === undefined ? {} : { sessionId }),
      ...(runId === undefined ? {} : { runId }),
      ...(status === undefined ? {} : { status }),
      ...(after === undefined ? {} : { OR: [{ createdAt: { gt: after.at } }, { createdAt: after.at, id: { gt: after.id } }] }),
    };
    return withBlockers(db, await db.interaction.findMany({ where, orderBy: [{ createdAt: 'asc' }, { id: 'asc' }], take: limit }));
  },

  async byOperations(db: Reader, operationIds: readonly string[]): Promise<InteractionRecord[]> {
    return withBlockers(db, await db.interaction.findMany({ where: { operationId: { in: [...operationIds] } } }));
  },

  async pendingCount(db: Reader, sessionId: string): Promise<number> {
    return db.interaction.count({ where: { sessionId, status: 'pending' } });
  },

  /** Which one has to be answered before this: itself, where none does. */
  async firstBefore(db: Reader, { id, sessionId }: Pick<InteractionRecord, 'id' | 'sessionId'>): Promise<string> {
    const line = await inLine(db, [sessionId]);
    return line.some((one) => one.id === id) ? (line[0]?.id ?? id) : id;
  },

  /** Whether any call of the run waits for a decision or for its approved execution, and whether it ever asked. */
  async standing(db: Reader, runId: string): Promise<{ readonly asked: boolean; readonly waits: boolean }> {
    const asked = await db.interaction.count({ where: { runId, isLive: false } });
    const waits = asked > 0 && (await db.interaction.count({ where: { runId, isLive: false, settledAt: null } })) > 0;
    return { asked: asked > 0, waits };
  },

  /** Adds them at the end of the session's queue, in the order given. */
  async add(unit: Unit, sessionId: string, added: readonly NewInteraction[]): Promise<InteractionRecord[]> {
    const { interactionHead } = await unit.sql.session.update({
      where: { id: sessionId },
      data: { interactionHead: { increment: added.length } },
      select: { interactionHead: true },
    });
    const data = added.map(({ question, askedBack, target, expiresAt, ...rest }, index) => ({
      ...rest,
      askedBack: askedBack === null || askedBack === undefined ? null : JSON.stringify(askedBack),
      ...(question === null ? {} : { question }),
      ...(target === null ? {} : { target }),
      position: interactionHead - added.length + 1 + index,
      status: 'pending',
      createdAt: unit.now,
      expiresAt: new Date(expiresAt),
    }));
    await unit.sql.interaction.createMany({ data });
    const made = await interactions.byOperations(
      unit.sql,
      added.map(({ operationId }) => operationId),
    );
    return made.sort((left, right) => left.position - right.position);
  },

  /** Writes how a locked session's interaction went on. `settled`: its call has its result. */
  async update(
    unit: Unit,
    id: string,
    change: { status: string; settled: boolean; decidedBy?: Principal; answer?: z.output<typeof Answer>; reason?: string | undefined },
  ): Promise<InteractionRecord> {
    const { status, settled, decidedBy, answer, reason } = change;
    const row = await unit.sql.interaction.update({
      where: { id },
      data: {
        status,
        ...(settled ? { settledAt: unit.now } : {}),
        ...(decidedBy === undefined ? {} : { decidedBy, decidedAt: unit.now }),
        ...(answer === undefined ? {} : { answer: storable(answer) }),
        ...(reason === undefined ? {} : { reason }),
      },
    });
    return recordOf(row, null);
  },

  /** Those of a run that no result has settled, in order. */
  async unsettledOf(db: Reader, runId: string): Promise<InteractionRecord[]> {
    return withBlockers(db, await db.interaction.findMany({ where: { runId, settledAt: null }, orderBy: { position: 'asc' } }));
  },

  async pendingOfOwner(db: Reader, owner: string): Promise<InteractionRecord[]> {
    return withBlockers(
      db,
      await db.interaction.findMany({ where: { owner, status: 'pending' }, orderBy: { createdAt: 'asc' }, take: 5_000 }),
    );
  },

  async expired(db: Reader, now: Date): Promise<InteractionRecord[]> {
    return withBlockers(
      db,
      await db.interaction.findMany({ where: { status: 'pending', expiresAt: { lte: now } }, orderBy: { expiresAt: 'asc' }, take: 200 }),
    );
  },
};
