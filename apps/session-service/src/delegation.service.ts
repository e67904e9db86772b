import type { Call } from '@ambit/bus';
import { allowsPreset, excerptOf, readSnapshot, resolveSubagents, type SnapshotRecord } from '@ambit/capability';
import { DELEGATION, fault, sessionService, type Agent, type Output, type Parsed, type Principal } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { agents, withFresh } from './agent.repository.js';
import { delegations, publicDelegation, type DelegationRecord } from './delegation.repository.js';
import { doerOf } from './doer.js';
import { nextOf, promptOf } from './domain/delegation.js';
import { hasEnded } from './domain/run-state.js';
import { userEntry } from './domain/tape.js';
import type { Whose } from './domain/world.js';
import { FenceReader } from './fence.service.js';
import { Endings } from './ending.service.js';
import { uuidV7 } from './ids.js';
import type { Prepared } from './ingress.service.js';
import { Launcher } from './launch.service.js';
import { childOf } from './new-session.js';
import { runs } from './run.repository.js';
import { sessions, type SessionRecord } from './session.repository.js';
import { snapshots } from './snapshot.repository.js';
import { Snapshots } from './snapshot.service.js';
import { tape } from './tape.repository.js';
import { Transactions, type Unit } from './transactions.repository.js';
import { WhoseReader } from './whose.service.js';

type Start = Parsed<typeof sessionService.startDelegation>;
type Told = Output<typeof sessionService.getDelegation>;
type Own = Parsed<typeof sessionService.getDelegation>;

/** A child that is ready to begin: its session, and what it may see. */
interface Ready {
  readonly index: number;
  readonly offer: Offer;
  readonly whose: Whose;
  readonly session: SessionRecord;
  readonly prepared: Prepared;
}

/** For whom the parent's run acts, and so its children's. */
interface Sender {
  readonly principal: Principal;
  readonly roles: readonly string[];
}

type Offer = NonNullable<SnapshotRecord['subagents']>[number];

const LOG_BYTES = 2_000;

/** Work that a session hands to subagents: each task is a normal run in a child session of its own. */
@Injectable()
export class DelegationService {
  constructor(
    private readonly transactions: Transactions,
    private readonly snapshots: Snapshots,
    private readonly launcher: Launcher,
    private readonly whose: WhoseReader,
    private readonly endings: Endings,
    private readonly fences: FenceReader,
  ) {}

