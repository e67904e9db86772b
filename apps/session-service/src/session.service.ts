import { Bus, type Call } from '@ambit/bus';
import { fault, sessionService, skillStore, type Output, type Parsed } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { agents } from './agent.repository.js';
import { doerOf } from './doer.js';
import { conversationKey } from './domain/session-key.js';
import { newSession } from './message.service.js';
import { pageOf, placeFrom, RunService } from './run.service.js';
import { runs } from './run.repository.js';
import { publicSession, sessions } from './session.repository.js';
import { Snapshots } from './snapshot.service.js';
import { Transactions } from './transactions.repository.js';

type Create = Parsed<typeof sessionService.createSession>;

@Injectable()
export class SessionService {
  constructor(
    private readonly bus: Bus,
    private readonly transactions: Transactions,
    private readonly runs: RunService,
    private readonly snapshots: Snapshots,
  ) {}

  /** A conversation that its place names is one session, however often it is opened; one without a place is new each time. */
  async create(input: Create, call: Call): Promise<Output<typeof sessionService.createSession>> {
    const agent = await agents.find(this.transactions.read, input.agentId);
    if (agent === undefined) throw fault(sessionService.createSession, 'AGENT_UNKNOWN');
    await this.#refuseUnknownSkills(input, agent.policy.plugins, call);
    const session = newSession(agent, input, call.startedAt);
    const key = input.sceneId === '' && input.thread === undefined ? null : conversationKey(agent.id, { ...input, scene: 'private' });
    return this.transactions.run(async (unit) => {
      const isNew = await sessions.create(unit.sql, session, key);
      const stored = isNew || key === null ? session : ((await sessions.findByConversation(unit.sql, key)) ?? session);
      if (isNew) unit.audit({ action: 'session.create', target: `session:${session.id}`, projectId: session.projectId }, doerOf(call));
      return publicSession(stored);
    });
  }

  async get(id: string): Promise<Output<typeof sessionService.getSession>> {
    const session = await sessions.find(this.transactions.read, id);
    if (session === undefined) throw fault(sessionService.getSession, 'SESSION_UNKNOWN');
    return publicSession(session);
  }

  async list({
    cursor,
    limit,
    ...filter
  }: Parsed<typeof sessionService.listSessions>): Promise<Output<typeof sessionService.listSessions>> {
    const found = await sessions.list(this.transactions.read, { ...filter, before: placeFrom(cursor), limit });
    return pageOf(found.map(publicSession), limit);
  }

  /** Ends the children first, then the session's own runs, then removes everything that it had. */
  async delete(id: string, call: Call): Promise<{ deleted: boolean }> {
    const session = await sessions.find(this.transactions.read, id);
    if (session === undefined) throw fault(sessionService.deleteSession, 'SESSION_UNKNOWN');
    for (const child of await sessions.children(this.transactions.read, id)) await this.delete(child, call);
    for (const runId of await runs.openIds(this.transactions.read, { sessionIds: [id] })) {
      await this.runs.cancelFor(runId, { reason: 'the session was deleted', doer: doerOf(call) });
    }
    const fingerprints = await this.transactions.run(async (unit) => {
      await sessions.lock(unit.sql, id);
      const mapped = await sessions.removeWhole(unit.sql, id);
      unit.audit({ action: 'session.delete', target: `session:${id}`, projectId: session.projectId }, doerOf(call));
      return mapped;
    });
    await this.snapshots.withdraw(id, fingerprints);
    return { deleted: true };
  }

  async #refuseUnknownSkills({ agentId, skills }: Create, plugins: string[] | null, call: Call): Promise<void> {
    if (skills === undefined || skills === null || skills.length === 0) return;
    const { skills: effective } = await this.bus.call(skillStore.effectiveSkills, { agentId, plugins }, { within: call });
    const names = skills.filter((name) => !effective.some((skill) => skill.name === name));
    if (names.length > 0) throw fault(sessionService.createSession, 'SKILL_UNKNOWN', { names });
  }
}
