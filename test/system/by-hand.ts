import {
  HEADER,
  sessionService,
  snapshotKey,
  SnapshotHead,
  subject,
  toolGateway,
  type CallResult,
  type IntendedCall,
  type Keys,
  type Output,
  type Rpc,
} from '@ambit/contracts';
import { AckPolicy, jetstream, type ConsumerInfo, type JsMsg } from '@nats-io/jetstream';
import { headers, type Msg, type NatsConnection } from '@nats-io/nats-core';
import { createHash, randomUUID } from 'node:crypto';
import { gunzipSync } from 'node:zlib';

/** A job that died with its taker comes again after 30 s. */
const JOB_MS = 60_000;
const RENEW_MS = 5_000;

export interface Ref {
  readonly runId: string;
  readonly originRunId: string;
  readonly sessionId: string;
  readonly fingerprint: string;
}

/** A whole reply, as whoever asked sees it. */
export interface Reply {
  readonly status: string;
  readonly error: string;
  readonly body: unknown;
}

/** A call as a model would make it: a fresh id every time. */
export function intend(name: string, values: unknown = {}): IntendedCall {
  return { callId: randomUUID(), name, arguments: JSON.stringify(values) };
}

/** A worker whose every message a test sends itself, over its own connection behind the wall. */
export class HandWorker {
  constructor(
    readonly connection: NatsConnection,
    readonly agentId: string,
  ) {}

  /** Takes the next run of the agent. */
  async take(timeoutMs = JOB_MS): Promise<{ readonly ref: Ref; readonly job: JsMsg }> {
    const name = `${this.agentId}_shared`;

    const info = { stream_name: 'AMBIT_RUNS', name, config: { durable_name: name, ack_policy: AckPolicy.Explicit } } as ConsumerInfo;
    const job = await jetstream(this.connection).consumers.getConsumerFromInfo(info).next({ expires: timeoutMs, bind: true });
    if (job === null) throw new Error(`no run for ${this.agentId} within ${timeoutMs / 1_000} s`);
    const { runId, originRunId, sessionId, fingerprint } = sessionService.runExecute.payload.parse(job.json());
    return { ref: { runId, originRunId, sessionId, fingerprint }, job };
  }

  /** Takes the next run that has not ended, opens an attempt and acknowledges the job; jobs of runs that ended are acknowledged on the way. */
  async begin(): Promise<HandRun> {
    for (;;) {
      const { ref, job } = await this.take();
      const run = await this.start(ref).catch((error: unknown) => {
        if ((error as { readonly code?: unknown }).code !== 'TURN_ENDED') throw error;
        return undefined;
      });
      await job.ackAck();
      if (run !== undefined) return run;
    }
  }

  /** Opens an attempt of a run. */
  async start(ref: Ref): Promise<HandRun> {
    const opened = await this.call(sessionService.startRun, ref);
    return new HandRun(this, { ...ref, token: opened.token }, opened);
  }

  /** One question and its answer. Throws an Error with the fault's code. */
  async call<C extends Rpc>(contract: C, body: unknown, timeoutMs = 30_000): Promise<Output<C>> {
    const reply = await this.ask(contract, body, timeoutMs);
    if (reply.status !== '') throw Object.assign(new Error(`${contract.subject}: ${JSON.stringify(reply.body)}`), reply.body);

    return contract.output.parse(reply.body) as Output<C>;
  }

  /** One question and its whole reply, whatever it is. */
  async ask(contract: Rpc, body: unknown, timeoutMs = 30_000): Promise<Reply> {
    const header = headers();
    header.set(HEADER.timeout, String(timeoutMs));

    const to = subject(contract, { agentId: this.agentId } as Keys<string>);
    const message = await this.connection.request(to, JSON.stringify(body), { timeout: timeoutMs + 2_000, headers: header });
    return replyOf(message);
  }

  /** The bytes of a snapshot, which must hash to its fingerprint. */
  async snapshot(
    fingerprint: string,
  ): Promise<{ readonly tools: readonly { readonly name: string }[]; readonly skills: readonly { readonly name: string }[] }> {
    const get = async (key: string): Promise<Uint8Array> =>
      (await this.connection.request(`$JS.API.DIRECT.GET.KV_ambit_snapshots.$KV.ambit_snapshots.${key}`, '', { timeout: 5_000 })).data;
    const head = SnapshotHead.parse(JSON.parse(Buffer.from(await get(snapshotKey.head(this.agentId, fingerprint))).toString()));
    const parts: Uint8Array[] = [];
    for (let index = 0; index < head.parts; index++) parts.push(await get(snapshotKey.part(this.agentId, fingerprint, index)));
    const canonical = gunzipSync(Buffer.concat(parts), { maxOutputLength: head.bytes });
    const digest = createHash('sha256').update(canonical).digest('hex');
    if (digest !== fingerprint) throw new Error(`the snapshot hashes to ${digest}, not to its fingerprint ${fingerprint}`);

    return JSON.parse(canonical.toString()) as { tools: { name: string }[]; skills: { name: string }[] };
  }
}

/** One attempt at a run, step by step; its lease is kept until it is finished or abandoned. */
export class HandRun {
  readonly #renewal: NodeJS.Timeout;

  constructor(
    readonly worker: HandWorker,
    readonly ref: Ref & { readonly token: string },
    readonly opened: Output<typeof sessionService.startRun>,
  ) {
    this.#renewal = setInterval(() => {
      if (worker.connection.isClosed()) this.abandon();
      else void worker.ask(sessionService.renewRun, ref).catch(() => undefined);
    }, RENEW_MS).unref();
  }

  /** Does nothing for the run any more, like a worker that died. */
  abandon(): void {
    clearInterval(this.#renewal);
  }

  tape(): Promise<Output<typeof sessionService.readTape>> {
    return this.worker.call(sessionService.readTape, this.ref);
  }

  /** Stores a step with these calls. */
  async step(calls: readonly IntendedCall[], step?: number): Promise<{ readonly step: number; readonly calls: readonly IntendedCall[] }> {
    const at = step ?? (await this.tape()).step;
    await this.worker.call(sessionService.stepRun, {
      ...this.ref,
      step: at,
      role: 'assistant',
      content: calls.length === 0 ? [{ type: 'text', text: 'Done.' }] : [],
      calls,
    });
    return { step: at, calls };
  }

  /** Has the calls of a stored step executed. */
  async batch(
    stored: { readonly step: number; readonly calls: readonly IntendedCall[] },
    timeoutMs = 60_000,
  ): Promise<readonly CallResult[]> {
    return (await this.worker.call(toolGateway.executeBatch, { ...this.ref, ...stored }, timeoutMs)).results;
  }

  /** Stores a step and has its calls executed. */
  async use(...calls: readonly IntendedCall[]): Promise<readonly CallResult[]> {
    return this.batch(await this.step(calls));
  }

  async finish(status: 'completed' | 'waiting' | 'failed' | 'cancelled'): Promise<Output<typeof sessionService.finishRun>> {
    const finished = await this.worker.call(sessionService.finishRun, { ...this.ref, status });
    this.abandon();
    return finished;
  }
}

/** Reads a reply without looking for a meaning in it. */
export function replyOf(message: Msg): Reply {
  return {
    status: message.headers?.get(HEADER.errorCode) ?? '',
    error: message.headers?.get(HEADER.error) ?? '',
    body: message.data.length === 0 ? null : message.json(),
  };
}
