import type { Call } from '@ambit/bus';
import { argumentsHash, digestOf, findTies } from '@ambit/capability';
import {
  fault,
  sessionService,
  type Agent,
  type AgentAdjustment,
  type AgentSpec,
  type Output,
  type Parsed,
  type Via,
} from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { agents, projects } from './agent.repository.js';
import { doerOf } from './doer.js';
import { adjusted } from './domain/adjust-agent.js';
import { nextAgent, takenAlias } from './domain/agent.js';
import { agentChanged } from './domain/facts.js';
import { drafts } from './draft.repository.js';
import { interactions, type InteractionRecord } from './interaction.repository.js';
import { leavings } from './leaving.repository.js';
import { LeavingService } from './leaving.service.js';
import { Narrowing } from './narrowing.service.js';
import { runs } from './run.repository.js';
import { Transactions, type Doer, type Unit } from './transactions.repository.js';

type Put = Parsed<typeof sessionService.putAgent>;

const CHANGED = 'the agent’s policy changed';
interface Stored {
  readonly agent: Agent;
  /** Live runs whose authority moved. */
  readonly moved: readonly string[];
}

@Injectable()
export class AgentService {
  constructor(
    private readonly transactions: Transactions,
    private readonly narrowing: Narrowing,
    private readonly leaving: LeavingService,
  ) {}

  /** Answers once the authority of every live run of the agent has moved with the policy. */
  async put({ ifVersion, ...spec }: Put, call: Call): Promise<Agent> {
    const alias = takenAlias(spec.policy);
    if (alias !== undefined) throw fault(sessionService.putAgent, 'ALIAS_TAKEN', { alias });
    const { agent, moved } = await this.transactions.runFlushed(async (unit) => {
      await agents.lockAll(unit.sql);
      await agents.lock(unit.sql, spec.id);
      const current = await agents.find(unit.sql, spec.id);
      if (ifVersion !== undefined && ifVersion !== (current?.version ?? 0))
        throw fault(sessionService.putAgent, 'VERSION_CONFLICT', { version: current?.version ?? 0 });
      if (await leavings.has(unit.sql, spec.id)) throw fault(sessionService.putAgent, 'AGENT_LEAVING');
      await this.#refuseTies(unit, spec);
      return this.#store(unit, { current, spec }, { doer: doerOf(call) });
    });
    this.narrowing.hint(moved, { abort: false, reason: CHANGED });
    return agent;
  }

  /** A change of its own settings that an agent asked for: the approval of that very call is its ground, and nothing widens. */
  async adjust({ operationId, change }: Parsed<typeof sessionService.adjustAgent>, call: Call): Promise<Agent> {
    const { agent, moved } = await this.transactions.runFlushed(async (unit) => {
      const [approval] = await interactions.byOperations(unit.sql, [operationId]);
      if (approval === undefined || approval.decidedBy === null || !covers(approval, change))
        throw fault(sessionService.adjustAgent, 'NO_INTERACTION');
      await agents.lockAll(unit.sql);
      await agents.lock(unit.sql, approval.agentId);
      const current = await agents.find(unit.sql, approval.agentId);
      // An agent that sessions use is never deleted, so the one that asked is there.
      if (current === undefined) throw fault(sessionService.adjustAgent, 'NO_INTERACTION');
      const wanted = adjusted(current, change);
      if ('widens' in wanted) throw fault(sessionService.adjustAgent, 'ADJUSTMENT_WIDENS', { reason: wanted.widens });
      const via: Via = { kind: 'system', id: `interaction:${approval.id}` };
      const doer = { actor: approval.decidedBy, principal: approval.principal, via, traceId: call.traceId };
      return this.#store(unit, { current, spec: wanted.spec }, { doer, reason: `asked for in call ${operationId}` });
    });
    this.narrowing.hint(moved, { abort: false, reason: CHANGED });
    return agent;
  }

  async get(id: string): Promise<Agent> {
    const agent = await agents.find(this.transactions.read, id);
    if (agent === undefined) throw fault(sessionService.getAgent, 'AGENT_UNKNOWN');
    return agent;
  }

  async list({
    projectId,
    set,
    cursor,
    limit,
  }: Parsed<typeof sessionService.listAgents>): Promise<Output<typeof sessionService.listAgents>> {
    const items = await agents.list(this.transactions.read, { projectId, set, after: cursor, limit });
    return withCursor(items, limit);
  }

