import { askedOperationId, INTERACTION_MS, type SnapshotTool } from '@ambit/capability';
import type { CallResult } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import type { HeldAuthority } from './authority.cache.js';
import { isRunGate, needsPreparation, type Caller } from './call.gates.js';
import { CallRunner, type CallRequest, type Decided } from './call.runner.js';
import { resultOf, type CallEnd } from './domain/call-end.js';
import type { Operation } from './domain/operation.js';
import { Asking, type AskedCall } from './asking.js';
import { Preparation, type Preparedness } from './preparation.js';
import { Refusals } from './refusals.js';
import { Reviews } from './reviews.js';
import type { HeldSnapshot } from './snapshot.cache.js';
import { Toolsets } from './toolsets.js';

export interface BatchStart {
  readonly caller: Caller;
  readonly held: HeldAuthority;
  readonly snapshot: HeldSnapshot;
  readonly operations: readonly Operation[];
  readonly step: number;
  /** Of a call that no stored step holds; with the worker for a worker's tool, because the run has none of its own. */
  readonly edge?: { readonly workerId: string | undefined } | undefined;
}

/** A batch on its way: its results so far, and a promise of all of them. */
export class Batch {
  readonly #results = new Map<string, CallResult>();

  constructor(
    readonly start: BatchStart,
    run: (batch: Batch) => Promise<void>,
  ) {
    this.done = run(this);
    // Each request that waits hears of a failure; without one nobody has to.
    this.done.catch(() => undefined);
  }
  readonly done: Promise<void>;

  set(result: CallResult): void {
    this.#results.set(result.callId, result);
  }

  /** The calls without a result yet. */
  get open(): readonly Operation[] {
    return this.start.operations.filter(({ call }) => !this.#results.has(call.callId));
  }

  /** All results in call order, once they are there or the time is up. Rejects when the batch could not be worked on. */
  async results(withinMs: number, signal: AbortSignal): Promise<CallResult[]> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, Math.min(withinMs, 2 ** 31 - 1));
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    await Promise.race([this.done, late]).finally(() => clearTimeout(timer));
    return this.start.operations.map(({ call }) => this.#results.get(call.callId) ?? { callId: call.callId, status: 'running' });
  }
}

/** Works through a batch: gates first, asks in one request, then the rest in call order, or together where all may run beside each other. */
@Injectable()
export class BatchRunner {
  constructor(
    @Inject(CallRunner) private readonly runner: CallRunner,
    @Inject(Asking) private readonly asking: Asking,
    @Inject(Refusals) private readonly refusals: Refusals,
    @Inject(Preparation) private readonly preparation: Preparation,
    @Inject(Toolsets) private readonly toolsets: Toolsets,
    @Inject(Reviews) private readonly reviews: Reviews,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  start(start: BatchStart): Batch {
    return new Batch(start, (batch) => this.#run(batch));
  }

  async #run(batch: Batch): Promise<void> {
    const { start } = batch;
    const requests = await this.reviews.of(start, await this.#requests(start));
    const asks: AskedCall[] = [];
    const ready: CallRequest[] = [];
    // What is decided of the calls behind the first may change by what the first one counts.
    let first: { request: CallRequest; decided: Decided } | undefined;
    const refused: { request: CallRequest; end: CallEnd }[] = [];
    for (const request of requests) {
      const decided = this.runner.check(request, start);
      if (decided.kind === 'allowed') {
        if (ready.length === 0) first = { request, decided };
        ready.push(request);
        continue;
      }
      const { end } = decided;
      if (end.kind === 'asks' || end.kind === 'asks-question') asks.push(askedCall(request, end));
      else refused.push({ request, end });
    }
    const lateAsks: AskedCall[] = [];
    const together =
      refused.length === 0 &&
      asks.length === 0 &&
      ready.length > 1 &&
      ready.every((request) => mayRunBeside(start.snapshot.tools.get(request.operation.call.name)));
    const work = (request: CallRequest): Promise<void> =>
      this.#work(batch, { request, decided: request === first?.request ? first.decided : undefined }, lateAsks);
    await Promise.all([
      this.#ask(batch, asks, 0),
      this.#refuse(batch, refused),
      together ? Promise.all(ready.map(work)) : inOrder(ready, work),
    ]);
    await this.#ask(batch, lateAsks, asks.length);
  }

  #requests({ caller, operations, held, snapshot, edge }: BatchStart): Promise<CallRequest[]> | CallRequest[] {
    if (!operations.some(({ call }) => concernsWorker(snapshot.tools.get(call.name))))
      return operations.map((operation) => ({ caller, operation }));
    return Promise.all(
      operations.map(async (operation): Promise<CallRequest> => {
        const tool = snapshot.tools.get(operation.call.name);
        const workerId = edge?.workerId ?? held.authority.workerId;
        if (tool?.target.kind === 'worker') await this.toolsets.load(tool.target);
        const preparation: Preparedness | undefined =
          needsPreparation(tool) && tool !== undefined
            ? await this.preparation.of(tool, operation, { authority: held.authority, workerId })
            : undefined;
        return { caller, operation, preparation, ...(edge?.workerId === undefined ? {} : { workerId: edge.workerId }) };
      }),
    );
  }

  async #work(
    batch: Batch,
    { request, decided }: { request: CallRequest; decided: Decided | undefined },
    lateAsks: AskedCall[],
  ): Promise<void> {
    const { operation } = request;
    const end = await this.runner.run(request, batch.start, decided);
    if (end.kind === 'asks' || end.kind === 'asks-question') lateAsks.push(askedCall(request, end));
    else if (end.kind === 'refused') await this.#refuse(batch, [{ request, end }]);
    else if (end.outcome.asks !== undefined) lateAsks.push(askedByTool(askedCall(request, askOf(end.outcome.asks, batch))));
    else batch.set(resultOf(operation.call.callId, end.outcome, end.whole));
  }

