import { Fault, type RunJob } from '@ambit/contracts';
import type { Platform } from './platform.js';
import { endsAttempt, Run, type Waits } from './run.js';

export type Handler = (run: Run) => Promise<void>;

/** What became of a job: `done` = acknowledge it, `again` = give it back, `lost` = say nothing: it comes again unless whoever has the run now ends it. */
export type Verdict =
  { readonly kind: 'done'; readonly status: string } | { readonly kind: 'again'; readonly error: unknown } | { readonly kind: 'lost' };

const RENEW_MS = 5_000;
/** How long a run's lease lives without being renewed. */
const LEASE_MS = 15_000;

export interface AttemptOptions {
  readonly platform: Platform;
  readonly handler: Handler;
  /** Called with every renewal; tells JetStream that the job is still in work. */
  readonly working: () => void;
  /** Whether this worker has the workspace of the run. */
  readonly holds?: (place: Pick<RunJob, 'sessionId' | 'workspaceId'>) => Promise<boolean>;
  /** Does something during which the run only waits for other runs. */
  readonly waits?: Waits;
  /** Aborts at shutdown. */
  readonly signal: AbortSignal;
  /** Aborts when the platform says that the run was cancelled. A renewal says so too, later. */
  readonly cancelled?: AbortSignal;
}

/** One attempt at a run: start, verified snapshot, the handler's turns, finish; the lease is renewed meanwhile. */
export async function attempt(job: RunJob, options: AttemptOptions): Promise<Verdict> {
  const ids = { runId: job.runId, originRunId: job.originRunId, sessionId: job.sessionId, fingerprint: job.fingerprint };
  const { platform } = options;
  const stop = new AbortController();
  const shutdown = () => stop.abort(new Error('the worker is shutting down'));
  options.signal.addEventListener('abort', shutdown, { once: true });
  let cancelled = false;
  const cancel = () => {
    cancelled = true;
    stop.abort(new Error('the run was cancelled'));
  };
  if (options.cancelled?.aborted === true) cancel();
  options.cancelled?.addEventListener('abort', cancel, { once: true });
  let renewal: NodeJS.Timeout | undefined;
  try {
    const opened = await platform.start(ids);
    const key = { ...ids, token: opened.token };
    let lost: Fault | undefined;
    let cutOff: Error | undefined;
    let renewedAt = performance.now();
    renewal = setInterval(() => {
      options.working();
      const beganAt = performance.now();
      // The platform has given the run to another by now: what goes on here would be nobody's.
      if (beganAt - renewedAt > LEASE_MS)
        stop.abort((cutOff ??= new Error('the platform was out of reach for longer than the run’s lease')));
      platform.renew(key).then(
        (answer) => {
          renewedAt = beganAt;
          if (answer.cancelled) cancel();
        },
        (error: unknown) => {
          if (!(error instanceof Fault) || !endsAttempt(error)) return; // away for a moment: the next beat tries again
          lost = error;
          stop.abort(error);
        },
      );
    }, RENEW_MS);
    if (job.workspaceId !== null && (await options.holds?.(job)) === false) {
      await platform.finish(key, { status: 'failed', code: 'WORKSPACE_UNAVAILABLE', reason: 'this worker does not have the workspace' });
      return { kind: 'done', status: 'failed' };
    }
    const run = new Run(
      platform,
      { job, key, tape: opened, snapshot: await platform.snapshot(key), attempt: opened.attempt, waits: options.waits },
      stop.signal,
    );
    await handle(run, options.handler, stop.signal);
    if (lost !== undefined) throw lost;
    if (cutOff !== undefined && !cancelled) return { kind: 'again', error: cutOff };
    if (options.signal.aborted && !cancelled) return { kind: 'again', error: options.signal.reason };
    const status = cancelled ? 'cancelled' : (run.end ?? 'completed');
    await platform.finish(key, { status });
    return { kind: 'done', status };
  } catch (error) {
    // The run goes on without this attempt, and maybe with nobody yet: an acknowledged job would leave it so.
    if (error instanceof Fault && error.code === 'STALE_INSTANCE' && !cancelled) return { kind: 'lost' };
    if (error instanceof Fault && endsAttempt(error)) return { kind: 'done', status: cancelled ? 'cancelled' : error.code };
    return { kind: 'again', error };
  } finally {
    clearInterval(renewal);
    options.signal.removeEventListener('abort', shutdown);
    options.cancelled?.removeEventListener('abort', cancel);
  }
}

/** A handler that throws because its signal was aborted has not failed. */
async function handle(run: Run, handler: Handler, signal: AbortSignal): Promise<void> {
  try {
    await handler(run);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
