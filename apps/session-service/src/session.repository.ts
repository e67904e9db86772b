import { PermissionMode, Principal, type Session } from '@ambit/contracts';
import { z } from 'zod';
import { Overtaken } from './agent.repository.js';
import type { Place } from './domain/cursor.js';
import type { Reader, Unit } from './transactions.repository.js';

const SlotTools = z.array(z.string()).nullable();
type SessionRow = NonNullable<Awaited<ReturnType<Reader['session']['findUnique']>>>;

/** A session with what only its owner reads of it. */
export interface SessionRecord extends Session {
  readonly scene: 'private' | 'group' | 'channel';
  /** Of a preset's session: globs of the tools that it sees; null is all. */
  readonly slotTools: readonly string[] | null;
  /** Deferred tools that it has loaded. */
  readonly loadedTools: readonly string[];
}

function sessionOf(row: SessionRow): SessionRecord {
  return {
    id: row.id,
    projectId: row.projectId,
    agentId: row.agentId,
    kind: row.kind === 'subagent' ? 'subagent' : 'regular',
    principal: Principal.parse(row.principal),
    skills: row.allSkills ? null : row.skills,
    mode: PermissionMode.parse(row.mode),
    workspaceId: row.workspaceId,
    parentSessionId: row.parentSessionId,
    slot: row.slot,
    slotTools: SlotTools.parse(row.slotTools),
    loadedTools: row.loadedTools,
    adapter: row.adapter,
    endpoint: row.endpoint,
    scene: row.scene === 'group' || row.scene === 'channel' ? row.scene : 'private',
    sceneId: row.sceneId,
    thread: row.thread,
    version: row.version,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  };
}

/** What leaves the service of a session. */
export function publicSession({ scene: _scene, slotTools: _tools, loadedTools: _loaded, ...session }: SessionRecord): Session {
  return session;
}

export interface SessionFilter {
  readonly parentSessionId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly projectId?: string | undefined;
  readonly principalId?: string | undefined;
  readonly before?: Place | undefined;
  readonly limit: number;
}

/** Rows older than a place, newest first. */
export const olderThan = (place: Place | undefined) =>
  place === undefined ? {} : { OR: [{ createdAt: { lt: place.at } }, { createdAt: place.at, id: { lt: place.id } }] };
export const newestFirst: [{ createdAt: 'desc' }, { id: 'desc' }] = [{ createdAt: 'desc' }, { id: 'desc' }];

