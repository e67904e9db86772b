import { Agent, MatchRule, Policy, type Project } from '@ambit/contracts';
import { UNREADABLE } from './domain/unreadable-policy.js';
import type { Reader } from './transactions.repository.js';

type AgentRow = NonNullable<Awaited<ReturnType<Reader['agent']['findUnique']>>>;
type ProjectRow = NonNullable<Awaited<ReturnType<Reader['project']['findUnique']>>>;

function agentOf(row: AgentRow): Agent {
  const policy = Policy.safeParse(row.policy);
  return {
    id: row.id,
    projectId: row.projectId,
    kind: row.kind === 'acp' ? 'acp' : 'sdk',
    enabled: row.enabled,
    model: row.model,
    instructions: row.instructions,
    policy: policy.success ? policy.data : UNREADABLE,
    match: MatchRule.array().parse(row.match),
    set: row.set,
    version: row.version,
    policyVersion: row.policyVersion,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  };
}

function projectOf(row: ProjectRow): Project {
  return { ...row, createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString() };
}

/** An agent or a session changed since it was read; what was decided from it is decided again. */
export class Overtaken extends Error {
  override readonly name = 'Overtaken';
}

/** An agent as far as match rules are concerned. */
export type Candidate = Pick<Agent, 'id' | 'version' | 'enabled' | 'match'>;

export interface AgentFilter {
  readonly projectId?: string | undefined;
  readonly set?: string | undefined;
  readonly after?: string | undefined;
  readonly limit: number;
}

export const agents = {
  async find(db: Reader, id: string): Promise<Agent | undefined> {
    const row = await db.agent.findUnique({ where: { id } });
    return row === null ? undefined : agentOf(row);
  },

  /** Every agent's rules; the configuration of an installation, never more than a few thousand rows. */
  async matching(db: Reader): Promise<Candidate[]> {
    const rows = await db.agent.findMany({ select: { id: true, version: true, enabled: true, match: true } });
    return rows.map((row) => ({ ...row, match: MatchRule.array().parse(row.match) }));
  },

  /**
   * Holds the agent as it was read until the transaction ends, before any session is locked. A change of it waits, and then finds the run that is made
   * here; where one came first, {@link Overtaken}.
   */
  async hold(db: Reader, { id, version }: Pick<Agent, 'id' | 'version'>): Promise<void> {
    const rows = await db.$queryRaw<{ version: number }[]>`SELECT "version" FROM "session_service"."agent" WHERE "id" = ${id} FOR SHARE`;
    if (rows[0]?.version !== version) throw new Overtaken();
  },

  /** Versions of agents, for whoever composed from them and wants to know whether they still stand. */
  async versions(db: Reader, ids: readonly string[]): Promise<Map<string, number>> {
    const rows = await db.agent.findMany({ where: { id: { in: [...ids] } }, select: { id: true, version: true } });
    return new Map(rows.map(({ id, version }) => [id, version]));
  },

  /** Locks the agent for a change of it. */
  async lock(db: Reader, id: string): Promise<void> {
    await db.$queryRaw`SELECT 1 FROM "session_service"."agent" WHERE "id" = ${id} FOR UPDATE`;
  },

  /** Serialises changes of agents: whether two of them tie is asked of all of them. */
  async lockAll(db: Reader): Promise<void> {
    await db.$executeRaw`SELECT pg_advisory_xact_lock(hashtextextended('session-service.agents', 0))`;
  },

  async list(db: Reader, { projectId, set, after, limit }: AgentFilter): Promise<Agent[]> {
    const where = {
      ...(projectId === undefined ? {} : { projectId }),
      ...(set === undefined ? {} : { set }),
      ...(after === undefined ? {} : { id: { gt: after } }),
    };
    return (await db.agent.findMany({ where, orderBy: { id: 'asc' }, take: limit })).map(agentOf);
  },

  async store(db: Reader, agent: Agent): Promise<void> {
    const { id, createdAt, updatedAt, ...rest } = agent;
    const data = { ...rest, createdAt: new Date(createdAt), updatedAt: new Date(updatedAt) };
    await db.agent.upsert({ where: { id }, create: { id, ...data }, update: data });
  },

  async remove(db: Reader, id: string): Promise<void> {
    await db.agent.delete({ where: { id } });
  },

  async hasSessions(db: Reader, id: string): Promise<boolean> {
    return (await db.session.findFirst({ where: { agentId: id }, select: { id: true } })) !== null;
  },

  /** Ids and versions of the agents that are switched on. */
  async enabled(db: Reader): Promise<{ id: string; version: number }[]> {
    return db.agent.findMany({ where: { enabled: true }, select: { id: true, version: true }, orderBy: { id: 'asc' } });
  },
};

export const projects = {
  async put(db: Reader, project: { readonly id: string; readonly display: string }, now: Date): Promise<Project> {
    const current = await db.project.findUnique({ where: { id: project.id } });
    if (current !== null && current.display === project.display) return projectOf(current);
    const changed = { display: project.display, version: (current?.version ?? 0) + 1, updatedAt: now };
    return projectOf(
      await db.project.upsert({ where: { id: project.id }, create: { id: project.id, createdAt: now, ...changed }, update: changed }),
    );
  },

  /** The project of an agent that is put before its project was named. */
  async ensure(db: Reader, id: string, now: Date): Promise<void> {
    await db.project.createMany({ data: [{ id, display: '', version: 1, createdAt: now, updatedAt: now }], skipDuplicates: true });
  },

  async list(db: Reader, after: string | undefined, limit: number): Promise<Project[]> {
    const where = after === undefined ? {} : { id: { gt: after } };
    return (await db.project.findMany({ where, orderBy: { id: 'asc' }, take: limit })).map(projectOf);
  },
};

const TRIES = 5;

/** Does something again that was decided from an agent or a session which changed meanwhile. */
export async function withFresh<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Overtaken) || attempt === TRIES) throw error;
    }
  }
}
