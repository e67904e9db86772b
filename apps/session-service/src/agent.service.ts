import type { Call } from '@ambit/bus';
import { digestOf, findTies } from '@ambit/capability';
import { fault, sessionService, type Agent, type AgentSpec, type Output, type Parsed } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { agents, projects } from './agent.repository.js';
import { doerOf } from './doer.js';
import { nextAgent, takenAlias } from './domain/agent.js';
import { agentChanged } from './domain/facts.js';
import { Narrowing } from './narrowing.service.js';
import { runs } from './run.repository.js';
import { Transactions, type Unit } from './transactions.repository.js';

type Put = Parsed<typeof sessionService.putAgent>;

@Injectable()
export class AgentService {
  constructor(
    private readonly transactions: Transactions,
    private readonly narrowing: Narrowing,
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
      await this.#refuseTies(unit, spec);
      const change = nextAgent(current, spec, unit.now);
      if (!change.isChanged) return { agent: change.agent, moved: [] };
      await projects.ensure(unit.sql, spec.projectId, unit.now);
      await agents.store(unit.sql, change.agent);
      const live = change.movesAuthority ? (await runs.openIds(unit.sql, { agentId: spec.id })).sort() : [];
      for (const runId of live) await this.narrowing.move(unit, runId, 'the agent’s policy changed');
      unit.tell(agentChanged(change.agent, false, unit.now));
      const action = change.isNew ? 'agent.create' : 'agent.update';
      unit.audit(
        {
          action,
          target: `agent:${spec.id}`,
          projectId: spec.projectId,
          beforeDigest: current === undefined ? null : digestOf(current),
          afterDigest: digestOf(change.agent),
        },
        doerOf(call),
      );
      return { agent: change.agent, moved: live };
    });
    this.narrowing.hint(moved, { abort: false, reason: 'the agent’s policy changed' });
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
    await this.transactions.run(async (unit) => {
      await agents.lock(unit.sql, id);
      const agent = await agents.find(unit.sql, id);
      if (agent === undefined) throw fault(sessionService.deleteAgent, 'AGENT_UNKNOWN');
      if (await agents.hasSessions(unit.sql, id)) throw fault(sessionService.deleteAgent, 'AGENT_IN_USE');
      await agents.remove(unit.sql, id);
      unit.tell(agentChanged(agent, true, unit.now));
      unit.audit(
        { action: 'agent.delete', target: `agent:${id}`, projectId: agent.projectId, beforeDigest: digestOf(agent) },
        doerOf(call),
      );
    });
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

  async #refuseTies(unit: Unit, spec: AgentSpec): Promise<void> {
    const others = (await agents.matching(unit.sql)).filter(({ id }) => id !== spec.id);
    const ties = findTies([...others, spec]).filter(({ agents: tied }) => tied.includes(spec.id));
    if (ties.length === 0) return;
    const tied = [...new Set(ties.flatMap(({ agents: pair }) => pair))].filter((id) => id !== spec.id).sort();
    throw fault(sessionService.putAgent, 'AGENT_AMBIGUOUS', { agents: tied });
  }
}

function withCursor<T extends { readonly id: string }>(items: T[], limit: number): { items: T[]; cursor?: string } {
  const last = items.at(-1);
  return { items, ...(items.length === limit && last !== undefined ? { cursor: last.id } : {}) };
}
