import { SnapshotHead, snapshotKey, pattern, sessionService, subject, toolGateway, worker, buckets } from '@ambit/contracts';
import type { NatsConnection } from '@nats-io/nats-core';
import { signalOf } from './answer.js';
import { ask, RepeatableRequest } from './caller.js';
import type { AttemptKey, CallResult, Finish, IntendedCall, InteractionStatus, Permission, Platform, RunKey, Step } from './platform.js';
import { openSnapshot, type SnapshotView } from './snapshot.js';

/** A batch that shows no progress for this long is sent again; the gateway reports every 2 s. */
const PROGRESS_MISSED_MS = 6_500;
const SNAPSHOTS_KEPT = 32;

export interface NatsPlatformOptions {
  readonly connection: NatsConnection;
  readonly agentId: string;
  readonly workerId: string;
  readonly inboxPrefix: string;
}

/** The worker contract over NATS: nine calls, and snapshots by direct get. */
export class NatsPlatform implements Platform {
  private readonly snapshots = new Map<string, SnapshotView>();
  private readonly keys: { readonly agentId: string };

  constructor(private readonly options: NatsPlatformOptions) {
    this.keys = { agentId: options.agentId };
  }

  start(run: RunKey) {
    return ask(this.options.connection, sessionService.startRun, { input: { ...run, workerId: this.options.workerId }, keys: this.keys });
  }
  tape(run: AttemptKey, before?: number) {
    return ask(this.options.connection, sessionService.readTape, {
      input: { ...run, ...(before === undefined ? {} : { before }) },
      keys: this.keys,
    });
  }
  async step(run: AttemptKey, step: Step): Promise<void> {
    await ask(this.options.connection, sessionService.stepRun, { input: { ...run, ...step }, keys: this.keys });
  }
  renew(run: AttemptKey) {
    return ask(this.options.connection, sessionService.renewRun, { input: run, keys: this.keys });
  }
  refresh(run: AttemptKey) {
    return ask(this.options.connection, sessionService.refreshRun, { input: run, keys: this.keys });
  }
  async permission(run: AttemptKey, question: Permission): Promise<InteractionStatus> {
    return (await ask(this.options.connection, sessionService.askPermission, { input: { ...run, ...question }, keys: this.keys })).status;
  }
  edge(run: AttemptKey) {
    return ask(this.options.connection, sessionService.openRunEdge, { input: run, keys: this.keys });
  }
  async finish(run: AttemptKey, finish: Finish): Promise<void> {
    await ask(this.options.connection, sessionService.finishRun, { input: { ...run, ...finish }, keys: this.keys });
  }
  output(run: RunKey, text: string): void {
    this.options.connection.publish(
      subject(sessionService.runOutput, { agentId: this.options.agentId, runId: run.runId }),
      JSON.stringify({ text }),
    );
  }

  async execute(
    run: AttemptKey,
    batch: { readonly step: number; readonly calls: readonly IntendedCall[]; readonly signal: AbortSignal },
  ): Promise<readonly CallResult[]> {
    const { connection, agentId, workerId, inboxPrefix } = this.options;
    const request = new RepeatableRequest(connection, toolGateway.executeBatch, {
      input: { ...run, step: batch.step, calls: [...batch.calls] },
      keys: this.keys,
      inboxPrefix,
    });
    const progress = connection.subscribe(pattern(worker.batchProgress, { agentId, workerId }));
    let watchdog = setInterval(() => request.send(), PROGRESS_MISSED_MS);
    const beats = (async () => {
      for await (const beat of progress) {
        const told = worker.batchProgress.payload.safeParse(signalOf(beat)).data;
        if (told?.runId !== run.runId) continue;
        request.heard();
        clearInterval(watchdog);
        watchdog = setInterval(() => request.send(), PROGRESS_MISSED_MS);
      }
    })();
    const stop = () => request.stop();
    batch.signal.addEventListener('abort', stop, { once: true });
    try {
      if (batch.signal.aborted) return batch.calls.map((call) => ({ callId: call.callId, status: 'cancelled' as const }));
      return (await request.answer).results;
    } catch (error) {
      if (batch.signal.aborted) return batch.calls.map((call) => ({ callId: call.callId, status: 'cancelled' as const }));
      throw error;
    } finally {
      batch.signal.removeEventListener('abort', stop);
      clearInterval(watchdog);
      progress.unsubscribe();
      await beats;
    }
  }

  async snapshot(run: RunKey): Promise<SnapshotView> {
    const held = this.snapshots.get(run.fingerprint);
    if (held !== undefined) return held;
    const { bytes, parts } = SnapshotHead.parse(
      JSON.parse(new TextDecoder().decode(await this.direct(snapshotKey.head(this.options.agentId, run.fingerprint)))),
    );
    const pieces: Uint8Array[] = [];
    for (let index = 0; index < parts; index++)
      pieces.push(await this.direct(snapshotKey.part(this.options.agentId, run.fingerprint, index)));
    const snapshot = openSnapshot(pieces, bytes, run.fingerprint);
    if (this.snapshots.size >= SNAPSHOTS_KEPT) this.snapshots.delete(this.snapshots.keys().next().value ?? '');
    this.snapshots.set(run.fingerprint, snapshot);
    return snapshot;
  }

  /** A direct get with the key in the subject: the one KV request that a worker's credentials allow. */
  private async direct(key: string): Promise<Uint8Array> {
    const bucket = buckets.snapshots.name;
    const message = await this.options.connection.request(`$JS.API.DIRECT.GET.KV_${bucket}.$KV.${bucket}.${key}`, '', { timeout: 5_000 });
    const status = message.headers?.code ?? 0;
    if (status >= 400) throw new Error(`snapshot part ${key} is not there (${status} ${message.headers?.description ?? ''})`);
    return message.data;
  }
}
