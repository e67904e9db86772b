import { argumentsHash, askedOperationId, type Grant } from '@ambit/capability';
import { platformFault, type Claim, type Review } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { AuthorityCache, type HeldAuthority } from './authority.cache.js';
import { CallGates, type Caller } from './call.gates.js';
import { CallHooks } from './call.hooks.js';
import { BuiltinDispatcher } from './dispatch/builtin.dispatcher.js';
import type { Dispatch, Dispatcher } from './dispatch/dispatch.js';
import { McpDispatcher } from './dispatch/mcp.dispatcher.js';
import { WorkerDispatcher } from './dispatch/worker.dispatcher.js';
import { askedTooLate, faultBody, stopped, wasNotSent, type CallEnd, type DispatchEnd } from './domain/call-end.js';
import type { Operation } from './domain/operation.js';
import { ForeignClaims } from './foreign.claims.js';
import { GatewayLease } from './gateway.lease.js';
import { Journal } from './journal.js';
import { OpenCall, OpenCalls } from './open-calls.js';
import { OutcomeWriter } from './outcome.writer.js';
import type { Preparedness } from './preparation.js';
import { Previews } from './previews.js';
import { SnapshotCache, type HeldSnapshot } from './snapshot.cache.js';

/** A call that is asked for, with what was found out about it before the gates. */
export interface CallRequest {
  readonly caller: Caller;
  readonly operation: Operation;
  readonly preparation?: Preparedness | undefined;
  /** What a reviewer proposed of it; null where it was asked in vain. */
  readonly review?: Review | null | undefined;
  readonly approval?: { readonly grant: Grant; readonly interactionId: string } | undefined;
  /** The worker for a worker's tool, where it is not the run's own. */
  readonly workerId?: string | undefined;
}

interface Standing {
  readonly held: HeldAuthority;
  readonly snapshot: HeldSnapshot;
}

/** What the gates say of one call: how it may run, or how it stands. */
export type Decided =
  | { readonly kind: 'allowed'; readonly arguments: Readonly<Record<string, unknown>>; readonly rule: string }
  | { readonly kind: 'stopped'; readonly end: CallEnd };

const TRIES = 16;
/** What an authority is worth whose state moves faster than it can be read. */
const MOVING = 'The run’s authority keeps changing; send the same batch again';

/** Takes one call through gates, claim, dispatch and outcome. */
@Injectable()
export class CallRunner {
  /** Claims made here so far. */
  #claims = 0;

