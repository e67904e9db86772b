import { fault, sessionService, type Agent, type Authority } from '@ambit/contracts';
import { OutboxRelay } from '@ambit/db';
import { BoundedMap, narrowerMode, policyInSlot, readSnapshot } from '@ambit/capability';
import { Inject, Injectable } from '@nestjs/common';
import { agents } from './agent.repository.js';
import { readablePolicy } from './domain/unreadable-policy.js';
import { tokensOf } from './domain/attempt.js';
import { hasEnded, remainingMs, type RunRecord } from './domain/run-state.js';
import { FenceReader } from './fence.service.js';
import { Journal } from './journal.service.js';
import { Rebuild } from './rebuild.service.js';
import { runs } from './run.repository.js';
import { sessions } from './session.repository.js';
import { snapshots } from './snapshot.repository.js';
import { tape } from './tape.repository.js';
import { Transactions } from './transactions.repository.js';

const TRIES = 40;
const PAUSE_MS = 25;

interface KnownSkills {
  readonly skills: Authority['skills'];
  /** Whether any of them has a script that may be run. */
  readonly asksWhatIsOpen: boolean;
}

/** Says what a run may do now, together with the place in the journal on which its claims are fenced. */
@Injectable()
export class AuthorityService {
  readonly #skills = new BoundedMap<string, KnownSkills>(500);

  constructor(
    private readonly transactions: Transactions,
    private readonly journal: Journal,
    private readonly fences: FenceReader,
    private readonly rebuild: Rebuild,
    @Inject(OutboxRelay) private readonly outbox: OutboxRelay,
  ) {}

  /**
   * The run is read first and its state in the journal last: where both have one version, everything read between is at least as new as that state,
   * and whatever narrows the run afterwards moves it.
   */
  async of(runId: string): Promise<Authority> {
    await this.rebuild.known();
    for (let attempt = 1; ; attempt++) {
      const run = await runs.find(this.transactions.read, runId);
      if (run === undefined) throw fault(sessionService.getAuthority, 'TOOL_NOT_IN_SNAPSHOT');
      const authority = await this.#read(run);
      const state = await this.journal.state(runId);
      if (state?.version === run.stateVersion) return { ...authority, stateSequence: state.sequence };
      // Its state has left the journal. No claim is ever fenced on this number.
      if (state === undefined && hasEnded(run)) return { ...authority, stateSequence: Number.MAX_SAFE_INTEGER };
      if (attempt === TRIES)
        throw new Error(`the journal has state ${state?.version ?? 'none'} of run ${runId}, and its row ${run.stateVersion}`);
      // Committed and not published yet, or moved while it was read.
      this.outbox.wake();
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  async #read(run: RunRecord): Promise<Omit<Authority, 'stateSequence'>> {
    const db = this.transactions.read;
    const [agent, session, attempts, mapping, newest] = await Promise.all([
      agents.find(db, run.agentId),
      sessions.find(db, run.sessionId),
      runs.attempts(db, run.id),
      snapshots.mapping(db, run.sessionId, run.fingerprint),
      tape.newestStep(db, run.originRunId),
    ]);
    if (agent === undefined || session === undefined || mapping === undefined)
      throw fault(sessionService.getAuthority, 'TOOL_NOT_IN_SNAPSHOT');
    const fences = await this.fences.of(Object.keys(mapping.owners));
    const above = await sessions.ancestors(db, session);
    if (session.parentSessionId !== null && above.length === 0) throw fault(sessionService.getAuthority, 'TOOL_NOT_IN_SNAPSHOT');
    const ancestors = await Promise.all(
      above.map(async ({ agentId, mode }, index) => {
        const ancestor = await agents.find(db, agentId);
        if (ancestor === undefined) throw fault(sessionService.getAuthority, 'TOOL_NOT_IN_SNAPSHOT');
        const below = index === 0 ? session : above[index - 1];
        const policy = readablePolicy(ancestor);
        return { agentId, enabled: ancestor.enabled, mode, policy: policy === null ? null : policyInSlot(policy, below?.slot ?? null) };
      }),
    );
    const { skills, asksWhatIsOpen } = await this.#skillsOf(run);
    const { id: runId, originRunId, sessionId, agentId, projectId, kind, status, stateVersion, fingerprint, pool, principal } = run;
    return {
      runId,
      originRunId,
      sessionId,
      agentId,
      projectId,
      kind,
      status,
      stateVersion,
      fingerprint,
      pool,
      principal,
      tokens: tokensOf(run, attempts),
      workerId: attempts.at(-1)?.workerId ?? null,
      mode: above.reduce((narrow, { mode }) => narrowerMode(narrow, mode), session.mode),
      enabled: agent.enabled,
      policy: readablePolicy(agent),
      policyVersion: agent.policyVersion,
      ancestors,
      knownAgents: await this.#knownAgents(agent),
      revokedOwners: Object.entries(mapping.owners).flatMap(([owner, fence]) => ((fences.get(owner) ?? 0) > fence ? [owner] : [])),
      skills,
      openedSkills: asksWhatIsOpen ? (await tape.openedSkills(db, originRunId)).map((name) => name.slice(0, 64)) : [],
      step:
        newest === undefined
          ? null
          : { step: newest.step, callsBefore: newest.callsBefore, calls: [...newest.calls], ...(newest.cut ? { cut: true } : {}) },
      remainingMs: hasEnded(run) ? 0 : remainingMs(run, new Date()),
    };
  }

  /** Of the agents that the policy names as subagents, those that are there. */
  async #knownAgents({ policy }: Agent): Promise<string[]> {
    const named = new Set(Object.values(policy.subagents).map(({ agent }) => agent));
    return named.size === 0 ? [] : (await agents.enabled(this.transactions.read)).flatMap(({ id }) => (named.has(id) ? [id] : []));
  }

  async #skillsOf({ agentId, fingerprint }: RunRecord): Promise<KnownSkills> {
    const kept = this.#skills.get(fingerprint);
    if (kept !== undefined) return kept;
    const row = await snapshots.find(this.transactions.read, fingerprint);
    const pinned = row === undefined ? [] : readSnapshot(row.text, fingerprint).skills;
    const known = {
      skills: pinned.flatMap(({ name, digest, origin }) => (origin === 'mcp' ? [] : [{ name: name.slice(0, 64), agentId, digest }])),
      // Scripts of owned skills, and files of servers' skills, are there for whoever opened the skill.
      asksWhatIsOpen: pinned.some(({ scripts, origin }) => scripts !== undefined || origin === 'mcp'),
    };
    this.#skills.set(fingerprint, known);
    return known;
  }
}