  /** Decided anew from policy, slots and kind of session as they are now. The same call again is the same delegation. */
  async start(input: Start, call: Call): Promise<Told> {
    return withFresh(async () => {
      const known = await delegations.byOperation(this.transactions.read, input.operationId);
      if (known !== undefined) return publicDelegation(known);
      const { parent, agent, sender } = await this.#parent(input.runId);
      const offered = await this.#offered(input.runId);
      const slots = await this.#slots(agent, { parent, offered }, input);
      const first = input.mode === 'chain' ? input.tasks.slice(0, 1) : input.tasks;
      const ready: Ready[] = [];
      for (const [index, task] of first.entries())
        ready.push(await this.#prepare(parent, { index, offer: offered.get(task.slotId), agent: slots[index], sender }, call));
      return this.transactions.run(async (unit) => {
        const own = { agent, ancestors: [], session: parent };
        if (!(await this.whose.hold(unit, own, ...ready.map(({ whose }) => whose))))
          throw fault(sessionService.startDelegation, 'TOOL_NOT_IN_SNAPSHOT');
        const again = await delegations.byOperation(unit.sql, input.operationId);
        if (again !== undefined) return publicDelegation(again);
        const run = await runs.find(unit.sql, input.runId);
        if (run === undefined || hasEnded(run)) throw fault(sessionService.startDelegation, 'TURN_ENDED');
        if ((await delegations.activeOf(unit.sql, parent.id)) >= DELEGATION.active)
          throw fault(sessionService.startDelegation, 'DELEGATION_LIMIT', { limit: DELEGATION.active });
        const { mode, background, operationId, timeoutMs } = input;
        const delegation = await delegations.create(
          unit,
          {
            ...{
              id: uuidV7(unit.now.getTime()),
              sessionId: parent.id,
              runId: run.id,
              originRunId: run.originRunId,
              operationId,
              mode,
              background,
            },
            ...{ status: 'running', principal: run.principal, roles: run.roles, createdAt: unit.now.toISOString(), endedAt: null },
            deadlineAt: new Date(unit.now.getTime() + timeoutMs).toISOString(),
          },
          input.tasks.map((task, index) => ({ ...task, agentId: slots[index]?.id ?? parent.agentId })),
        );
        for (const one of ready) await this.#launch(unit, delegation, { ...one, previous: null });
        unit.audit(
          { action: 'delegation.start', target: `session:${parent.id}`, projectId: parent.projectId, reason: operationId },
          doerOf(call),
        );
        const started = (await delegations.lock(unit.sql, delegation.id)) ?? delegation;
        return publicDelegation(started);
      });
    });
  }

  async get({ sessionId, id }: Own): Promise<Told> {
    const found = await delegations.find(this.transactions.read, sessionId, id);
    if (found === undefined) throw fault(sessionService.getDelegation, 'DELEGATION_UNKNOWN');
    return publicDelegation(found);
  }

  async list(sessionId: string): Promise<Output<typeof sessionService.listDelegations>> {
    return { items: (await delegations.list(this.transactions.read, sessionId)).map(publicDelegation) };
  }

  async log({
    sessionId,
    id,
    task,
    after,
    limit,
  }: Parsed<typeof sessionService.delegationLog>): Promise<Output<typeof sessionService.delegationLog>> {
    const found = await delegations.find(this.transactions.read, sessionId, id);
    const child = found?.tasks.find(({ index }) => index === task)?.sessionId;
    if (child === undefined) throw fault(sessionService.delegationLog, 'DELEGATION_UNKNOWN');
    const passages = child === null ? [] : await tape.passages(this.transactions.read, child, { after, limit: limit + 1 });
    const entries = passages
      .slice(0, limit)
      .map(({ sessionId: _child, text, ...passage }) => ({ ...passage, text: excerptOf(text, LOG_BYTES) }));
    return { entries, next: passages.length > limit ? (entries.at(-1)?.id ?? null) : null };
  }

  async kill({ sessionId, id, reason }: Parsed<typeof sessionService.killDelegation>, call: Call): Promise<Told> {
    if ((await delegations.find(this.transactions.read, sessionId, id)) === undefined)
      throw fault(sessionService.killDelegation, 'DELEGATION_UNKNOWN');
    await this.#end({ sessionId, id }, { status: 'cancelled', reason }, call);
    return this.get({ sessionId, id });
  }

  /** Begins the next task of a chain that a child's end set free. */
  async advanceOf(childSessionId: string): Promise<void> {
    const id = await delegations.ofChild(this.transactions.read, childSessionId);
    if (id !== undefined) await this.advance(id);
  }

  async advance(id: string): Promise<void> {
    await withFresh(async () => {
      const delegation = await this.transactions.run((unit) => delegations.lock(unit.sql, id));
      if (delegation === undefined || delegation.status !== 'running') return;
      const next = nextOf(delegation.mode, delegation.tasks);
      const task = delegation.tasks.find(({ index }) => index === next);
      const parent = await sessions.find(this.transactions.read, delegation.sessionId);
      if (task === undefined || parent === undefined) return;
      if (!(await this.#isStill(parent, delegation.runId)))
        return this.#end({ sessionId: parent.id, id }, { status: 'cancelled', reason: 'the session has another agent now' });
      const child = await agents.find(this.transactions.read, task.agentId);
      const offer = (await this.#offered(delegation.runId)).get(task.slotId);
      const isGone = child === undefined || !child.enabled || offer === undefined;
      const ready = isGone ? undefined : await this.#prepare(parent, { index: task.index, offer, agent: child, sender: delegation });
      await this.transactions.run(async (unit) => {
        const isThere = ready === undefined ? sessions.hold(unit.sql, parent) : this.whose.hold(unit, { ...ready.whose, session: parent });
        if (!(await isThere)) return;
        const current = await delegations.lock(unit.sql, id);
        if (current === undefined || current.status !== 'running' || nextOf(current.mode, current.tasks) !== task.index) return;
        if (ready === undefined) return delegations.close(unit, current, 'failed');
        await this.#launch(unit, current, { ...ready, previous: current.tasks[task.index - 1]?.result ?? null });
      });
    });
  }

  /** Ends one that took longer than it may. */
  async expire(own: Own): Promise<void> {
    await this.#end(own, { status: 'timed_out', reason: 'the delegation’s time is up' });
  }

  async #end(own: Own, how: { readonly status: 'cancelled' | 'timed_out'; readonly reason: string }, call?: Call): Promise<void> {
    await this.transactions.runFlushed(async (unit) => {
      await sessions.lock(unit.sql, own.sessionId);
      await this.endings.endDelegation(unit, own.id, how);
      if (call !== undefined)
        unit.audit({ action: 'delegation.kill', target: `session:${own.sessionId}`, projectId: null, reason: how.reason }, doerOf(call));
    });
  }

  /** Whether a session has the agent still that a run of it had. */
  async #isStill(session: SessionRecord, runId: string): Promise<boolean> {
    return (await runs.find(this.transactions.read, runId))?.agentId === session.agentId;
  }

  async #parent(runId: string): Promise<{ parent: SessionRecord; agent: Agent; sender: Sender }> {
    const run = await runs.find(this.transactions.read, runId);
    if (run === undefined) throw fault(sessionService.startDelegation, 'TOOL_NOT_IN_SNAPSHOT');
    if (hasEnded(run)) throw fault(sessionService.startDelegation, 'TURN_ENDED');
    const parent = await sessions.find(this.transactions.read, run.sessionId);
    const agent = await agents.find(this.transactions.read, run.agentId);
    // Moved since the run began: what its old agent could delegate is nobody's.
    if (parent === undefined || agent === undefined || parent.agentId !== run.agentId)
      throw fault(sessionService.startDelegation, 'TOOL_NOT_IN_SNAPSHOT');
    return { parent, agent, sender: run };
  }

  /** Whom a run was offered, by name. What it was not offered it cannot ask for, whatever the policy says by now. */
  async #offered(runId: string): Promise<ReadonlyMap<string, Offer>> {
    const db = this.transactions.read;
    const run = await runs.find(db, runId);
    const [row, mapping] =
      run === undefined
        ? []
        : await Promise.all([snapshots.find(db, run.fingerprint), snapshots.mapping(db, run.sessionId, run.fingerprint)]);
    const offers = row === undefined ? [] : (readSnapshot(row.text, row.fingerprint).subagents ?? []);
    const owners = offers.flatMap(({ preset }) => preset?.owner ?? []);
    const fences = owners.length === 0 ? new Map<string, number>() : await this.fences.of(owners);
    // A preset leaves with its plugin.
    const isThere = ({ preset }: Offer) => preset === undefined || (fences.get(preset.owner) ?? 0) <= (mapping?.owners[preset.owner] ?? 0);
    return new Map(offers.filter(isThere).map((offer) => [offer.name, offer]));
  }