  constructor(
    @Inject(AuthorityCache) private readonly authorities: AuthorityCache,
    @Inject(SnapshotCache) private readonly snapshots: SnapshotCache,
    @Inject(CallGates) private readonly gates: CallGates,
    @Inject(Journal) private readonly journal: Journal,
    @Inject(OpenCalls) private readonly calls: OpenCalls,
    @Inject(OutcomeWriter) private readonly outcomes: OutcomeWriter,
    @Inject(ForeignClaims) private readonly foreign: ForeignClaims,
    @Inject(GatewayLease) private readonly lease: GatewayLease,
    @Inject(Previews) private readonly previews: Previews,
    @Inject(CallHooks) private readonly hooks: CallHooks,
    @Inject(BuiltinDispatcher) private readonly builtins: BuiltinDispatcher,
    @Inject(McpDispatcher) private readonly servers: McpDispatcher,
    @Inject(WorkerDispatcher) private readonly workers: WorkerDispatcher,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  /** What the gates say now, without doing anything. */
  check(request: CallRequest, standing: Standing): Decided {
    return this.#decide(request, standing);
  }

  /** Runs the call once, however often and wherever it is asked for. Throws only when nothing was claimed and nothing can be said. */
  run(request: CallRequest, standing: Standing, decided?: Decided): Promise<CallEnd> {
    return this.calls.join(request.operation.operationId, () => this.#run(request, standing, decided));
  }

  /** How a refused call stands: one that was claimed before is answered with what became of it, whatever the gates say now. */
  async refusedOrClaimed({ originRunId, operationId }: Operation, refusal: CallEnd): Promise<CallEnd> {
    return this.calls.join(operationId, async () => {
      const claim = await this.journal.readClaim(originRunId, operationId);
      if (claim === undefined) return refusal;
      const end = await this.foreign.follow(claim);
      if (end.kind !== 'outcome' || end.outcome.asks === undefined) return end;
      // Nothing was done under this id: what counts is whether the call went on.
      const next = await this.journal.readClaim(originRunId, askedOperationId(operationId));
      return next === undefined ? refusal : this.foreign.follow(next);
    });
  }

  /**
   * What became of a call that was claimed before, here or elsewhere; one that is under way here is waited for. Nothing is joined before there is a
   * claim: whoever executes the call with an approval must not be answered by a look at it.
   */
  async claimed({ originRunId, operationId }: Operation): Promise<CallEnd | undefined> {
    const claim = await this.journal.readClaim(originRunId, operationId);
    return claim === undefined ? undefined : this.calls.join(operationId, () => this.foreign.follow(claim));
  }

  async #run(request: CallRequest, first: Standing, decided: Decided | undefined): Promise<CallEnd> {
    let standing = await this.#present(request, first);
    for (let tries = 0; tries < TRIES; tries++) {
      // What was decided a moment ago, of the same authority, holds.
      const decision = tries === 0 && standing === first && decided !== undefined ? decided : this.#decide(request, standing);
      if (decision.kind === 'stopped') return decision.end;
      if (!this.lease.isHeld && !(await this.lease.hold()))
        throw platformFault('UNAVAILABLE', undefined, 'This gateway lost its lease; send the same batch again');
      const claim = this.#claim(request, standing, decision);
      this.gates.take(claim.agentId);
      const answer = await this.journal.claim(claim, standing.held.authority.stateSequence).catch((error: unknown) => {
        this.gates.refund(claim.agentId);
        throw error;
      });
      if (answer.kind === 'claimed') this.hooks.started(claim);
      if (answer.kind === 'claimed') return this.#execute(request, { claim, standing, arguments: decision.arguments });
      this.gates.refund(claim.agentId);
      if (answer.kind === 'exists') return this.#exists(claim);
      standing = await this.#refetch(request, standing);
    }
    throw platformFault('UNAVAILABLE', undefined, MOVING);
  }

  #decide(request: CallRequest, { held, snapshot }: Standing): Decided {
    const { caller, operation, preparation, approval, review } = request;
    const decision = this.gates.call({
      caller,
      operation,
      held,
      snapshot,
      isAborted: this.calls.isAborted(operation.operationId),
      prepared: preparation?.facts,
      grant: approval?.grant,
      review,
    });
    switch (decision.decision) {
      case 'allow':
        return { kind: 'allowed', arguments: decision.arguments, rule: decision.rule };
      case 'refuse': {
        const rule = decision.code === 'POLICY_DENIED' ? ruleIn(decision.data) : null;
        return {
          kind: 'stopped',
          end: { kind: 'refused', fault: faultBody(decision.code, decision.data), gate: decision.gate, detail: decision.detail, rule },
        };
      }
      case 'ask':
        return { kind: 'stopped', end: { kind: 'asks', ...decision } };
      case 'question':
        return { kind: 'stopped', end: { kind: 'asks-question', ...decision } };
    }
  }

