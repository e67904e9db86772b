import { BoundedMap } from '@ambit/capability';
import type { CallLog, Claim } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import type { CallEnd } from './domain/call-end.js';

const MAX_ABORTED = 10_000;
const LOGS_KEPT = 50;

/** Why a call was stopped; the only proof of a cancel is a signal of our own that carries one. */
class StopRequest {
  constructor(readonly reason: string) {}
}

export interface Progress {
  readonly progress: number;
  readonly total?: number | undefined;
  readonly message?: string | undefined;
}

/** A call that this process claimed and whose end it does not know yet. */
export class OpenCall {
  readonly startedAt = performance.now();
  progress: Progress | undefined;
  /** What its server logged since its worker was told last; the oldest goes first. */
  logs: CallLog[] = [];
  readonly #controller = new AbortController();

  constructor(
    readonly claim: Claim,
    readonly ended: Promise<CallEnd>,
  ) {}

  /** Aborts when the call is to stop. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }
  /** Why it is to stop, once somebody said so. */
  get stopReason(): string | undefined {
    const reason: unknown = this.signal.reason;
    return reason instanceof StopRequest ? reason.reason : undefined;
  }
  stop(reason: string): void {
    if (!this.signal.aborted) this.#controller.abort(new StopRequest(reason));
  }
}

/** The calls that run here, and those that begin here: an operation is worked on once in a process, whoever asks how often. */
@Injectable()
export class OpenCalls {
  readonly #attempts = new Map<string, Promise<CallEnd>>();
  readonly #open = new Map<string, OpenCall>();
  readonly #aborted = new BoundedMap<string, string>(MAX_ABORTED);

  /** Joins the attempt that is under way for this operation, or begins one. */
  join(operationId: string, begin: () => Promise<CallEnd>): Promise<CallEnd> {
    const running = this.#attempts.get(operationId);
    if (running !== undefined) return running;
    const attempt = begin().finally(() => this.#attempts.delete(operationId));
    this.#attempts.set(operationId, attempt);
    return attempt;
  }

  isUnderWay(operationId: string): boolean {
    return this.#attempts.has(operationId);
  }

  opened(call: OpenCall): void {
    this.#open.set(call.claim.operationId, call);
    const reason = this.#aborted.get(call.claim.operationId);
    if (reason !== undefined) call.stop(reason);
  }
  closed(operationId: string): void {
    this.#open.delete(operationId);
  }

  find(operationId: string): OpenCall | undefined {
    return this.#open.get(operationId);
  }
  progressed(operationId: string, progress: Progress): void {
    const call = this.#open.get(operationId);
    if (call !== undefined) call.progress = progress;
  }
  logged(operationId: string, log: CallLog): void {
    const call = this.#open.get(operationId);
    if (call !== undefined) call.logs = [...call.logs, log].slice(-LOGS_KEPT);
  }
  ofRun(runId: string): OpenCall[] {
    return [...this.#open.values()].filter((call) => call.claim.runId === runId);
  }
  all(): OpenCall[] {
    return [...this.#open.values()];
  }

  /** Stops an operation that runs here, or that may still begin here. */
  abort(operationId: string, reason: string): void {
    this.#aborted.set(operationId, reason);
    this.#open.get(operationId)?.stop(reason);
  }
  isAborted(operationId: string): boolean {
    return this.#aborted.has(operationId);
  }
}
