import {
  DELEGATION,
  DelegationMode,
  DelegationStatus,
  FaultBodySchema,
  Principal,
  TaskStatus,
  type DelegatedTask,
  type Delegation,
  type RunStatus,
} from '@ambit/contracts';
import { isDone, standingOf, summaryOf, taskStatusOf } from './domain/delegation.js';
import { delegationChanged } from './domain/facts.js';
import type { FaultIn } from './domain/run-state.js';
import type { Reader, Unit } from './transactions.repository.js';

type Row = NonNullable<Awaited<ReturnType<Reader['delegation']['findUnique']>>>;
type TaskRow = NonNullable<Awaited<ReturnType<Reader['delegationTask']['findFirst']>>>;

/** Of what a subagent said, at most this much is kept for the next task of a chain. */
const RESULT_MAX = 64 * 1024;

export interface TaskRecord {
  readonly index: number;
  readonly slotId: string;
  readonly agentId: string;
  readonly title: string;
  readonly prompt: string;
  readonly expectedOutput: string | null;
  readonly status: TaskStatus;
  readonly sessionId: string | null;
  readonly result: string | null;
  readonly fault: FaultIn | null;
}

/** A delegation with what only its owner reads of it. */
export interface DelegationRecord extends Omit<Delegation, 'tasks'> {
  readonly originRunId: string;
  readonly principal: Principal;
  readonly roles: readonly string[];
  readonly tasks: readonly TaskRecord[];
}

/** How a subagent's run ended. */
export interface ChildEnd {
  readonly sessionId: string;
  readonly status: RunStatus;
  readonly fault: FaultIn | null;
  readonly said: string;
}

const taskOf = ({ status, fault, delegationId: _delegationId, ...rest }: TaskRow): TaskRecord => ({
  ...rest,
  status: TaskStatus.parse(status),
  fault: fault === null ? null : FaultBodySchema.parse(fault),
});

function recordOf(row: Row, tasks: readonly TaskRow[]): DelegationRecord {
  return {
    ...row,
    mode: DelegationMode.parse(row.mode),
    status: DelegationStatus.parse(row.status),
    principal: Principal.parse(row.principal),
    createdAt: row.createdAt.toISOString(),
    deadlineAt: row.deadlineAt.toISOString(),
    endedAt: row.endedAt?.toISOString() ?? null,
    tasks: tasks.filter((task) => task.delegationId === row.id).map(taskOf),
  };
}

/** What leaves the service of a delegation. */
export function publicDelegation({
  originRunId: _origin,
  principal: _principal,
  roles: _roles,
  tasks,
  ...delegation
}: DelegationRecord): Delegation {
  return {
    ...delegation,
    tasks: tasks.map(({ index, slotId, agentId, title, status, sessionId, result, fault }) => ({
      index,
      slotId,
      agentId,
      title,
      status,
      sessionId,
      summary: result === null ? null : summaryOf(result),
      fault,
    })),
  };
}

async function withTasks(db: Reader, rows: readonly Row[]): Promise<DelegationRecord[]> {
  if (rows.length === 0) return [];
  const where = { delegationId: { in: rows.map(({ id }) => id) } };
  const tasks = await db.delegationTask.findMany({ where, orderBy: { index: 'asc' } });
  return rows.map((row) => recordOf(row, tasks));
}

