import { readSnapshot, toolOf } from '@ambit/capability';
import type { Call } from '@ambit/bus';
import { fault, platformFault, sessionService, type DeferredCall, type Output, type Parsed } from '@ambit/contracts';
import { CONFIG } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { agents } from './agent.repository.js';
import type { SessionServiceConfig } from './config.js';
import { doerOf, SYSTEM } from './doer.js';
import { answerResult, decisionVerdict, refusedResult } from './domain/decision.js';
import { deferredJob, interactionRequested, interactionSettled } from './domain/facts.js';
import { hasEnded } from './domain/run-state.js';
import { callEntry, resultEntry } from './domain/tape.js';
import { Endings } from './ending.service.js';
import { uuidV7 } from './ids.js';
import { interactions, publicInteraction, type InteractionRecord } from './interaction.repository.js';
import { Resumes } from './resume.service.js';
import { pageOf, placeFrom } from './paging.js';
import { runs } from './run.repository.js';
import { sessions } from './session.repository.js';
import { snapshots } from './snapshot.repository.js';
import { tape } from './tape.repository.js';
import { Transactions, type Unit } from './transactions.repository.js';

type Requested = Parsed<typeof sessionService.requestInteractions>;
type Decide = Parsed<typeof sessionService.decideInteraction>;

/** Decisions that may be pending in one session. */
const PENDING_MAX = 64;
const EXPIRED = { code: 'APPROVAL_EXPIRED', message: 'Nobody decided in time' } as const;

/** What people have to decide: asked in call order, answered one after the other, and gone on with after the last. */
@Injectable()
export class InteractionService {
  constructor(
    private readonly transactions: Transactions,
    private readonly endings: Endings,
    private readonly resumes: Resumes,
    @Inject(CONFIG) private readonly config: SessionServiceConfig,
  ) {}