  async #refuse(batch: Batch, refused: readonly { readonly request: CallRequest; readonly end: CallEnd }[]): Promise<void> {
    const standing = await Promise.all(
      refused.map(async ({ request, end }) => ({
        operation: request.operation,
        end: await this.runner.refusedOrClaimed(request.operation, end),
      })),
    );
    const recorded: { operation: Operation; end: Extract<CallEnd, { kind: 'refused' }> }[] = [];
    for (const { operation, end } of standing) {
      if (end.kind === 'outcome') batch.set(resultOf(operation.call.callId, end.outcome, end.whole));
      if (end.kind !== 'refused') continue;
      batch.set(Refusals.result(operation, end));
      // That the run ended is no word about the call: it may still run in the next attempt.
      if (!isRunGate(end.gate)) recorded.push({ operation, end });
    }
    await this.refusals.record(batch.start.held.authority, recorded);
  }

  async #ask(batch: Batch, all: readonly AskedCall[], firstOrder: number): Promise<void> {
    if (all.length === 0) return;
    // The policy, or a reviewer, may say now that a call is to be asked about which has run before, or runs now by an approval.
    const standing = await Promise.all(all.map(({ operation }) => this.runner.claimed(operation)));
    const asks = all.flatMap((asked, index) => {
      const end = standing[index];
      if (end?.kind !== 'outcome') return [asked];
      if (end.outcome.asks !== undefined)
        return [askedByTool(end.outcome.asks.signIn === true ? { ...asked, ask: askOf(end.outcome.asks, batch) } : asked)];
      batch.set(resultOf(asked.operation.call.callId, end.outcome, end.whole));
      return [];
    });
    if (asks.length === 0) return;
    const answers = await this.asking.ask(batch.start, asks, firstOrder);
    for (const { operation } of asks) {
      const answer = answers.get(operation.operationId);
      if (answer?.kind === 'refused') await this.#refuse(batch, [{ request: { caller: batch.start.caller, operation }, end: answer }]);
      else if (answer?.kind === 'outcome') batch.set(resultOf(operation.call.callId, answer.outcome, answer.whole));
      else batch.set({ callId: operation.call.callId, status: 'waiting' });
    }
    this.log.debug({ runId: batch.start.held.authority.runId, asks: asks.length }, 'calls wait for decisions');
  }
}

function askedCall({ operation, preparation }: CallRequest, ask: AskedCall['ask']): AskedCall {
  return { operation, ask, preparedDigest: preparation?.facts.digest };
}

/** What a tool asks for that has been called already: no rule speaks of it, so anybody who may decide may. */
const BY_TOOL: AskedCall['ask'] = {
  kind: 'asks',
  decision: 'ask',
  rule: 'the tool asks before it goes on',
  approvers: [],
  terms: [],
  expiresMs: INTERACTION_MS,
};

/** A sign-in is the principal's alone: nobody else could give its account. */
function askOf({ reason, signIn }: { readonly reason: string; readonly signIn?: boolean | undefined }, { start }: Batch): AskedCall['ask'] {
  if (signIn !== true) return BY_TOOL;
  const { agentId, principal } = start.held.authority;
  const terms = [{ agentId, rule: reason, approvers: [principal.id], not: null }];
  return { kind: 'asks', decision: 'ask', signIn, rule: reason, approvers: [principal.id], terms, expiresMs: INTERACTION_MS };
}

/** Such a call goes on under an operation id of its own: that it asked is how the first one ended. */
function askedByTool({ operation, ...asked }: AskedCall): AskedCall {
  return { ...asked, operation: { ...operation, operationId: askedOperationId(operation.operationId) } };
}

/** Whether a worker has to be asked something about the tool: it brings it, or runs the command that the tool is. */
function concernsWorker(tool: SnapshotTool | undefined): boolean {
  return tool?.target.kind === 'worker' || needsPreparation(tool);
}

function mayRunBeside(tool: SnapshotTool | undefined): boolean {
  return tool?.effect === 'read' && tool.parallel;
}

async function inOrder<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (const item of items) await work(item);
}