  /** The agent of each task's slot. */
  async #slots(
    agent: Agent,
    { parent, offered }: { readonly parent: SessionRecord; readonly offered: ReadonlyMap<string, Offer> },
    { tasks }: Start,
  ): Promise<Agent[]> {
    const knownAgents = (await agents.enabled(this.transactions.read)).map(({ id }) => id);
    const { presets: allowed, subagents } = agent.policy;
    const presets = [...offered.values()].filter(({ name, preset }) => preset !== undefined && allowsPreset(allowed, name));
    const { reason, slots } = resolveSubagents({ agent, sessionKind: parent.kind, subagents, knownAgents, presets });
    if (reason !== null) throw fault(sessionService.startDelegation, 'SUBAGENT_UNAVAILABLE', { reason });
    const found: Agent[] = [];
    for (const { slotId } of tasks) {
      const slot = offered.has(slotId) ? slots.find(({ name }) => name === slotId) : undefined;
      const child = slot === undefined ? undefined : await agents.find(this.transactions.read, slot.agent);
      if (child === undefined) throw fault(sessionService.startDelegation, 'SUBAGENT_UNAVAILABLE', { reason: 'no_valid_slots' });
      found.push(child);
    }
    return found;
  }

  async #prepare(
    parent: SessionRecord,
    task: { readonly index: number; readonly offer: Offer | undefined; readonly agent: Agent | undefined; readonly sender: Sender },
    within?: Call,
  ): Promise<Ready> {
    const { index, offer, agent, sender } = task;
    if (agent === undefined || offer === undefined)
      throw fault(sessionService.startDelegation, 'SUBAGENT_UNAVAILABLE', { reason: 'no_valid_slots' });
    const session = childOf(agent, { parent, slot: offer.name, tools: offer.preset?.tools ?? null }, new Date());
    const whose = await this.whose.ofMessage(agent, session, sender);
    return { index, offer, whose, session, prepared: await this.snapshots.prepare(whose, within) };
  }

  async #launch(unit: Unit, delegation: DelegationRecord, child: Ready & { readonly previous: string | null }): Promise<void> {
    const { index, offer, whose, session, prepared, previous } = child;
    const task = delegation.tasks.find((one) => one.index === index);
    if (task === undefined) throw new Error(`delegation ${delegation.id} has no task ${index}`);
    await sessions.create(unit.sql, session, null);
    const { principal, roles } = delegation;
    const run = await this.launcher.launch(unit, { agent: whose.agent, session, prepared, principal, roles, replyTo: null });
    if (run === undefined) throw new Error('a run with a fresh id exists already');
    const entry = userEntry(
      { content: promptOf(task, { previous, preset: offer.preset?.instructions ?? null }), media: [] },
      { runId: run.id, originRunId: run.originRunId },
    );
    await tape.append(unit, session.id, [entry]);
    await delegations.taskStarted(unit, delegation.id, { index, sessionId: session.id });
  }
}