  async get(id: string): Promise<Output<typeof sessionService.getInteraction>> {
    const interaction = await interactions.find(this.transactions.read, id);
    if (interaction === undefined) throw fault(sessionService.getInteraction, 'NO_INTERACTION');
    const result = interaction.settledAt === null ? undefined : await tape.result(this.transactions.read, interaction, interaction.callId);
    return { ...publicInteraction(interaction), url: this.#url(id), result: result ?? null };
  }

  async list({
    cursor,
    limit,
    ...filter
  }: Parsed<typeof sessionService.listInteractions>): Promise<Output<typeof sessionService.listInteractions>> {
    const found = await interactions.list(this.transactions.read, { ...filter, after: placeFrom(cursor), limit });
    return pageOf(found.map(publicInteraction), limit);
  }

  async request({ runId, step, requests }: Requested): Promise<Output<typeof sessionService.requestInteractions>> {
    const asked = await this.transactions.run(async (unit) => {
      const run = await runs.lock(unit.sql, runId);
      if (run === undefined || hasEnded(run)) throw fault(sessionService.requestInteractions, 'TURN_ENDED');
      const known = await interactions.byOperations(
        unit.sql,
        requests.map(({ operationId }) => operationId),
      );
      const fresh = requests
        .filter(({ operationId }) => !known.some((one) => one.operationId === operationId))
        .sort((left, right) => left.order - right.order);
      if (fresh.length === 0) return known;
      if ((await interactions.pendingCount(unit.sql, run.sessionId)) + fresh.length > PENDING_MAX) {
        throw fault(sessionService.requestInteractions, 'APPROVAL_CAPACITY', { limit: PENDING_MAX });
      }
      const calls = fresh.flatMap(({ arguments: text, callId, tool }) =>
        text === undefined ? [] : [{ callId, name: tool, arguments: text }],
      );
      const ofRun = { runId, originRunId: run.originRunId };
      await tape.append(
        unit,
        run.sessionId,
        calls.map((call) => callEntry(call, step, ofRun)),
      );
      const row = await snapshots.find(unit.sql, run.fingerprint);
      const record = row === undefined ? null : readSnapshot(row.text, run.fingerprint);
      const { originRunId, sessionId, agentId, projectId, principal } = run;
      // Made within one millisecond, so that only their order among themselves can be that of the calls.
      const ids = fresh.map(() => uuidV7(unit.now.getTime())).sort();
      const added = await interactions.add(
        unit,
        sessionId,
        fresh.map(({ expiresMs, arguments: _arguments, ...request }, index) => ({
          ...request,
          id: ids[index] ?? uuidV7(unit.now.getTime()),
          runId,
          originRunId,
          sessionId,
          agentId,
          projectId,
          principal,
          step,
          owner: record === null ? null : (toolOf(record, request.tool)?.owner ?? null),
          expiresAt: new Date(unit.now.getTime() + expiresMs).toISOString(),
        })),
      );
      for (const one of added) unit.tell(interactionRequested(publicInteraction(one), this.#url(one.id), unit.now));
      return [...known, ...added];
    });
    return { interactions: asked.map(({ operationId, id, status, answer }) => ({ operationId, interactionId: id, status, answer })) };
  }

  /** One of two people who decide at once has an effect: the session's lock lets one in, and the other finds it decided. */
  async decide(decision: Decide, call: Call): Promise<Output<typeof sessionService.decideInteraction>> {
    const decided = await this.transactions.run(async (unit) => {
      const interaction = await this.#locked(unit, decision.id);
      const isElsewhere = decision.sessionId !== undefined && decision.sessionId !== interaction?.sessionId;
      if (interaction === undefined || isElsewhere) throw fault(sessionService.decideInteraction, 'NO_INTERACTION');
      const first = await interactions.firstBefore(unit.sql, interaction);
      const verdict = decisionVerdict(interaction, decision, { at: unit.now, first });
      switch (verdict.kind) {
        case 'refuse':
          throw fault(sessionService.decideInteraction, verdict.code);
        case 'order':
          throw fault(sessionService.decideInteraction, 'INTERACTION_ORDER', { first: verdict.first });
        case 'invalid':
          throw platformFault('INVALID_INPUT', { issues: [{ path: 'answer', message: verdict.reason }] });
        case 'expired':
          // It stands expired from now on, so this commits and is refused afterwards.
          await this.endings.withdraw(unit, interaction, { status: 'expired', fault: EXPIRED });
          return { interaction, expired: true };
        case 'accept':
          return { interaction: await this.#apply(unit, interaction, { decision, call }), expired: false };
      }
    });
    await this.resumes.resume(decided.interaction.runId);
    if (decided.expired) throw fault(sessionService.decideInteraction, 'APPROVAL_EXPIRED');
    return publicInteraction(decided.interaction);
  }

  async settle({
    interactionId,
    operationId,
    result,
  }: Parsed<typeof sessionService.settleInteraction>): Promise<Output<typeof sessionService.settleInteraction>> {
    const runId = await this.transactions.run(async (unit) => {
      const interaction = await this.#locked(unit, interactionId);
      if (interaction === undefined || interaction.operationId !== operationId)
        throw fault(sessionService.settleInteraction, 'NO_INTERACTION');
      // Settled before, or withdrawn meanwhile: what really happened stands in the journal.
      if (interaction.settledAt !== null) return interaction.runId;
      if (interaction.status !== 'allowed') throw fault(sessionService.settleInteraction, 'NO_INTERACTION');
      await this.#settle(unit, interaction, result);
      return interaction.runId;
    });
    return { resumeRunId: await this.resumes.resume(runId) };
  }

  /** Whoever asked waits no more. */
  async withdraw({
    operationId,
  }: Parsed<typeof sessionService.withdrawInteraction>): Promise<Output<typeof sessionService.withdrawInteraction>> {
    const [found] = await interactions.byOperations(this.transactions.read, [operationId]);
    if (found?.isLive !== true) return {};
    await this.transactions.run(async (unit) => {
      const interaction = await this.#locked(unit, found.id);
      if (interaction?.status !== 'pending') return;
      await this.endings.withdraw(unit, interaction, { status: 'cancelled', fault: { code: 'CANCELLED', message: 'Nobody waits for it' } });
    });
    return {};
  }

  /** Expires what nobody answered in time. */
  async expire(now: Date): Promise<void> {
    for (const { id } of await interactions.expired(this.transactions.read, now)) {
      const runId = await this.transactions.run(async (unit) => {
        const interaction = await this.#locked(unit, id);
        if (interaction?.status !== 'pending' || Date.parse(interaction.expiresAt) > unit.now.getTime()) return undefined;
        await this.endings.withdraw(unit, interaction, { status: 'expired', fault: EXPIRED });
        unit.audit(
          { action: 'interaction.expire', target: `interaction:${id}`, projectId: interaction.projectId, rule: interaction.rule },
          SYSTEM,
        );
        return interaction.runId;
      });
      if (runId !== undefined) await this.resumes.resume(runId);
    }
  }

  /** Cancels what is asked about an owner that was taken away. */
  async withdrawOwner(owner: string): Promise<void> {
    for (const { id } of await interactions.pendingOfOwner(this.transactions.read, owner)) {
      const runId = await this.transactions.run(async (unit) => {
        const interaction = await this.#locked(unit, id);
        if (interaction?.status !== 'pending') return undefined;
        await this.endings.withdraw(unit, interaction, {
          status: 'cancelled',
          fault: { code: 'TOOL_GONE', message: 'What provides this tool was taken away while the call waited for a decision' },
        });
        return interaction.runId;
      });
      if (runId !== undefined) await this.resumes.resume(runId);
    }
  }

  async #apply(
    unit: Unit,
    interaction: InteractionRecord,
    { decision, call }: { readonly decision: Decide; readonly call: Call },
  ): Promise<InteractionRecord> {
    const { by, reason, answer } = decision;
    const { id, projectId, rule, callId } = interaction;
    const decided = { decidedBy: by, reason };
    let next: InteractionRecord;
    if (decision.decision === 'allow') {
      next = await interactions.update(unit, id, { ...decided, status: 'allowed', settled: interaction.isLive });
      if (!interaction.isLive) unit.tell(deferredJob(await this.#deferred(unit, next), call.traceparent));
    } else {
      const given = answer ?? { selected: [], text: '' };
      const isAnswer = decision.decision === 'answer';
      next = await interactions.update(unit, id, {
        ...decided,
        status: isAnswer ? 'answered' : 'denied',
        settled: true,
        ...(isAnswer ? { answer: given } : {}),
      });
      const result = isAnswer
        ? answerResult(callId, given)
        : refusedResult(callId, { code: 'DENIED', message: reason ?? 'The person who was asked denied this call' });
      if (!interaction.isLive) await this.#record(unit, interaction, result);
    }
    unit.tell(interactionSettled(next, unit.now));
    unit.audit(
      { action: `interaction.${next.status}`, target: `interaction:${id}`, projectId, rule, reason: reason ?? null },
      { ...doerOf(call), actor: by, principal: interaction.principal },
    );
    return next;
  }

  async #deferred(unit: Unit, interaction: InteractionRecord): Promise<DeferredCall> {
    const {
      id: interactionId,
      operationId,
      runId,
      originRunId,
      sessionId,
      agentId,
      step,
      callId,
      argumentsHash,
      target,
      decidedBy,
      decidedAt,
    } = interaction;
    const run = await runs.find(unit.sql, runId);
    const agent = await agents.find(unit.sql, agentId);
    const calls = await tape.calls(unit.sql, { originRunId, step });
    const call = calls.find((one) => one.callId === callId);
    if (run === undefined || agent === undefined || call === undefined || decidedBy === null)
      throw new Error(`interaction ${interactionId} is about a call that is not on the tape`);
    return {
      schemaVersion: 1,
      interactionId,
      operationId,
      runId,
      originRunId,
      sessionId,
      agentId,
      step,
      call,
      argumentsHash,
      target,
      decidedBy,
      fingerprint: run.fingerprint,
      policyVersion: agent.policyVersion,
      decidedAt: decidedAt ?? unit.now.toISOString(),
    };
  }

  async #settle(
    unit: Unit,
    interaction: InteractionRecord,
    result: Parsed<typeof sessionService.settleInteraction>['result'],
  ): Promise<void> {
    const next = await interactions.update(unit, interaction.id, { status: 'settled', settled: true });
    await this.#record(unit, interaction, { ...result, callId: interaction.callId });
    unit.tell(interactionSettled(next, unit.now));
  }

  async #record(
    unit: Unit,
    { sessionId, runId, originRunId, step }: InteractionRecord,
    result: Parsed<typeof sessionService.settleInteraction>['result'],
  ): Promise<void> {
    await tape.append(unit, sessionId, [resultEntry(result, step, { runId, originRunId })]);
  }

  /** Read again under its session's lock. */
  async #locked(unit: Unit, id: string): Promise<InteractionRecord | undefined> {
    const found = await interactions.find(unit.sql, id);
    if (found === undefined) return undefined;
    await sessions.lock(unit.sql, found.sessionId);
    return interactions.find(unit.sql, id);
  }

  #url(id: string): string | null {
    const { AMBIT_PUBLIC_URL: base } = this.config;
    return base === undefined ? null : new URL(`/v1/interaction/${id}`, base).href;
  }
}