export const sessions = {
  async find(db: Reader, id: string): Promise<SessionRecord | undefined> {
    const row = await db.session.findUnique({ where: { id } });
    return row === null ? undefined : sessionOf(row);
  },

  async findByConversation(db: Reader, conversationKey: string): Promise<SessionRecord | undefined> {
    const row = await db.session.findUnique({ where: { conversationKey } });
    return row === null ? undefined : sessionOf(row);
  },

  /** Locks the session until the transaction ends: whatever changes its tape, runs or interactions waits here, session before run. */
  async lock(db: Reader, id: string): Promise<boolean> {
    const rows = await db.$queryRaw<unknown[]>`SELECT 1 FROM "session_service"."session" WHERE "id" = ${id}::uuid FOR UPDATE`;
    return rows.length > 0;
  },

  /** As lock(), for a session that was read before: {@link Overtaken} where it was changed since. */
  async hold(db: Reader, { id, version }: Pick<SessionRecord, 'id' | 'version'>): Promise<boolean> {
    const rows = await db.$queryRaw<{ version: number }[]>`
      SELECT "version" FROM "session_service"."session" WHERE "id" = ${id}::uuid FOR UPDATE`;
    const [row] = rows;
    if (row !== undefined && row.version !== version) throw new Overtaken();
    return row !== undefined;
  },

  /** Locks a session, then everything below it, and gives their ids, a parent before its children; none where it is gone. */
  async lockTree(db: Reader, id: string): Promise<string[]> {
    const tree: string[] = (await sessions.lock(db, id)) ? [id] : [];
    for (let level = [...tree]; level.length > 0;) {
      const below = await db.session.findMany({ where: { parentSessionId: { in: level } }, select: { id: true }, orderBy: { id: 'asc' } });
      level = [];
      for (const child of below) if (await sessions.lock(db, child.id)) level.push(child.id);
      tree.push(...level);
    }
    return tree;
  },

  /** Writes a locked session's agent and choices as its next version. */
  async change(
    unit: Unit,
    session: SessionRecord,
    to: Partial<Pick<SessionRecord, 'agentId' | 'projectId' | 'mode' | 'skills' | 'workspaceId' | 'loadedTools'>> & {
      readonly conversationKey?: string | null;
    },
  ): Promise<SessionRecord> {
    const { conversationKey, skills, loadedTools, ...rest } = to;
    const next = {
      ...session,
      ...rest,
      ...(skills === undefined ? {} : { skills }),
      ...(loadedTools === undefined ? {} : { loadedTools }),
      version: session.version + 1,
      updatedAt: unit.now.toISOString(),
    };
    await unit.sql.session.update({
      where: { id: session.id },
      data: {
        ...rest,
        ...(skills === undefined ? {} : { skills: skills ?? [], allSkills: skills === null }),
        ...(loadedTools === undefined ? {} : { loadedTools: [...loadedTools] }),
        ...(conversationKey === undefined ? {} : { conversationKey }),
        version: next.version,
        updatedAt: unit.now,
      },
    });
    return next;
  },

  /** False where another message made the conversation's session first. */
  async create(db: Reader, session: SessionRecord, conversationKey: string | null): Promise<boolean> {
    const { skills, principal, createdAt, updatedAt, slotTools, loadedTools, ...rest } = session;
    const data = {
      ...rest,
      ...(slotTools === null ? {} : { slotTools: [...slotTools] }),
      loadedTools: [...loadedTools],
      conversationKey,
      principal,
      principalId: principal.id,
      skills: skills ?? [],
      allSkills: skills === null,
      createdAt: new Date(createdAt),
      updatedAt: new Date(updatedAt),
    };
    return (await db.session.createMany({ data: [data], skipDuplicates: true })).count === 1;
  },

  async list(db: Reader, { parentSessionId, agentId, projectId, principalId, before, limit }: SessionFilter): Promise<SessionRecord[]> {
    const where = {
      ...(parentSessionId === undefined ? {} : { parentSessionId }),
      ...(agentId === undefined ? {} : { agentId }),
      ...(projectId === undefined ? {} : { projectId }),
      ...(principalId === undefined ? {} : { principalId }),
      ...olderThan(before),
    };
    return (await db.session.findMany({ where, orderBy: newestFirst, take: limit })).map(sessionOf);
  },

  /** The sessions of the subagents below this one, the newest thousand, at most five levels down. */
  async descendants(db: Reader, id: string): Promise<string[]> {
    const rows = await db.$queryRaw<{ id: string }[]>`
      WITH RECURSIVE below AS (
        SELECT "id", 1 AS "depth", "created_at" FROM "session_service"."session" WHERE "parent_session_id" = ${id}::uuid
        UNION ALL
        SELECT s."id", b."depth" + 1, s."created_at" FROM "session_service"."session" s JOIN below b ON s."parent_session_id" = b."id" WHERE b."depth" < 5
      ) SELECT "id"::text AS "id" FROM below ORDER BY "created_at" DESC LIMIT 1000`;
    return rows.map((row) => row.id);
  },

  /** Everything of the session, itself last; gives the fingerprints it was mapped to. */
  async removeWhole(db: Reader, id: string): Promise<string[]> {
    const mapped = await db.mapping.findMany({ where: { sessionId: id }, select: { fingerprint: true } });
    const runs = await db.run.findMany({ where: { sessionId: id }, select: { id: true, originRunId: true } });
    await db.runAttempt.deleteMany({ where: { runId: { in: runs.map((run) => run.id) } } });
    await db.runStep.deleteMany({ where: { originRunId: { in: runs.map((run) => run.originRunId) } } });
    const ofSession = { where: { sessionId: id } };
    await db.tapeEntry.deleteMany(ofSession);
    await db.interaction.deleteMany(ofSession);
    await db.receipt.deleteMany(ofSession);
    await db.queuedMessage.deleteMany(ofSession);
    await db.mapping.deleteMany(ofSession);
    const delegations = await db.delegation.findMany({ ...ofSession, select: { id: true } });
    await db.delegationTask.deleteMany({ where: { delegationId: { in: delegations.map((one) => one.id) } } });
    await db.delegation.deleteMany(ofSession);
    await db.run.deleteMany(ofSession);
    await db.session.delete({ where: { id } });
    return mapped.map(({ fingerprint }) => fingerprint);
  },

  /** The sessions above this one, nearest first, at most five. */
  async ancestors(db: Reader, session: SessionRecord): Promise<SessionRecord[]> {
    const found: SessionRecord[] = [];
    for (let parentId = session.parentSessionId; parentId !== null && found.length < 5;) {
      const parent = await sessions.find(db, parentId);
      if (parent === undefined) break;
      found.push(parent);
      parentId = parent.parentSessionId;
    }
    return found;
  },
};
