import type { Call } from '@ambit/bus';
import { narrowerMode } from '@ambit/capability';
import { fault, sessionService, type Output, type Parsed } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { agents } from './agent.repository.js';
import { doerOf } from './doer.js';
import { placeKey } from './domain/session-key.js';
import { Narrowing } from './narrowing.service.js';
import { forkOf, newSession } from './new-session.js';
import { pageOf, placeFrom } from './paging.js';
import { runs } from './run.repository.js';
import { publicSession, sessions, type SessionRecord } from './session.repository.js';
import { SkillChoice } from './skill-choice.service.js';
import { tape } from './tape.repository.js';
import { Transactions } from './transactions.repository.js';

type Create = Parsed<typeof sessionService.createSession>;
type Update = Parsed<typeof sessionService.updateSession>;

@Injectable()
export class SessionService {
  constructor(
    private readonly transactions: Transactions,
    private readonly narrowing: Narrowing,
    private readonly skills: SkillChoice,
  ) {}

  /** A conversation that its place names is one session, however often it is opened; one without a place is new each time. */
  async create(input: Create, call: Call): Promise<Output<typeof sessionService.createSession>> {
    const agent = await agents.find(this.transactions.read, input.agentId);
    if (agent === undefined) throw fault(sessionService.createSession, 'AGENT_UNKNOWN');
    await this.skills.refuseUnknown(sessionService.createSession, { agent, skills: input.skills }, call);
    const session = newSession(agent, input, call.startedAt);
    const key = placeKey(agent.id, input);
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

  /** Chooses for the runs to come. A mode that became narrower holds for the run that is going, and for the children, at once. */
  async update({ id, skills, mode, workspaceId, ifVersion }: Update, call: Call): Promise<Output<typeof sessionService.updateSession>> {
    const found = await this.#changeable(id, sessionService.updateSession);
    const agent = await agents.find(this.transactions.read, found.agentId);
    if (agent !== undefined) await this.skills.refuseUnknown(sessionService.updateSession, { agent, skills }, call);
    const { session, moved } = await this.transactions.runFlushed(async (unit) => {
      await sessions.lock(unit.sql, id);
      const current = await sessions.find(unit.sql, id);
      if (current === undefined) throw fault(sessionService.updateSession, 'SESSION_UNKNOWN');
      if (ifVersion !== undefined && ifVersion !== current.version)
        throw fault(sessionService.updateSession, 'VERSION_CONFLICT', { version: current.version });
      // The choice was held against this agent.
      if (current.agentId !== found.agentId) throw fault(sessionService.updateSession, 'VERSION_CONFLICT', { version: current.version });
      const wanted = mode === undefined ? current.mode : narrowerMode(mode, agent?.policy.mode ?? 'default');
      const next = await sessions.change(unit, current, {
        mode: wanted,
        ...(skills === undefined ? {} : { skills }),
        ...(workspaceId === undefined ? {} : { workspaceId }),
      });
      const live = wanted === current.mode ? [] : await runs.openUnder(unit.sql, { sessionId: id });
      for (const runId of live) await this.narrowing.move(unit, runId, 'the session’s mode changed');
      unit.audit(
        { action: 'session.update', target: `session:${id}`, projectId: next.projectId, reason: `mode ${next.mode}` },
        doerOf(call),
      );
      return { session: next, moved: live };
    });
    this.narrowing.hint(moved, { abort: false, reason: 'the session’s mode changed' });
    return publicSession(session);
  }

  /** Another session with the same choices and the tape so far, as far as its calls have results. */
  async fork(id: string, call: Call): Promise<Output<typeof sessionService.forkSession>> {
    const original = await this.#changeable(id, sessionService.forkSession);
    const agent = await agents.find(this.transactions.read, original.agentId);
    if (agent === undefined) throw fault(sessionService.forkSession, 'AGENT_UNKNOWN');
    return this.transactions.run(async (unit) => {
      if (!(await sessions.lock(unit.sql, id))) throw fault(sessionService.forkSession, 'SESSION_UNKNOWN');
      const fork = forkOf(agent, original, unit.now);
      await sessions.create(unit.sql, fork, null);
      await tape.copy(unit.sql, id, fork.id);
      unit.audit(
        { action: 'session.fork', target: `session:${fork.id}`, projectId: fork.projectId, reason: `from session:${id}` },
        doerOf(call),
      );
      return publicSession(fork);
    });
  }

  async #changeable(id: string, contract: typeof sessionService.updateSession | typeof sessionService.forkSession): Promise<SessionRecord> {
    const session = await sessions.find(this.transactions.read, id);
    if (session === undefined) throw fault(contract, 'SESSION_UNKNOWN');
    if (session.kind === 'subagent') throw fault(contract, 'SESSION_READ_ONLY');
    return session;
  }
}
