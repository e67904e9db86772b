import { BadArguments, parseArguments } from '@ambit/capability';
import { CallResult, Hex64, IntendedCall, TapeEntry } from '@ambit/contracts';
import { z } from 'zod';
import { tapeAppended } from './domain/facts.js';
import type { StoredStep } from './domain/step.js';
import type { NewEntry, StoredEntry } from './domain/tape.js';
import type { Reader, Unit } from './transactions.repository.js';

const Kind = TapeEntry.shape.kind;
type Kind = TapeEntry['kind'];

const StepDigests = z.array(z.object({ callId: z.string(), digest: Hex64 }));
/** As it will be read back: plain JSON. */
const asJson = (value: unknown): object => JSON.parse(JSON.stringify(value));

const WITHOUT_SEARCH = {
  id: true,
  sessionId: true,
  runId: true,
  originRunId: true,
  kind: true,
  step: true,
  callId: true,
  role: true,
  content: true,
  at: true,
} as const;

interface Row {
  readonly id: number;
  readonly sessionId: string;
  readonly runId: string | null;
  readonly originRunId: string | null;
  readonly kind: string;
  readonly step: number | null;
  readonly callId: string | null;
  readonly role: string | null;
  readonly content: unknown;
  readonly at: Date;
}
const entryOf = (row: Row): StoredEntry => ({ ...row, kind: Kind.parse(row.kind), at: row.at.toISOString() });

export interface OfStep {
  readonly originRunId: string;
  readonly step: number;
}

/** One entry with its searchable text. */
export interface Passage {
  readonly sessionId: string;
  readonly id: number;
  readonly kind: Kind;
  readonly text: string;
  readonly at: string;
}
const passageOf = (row: { sessionId: string; id: number; kind: string; text: string; at: Date }): Passage => ({
  ...row,
  kind: Kind.parse(row.kind),
  at: row.at.toISOString(),
});

