import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { pattern, runConsumer, RunJob, sessionService, streams, subject, worker } from '@ambit/contracts';
import { AckPolicy, jetstream, type Consumer, type ConsumerInfo, type JsMsg } from '@nats-io/jetstream';
import { connect as connectNats, type NatsConnection } from '@nats-io/transport-node';
import { attempt, type Handler } from './attempt.js';
import { jsonOf, signalOf } from './answer.js';
import { ask } from './caller.js';
import { Credentials } from './credentials.js';
import { NatsPlatform } from './nats-platform.js';
import { Places } from './places.js';
import { ToolHost, type WorkerTool } from './tools.js';

export interface ConnectOptions {
  /** @default NATS_URL */
  readonly url?: string;
  /** Path of a credentials file. @default AMBIT_CREDS; none where the installation isolates no workers */
  readonly credentials?: string;
  /** Told of everything that went wrong without ending the worker. @default one line on stderr */
  readonly onError?: (error: unknown) => void;
}
export interface WorkOptions {
  /** Runs at once, but for those that wait for subagents. @default 8 */
  readonly concurrency?: number;
  /** @default 'shared' */
  readonly pool?: string;
  readonly tools?: readonly WorkerTool[];
  /** Whether this worker has the workspace of a run; one that it has not is left to others. @default what its tools say */
  readonly holds?: (place: { readonly sessionId: string; readonly workspaceId: string | null }) => Promise<boolean>;
}

const CHECK_CREDENTIALS_MS = 60_000;
const PULL_EXPIRES_MS = 30_000;
const PULL_RETRY_MS = 1_000;

/** Connects a worker. It drains on SIGTERM and SIGINT: takes no new run, lets the running ones be redelivered elsewhere. */
export async function connect(options: ConnectOptions = {}): Promise<AmbitWorker> {
  const url = options.url ?? process.env.NATS_URL;
  if (url === undefined) throw new Error('set NATS_URL, or give connect() a url: nats://host:4222');
  const path = options.credentials ?? process.env.AMBIT_CREDS;
  const credentials = path === undefined ? undefined : await Credentials.read(path);
  const inboxPrefix = credentials?.inboxPrefix ?? '_INBOX';
  const connection = await connectNats({
    servers: url,
    maxReconnectAttempts: -1,
    inboxPrefix,
    ...(credentials === undefined ? {} : { authenticator: credentials.authenticator }),
  });
  return new AmbitWorker(connection, {
    credentials,
    inboxPrefix,
    onError: options.onError ?? ((error) => process.stderr.write(`ambit worker: ${String(error)}\n`)),
  });
}

/** A connected worker process. */
export class AmbitWorker {
  /** Of this process; credentials have a name of their own. */
  readonly workerId: string = randomUUID();
  private readonly closing = new AbortController();
  private readonly running = new Set<Promise<void>>();
  private readonly hosts = new Set<ToolHost>();
  private readonly attempts = new Map<string, AbortController>();
  private credentialsTimer: NodeJS.Timeout | undefined;
  private ended: Promise<void> | undefined;
  private failure: Error | undefined;
  private readonly onSignal = (): void => void this.close();

  constructor(
    private readonly connection: NatsConnection,
    private readonly options: {
      readonly credentials: Credentials | undefined;
      readonly inboxPrefix: string;
      readonly onError: (error: unknown) => void;
    },
  ) {
    process.once('SIGTERM', this.onSignal);
    process.once('SIGINT', this.onSignal);
    void connection.closed().then((error) => this.cutOff(error));
  }

  /** Takes the agent's runs until the worker closes; resolves then. Rejects when the platform lets it in no more. */
  async work(agentId: string, handler: Handler, options: WorkOptions = {}): Promise<void> {
    const pool = options.pool ?? 'shared';
    const concurrency = options.concurrency ?? 8;
    const { connection, workerId } = this;
    this.keepCredentials(agentId);
    const host = new ToolHost({ connection, agentId, workerId, pool, onError: this.options.onError }, options.tools ?? []);
    this.hosts.add(host);
    if ((options.tools ?? []).length > 0) await host.start();
    this.hearCancels(agentId, host);
    const platform = new NatsPlatform({ connection, agentId, workerId, inboxPrefix: this.options.inboxPrefix });
    await this.ensurePool(agentId, pool);
    const places = new Places(concurrency);
    // A workspace that cannot be looked at is left to others, and said here.
    const holds: NonNullable<WorkOptions['holds']> = async (place) => {
      try {
        return await (options.holds?.(place) ?? host.holds(place));
      } catch (error) {
        this.options.onError(error);
        return false;
      }
    };
    await this.pull(this.consumer(agentId, pool), places, (message) => this.take(message, { platform, handler, host, places, holds }));
    await this.ended;
    if (this.failure !== undefined) throw this.failure;
  }

  /** Stops taking runs, aborts the running ones so that they are redelivered, and leaves. */
  close(): Promise<void> {
    this.ended ??= this.leave();
    return this.ended;
  }

