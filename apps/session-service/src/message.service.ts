import type { Call } from '@ambit/bus';
import { matchAgent } from '@ambit/capability';
import { fault, sessionService, type Agent, type MessageIn, type Output, type Parsed } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { agents, Overtaken, withFresh, type Candidate } from './agent.repository.js';
import { userEntry } from './domain/tape.js';
import { conversationKey, placeKey } from './domain/session-key.js';
import { inbound, type Receipt } from './inbound.repository.js';
import type { Prepared } from './ingress.service.js';
import { Launcher } from './launch.service.js';
import { DraftService } from './draft.service.js';
import { newSession } from './new-session.js';
import { runs } from './run.repository.js';
import { SkillChoice } from './skill-choice.service.js';
import { sessions, type SessionRecord } from './session.repository.js';
import { Snapshots } from './snapshot.service.js';
import { tape } from './tape.repository.js';
import { Transactions, type Unit } from './transactions.repository.js';
import { WhoseReader } from './whose.service.js';

type Received = Output<typeof sessionService.receiveMessage>;
type MatchInput = Parsed<typeof sessionService.matchAgent>;

/** Messages that may wait in one session. */
const QUEUE_MAX = 20;

/** The sender's key was answered by a request that came at the same time. */
class AnsweredAlready extends Error {}

/** Takes inbound messages: binding, session, ingress, run. */
@Injectable()
export class MessageService {
  constructor(
    private readonly transactions: Transactions,
    private readonly snapshots: Snapshots,
    private readonly launcher: Launcher,
    private readonly whose: WhoseReader,
    private readonly skills: SkillChoice,
    private readonly drafts: DraftService,
  ) {}

  async match(input: MatchInput): Promise<Output<typeof sessionService.matchAgent>> {
    return bind(await agents.matching(this.transactions.read), input, sessionService.matchAgent);
  }

  async receive(message: MessageIn, call: Call): Promise<Received> {
    const sender = { principalId: message.principal.id, key: message.idempotencyKey };
    const known = await inbound.receipt(this.transactions.read, sender.principalId, sender.key);
    if (known !== undefined) return known;
    try {
      return await withFresh(() => this.#take(message, call));
    } catch (error) {
      const answered =
        error instanceof AnsweredAlready ? await inbound.receipt(this.transactions.read, sender.principalId, sender.key) : undefined;
      if (answered !== undefined) return answered;
      throw error;
    }
  }

  /** Starts the run of the message that waits longest, where the session has nothing else to do. True where one began. */
  async advance(sessionId: string): Promise<boolean> {
    return withFresh(() => this.#advance(sessionId));
  }

  async #advance(sessionId: string): Promise<boolean> {
    const session = await sessions.find(this.transactions.read, sessionId);
    const waiting = await inbound.first(this.transactions.read, sessionId);
    if (session === undefined || waiting === undefined) return false;
    const agent = await agents.find(this.transactions.read, session.agentId);
    // Switched off: its messages wait until it is on again or the session goes.
    if (agent === undefined || !agent.enabled) return false;
    const { message, place } = waiting;
    const whose = await this.whose.ofMessage(agent, session, message);
    const prepared = await this.snapshots.prepare(whose);
    return this.transactions.run(async (unit) => {
      if (!(await this.whose.hold(unit, whose))) return false;
      if ((await runs.openOf(unit.sql, sessionId)) !== undefined || !(await inbound.take(unit, sessionId, place))) return false;
      const runId = await this.#launch(unit, message, { agent, session, prepared });
      await inbound.answer(unit, { principalId: message.principal.id, key: message.idempotencyKey }, runId);
      return true;
    });
  }

  async #take(message: MessageIn, call: Call): Promise<Receipt> {
    if (message.draftId !== undefined) return this.#persist(message, message.draftId, call);
    const { agent, session } = await this.#target(message, call);
    if (!agent.enabled) throw fault(sessionService.receiveMessage, 'AGENT_DISABLED');
    for (;;) {
      const isBusy = (await runs.openOf(this.transactions.read, session.id)) !== undefined;
      const receipt = isBusy ? await this.#whileBusy(message, { agent, session }) : await this.#start(message, { agent, session, call });
      if (receipt !== undefined) return receipt;
    }
  }