  async delete(id: string, call: Call): Promise<{ deleted: boolean }> {
    const left = await this.transactions.run(async (unit) => {
      await agents.lock(unit.sql, id);
      const agent = await agents.find(unit.sql, id);
      if (agent === undefined) throw fault(sessionService.deleteAgent, 'AGENT_UNKNOWN');
      if (await agents.hasSessions(unit.sql, id)) throw fault(sessionService.deleteAgent, 'AGENT_IN_USE');
      await agents.remove(unit.sql, id);
      await drafts.dropOf(unit.sql, id);
      unit.tell(agentChanged(agent, true, unit.now));
      unit.audit(
        { action: 'agent.delete', target: `agent:${id}`, projectId: agent.projectId, beforeDigest: digestOf(agent) },
        doerOf(call),
      );
      const leaving = { id, createdAt: new Date(agent.createdAt) };
      await leavings.add(unit.sql, leaving, unit.now);
      return leaving;
    });
    // Whoever has something of it may be away now: the sweeper asks again.
    await this.leaving.attend(left, call).catch(() => undefined);
    return { deleted: true };
  }

  async putProject(project: Parsed<typeof sessionService.putProject>, call: Call): Promise<Output<typeof sessionService.putProject>> {
    return this.transactions.run(async (unit) => {
      const stored = await projects.put(unit.sql, project, unit.now);
      if (stored.updatedAt === unit.now.toISOString())
        unit.audit(
          { action: 'project.put', target: `project:${project.id}`, projectId: project.id, afterDigest: digestOf(stored) },
          doerOf(call),
        );
      return stored;
    });
  }

  async listProjects({ cursor, limit }: Parsed<typeof sessionService.listProjects>): Promise<Output<typeof sessionService.listProjects>> {
    return withCursor(await projects.list(this.transactions.read, cursor, limit), limit);
  }

  async #store(
    unit: Unit,
    { current, spec }: { readonly current: Agent | undefined; readonly spec: AgentSpec },
    by: { readonly doer: Doer; readonly reason?: string },
  ): Promise<Stored> {
    const change = nextAgent(current, spec, unit.now);
    if (!change.isChanged) return { agent: change.agent, moved: [] };
    await projects.ensure(unit.sql, spec.projectId, unit.now);
    await agents.store(unit.sql, change.agent);
    const moved = change.movesAuthority ? await runs.openUnder(unit.sql, { agentId: spec.id }) : [];
    for (const runId of moved) await this.narrowing.move(unit, runId, CHANGED);
    unit.tell(agentChanged(change.agent, false, unit.now));
    unit.audit(
      {
        action: change.isNew ? 'agent.create' : 'agent.update',
        target: `agent:${spec.id}`,
        projectId: spec.projectId,
        beforeDigest: current === undefined ? null : digestOf(current),
        afterDigest: digestOf(change.agent),
        ...(by.reason === undefined ? {} : { reason: by.reason }),
      },
      by.doer,
    );
    return { agent: change.agent, moved };
  }

  async #refuseTies(unit: Unit, spec: AgentSpec): Promise<void> {
    const others = (await agents.matching(unit.sql)).filter(({ id }) => id !== spec.id);
    const ties = findTies([...others, spec]).filter(({ agents: tied }) => tied.includes(spec.id));
    if (ties.length === 0) return;
    const tied = [...new Set(ties.flatMap(({ agents: pair }) => pair))].filter((id) => id !== spec.id).sort();
    throw fault(sessionService.putAgent, 'AGENT_AMBIGUOUS', { agents: tied });
  }
}

/** Whether a person allowed exactly this change, and it was not made yet. */
function covers({ status, settledAt, target, argumentsHash: approved }: InteractionRecord, change: AgentAdjustment): boolean {
  const isOfSettings = target?.kind === 'builtin' && target.id === 'settings_write';
  return status === 'allowed' && settledAt === null && isOfSettings && approved === argumentsHash(change);
}

function withCursor<T extends { readonly id: string }>(items: T[], limit: number): { items: T[]; cursor?: string } {
  const last = items.at(-1);
  return { items, ...(items.length === limit && last !== undefined ? { cursor: last.id } : {}) };
}