  /** Where workers are isolated, creating their credentials made the consumer; where they are not, nobody has yet. */
  private async ensurePool(agentId: string, pool: string): Promise<void> {
    while (this.options.credentials === undefined && !this.closing.signal.aborted) {
      try {
        await ask(this.connection, sessionService.ensurePool, { input: { agentId, pool }, keys: {} });
        return;
      } catch (error) {
        await this.pullFailed(error);
      }
    }
  }

  /** One pull a free place: a message that waited in a buffer would be redelivered while this process still meant to run it. */
  private async pull(consumer: Consumer, places: Places, take: (message: JsMsg) => Promise<void>): Promise<void> {
    const closed = new Promise<null>((resolve) => this.closing.signal.addEventListener('abort', () => resolve(null), { once: true }));
    while (!this.closing.signal.aborted) {
      await Promise.race([places.free(), closed]);
      if (this.closing.signal.aborted) return;
      const message = await Promise.race([
        consumer.next({ expires: PULL_EXPIRES_MS, bind: true }).catch((error: unknown) => this.pullFailed(error)),
        closed,
      ]);
      if (message === null) continue;
      places.take();
      const task = take(message).finally(() => {
        places.leave();
        this.running.delete(task);
      });
      this.running.add(task);
    }
  }

  private async pullFailed(error: unknown): Promise<null> {
    if (!this.closing.signal.aborted) {
      this.options.onError(error);
      await delay(PULL_RETRY_MS);
    }
    return null;
  }

  /** The connection is closed for good: with what it has, this process is let in no more. */
  private cutOff(error: unknown): void {
    if (this.closing.signal.aborted) return;
    const why = error instanceof Error ? error.message : 'it was closed';
    this.failure = new Error(
      `NATS lets this worker in no more (${why}); where its credentials have expired or were revoked, make new ones: ambit worker create`,
      { cause: error },
    );
    void this.close();
  }

  private async leave(): Promise<void> {
    clearInterval(this.credentialsTimer);
    process.off('SIGTERM', this.onSignal);
    process.off('SIGINT', this.onSignal);
    this.closing.abort(new Error('the worker is shutting down'));
    await Promise.allSettled(this.running);
    await Promise.allSettled([...this.hosts].map((host) => host.stop()));
    if (!this.connection.isClosed()) await this.connection.drain();
  }

  private hearCancels(agentId: string, host: ToolHost): void {
    this.connection.subscribe(subject(worker.cancelRun, { agentId, workerId: this.workerId }), {
      callback: (_error, message) => {
        const { data } = worker.cancelRun.payload.safeParse(signalOf(message));
        if (data === undefined) return;
        this.attempts.get(data.runId)?.abort(new Error(data.reason));
        void host.stopRun(data.runId);
      },
    });
  }

  private async take(
    message: JsMsg,
    work: {
      readonly platform: NatsPlatform;
      readonly handler: Handler;
      readonly host: ToolHost;
      readonly places: Places;
      readonly holds: NonNullable<WorkOptions['holds']>;
    },
  ): Promise<void> {
    const parsed = RunJob.safeParse(jsonOf(message));
    if (!parsed.success) {
      this.options.onError(new Error(`a job that is no run was refused: ${parsed.error.message}`));
      message.term('not a run');
      return;
    }
    const beat = setInterval(() => message.working(), 10_000);
    const cancel = new AbortController();
    const { runId } = parsed.data;
    this.attempts.set(runId, cancel);
    try {
      const verdict = await attempt(parsed.data, {
        ...work,
        working: () => message.working(),
        waits: (wait) => work.places.away(wait),
        signal: this.closing.signal,
        cancelled: cancel.signal,
      });
      // A run that goes on elsewhere, or not at all, leaves nothing here.
      if (verdict.kind !== 'done' || !['completed', 'waiting'].includes(verdict.status)) await work.host.stopRun(runId);
      if (verdict.kind === 'done') await message.ackAck();
      else if (verdict.kind === 'again') {
        if (!this.closing.signal.aborted) this.options.onError(verdict.error);
        message.nak(this.closing.signal.aborted ? 0 : 1_000);
      }
    } catch (error) {
      this.options.onError(error);
    } finally {
      clearInterval(beat);
      if (this.attempts.get(runId) === cancel) this.attempts.delete(runId);
    }
  }

  /** Bound by name: a worker's credentials do not let it ask for consumer info. */
  private consumer(agentId: string, pool: string): Consumer {
    const name = runConsumer(agentId, pool);
    const config = {
      durable_name: name,
      ack_policy: AckPolicy.Explicit,
      filter_subject: pattern(sessionService.runExecute, { agentId, pool }),
    };
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- what a pull needs; the rest of it is the server's to say
    const info = { stream_name: streams.runs.name, name, config } as ConsumerInfo;
    return jetstream(this.connection).consumers.getConsumerFromInfo(info);
  }

  private keepCredentials(agentId: string): void {
    const { credentials } = this.options;
    if (credentials === undefined || this.credentialsTimer !== undefined) return;
    const check = (): void => {
      if (!credentials.isDue({ nowMs: Date.now(), stopwatchMs: performance.now() })) return;
      credentials.renew(this.connection, agentId).catch(this.options.onError);
    };
    this.credentialsTimer = setInterval(check, CHECK_CREDENTIALS_MS);
    this.credentialsTimer.unref();
    // The file may be older than this process.
    check();
  }
}
