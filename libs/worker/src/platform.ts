import type { CallResult, Input, IntendedCall, Output, Parsed, RunJob, TapeMessage } from '@ambit/contracts';
import { sessionService } from '@ambit/contracts';
import type { SnapshotView } from './snapshot.js';

/** What is said of one run in every call: its ids, and after `start` the token of the attempt. */
export interface RunKey {
  readonly runId: string;
  readonly originRunId: string;
  readonly sessionId: string;
  readonly fingerprint: string;
}
export interface AttemptKey extends RunKey {
  readonly token: string;
}
export type TapeView = Output<typeof sessionService.readTape>;
export type Step = Omit<Parsed<typeof sessionService.stepRun>, keyof AttemptKey | 'raw'> & { readonly raw?: unknown };
export type InteractionStatus = Output<typeof sessionService.askPermission>['status'];
export type Permission = Omit<Input<typeof sessionService.askPermission>, keyof AttemptKey>;
export type Finish = Omit<Parsed<typeof sessionService.finishRun>, keyof AttemptKey>;

/** The worker contract as a port: over NATS in production, in memory in `@ambit/worker/testing`. */
export interface Platform {
  start(run: RunKey): Promise<TapeView & { readonly token: string; readonly attempt: number }>;
  snapshot(run: RunKey): Promise<SnapshotView>;
  tape(run: AttemptKey, before?: number): Promise<TapeView>;
  step(run: AttemptKey, step: Step): Promise<void>;
  execute(
    run: AttemptKey,
    batch: { readonly step: number; readonly calls: readonly IntendedCall[]; readonly signal: AbortSignal },
  ): Promise<readonly CallResult[]>;
  renew(run: AttemptKey): Promise<{ readonly cancelled: boolean }>;
  refresh(run: AttemptKey): Promise<{ readonly fingerprint: string }>;
  /** How a question to a person stands, asked now or before under the same key. */
  permission(run: AttemptKey, question: Permission): Promise<InteractionStatus>;
  /** A token with which the program behind an ACP agent's run uses the run's tools at the edge. */
  edge(run: AttemptKey): Promise<{ readonly token: string }>;
  finish(run: AttemptKey, finish: Finish): Promise<void>;
  output(run: RunKey, text: string): void;
}

export type { CallResult, IntendedCall, RunJob, TapeMessage };