  /** What is known now: where the authority was dropped since, something moved it, and the gates have to hear what. */
  async #present(request: CallRequest, first: Standing): Promise<Standing> {
    const { runId } = request.operation;
    const newer = this.#newer(runId, first);
    if (newer !== undefined || this.authorities.held(runId) !== undefined) return newer ?? first;
    // Where nobody can say, the claim is fenced on what the first standing knows.
    return this.#refetch(request, first).catch(() => first);
  }

  /** The authority moved: everything is asked again, of what holds now. Another call of the run may have fetched it already. */
  async #refetch({ operation }: CallRequest, before: Standing): Promise<Standing> {
    const newer = this.#newer(operation.runId, before);
    if (newer !== undefined) return newer;
    this.authorities.drop(operation.runId);
    const held = await this.authorities.fetch(operation.runId);
    // A run that is gone is refused by the gates as one that has ended.
    if (held === undefined) return { ...before, held: { ...before.held, authority: { ...before.held.authority, status: 'cancelled' } } };
    const isSame = held.authority.fingerprint === before.held.authority.fingerprint;
    return { held, snapshot: isSame ? before.snapshot : await this.snapshots.get(held.authority.agentId, held.authority.fingerprint) };
  }

  #newer(runId: string, before: Standing): Standing | undefined {
    const held = this.authorities.held(runId);
    if (held === undefined || held.authority.stateSequence <= before.held.authority.stateSequence) return undefined;
    const isSame = held.authority.fingerprint === before.held.authority.fingerprint;
    const snapshot = isSame ? before.snapshot : this.snapshots.held(held.authority.fingerprint);
    return snapshot === undefined ? undefined : { held, snapshot };
  }

  async #exists(claim: Claim): Promise<CallEnd> {
    const standing = await this.journal.readClaim(claim.originRunId, claim.operationId);
    if (standing !== undefined && (standing.argumentsHash !== claim.argumentsHash || standing.tool !== claim.tool)) {
      this.log.error(
        { operationId: claim.operationId, tool: claim.tool, claimed: standing.tool },
        'two different calls carry one operation id',
      );
      return {
        kind: 'refused',
        fault: faultBody('INDETERMINATE'),
        gate: 'claim',
        detail: 'another call was claimed under this operation id',
        rule: null,
      };
    }
    return this.foreign.follow(standing ?? claim);
  }

  async #execute(
    request: CallRequest,
    at: { readonly claim: Claim; readonly standing: Standing; readonly arguments: Readonly<Record<string, unknown>> },
  ): Promise<CallEnd> {
    const { claim, standing } = at;
    const { promise, resolve, reject } = withResolvers();
    const open = new OpenCall(claim, promise);
    this.calls.opened(open);
    this.previews.keep(claim.operationId, at.arguments);
    const remainingMs = Math.max(1, standing.held.endsAt - performance.now());
    const timer = setTimeout(() => open.stop('the run’s time is up'), Math.min(remainingMs, 2 ** 31 - 1));
    try {
      const end = await this.#dispatched(open, {
        operation: request.operation,
        tool: toolOf(standing, claim),
        arguments: at.arguments,
        authority: standing.held.authority,
        snapshot: standing.snapshot,
        signal: open.signal,
        remainingMs,
        prepared: request.preparation?.target,
        bounds: request.preparation?.bounds,
        granted: request.approval !== undefined,
        workerId: request.workerId ?? standing.held.authority.workerId,
      });
      if (wasNotSent(end)) this.gates.refund(claim.agentId);
      const result = await this.outcomes.write(claim, end, performance.now() - open.startedAt);
      resolve(result);
      return result;
    } catch (error) {
      reject(error);
      throw error;
    } finally {
      clearTimeout(timer);
      this.calls.closed(claim.operationId);
    }
  }

  /** In full access a tool that asks is told yes, once; one that was told yes and asks again has failed where a person said so. */
  async #dispatched(open: OpenCall, dispatch: Dispatch): Promise<DispatchEnd> {
    const end = await this.#dispatch(open, dispatch);
    if (end.kind !== 'asked' || (end.signIn === true && !dispatch.granted)) return end;
    if (dispatch.granted) return askedTooLate(end.reason);
    return dispatch.authority.mode === 'full_access' ? this.#dispatch(open, { ...dispatch, granted: true }) : end;
  }

  async #dispatch(open: OpenCall, dispatch: Dispatch): Promise<DispatchEnd> {
    try {
      if (open.signal.aborted) return stopped('cancelled', 'CANCELLED');
      return await this.#dispatcher(dispatch).dispatch(dispatch);
    } catch (error) {
      // A dispatcher that throws does not know what it did.
      this.log.error({ error, operationId: open.claim.operationId }, 'a dispatch failed in a way nobody foresaw; the call is parked');
      return stopped('indeterminate', 'INDETERMINATE');
    }
  }

  #dispatcher({ tool }: Dispatch): Dispatcher {
    switch (tool.target.kind) {
      case 'builtin':
        return this.builtins;
      case 'mcp':
        return this.servers;
      case 'worker':
        return this.workers;
    }
  }

  #claim(
    { operation, approval }: CallRequest,
    standing: Standing,
    decision: { readonly arguments: Readonly<Record<string, unknown>>; readonly rule: string },
  ): Claim {
    const { authority } = standing.held;
    const tool = toolOf(standing, { tool: operation.call.name });
    return {
      schemaVersion: 1,
      operationId: operation.operationId,
      runId: authority.runId,
      originRunId: authority.originRunId,
      sessionId: authority.sessionId,
      agentId: authority.agentId,
      projectId: authority.projectId,
      attempt: authority.tokens.at(-1)?.attempt ?? 0,
      step: operation.step,
      callId: operation.call.callId,
      tool: tool.name,
      target: tool.target,
      argumentsHash: argumentsHash(decision.arguments),
      fingerprint: authority.fingerprint,
      rule: decision.rule,
      interactionId: approval?.interactionId ?? null,
      principal: authority.principal.id,
      gatewayId: this.lease.id,
      serial: this.#claims++,
      at: new Date().toISOString(),
    };
  }
}

function toolOf({ snapshot }: Standing, { tool }: { readonly tool: string }): Dispatch['tool'] {
  const found = snapshot.tools.get(tool);
  if (found === undefined) throw new Error(`${tool} passed the gates but is not in the snapshot`);
  return found;
}

function ruleIn(data: unknown): string | null {
  return typeof data === 'object' && data !== null && 'rule' in data && typeof data.rule === 'string' ? data.rule : null;
}

function withResolvers(): { promise: Promise<CallEnd>; resolve: (end: CallEnd) => void; reject: (reason: unknown) => void } {
  let resolve: (end: CallEnd) => void = () => undefined;
  let reject: (reason: unknown) => void = () => undefined;
  const promise = new Promise<CallEnd>((accept, refuse) => {
    resolve = accept;
    reject = refuse;
  });
  // Whoever waits hears of it; nobody has to.
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}