export const delegations = {
  async byOperation(db: Reader, operationId: string): Promise<DelegationRecord | undefined> {
    const row = await db.delegation.findUnique({ where: { operationId } });
    return row === null ? undefined : (await withTasks(db, [row]))[0];
  },

  /** One that a session started; tasks whose run waits for a person say so. */
  async find(db: Reader, sessionId: string, id: string): Promise<DelegationRecord | undefined> {
    const row = await db.delegation.findFirst({ where: { id, sessionId } });
    return row === null ? undefined : (await withWaiting(db, await withTasks(db, [row])))[0];
  },

  async list(db: Reader, sessionId: string): Promise<DelegationRecord[]> {
    const rows = await db.delegation.findMany({
      where: { sessionId },
      orderBy: { createdAt: 'desc' },
      take: DELEGATION.active + DELEGATION.kept,
    });
    return withWaiting(db, await withTasks(db, rows));
  },

  activeOf(db: Reader, sessionId: string): Promise<number> {
    return db.delegation.count({ where: { sessionId, status: 'running' } });
  },

  async create(
    unit: Unit,
    delegation: Omit<DelegationRecord, 'tasks'>,
    tasks: readonly (DelegatedTask & { readonly agentId: string })[],
  ): Promise<DelegationRecord> {
    const { createdAt, deadlineAt, endedAt: _endedAt, roles, ...rest } = delegation;
    await unit.sql.delegation.create({
      data: { ...rest, roles: [...roles], createdAt: new Date(createdAt), deadlineAt: new Date(deadlineAt) },
    });
    await unit.sql.delegationTask.createMany({
      data: tasks.map(({ slotId, agentId, title, prompt, expectedOutput }, index) => ({
        delegationId: delegation.id,
        ...{ index, slotId, agentId, title, prompt, status: 'pending' },
        ...(expectedOutput === undefined ? {} : { expectedOutput }),
      })),
    });
    const created = await delegations.lock(unit.sql, delegation.id);
    if (created === undefined) throw new Error('the delegation that was just made is gone');
    unit.tell(delegationChanged(publicDelegation(created), 'began', unit.now));
    return created;
  },

  /** Locks a delegation and reads it as it is then. */
  async lock(db: Reader, id: string): Promise<DelegationRecord | undefined> {
    await db.$queryRaw`SELECT 1 FROM "session_service"."delegation" WHERE "id" = ${id}::uuid FOR UPDATE`;
    const row = await db.delegation.findUnique({ where: { id } });
    return row === null ? undefined : (await withTasks(db, [row]))[0];
  },

  /** Delegations at work that an origin run started, those in the background too where asked for. */
  async openOf(db: Reader, originRunId: string, { withBackground }: { readonly withBackground: boolean }): Promise<string[]> {
    const where = { originRunId, status: 'running', ...(withBackground ? {} : { background: false }) };
    return (await db.delegation.findMany({ where, select: { id: true }, orderBy: { id: 'asc' } })).map(({ id }) => id);
  },

  /** Delegations at work that a session started. */
  async running(db: Reader, sessionId: string): Promise<string[]> {
    const where = { sessionId, status: 'running' };
    return (await db.delegation.findMany({ where, select: { id: true }, orderBy: { id: 'asc' } })).map(({ id }) => id);
  },

  async childSessions(db: Reader, id: string): Promise<string[]> {
    const rows = await db.delegationTask.findMany({ where: { delegationId: id, sessionId: { not: null } }, orderBy: { index: 'asc' } });
    return rows.flatMap(({ sessionId }) => (sessionId === null ? [] : [sessionId]));
  },

  /** The delegation at work that a session is the child of. */
  async ofChild(db: Reader, sessionId: string): Promise<string | undefined> {
    return (await db.delegationTask.findUnique({ where: { sessionId }, select: { delegationId: true } }))?.delegationId;
  },

  async taskStarted(unit: Unit, id: string, { index, sessionId }: { readonly index: number; readonly sessionId: string }): Promise<void> {
    await unit.sql.delegationTask.update({
      where: { delegationId_index: { delegationId: id, index } },
      data: { sessionId, status: 'running' },
    });
  },

  /** Notes how a locked delegation's child ended, and ends the delegation where nothing is left to do. */
  async taskEnded(unit: Unit, delegation: DelegationRecord, { sessionId, status, fault, said }: ChildEnd): Promise<void> {
    const task = delegation.tasks.find((one) => one.sessionId === sessionId);
    if (task === undefined || isDone(task.status)) return;
    const ended = taskStatusOf(status);
    await unit.sql.delegationTask.update({
      where: { delegationId_index: { delegationId: delegation.id, index: task.index } },
      data: { status: ended, result: said.slice(0, RESULT_MAX), ...(fault === null ? {} : { fault: JSON.parse(JSON.stringify(fault)) }) },
    });
    const tasks = delegation.tasks.map((one) => (one.index === task.index ? { ...one, status: ended } : one));
    const standing = standingOf(
      delegation.mode,
      tasks.map((one) => one.status),
    );
    if (delegation.status !== 'running') return;
    if (standing === 'running') unit.tell(delegationChanged(publicDelegation({ ...delegation, tasks }), `task.${task.index}`, unit.now));
    else await delegations.close(unit, { ...delegation, tasks }, standing);
  },

  /** Ends a locked delegation; what had not begun is cancelled, and the oldest of many ended ones are forgotten. */
  async close(unit: Unit, delegation: DelegationRecord, status: Exclude<DelegationStatus, 'running'>): Promise<void> {
    const { id, sessionId } = delegation;
    const open = status === 'timed_out' ? 'timed_out' : 'cancelled';
    await unit.sql.delegationTask.updateMany({
      where: { delegationId: id, status: { in: ['pending', 'running'] } },
      data: { status: open },
    });
    await unit.sql.delegation.update({ where: { id }, data: { status, endedAt: unit.now } });
    const tasks = delegation.tasks.map((task) => (isDone(task.status) ? task : ({ ...task, status: open } as const)));
    unit.tell(delegationChanged(publicDelegation({ ...delegation, status, tasks, endedAt: unit.now.toISOString() }), 'ended', unit.now));
    const old = await unit.sql.delegation.findMany({
      where: { sessionId, status: { not: 'running' } },
      orderBy: [{ endedAt: 'desc' }, { id: 'desc' }],
      skip: DELEGATION.kept,
      select: { id: true },
    });
    const forgotten = old.map((one) => one.id);
    await unit.sql.delegationTask.deleteMany({ where: { delegationId: { in: forgotten } } });
    await unit.sql.delegation.deleteMany({ where: { id: { in: forgotten } } });
  },

  /** Delegations whose time is up. */
  async overdue(db: Reader, now: Date): Promise<{ id: string; sessionId: string }[]> {
    return db.delegation.findMany({
      where: { status: 'running', deadlineAt: { lte: now } },
      select: { id: true, sessionId: true },
      take: 100,
    });
  },

  /** Chains whose next task has not begun although nothing of them is at work. */
  async resting(db: Reader): Promise<string[]> {
    const rows = await db.$queryRaw<{ id: string }[]>`
      SELECT d."id" FROM "session_service"."delegation" d WHERE d."status" = 'running' AND d."mode" = 'chain'
        AND EXISTS (SELECT 1 FROM "session_service"."delegation_task" t WHERE t."delegation_id" = d."id" AND t."status" = 'pending')
        AND NOT EXISTS (SELECT 1 FROM "session_service"."delegation_task" t WHERE t."delegation_id" = d."id" AND t."status" = 'running') LIMIT 100`;
    return rows.map(({ id }) => id);
  },
};

/** A task is at work until its child's run ends; where that run is suspended, a person is waited for. */
async function withWaiting(db: Reader, found: readonly DelegationRecord[]): Promise<DelegationRecord[]> {
  const children = found.flatMap(({ tasks }) =>
    tasks.flatMap(({ status, sessionId }) => (status === 'running' && sessionId !== null ? [sessionId] : [])),
  );
  if (children.length === 0) return [...found];
  const waiting = await db.run.findMany({
    where: { sessionId: { in: children }, status: 'suspended', endedAt: null },
    select: { sessionId: true },
  });
  const sessions = new Set(waiting.map(({ sessionId }) => sessionId));
  return found.map((one) => ({
    ...one,
    tasks: one.tasks.map((task) =>
      task.sessionId !== null && sessions.has(task.sessionId) ? { ...task, status: 'waiting' as const } : task,
    ),
  }));
}
