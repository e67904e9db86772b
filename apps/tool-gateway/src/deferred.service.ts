import { askedOperationId, COMMAND_TOOL, GRANT_MS, policyStamp, targetHash, type Grant, type SnapshotTool } from '@ambit/capability';
import { Bus, type Delivery } from '@ambit/bus';
import { Fault, sessionService, toolGateway, type Authority, type CallResult, type DeferredCall } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { AuthorityCache, type HeldAuthority } from './authority.cache.js';
import { needsPreparation, type Caller } from './call.gates.js';
import { CallRunner, type CallRequest } from './call.runner.js';
import { faultBody, resultOf, type CallEnd } from './domain/call-end.js';
import { operationOf, type Operation } from './domain/operation.js';
import { chainOf } from './domain/run-authority.js';
import { GrantRepository } from './grant.repository.js';
import { Journal } from './journal.js';
import { Preparation } from './preparation.js';
import { Refusals, type Refused } from './refusals.js';
import { SnapshotCache, type HeldSnapshot } from './snapshot.cache.js';
import { Toolsets } from './toolsets.js';

const WORKER_WAIT_MS = 60_000;

/** Executes calls that a person approved: against what holds now, once, under the asking call's operation id. */
@Injectable()
export class DeferredService {
  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(AuthorityCache) private readonly authorities: AuthorityCache,
    @Inject(SnapshotCache) private readonly snapshots: SnapshotCache,
    @Inject(GrantRepository) private readonly grants: GrantRepository,
    @Inject(CallRunner) private readonly runner: CallRunner,
    @Inject(Journal) private readonly journal: Journal,
    @Inject(Preparation) private readonly preparation: Preparation,
    @Inject(Refusals) private readonly refusals: Refusals,
    @Inject(Toolsets) private readonly toolsets: Toolsets,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  /** Throws to have the job delivered again: then nothing was settled yet. */
  async execute(job: DeferredCall, delivery: Delivery<typeof toolGateway.executeDeferred>): Promise<void> {
    await this.grants.put({
      operationId: job.operationId,
      interactionId: job.interactionId,
      targetHash: targetHash(job.target),
      argumentsHash: job.argumentsHash,
      policyVersion: job.policyVersion,
      decidedBy: job.decidedBy,
      decidedAt: new Date(job.decidedAt),
      expiresAt: new Date(Date.parse(job.decidedAt) + GRANT_MS),
    });
    const end = await this.#end(job, delivery.traceparent);
    await this.#settle(job, end);
    await this.grants.settled(job.operationId, end.status, new Date());
  }

