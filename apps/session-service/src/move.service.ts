import type { Call } from '@ambit/bus';
import { fault, sessionService, type Output, type Parsed, type Session } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { agents, withFresh } from './agent.repository.js';
import { aftercares, type Aftercare } from './aftercare.repository.js';
import { AftercareService } from './aftercare.service.js';
import { delegations } from './delegation.repository.js';
import { doerOf } from './doer.js';
import { modeAfterMove, moveRefusal } from './domain/moving.js';
import type { RunRecord } from './domain/run-state.js';
import { conversationKey } from './domain/session-key.js';
import { eventEntry } from './domain/tape.js';
import { Endings } from './ending.service.js';
import { inbound } from './inbound.repository.js';
import { Results } from './results.service.js';
import { runs } from './run.repository.js';
import { publicSession, sessions, type SessionRecord } from './session.repository.js';
import { snapshots } from './snapshot.repository.js';
import { tape } from './tape.repository.js';
import { Transactions, type Unit } from './transactions.repository.js';

interface Emptied {
  readonly session: SessionRecord;
  readonly ended: readonly RunRecord[];
  readonly owed: Aftercare;
}

/** Moves sessions between agents and takes back what they were given: one transaction each, so that a crash leaves the one or the other. */
@Injectable()
export class MoveService {
  constructor(
    private readonly transactions: Transactions,
    private readonly endings: Endings,
    private readonly results: Results,
    private readonly aftercare: AftercareService,
  ) {}

  /** Answers once no claim of the old agent's run is taken any more. */
  async transfer(
    { id, agentId, whileBusy }: Parsed<typeof sessionService.transferSession>,
    call: Call,
  ): Promise<Output<typeof sessionService.transferSession>> {
    return withFresh(async () => {
      const to = await agents.find(this.transactions.read, agentId);
      if (to === undefined) throw fault(sessionService.transferSession, 'AGENT_UNKNOWN');
      const moved = await this.transactions.runFlushed(async (unit) => {
        await agents.hold(unit.sql, to);
        const session = await this.#locked(unit, id, sessionService.transferSession);
        const from = await agents.find(unit.sql, session.agentId);
        const isBusy = (await runs.openOf(unit.sql, id)) !== undefined || (await inbound.queued(unit.sql, id)) > 0;
        const refusal = moveRefusal(session, { from, to }, { isBusy, mayCancel: whileBusy === 'cancel' });
        if (refusal !== null) throw fault(sessionService.transferSession, refusal);
        if (session.agentId === to.id) return undefined;
        const emptied = await this.#empty(unit, session, { reason: `the session moved to ${to.id}`, call });
        const next = await sessions.change(unit, session, {
          agentId: to.id,
          projectId: to.projectId,
          mode: modeAfterMove(session.mode, from, to),
          loadedTools: [],
          conversationKey: await this.#keyAt(unit, session, to.id),
        });
        await tape.append(unit, id, [eventEntry(`The session moved from ${session.agentId} to ${to.id}.`)]);
        unit.audit(
          { action: 'session.transfer', target: `session:${id}`, projectId: to.projectId, reason: `${session.agentId} to ${to.id}` },
          doerOf(call),
        );
        return { ...emptied, session: next };
      });
      return moved === undefined ? this.#get(id) : this.#settled(moved);
    });
  }

  /** Ends what the session does; its next message begins as its first one did, on the tape that is there. */
  async clear(id: string, call: Call): Promise<Output<typeof sessionService.clearSession>> {
    const cleared = await this.transactions.runFlushed(async (unit) => {
      const session = await this.#locked(unit, id, sessionService.clearSession);
      const emptied = await this.#empty(unit, session, { reason: 'the session was cleared', call });
      unit.audit({ action: 'session.clear', target: `session:${id}`, projectId: session.projectId }, doerOf(call));
      return { ...emptied, session: await sessions.change(unit, session, { loadedTools: [] }) };
    });
    return this.#settled(cleared);
  }

  /** Its open run with all that waits in it, what it delegated, its queue and its mappings. */
  async #empty(unit: Unit, session: SessionRecord, { reason, call }: { readonly reason: string; readonly call: Call }): Promise<Emptied> {
    const left = await runs.left(unit.sql, session.id);
    const ended: RunRecord[] = [];
    for (const runId of await runs.openIds(unit.sql, { sessionIds: [session.id] })) {
      const run = await this.endings.cancel(unit, runId, reason);
      if (run !== undefined) ended.push(run);
    }
    // In the background and of runs that have long completed: it has the authority of the agent that the session had.
    for (const id of await delegations.running(unit.sql, session.id))
      await this.endings.endDelegation(unit, id, { status: 'cancelled', reason });
    await inbound.dropQueue(unit, session.id);
    const fingerprints = await snapshots.unmap(unit.sql, session.id);
    const stopped = left.filter(({ runId }) => ended.some(({ id }) => id === runId));
    const owed = { sessionId: session.id, whole: false, runs: stopped, fingerprints, by: call.actor ?? null };
    return { session, ended, owed: await aftercares.add(unit, owed) };
  }

  async #settled({ session, ended, owed }: Emptied): Promise<Session> {
    await this.aftercare.settle([owed]);
    // What a call did before it was stopped joins the tape.
    for (const run of ended) await this.results.absorb(run);
    return publicSession(session);
  }

  /** What finds the session for a message to its new agent; nothing where another session has that place. */
  async #keyAt(unit: Unit, session: SessionRecord, agentId: string): Promise<string | null> {
    if (session.sceneId === '' && session.thread === null) return null;
    const key = conversationKey(agentId, { ...session, thread: session.thread ?? undefined });
    const there = await sessions.findByConversation(unit.sql, key);
    return there === undefined || there.id === session.id ? key : null;
  }

  async #locked(
    unit: Unit,
    id: string,
    contract: typeof sessionService.transferSession | typeof sessionService.clearSession,
  ): Promise<SessionRecord> {
    await sessions.lock(unit.sql, id);
    const session = await sessions.find(unit.sql, id);
    if (session === undefined) throw fault(contract, 'SESSION_UNKNOWN');
    return session;
  }

  async #get(id: string): Promise<Session> {
    const session = await sessions.find(this.transactions.read, id);
    if (session === undefined) throw fault(sessionService.transferSession, 'SESSION_UNKNOWN');
    return publicSession(session);
  }
}
