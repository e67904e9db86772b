import { Fault, fault, platformFault, toolGateway, type Authority, type CallResult, type Parsed } from '@ambit/contracts';
import type { Call } from '@ambit/bus';
import { Inject, Injectable } from '@nestjs/common';
import type { HeldAuthority } from './authority.cache.js';
import { BatchRunner, type Batch } from './batch.runner.js';
import type { Caller } from './call.gates.js';
import { faultBody } from './domain/call-end.js';
import { findInStep, type StepAnswer } from './domain/stored-step.js';
import { fitReply } from './domain/fit-reply.js';
import { operationOf } from './domain/operation.js';
import { callerOf, RunAdmission } from './run.admission.js';
import { SnapshotCache } from './snapshot.cache.js';

type Input = Parsed<typeof toolGateway.executeBatch>;
type Stored = Extract<StepAnswer, { kind: 'stored' }>;
type BatchCall = Call<typeof toolGateway.executeBatch>;

/** What is kept back of the caller's time for the answer's way: a quarter, at most this. */
const ANSWER_MS = 2_000;
const MAX_BATCHES = 10_000;

/** Batches of stored steps: one run of a batch in this process, and any number of requests that wait for it. */
@Injectable()
export class BatchService {
  readonly #running = new Map<string, Batch>();

  constructor(
    @Inject(RunAdmission) private readonly admission: RunAdmission,
    @Inject(SnapshotCache) private readonly snapshots: SnapshotCache,
    @Inject(BatchRunner) private readonly runner: BatchRunner,
  ) {}

  /** Executes the calls, or attaches to them where they run; answers by the caller's deadline, with `running` for what goes on. */
  async execute(input: Input, call: BatchCall): Promise<{ results: CallResult[] }> {
    const caller = callerOf(call.keys.agentId, input);
    const admitted = await this.admission.admit(caller, input, ({ authority }) => stepOf(authority, input));
    if (admitted instanceof Fault) throw admitted;
    const { held, more: step } = admitted;
    if (step === undefined) throw platformFault('UNAVAILABLE');
    // Each has its result on the tape already; nothing is asked or looked at for them.
    if (step.cut)
      return { results: input.calls.map(({ callId }) => ({ callId, status: 'refused', fault: faultBody('OUTPUT_TRUNCATED') })) };
    const batch = await this.#batch({ caller, held, step, input, traceparent: call.traceparent });
    const remainingMs = Math.max(0, call.remainingMs());
    const results = await batch.results(remainingMs - Math.min(ANSWER_MS, remainingMs / 4), call.signal);
    return { results: fitReply(results) };
  }

  /** The batches that run here, for whoever tells workers of their progress. */
  running(): Iterable<Batch> {
    return this.#running.values();
  }

  async #batch({
    caller,
    held,
    step,
    input,
    traceparent,
  }: {
    caller: Caller;
    held: HeldAuthority;
    step: Stored;
    input: Input;
    traceparent: string;
  }): Promise<Batch> {
    const key = `${input.runId} ${input.step} ${step.positions.join(',')}`;
    const known = this.#running.get(key);
    if (known !== undefined) return known;
    if (this.#running.size >= MAX_BATCHES) throw platformFault('UNAVAILABLE', undefined, 'Too many batches run here; send it again');
    const snapshot =
      this.snapshots.held(held.authority.fingerprint) ?? (await this.snapshots.get(held.authority.agentId, held.authority.fingerprint));
    const meanwhile = this.#running.get(key);
    if (meanwhile !== undefined) return meanwhile;
    const operations = input.calls.map((one, index) =>
      operationOf(held.authority, {
        step: input.step,
        call: one,
        callsInRun: step.callsBefore + (step.positions[index] ?? 0),
        traceparent,
      }),
    );
    const batch = this.runner.start({ caller, held, snapshot, operations, step: input.step });
    this.#running.set(key, batch);
    void batch.done.finally(() => this.#running.delete(key)).catch(() => undefined);
    return batch;
  }
}

/** Where the batch's calls stand in the stored step; what was not stored is not executed. */
function stepOf(authority: Authority, { step, calls }: Input): Stored | Fault {
  const answer = findInStep(authority.step, step, calls);
  return answer.kind === 'stored' ? answer : fault(toolGateway.executeBatch, 'BAD_ARGUMENTS', { reason: answer.reason });
}