  async #end(job: DeferredCall, traceparent: string): Promise<CallResult> {
    const { callId } = job.call;
    const before = await this.journal.readOutcome(job.originRunId, job.operationId);
    if (before !== undefined) return resultOf(callId, before);
    // Always asked anew: an approval runs against now.
    const held = await this.authorities.fetch(job.runId);
    if (held === undefined) return { callId, status: 'refused', fault: faultBody('TOOL_NOT_IN_SNAPSHOT') };
    const asking = operationOf(held.authority, { step: job.step, call: job.call, callsInRun: callsBefore(held, callId), traceparent });
    const operation = { ...asking, operationId: job.operationId };
    // The asking call's own id, or the one under which it goes on after its tool asked.
    if (job.operationId !== asking.operationId && job.operationId !== askedOperationId(asking.operationId)) {
      this.log.error(
        { operationId: job.operationId, runId: job.runId },
        'an approved call does not carry the id of the call that asked; it is refused',
      );
      return { callId, status: 'refused', fault: faultBody('TOOL_NOT_IN_SNAPSHOT') };
    }
    const snapshot = await this.snapshots.get(held.authority.agentId, held.authority.fingerprint);
    const request = await this.#request(job, { held, snapshot, operation });
    const first = request.kind === 'gone' ? gone() : await this.runner.run(request.request, { held, snapshot });
    const end =
      first.kind === 'outcome'
        ? first
        : await this.#refused({ held, operation }, first, request.kind === 'gone' ? undefined : request.request);
    return end.kind === 'outcome' ? resultOf(callId, end.outcome, end.whole) : Refusals.result(operation, end);
  }

  async #request(
    job: DeferredCall,
    at: { held: HeldAuthority; snapshot: HeldSnapshot; operation: Operation },
  ): Promise<{ kind: 'gone' } | { kind: 'ready'; request: CallRequest }> {
    const { held, snapshot, operation } = at;
    // A run of MCP clients is composed anew while a call of it waits: whether the tool is still the same its pin says.
    const fingerprint = held.authority.kind === 'edge' ? held.authority.fingerprint : job.fingerprint;
    const caller: Caller = { agentId: job.agentId, sessionId: job.sessionId, fingerprint, tokenHash: undefined };
    // Bound to the policy as it stood when the call was approved: under a newer one the grant does not fit.
    const grant: Grant = {
      operationId: job.operationId,
      targetHash: targetHash(job.target),
      argumentsHash: job.argumentsHash,
      policyStamp: policyStamp(chainOf(held.authority, job.policyVersion)),
      decidedAt: Date.parse(job.decidedAt),
    };
    const approval = { grant, interactionId: job.interactionId };
    const tool = snapshot.tools.get(job.call.name);
    if (tool === undefined || (tool.target.kind !== 'worker' && !needsPreparation(tool)))
      return { kind: 'ready', request: { caller, operation, approval } };
    const workerId = await this.#worker(tool, held.authority);
    if (workerId === undefined) return { kind: 'gone' };
    const preparation = needsPreparation(tool)
      ? await this.preparation.of(tool, operation, { authority: held.authority, workerId })
      : undefined;
    return { kind: 'ready', request: { caller, operation, approval, preparation, workerId } };
  }

  /** Any live worker of the pool that can carry the call out. */
  async #worker({ target }: SnapshotTool, { agentId, pool }: Authority): Promise<string | undefined> {
    if (target.kind !== 'worker') return this.toolsets.workerWith(COMMAND_TOOL, { agentId, pool }, WORKER_WAIT_MS);
    await this.toolsets.load(target);
    return this.toolsets.worker(target, pool, WORKER_WAIT_MS);
  }

  /** A refusal, and also an approval that no longer covers what the rules ask for. */
  async #refused(
    at: { held: HeldAuthority; operation: Operation },
    end: Exclude<CallEnd, { kind: 'outcome' }>,
    request: CallRequest | undefined,
  ): Promise<Refused | Extract<CallEnd, { kind: 'outcome' }>> {
    const refusal: Refused =
      end.kind === 'refused'
        ? end
        : {
            kind: 'refused',
            fault: faultBody('APPROVAL_EXPIRED', undefined, 'What was approved is not what would run now; ask again'),
            gate: 'grant',
            detail: 'the target, the arguments or the policy are others than the approved ones',
            rule: end.kind === 'asks' ? end.rule : null,
          };
    const standing = request === undefined ? refusal : await this.runner.refusedOrClaimed(request.operation, refusal);
    if (standing.kind === 'outcome') return standing;
    await this.refusals.forPeople(at.held.authority, [{ operation: at.operation, end: refusal }]);
    return refusal;
  }

  async #settle(job: DeferredCall, result: CallResult): Promise<void> {
    try {
      await this.bus.call(sessionService.settleInteraction, { interactionId: job.interactionId, operationId: job.operationId, result });
    } catch (error) {
      // The session was removed meanwhile: nobody waits for this result.
      if (!(error instanceof Fault) || error.code !== 'NO_INTERACTION') throw error;
      this.log.warn({ interactionId: job.interactionId }, 'the interaction of an approved call is gone');
    }
  }
}

function gone(): Refused {
  return {
    kind: 'refused',
    fault: faultBody('TOOL_GONE', undefined, 'No live worker brings this tool any more'),
    gate: 'target-there',
    detail: 'no live worker of the pool with this toolset within 60 s',
    rule: null,
  };
}

/** Calls of the origin run stored before this one. */
function callsBefore({ authority }: HeldAuthority, callId: string): number {
  if (authority.step === null) return 0;
  const position = authority.step.calls.findIndex((call) => call.callId === callId);
  return authority.step.callsBefore + Math.max(0, position);
}
