// A worker over plain nats.js with credentials of its own: holds runs open, stores steps, executes them call by call.
import { randomUUID } from 'node:crypto';
import { runConsumer, sessionService, streams, subject, toolGateway, workerInboxPrefix } from '@ambit/contracts';
import { AckPolicy, jetstream } from '@nats-io/jetstream';
import { connect, credsAuthenticator, headers } from '@nats-io/transport-node';

const RENEW_MS = 5_000;
const CALL_MS = 30_000;
const AT_ONCE = 8;

export class BenchWorker {
  #connection;
  #agentId;
  #runs = [];
  #renewal;
  #deadline = headers();

  static async connect({ natsUrl, credentials, agentId, name }) {
    const worker = new BenchWorker();
    worker.#agentId = agentId;
    worker.#connection = await connect({
      servers: natsUrl,
      name: 'bench-worker',
      noAsyncTraces: true,
      inboxPrefix: workerInboxPrefix({ agentId, credentialName: name }),
      authenticator: credsAuthenticator(new TextEncoder().encode(credentials)),
    });
    worker.#deadline.set('Ambit-Timeout-Ms', String(CALL_MS));
    return worker;
  }

  get originRunIds() {
    return this.#runs.map(({ ref }) => ref.originRunId);
  }

  /** Takes and starts `count` runs, and keeps them until `finish`. */
  async take(count) {
    const name = runConsumer(this.#agentId, 'shared');
    const consumer = jetstream(this.#connection).consumers.getConsumerFromInfo({
      stream_name: streams.runs.name,
      name,
      config: { durable_name: name, ack_policy: AckPolicy.Explicit },
    });
    this.#renewal = setInterval(() => void this.#renew().catch(() => undefined), RENEW_MS);
    while (this.#runs.length < count) {
      const job = await consumer.next({ expires: CALL_MS, bind: true });
      if (job === null) throw new Error(`only ${this.#runs.length} of ${count} runs came within ${CALL_MS / 1_000} s`);
      const { runId, originRunId, sessionId, fingerprint } = job.json();
      const ref = { runId, originRunId, sessionId, fingerprint };
      const { token, step } = await this.#ask(sessionService.startRun, ref);
      this.#runs.push({ job, ref: { ...ref, token }, step });
    }
  }

  /** Stores a step of `perLane` calls in each of the first `lanes` runs; gives the call that executes one of them as a batch of its own. */
  async prepare({ lanes, perLane, tool, input, isRight }) {
    const to = subject(toolGateway.executeBatch, { agentId: this.#agentId });
    const calls = await someAtOnce(this.#runs.slice(0, lanes), async (run) => {
      const step = run.step++;
      // A run that makes the same round again and again is ended as one that goes round in a circle.
      const text = step % 2 === 0 ? input : `${input} `;
      const intended = Array.from({ length: perLane }, () => ({ callId: randomUUID(), name: tool, arguments: text }));
      await this.#ask(sessionService.stepRun, { ...run.ref, step, role: 'assistant', content: [], calls: intended });
      return intended.map((call) => JSON.stringify({ ...run.ref, step, calls: [call] }));
    });
    return async (lane, index) => {
      const answer = await this.#connection.request(to, calls[lane][index], { timeout: CALL_MS, headers: this.#deadline });
      const body = answer.json();
      if (body.results?.[0]?.status === 'completed' && isRight(body.results[0])) return true;
      throw new Error(`a call was not answered as it should: ${answer.string().slice(0, 500)}`);
    };
  }

  async finish() {
    clearInterval(this.#renewal);
    for (const { ref, job } of this.#runs) {
      await this.#ask(sessionService.finishRun, { ...ref, status: 'completed' });
      await job.ackAck();
    }
    await this.#connection.drain();
  }

  async #renew() {
    await someAtOnce(this.#runs, ({ job, ref }) => {
      job.working();
      return this.#ask(sessionService.renewRun, ref);
    });
  }

  async #ask(contract, input) {
    const to = subject(contract, { agentId: this.#agentId });
    const answer = await this.#connection.request(to, JSON.stringify(input), { timeout: CALL_MS, headers: this.#deadline });
    if ((answer.headers?.get('Nats-Service-Error-Code') ?? '') !== '') throw new Error(`${to}: ${answer.string()}`);
    return answer.json();
  }
}

/** What is only prepared is not asked for all at once: a busy machine would be late for some of it. */
async function someAtOnce(items, work) {
  const results = [];
  for (let index = 0; index < items.length; index += AT_ONCE)
    results.push(...(await Promise.all(items.slice(index, index + AT_ONCE).map(work))));
  return results;
}