export const tape = {
  /** Appends under the session's lock; a result that stands there already is left alone. Tells of what joined. */
  async append(unit: Unit, sessionId: string, entries: readonly NewEntry[]): Promise<(NewEntry & { readonly id: number })[]> {
    const fresh = await withoutKnownResults(unit.sql, entries);
    if (fresh.length === 0) return [];
    const { tapeHead } = await unit.sql.session.update({
      where: { id: sessionId },
      data: { tapeHead: { increment: fresh.length } },
      select: { tapeHead: true },
    });
    const placed = fresh.map((entry, index) => ({ ...entry, id: tapeHead - fresh.length + 1 + index }));
    await unit.sql.tapeEntry.createMany({
      data: placed.map((entry) => ({ ...entry, sessionId, content: asJson(entry.content), at: unit.now })),
    });
    for (const entry of placed) unit.tell(...tapeAppended(sessionId, entry, unit.now));
    return placed;
  },

  async list(db: Reader, sessionId: string, page: { readonly after: number; readonly limit: number }): Promise<StoredEntry[]> {
    const rows = await db.tapeEntry.findMany({
      where: { sessionId, id: { gt: page.after } },
      orderBy: { id: 'asc' },
      take: page.limit,
      select: WITHOUT_SEARCH,
    });
    return rows.map(entryOf);
  },

  /** Entries as text, oldest first. */
  async passages(db: Reader, sessionId: string, page: { readonly after: number; readonly limit: number }): Promise<Passage[]> {
    const rows = await db.tapeEntry.findMany({
      where: { sessionId, id: { gt: page.after } },
      orderBy: { id: 'asc' },
      take: page.limit,
      select: { sessionId: true, id: true, kind: true, text: true, at: true },
    });
    return rows.map(passageOf);
  },

  /**
   * Copies a tape to a session that has none. Steps with a call that has no result stay behind: what it waits for is the original's. The copies belong to
   * no run, but what belonged to one run still belongs together.
   */
  async copy(db: Reader, from: string, to: string): Promise<void> {
    await db.$executeRaw`
      WITH origin AS (SELECT o."old", gen_random_uuid() AS "new" FROM (SELECT DISTINCT "origin_run_id" AS "old" FROM "session_service"."tape_entry" WHERE "session_id" = ${from}::uuid) o),
      open AS (SELECT DISTINCT c."origin_run_id", c."step" FROM "session_service"."tape_entry" c WHERE c."session_id" = ${from}::uuid AND c."kind" = 'tool_call'
        AND NOT EXISTS (SELECT 1 FROM "session_service"."tape_entry" r WHERE r."session_id" = c."session_id" AND r."origin_run_id" = c."origin_run_id" AND r."step" = c."step" AND r."call_id" = c."call_id" AND r."kind" = 'tool_result'))
      INSERT INTO "session_service"."tape_entry" ("session_id", "id", "run_id", "origin_run_id", "kind", "step", "call_id", "role", "content", "text", "retention", "at")
      SELECT ${to}::uuid, row_number() OVER (ORDER BY e."id"), NULL, o."new", e."kind", e."step", e."call_id", e."role", e."content", e."text", e."retention", e."at"
      FROM "session_service"."tape_entry" e LEFT JOIN origin o ON o."old" = e."origin_run_id"
      WHERE e."session_id" = ${from}::uuid AND NOT EXISTS (SELECT 1 FROM open w WHERE w."origin_run_id" = e."origin_run_id" AND w."step" = e."step")`;
    await db.$executeRaw`
      UPDATE "session_service"."session" SET "tape_head" = (SELECT count(*) FROM "session_service"."tape_entry" WHERE "session_id" = ${to}::uuid) WHERE "id" = ${to}::uuid`;
  },

  /** The newest entries, in tape order. */
  async newest(
    db: Reader,
    sessionId: string,
    page: { readonly before: number | undefined; readonly limit: number },
  ): Promise<StoredEntry[]> {
    const where = { sessionId, ...(page.before === undefined ? {} : { id: { lt: page.before } }) };
    const rows = await db.tapeEntry.findMany({ where, orderBy: { id: 'desc' }, take: page.limit, select: WITHOUT_SEARCH });
    return rows.map(entryOf).toReversed();
  },

  async search(
    db: Reader,
    query: {
      sessionIds: readonly string[];
      text: string;
      kinds: readonly Kind[] | undefined;
      start: string | undefined;
      end: string | undefined;
      limit: number;
    },
  ): Promise<Passage[]> {
    const kinds = query.kinds === undefined || query.kinds.length === 0 ? null : [...query.kinds];
    const rows = await db.$queryRaw<{ sessionId: string; id: number; kind: string; text: string; at: Date }[]>`
      SELECT e."session_id"::text AS "sessionId", e."id", e."kind", ts_headline('simple', left(e."text", 20000), q, 'StartSel=, StopSel=, MaxFragments=2, MaxWords=40, MinWords=10') AS "text", e."at"
      FROM "session_service"."tape_entry" e, websearch_to_tsquery('simple', ${query.text}) q
      WHERE e."session_id" = ANY(${[...query.sessionIds]}::uuid[]) AND e."search" @@ q
        -- What searching itself said finds nothing new: every search would find itself first.
        AND NOT (e."kind" IN ('tool_call', 'tool_result') AND EXISTS (
          SELECT 1 FROM "session_service"."tape_entry" c WHERE c."origin_run_id" = e."origin_run_id" AND c."step" = e."step" AND c."call_id" = e."call_id"
            AND c."kind" = 'tool_call' AND c."content"->>'name' IN ('tape_search', 'tape_context')))
        AND (${kinds}::text[] IS NULL OR e."kind" = ANY(${kinds}::text[]))
        AND (${query.start ?? null}::timestamptz IS NULL OR e."at" >= ${query.start ?? null}::timestamptz)
        AND (${query.end ?? null}::timestamptz IS NULL OR e."at" <= ${query.end ?? null}::timestamptz)
      ORDER BY ts_rank(e."search", q) DESC, e."at" DESC, e."id" DESC LIMIT ${query.limit}`;
    return rows.map(passageOf);
  },

  async around(db: Reader, sessionId: string, ids: readonly number[]): Promise<Passage[]> {
    const rows = await db.tapeEntry.findMany({
      where: { sessionId, id: { in: [...ids] } },
      orderBy: { id: 'asc' },
      select: { sessionId: true, id: true, kind: true, text: true, at: true },
    });
    return rows.map(passageOf);
  },

  async calls(db: Reader, { originRunId, step }: OfStep): Promise<IntendedCall[]> {
    const rows = await db.tapeEntry.findMany({
      where: { originRunId, step, kind: 'tool_call' },
      orderBy: { id: 'asc' },
      select: { content: true },
    });
    return rows.map(({ content }) => IntendedCall.parse(content));
  },

  async results(db: Reader, { originRunId, step }: OfStep): Promise<CallResult[]> {
    const rows = await db.tapeEntry.findMany({
      where: { originRunId, step, kind: 'tool_result' },
      orderBy: { id: 'asc' },
      select: { content: true },
    });
    return rows.map(({ content }) => CallResult.parse(content));
  },

  /** The result of one call; undefined while it has none. */
  async result(db: Reader, { originRunId, step }: OfStep, callId: string): Promise<CallResult | undefined> {
    const row = await db.tapeEntry.findFirst({ where: { originRunId, step, callId, kind: 'tool_result' }, select: { content: true } });
    return row === null ? undefined : CallResult.parse(row.content);
  },

  /** What the model said last in an origin run. */
  async lastSaid(db: Reader, originRunId: string): Promise<StoredEntry | undefined> {
    const row = await db.tapeEntry.findFirst({
      where: { originRunId, kind: 'message', role: 'assistant' },
      orderBy: { step: 'desc' },
      select: WITHOUT_SEARCH,
    });
    return row === null ? undefined : entryOf(row);
  },

  /** Names of the skills that a model opened with success in an origin run. */
  async openedSkills(db: Reader, originRunId: string): Promise<string[]> {
    const rows = await db.$queryRaw<{ arguments: string }[]>`
      SELECT c."content"->>'arguments' AS "arguments" FROM "session_service"."tape_entry" c
      JOIN "session_service"."tape_entry" r ON r."origin_run_id" = c."origin_run_id" AND r."step" = c."step" AND r."call_id" = c."call_id" AND r."kind" = 'tool_result'
      WHERE c."origin_run_id" = ${originRunId}::uuid AND c."kind" = 'tool_call' AND c."content"->>'name' = 'skill_view' AND r."content"->>'status' = 'completed' LIMIT 200`;
    return [...new Set(rows.flatMap((row) => skillNameIn(row.arguments)))];
  },

  async newestStep(db: Reader, originRunId: string): Promise<StoredStep | undefined> {
    const row = await db.runStep.findFirst({ where: { originRunId }, orderBy: { step: 'desc' } });
    return row === null ? undefined : stepOf(row);
  },

  /** The newest steps, the newest first. */
  async newestSteps(db: Reader, originRunId: string, limit: number): Promise<StoredStep[]> {
    return (await db.runStep.findMany({ where: { originRunId }, orderBy: { step: 'desc' }, take: limit })).map(stepOf);
  },

  /** Steps of an origin run whose model was cut off. */
  async cutSteps(db: Reader, originRunId: string): Promise<number> {
    return db.runStep.count({ where: { originRunId, cut: true } });
  },

  /** Whether the platform spoke to the model after one of these steps. */
  async isCorrected(db: Reader, originRunId: string, steps: readonly number[]): Promise<boolean> {
    return (await db.tapeEntry.count({ where: { originRunId, step: { in: [...steps] }, kind: 'message', role: 'user' } })) > 0;
  },

  async storeStep(
    unit: Unit,
    step: StoredStep & {
      originRunId: string;
      runId: string;
      usage: { provider: string; model: string; inputTokens: number; outputTokens: number } | null;
    },
  ): Promise<void> {
    const { usage, calls, ...rest } = step;
    await unit.sql.runStep.create({ data: { ...rest, calls: calls.map((call) => ({ ...call })), ...(usage ?? {}), at: unit.now } });
  },
};

