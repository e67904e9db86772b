import { operationId } from '@ambit/capability';
import {
  Fault,
  HEADER,
  sessionService,
  subject,
  toolGateway,
  type CallResult,
  type Input,
  type IntendedCall,
  type Output,
  type Rpc,
  type RunJob,
} from '@ambit/contracts';
import { headers, type NatsConnection } from '@nats-io/nats-core';
import { randomUUID } from 'node:crypto';

const NEXT = '$JS.API.CONSUMER.MSG.NEXT.AMBIT_RUNS';
const JOB_MS = 10_000;

/** What a worker names in each of its calls. */
export type Ref = Pick<RunJob, 'runId' | 'originRunId' | 'sessionId' | 'fingerprint'>;

/** One attempt of a run, as its worker holds it. */
export interface Attempt {
  readonly ref: Ref;
  readonly token: string;
  /** The number of the next step to store. */
  readonly step: number;
  readonly started: Output<typeof sessionService.startRun>;
}

type WorkerContract = Rpc & { readonly subject: `${string}.{agentId}` };

export interface Forgery extends Partial<Input<typeof toolGateway.executeBatch>> {
  readonly timeoutMs?: number;
}

/** A call with an id of its own; arguments that are no text are written as JSON. */
export function intend(name: string, given: unknown = {}): IntendedCall {
  return { callId: randomUUID(), name, arguments: typeof given === 'string' ? given : JSON.stringify(given) };
}

/** A worker over plain NATS, behind the wall, which sends whatever a test wants said: its own library stands in nobody's way. */
export class PlainWorker {
  /** Headers that it sends with everything, whatever they claim. */
  claims: Readonly<Record<string, string>> = {};

  constructor(
    readonly agentId: string,
    readonly connection: NatsConnection,
  ) {}

  /** Asks by hand; a failure is thrown as a fault with the code and data of the answer. */
  async ask<C extends WorkerContract>(contract: C, input: unknown, timeoutMs = 20_000): Promise<Output<C>> {
    const header = headers();
    header.set(HEADER.timeout, String(timeoutMs));
    for (const [name, value] of Object.entries(this.claims)) header.set(name, value);
    const answer = await this.connection.request(
      subject<`${string}.{agentId}`>(contract, { agentId: this.agentId }),
      JSON.stringify(input),
      {
        timeout: timeoutMs,
        headers: header,
      },
    );
    const body = answer.json<{ code: string; message: string; data?: unknown }>();
    const status = answer.headers?.get(HEADER.errorCode) ?? '';
    if (status !== '')
      throw new Fault(body.code, { status: Number(status), retry: 'never', message: body.message }, body.data, body.message);
    return contract.output.parse(body) as Output<C>;
  }

  /** Takes the next job of the agent's pool and acknowledges it. */
  async take(pool = 'shared'): Promise<RunJob> {
    const pull = JSON.stringify({ batch: 1, expires: JOB_MS * 1_000_000 });
    // A pulled message keeps the subject it was stored under, so it is taken by an inbox of its own.
    const options = { timeout: JOB_MS + 1_000, noMux: true };
    const message = await this.connection.request(`${NEXT}.${this.agentId}_${pool}`, pull, options);
    const job = sessionService.runExecute.payload.parse(message.json());
    if (message.reply !== undefined) this.connection.publish(message.reply, '+ACK');
    return job;
  }

  /** Opens an attempt of a run. */
  async start({ runId, originRunId, sessionId, fingerprint }: Ref, workerId: string = randomUUID()): Promise<Attempt> {
    const ref = { runId, originRunId, sessionId, fingerprint };
    const started = await this.ask(sessionService.startRun, { ...ref, workerId });
    return { ref, token: started.token, step: started.step, started };
  }

  /** Takes the next job and opens its attempt. */
  async begin(workerId?: string): Promise<Attempt> {
    return this.start(await this.take(), workerId);
  }

  /** Stores a step with these calls. */
  async store({ ref, token }: Attempt, step: number, calls: readonly IntendedCall[]): Promise<void> {
    await this.ask(sessionService.stepRun, { ...ref, token, step, role: 'assistant', content: [{ type: 'text', text: 'so' }], calls });
  }

  /** Sends a batch, with whatever is forged in it. */
  async send({ ref, token }: Attempt, batch: Forgery & { readonly step: number; readonly calls: IntendedCall[] }): Promise<CallResult[]> {
    const { timeoutMs, ...body } = batch;
    return (await this.ask(toolGateway.executeBatch, { ...ref, token, ...body }, timeoutMs)).results;
  }

  /** Stores a step and executes it. */
  async execute(attempt: Attempt, step: number, calls: IntendedCall[]): Promise<CallResult[]> {
    await this.store(attempt, step, calls);
    return this.send(attempt, { step, calls });
  }

  async finish(
    { ref, token }: Attempt,
    status: 'completed' | 'waiting' | 'failed' | 'cancelled',
  ): Promise<Output<typeof sessionService.finishRun>> {
    return this.ask(sessionService.finishRun, { ...ref, token, status });
  }
}

/** The operation id of one call of an attempt. */
export const operationOf = ({ ref }: Pick<Attempt, 'ref'>, step: number, { callId }: Pick<IntendedCall, 'callId'>): string =>
  operationId(ref.originRunId, step, callId);
