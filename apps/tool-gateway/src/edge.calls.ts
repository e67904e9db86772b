import { Bus, type Call } from '@ambit/bus';
import { Fault, mcpEdge, platformFault, toolGateway, type CallLog, type Output, type Parsed } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import { AuthorityCache, type HeldAuthority } from './authority.cache.js';
import { BatchRunner } from './batch.runner.js';
import type { Caller } from './call.gates.js';
import { fitReply } from './domain/fit-reply.js';
import { operationOf } from './domain/operation.js';
import type { Progress } from './open-calls.js';
import { RunAdmission } from './run.admission.js';
import { SnapshotCache, type HeldSnapshot } from './snapshot.cache.js';
import { Toolsets } from './toolsets.js';

type Input = Parsed<typeof toolGateway.executeCall>;
type Executed = Output<typeof toolGateway.executeCall>;

/** Calls of the edge that are worked on here at once. */
const MAX_CALLS = 10_000;
/** Where a run stores no steps, all of its calls belong to this one. */
const STEP = 0;
const WORKER_WAIT_MS = 5_000;
/** What is kept back of the caller's time for the answer's way: a quarter, at most this. */
const ANSWER_MS = 2_000;
/** An authority that is held longer than this is asked for again: its run's time is counted for each call anew. */
const LEFT_MS = 15 * 60_000;

/** Calls that MCP clients make, one at a time, in runs that store no steps. */
@Injectable()
export class EdgeCalls {
  /** By operation: the edge that is told of its progress. */
  readonly #told = new Map<string, string>();
  #open = 0;

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(RunAdmission) private readonly admission: RunAdmission,
    @Inject(AuthorityCache) private readonly authorities: AuthorityCache,
    @Inject(SnapshotCache) private readonly snapshots: SnapshotCache,
    @Inject(BatchRunner) private readonly runner: BatchRunner,
    @Inject(Toolsets) private readonly toolsets: Toolsets,
  ) {}

  /** Executes the call, or attaches to it where it runs; answers by the caller's deadline, with `running` for what goes on. */
  async execute(input: Input, call: Call<typeof toolGateway.executeCall>): Promise<Executed> {
    if (this.#open >= MAX_CALLS) throw platformFault('UNAVAILABLE', undefined, 'Too many calls run here; send it again');
    this.#open++;
    try {
      return await this.#execute(input, call);
    } finally {
      this.#open--;
    }
  }

  progressed(operationId: string, progress: Progress): void {
    const edgeId = this.#told.get(operationId);
    if (edgeId !== undefined) this.bus.signal(mcpEdge.callProgress, { operationId, ...progress }, { keys: { edgeId } });
  }

  logged(operationId: string, log: CallLog): void {
    const edgeId = this.#told.get(operationId);
    if (edgeId !== undefined) this.bus.signal(mcpEdge.callLogged, { operationId, ...log }, { keys: { edgeId } });
  }

  async #execute(input: Input, call: Call<typeof toolGateway.executeCall>): Promise<Executed> {
    const { agentId, sessionId, fingerprint } = input;
    const caller: Caller = { agentId, sessionId, fingerprint, tokenHash: undefined, isEdge: true };
    const held = await this.#admit(caller, input);
    const snapshot = this.snapshots.held(fingerprint) ?? (await this.snapshots.get(agentId, fingerprint));
    const operation = operationOf(held.authority, { step: STEP, call: input.call, callsInRun: 0, traceparent: call.traceparent });
    const { operationId } = operation;
    const workerId = await this.#worker(snapshot, input.call.name, held.authority.pool);
    if (input.progressTo !== null) this.#told.set(operationId, input.progressTo);
    try {
      const batch = this.runner.start({ caller, held, snapshot, operations: [operation], step: STEP, edge: { workerId } });
      const remainingMs = Math.max(0, call.remainingMs());
      const results = await batch.results(remainingMs - Math.min(ANSWER_MS, remainingMs / 4), call.signal);
      const [result] = fitReply(results);
      if (result === undefined) throw new Error('a batch of one call has one result');
      return { operationId, result };
    } finally {
      this.#told.delete(operationId);
    }
  }

  async #admit(caller: Caller, input: Input): Promise<HeldAuthority> {
    const remembered = this.authorities.held(input.runId);
    if (remembered !== undefined && remembered.endsAt - performance.now() < LEFT_MS) this.authorities.drop(input.runId);
    const admitted = await this.admission.admit(caller, input);
    if (admitted instanceof Fault) throw admitted;
    return admitted.held;
  }

  /** Any live worker that brings the tool; where there is none the gates say so. */
  async #worker({ tools }: HeldSnapshot, name: string, pool: string): Promise<string | undefined> {
    const target = tools.get(name)?.target;
    if (target?.kind !== 'worker') return undefined;
    await this.toolsets.load(target);
    return this.toolsets.worker(target, pool, WORKER_WAIT_MS);
  }
}
