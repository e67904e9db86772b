import type { SnapshotTool } from '@ambit/capability';
import type { Authority, CallBounds } from '@ambit/contracts';
import type { DispatchEnd } from '../domain/call-end.js';
import type { Operation } from '../domain/operation.js';
import type { HeldSnapshot } from '../snapshot.cache.js';

/** A claimed call on its way to whoever executes it. */
export interface Dispatch {
  readonly operation: Operation;
  readonly tool: SnapshotTool;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly authority: Authority;
  readonly snapshot: HeldSnapshot;
  /** Aborts when the call is to stop: cancelled, or out of time. */
  readonly signal: AbortSignal;
  /** Milliseconds until the run's time is up. */
  readonly remainingMs: number;
  /** What the worker prepared, handed back to it. */
  readonly prepared?: unknown;
  /** How far a prepared call may reach. */
  readonly bounds?: CallBounds | undefined;
  /** What the tool may ask for was granted. */
  readonly granted: boolean;
  /** The worker that a worker's tool goes to. */
  readonly workerId: string | null;
}

/** Executes one call and tells how it ended; it does not throw for anything that a call can do. */
export interface Dispatcher {
  dispatch(dispatch: Dispatch): Promise<DispatchEnd>;
}

/** How long an owner that was told to stop may take to say how the call ended. */
const STOP_GRACE_MS = 3_000;

/**
 * A signal that aborts some time after another: whoever was asked to stop may still answer meanwhile. `cut` aborts it at once. Call `end` when it is
 * no longer needed.
 */
export function afterGrace(
  signal: AbortSignal,
  onStop: () => void,
): { readonly signal: AbortSignal; cut(reason: Error): void; end(): void } {
  const grace = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const begin = (): void => {
    onStop();
    timer = setTimeout(() => grace.abort(new Error('no answer after the stop')), STOP_GRACE_MS);
  };
  if (signal.aborted) begin();
  else signal.addEventListener('abort', begin, { once: true });
  return {
    signal: grace.signal,
    cut: (reason) => grace.abort(reason),
    end: () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', begin);
    },
  };
}