const stepOf = (row: { step: number; callsBefore: number; calls: unknown; cut: boolean }): StoredStep => ({
  step: row.step,
  callsBefore: row.callsBefore,
  calls: StepDigests.parse(row.calls),
  cut: row.cut,
});

async function withoutKnownResults(db: Reader, entries: readonly NewEntry[]): Promise<NewEntry[]> {
  const results = entries.filter(({ kind }) => kind === 'tool_result');
  if (results.length === 0) return [...entries];
  const steps = results.map(({ originRunId, step, callId }) => ({ originRunId, step, callId, kind: 'tool_result' }));
  const known = await db.tapeEntry.findMany({ where: { OR: steps }, select: { originRunId: true, step: true, callId: true } });
  const keys = new Set(known.map(keyOf));
  return entries.filter((entry) => entry.kind !== 'tool_result' || !keys.has(keyOf(entry)));
}

const keyOf = ({ originRunId, step, callId }: Pick<NewEntry, 'originRunId' | 'step' | 'callId'>) =>
  JSON.stringify([originRunId, step, callId]);

function skillNameIn(text: string): string[] {
  try {
    const { name, path = 'SKILL.md' } = parseArguments(text);
    // Another file of it says nothing of what the skill is for.
    return typeof name === 'string' && path === 'SKILL.md' ? [name] : [];
  } catch (error) {
    if (error instanceof BadArguments) return [];
    throw error;
  }
}