  async #target(message: MessageIn, call: Call): Promise<{ agent: Agent; session: SessionRecord }> {
    const { sessionId } = message;
    if (sessionId !== undefined) return this.#given(message, sessionId);
    const agent = message.agentId === undefined ? await this.#bound(message) : await this.#agent(message.agentId);
    const key = conversationKey(agent.id, message);
    const found = await sessions.findByConversation(this.transactions.read, key);
    if (found !== undefined) return { agent, session: found };
    await this.skills.refuseUnknown(sessionService.receiveMessage, { agent, skills: message.skills }, call);
    const created = newSession(agent, message, call.startedAt);
    await this.transactions.run((unit) => sessions.create(unit.sql, created, key));
    const session = await sessions.findByConversation(this.transactions.read, key);
    if (session === undefined) throw new Error('the session that was just made is gone');
    return { agent, session };
  }

  /** The agent whose rules match, as it was when they did. */
  async #bound(message: MessageIn): Promise<Agent> {
    const { agentId, version } = bind(await agents.matching(this.transactions.read), message, sessionService.receiveMessage);
    const agent = await agents.find(this.transactions.read, agentId);
    if (agent?.version !== version) throw new Overtaken();
    return agent;
  }

  async #given(message: MessageIn, sessionId: string): Promise<{ agent: Agent; session: SessionRecord }> {
    const session = await sessions.find(this.transactions.read, sessionId);
    if (session?.kind === 'subagent') throw fault(sessionService.receiveMessage, 'SESSION_READ_ONLY');
    const isTheirs = session !== undefined && (session.scene !== 'private' || session.principal.id === message.principal.id);
    if (!isTheirs || (message.agentId !== undefined && message.agentId !== session.agentId))
      throw fault(sessionService.receiveMessage, 'SESSION_UNKNOWN');
    return { agent: await this.#agent(session.agentId), session };
  }

  async #agent(id: string): Promise<Agent> {
    const agent = await agents.find(this.transactions.read, id);
    if (agent === undefined) throw fault(sessionService.receiveMessage, 'AGENT_UNKNOWN');
    return agent;
  }

  /** Undefined where the session became busy meanwhile. */
  async #start(
    message: MessageIn,
    { agent, session, call }: { agent: Agent; session: SessionRecord; call: Call },
  ): Promise<Receipt | undefined> {
    const whose = await this.whose.ofMessage(agent, session, message);
    const prepared = await this.snapshots.prepare(whose, call);
    return this.transactions.run(async (unit) => {
      if (!(await this.whose.hold(unit, whose))) throw fault(sessionService.receiveMessage, 'SESSION_UNKNOWN');
      if ((await runs.openOf(unit.sql, session.id)) !== undefined) return undefined;
      const runId = await this.#launch(unit, message, { agent, session, prepared, call });
      return this.#answered(unit, message, { sessionId: session.id, runId, agentId: agent.id, queued: false, position: 0 });
    });
  }

  async #launch(
    unit: Unit,
    message: Pick<MessageIn, 'principal' | 'roles' | 'replyTo' | 'content' | 'media'>,
    to: { agent: Agent; session: SessionRecord; prepared: Prepared; call?: Call },
  ): Promise<string> {
    const { agent, session, prepared, call } = to;
    const { principal, roles, replyTo } = message;
    const run = await this.launcher.launch(unit, {
      agent,
      session,
      prepared,
      principal,
      roles,
      replyTo: replyTo ?? null,
      traceparent: call?.traceparent,
    });
    if (run === undefined) throw new Error('a run with a fresh id exists already');
    await tape.append(unit, session.id, [userEntry(message, { runId: run.id, originRunId: run.originRunId })]);
    return run.id;
  }

  /** The first message of a draft: its session begins with what the draft was composed to. */
  async #persist(message: MessageIn, draftId: string, call: Call): Promise<Receipt> {
    const { principal, roles, content, media, replyTo, idempotencyKey } = message;
    const client = { principalId: principal.id, actorId: call.actor?.id ?? null };
    const draft = await this.drafts.find(draftId, client);
    if (draft === undefined) throw fault(sessionService.receiveMessage, 'DRAFT_UNKNOWN');
    const agent = await this.#agent(draft.agentId);
    if (!agent.enabled) throw fault(sessionService.receiveMessage, 'AGENT_DISABLED');
    return this.transactions.run(async (unit) => {
      await agents.hold(unit.sql, agent);
      if (!(await this.drafts.take(unit, draftId))) throw fault(sessionService.receiveMessage, 'DRAFT_UNKNOWN');
      const session = newSession(agent, draft.opening, unit.now);
      const key = placeKey(agent.id, draft.opening);
      // Where its place has a session meanwhile, this one is found by its id alone.
      if (key === null || !(await sessions.create(unit.sql, session, key))) await sessions.create(unit.sql, session, null);
      const first = { principal, roles, content, media, idempotencyKey, ...(replyTo === undefined ? {} : { replyTo }) };
      const runId = await this.#launch(unit, first, { agent, session, prepared: draft.prepared, call });
      return this.#answered(unit, message, { sessionId: session.id, runId, agentId: agent.id, queued: false, position: 0 });
    });
  }

  /** Queued, refused or put on the running run's tape, as the policy says. Undefined where the session became free meanwhile. */
  async #whileBusy(message: MessageIn, { agent, session }: { agent: Agent; session: SessionRecord }): Promise<Receipt | undefined> {
    return this.transactions.run(async (unit) => {
      await this.#lock(unit, session.id);
      const open = await runs.openOf(unit.sql, session.id);
      if (open === undefined) return undefined;
      const answer = { sessionId: session.id, agentId: agent.id };
      switch (agent.policy.whileBusy) {
        case 'refuse':
          throw fault(sessionService.receiveMessage, 'SESSION_BUSY');
        case 'steer':
          await tape.append(unit, session.id, [userEntry(message, { runId: open.id, originRunId: open.originRunId })]);
          return this.#answered(unit, message, { ...answer, runId: open.id, queued: false, position: 0 });
        case 'queue': {
          const waiting = await inbound.queued(unit.sql, session.id);
          if (waiting >= QUEUE_MAX) throw fault(sessionService.receiveMessage, 'QUEUE_FULL', { limit: QUEUE_MAX });
          await inbound.enqueue(unit, session.id, message);
          return this.#answered(unit, message, { ...answer, runId: null, queued: true, position: waiting + 1 });
        }
      }
    });
  }

  async #lock(unit: Unit, sessionId: string): Promise<void> {
    if (!(await sessions.lock(unit.sql, sessionId))) throw fault(sessionService.receiveMessage, 'SESSION_UNKNOWN');
  }

  async #answered(unit: Unit, message: MessageIn, receipt: Receipt): Promise<Receipt> {
    if (!(await inbound.keep(unit, { principalId: message.principal.id, key: message.idempotencyKey }, receipt)))
      throw new AnsweredAlready();
    return receipt;
  }
}

type Binder = typeof sessionService.receiveMessage | typeof sessionService.matchAgent;

function bind(candidates: readonly Candidate[], message: MatchInput, contract: Binder): Output<typeof sessionService.matchAgent> {
  const { adapter, endpoint, scene, sceneId, content, media } = message;
  const kinds = [...new Set(media.map(({ kind }) => kind))];
  const facts = {
    adapter,
    endpoints: [endpoint],
    scene,
    sceneId,
    content,
    media: content.trim() === '' ? kinds : [...kinds, 'text' as const],
  };
  const binding = matchAgent(candidates, facts);
  if ('agentId' in binding) {
    const { agentId, rule } = binding;
    const bound = candidates.find(({ id }) => id === agentId);
    if (bound === undefined) throw new Error('only a candidate is bound');
    return { agentId, version: bound.version, rule };
  }
  if (binding.code === 'NO_AGENT') throw fault(contract, 'NO_AGENT');
  throw fault(contract, 'AGENT_AMBIGUOUS', { agents: [...binding.agents] });
}
