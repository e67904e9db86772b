import { randomUUID } from 'node:crypto';
import { operationId, sha256Hex } from '@ambit/capability';
import { pattern, sessionService, toolGateway, type Agent, type Input, type Output, type Principal } from '@ambit/contracts';
import { openDatabase } from '@ambit/db';
import { startNats, startPostgres, startService, withClient, type TestNats, type TestPostgres } from '@ambit/testing';
import { jetstream, jetstreamManager, type JsMsg } from '@nats-io/jetstream';
import { SessionServiceConfig } from '../src/config.js';
import { SessionServiceModule } from '../src/session-service.module.js';
import { startWorld, type World } from './world.js';

type Running = Awaited<ReturnType<typeof startService>>;
type Job = Output<{ output: typeof sessionService.runExecute.payload }>;

export const alice: Principal = { id: 'user:alice', kind: 'person', issuer: 'local', display: 'Alice' };
export const bob: Principal = { id: 'user:bob', kind: 'person', issuer: 'local', display: 'Bob' };

export interface Ref {
  readonly runId: string;
  readonly originRunId: string;
  readonly sessionId: string;
  readonly fingerprint: string;
}
export interface Attempt {
  readonly agentId: string;
  readonly ref: Ref;
  readonly token: string;
  readonly start: Output<typeof sessionService.startRun>;
}

/** Real servers, the service in as many replicas as asked for, and its peers. */
export class Fixture {
  private constructor(
    readonly nats: TestNats,
    readonly postgres: TestPostgres,
    readonly world: World,
    readonly replicas: Running[],
    private readonly environment: Readonly<Record<string, string>>,
  ) {}

  static async start(replicas = 1, environment: Readonly<Record<string, string>> = {}): Promise<Fixture> {
    const [nats, postgres] = await Promise.all([startNats(), startPostgres()]);
    const fixture = new Fixture(nats, postgres, startWorld(nats.connection), [], environment);
    for (let count = 0; count < replicas; count++) await fixture.addReplica();
    return fixture;
  }

  /** Loses a snapshot that no run is going to read. */
  async forget(fingerprint: string): Promise<void> {
    await withClient(this.postgres.url, async (client) => {
      await client.query('DELETE FROM "session_service"."snapshot" WHERE "fingerprint" = $1', [fingerprint]);
    });
  }

  get bus() {
    return this.nats.bus;
  }

  async addReplica(): Promise<Running> {
    const { nats, postgres } = this;
    const replica = await startService('session-service', SessionServiceModule, {
      nats,
      postgres,
      config: SessionServiceConfig,
      database: openDatabase,
      environment: this.environment,
    });
    this.replicas.push(replica);
    return replica;
  }

  async stop(): Promise<void> {
    for (const replica of this.replicas) await replica.close();
    await this.world.close();
    await this.postgres.stop();
    await this.nats.stop();
  }

  /** An agent of its own, so that tests in one file do not meet. */
  async agent(more: Partial<Input<typeof sessionService.putAgent>> = {}): Promise<Agent> {
    const agent = await this.bus.call(sessionService.putAgent, {
      id: `agent-${randomUUID().slice(0, 8)}`,
      policy: { servers: null, skills: null, plugins: null },
      ...more,
    });
    await this.bus.call(sessionService.ensurePool, { agentId: agent.id, pool: 'shared' });
    return agent;
  }

  send(agent: Pick<Agent, 'id'>, content = 'Hello', more: Partial<Input<typeof sessionService.receiveMessage>> = {}) {
    return this.bus.call(sessionService.receiveMessage, {
      principal: alice,
      agentId: agent.id,
      content,
      idempotencyKey: randomUUID(),
      ...more,
    });
  }

  /** Takes the next job of an agent, as a worker does. */
  async take(agentId: string, pool = 'shared'): Promise<{ job: Job; message: JsMsg }> {
    const consumer = await jetstream(this.nats.connection).consumers.get('AMBIT_RUNS', `${agentId}_${pool}`);
    const message = await consumer.next({ expires: 10_000 });
    if (message === null) throw new Error(`no job for ${agentId} within 10 s`);
    return { job: sessionService.runExecute.payload.parse(message.json()), message };
  }

  /** Takes the next job, acknowledges it and opens an attempt. */
  async begin(agentId: string): Promise<Attempt> {
    const { job, message } = await this.take(agentId);
    message.ack();
    return this.attempt(agentId, job);
  }

  async attempt(agentId: string, { runId, originRunId, sessionId, fingerprint }: Ref): Promise<Attempt> {
    const ref = { runId, originRunId, sessionId, fingerprint };
    const start = await this.bus.call(sessionService.startRun, { ...ref, workerId: randomUUID() }, { keys: { agentId } });
    return { agentId, ref, token: start.token, start };
  }

  step({ agentId, ref, token }: Attempt, step: number, calls: { callId: string; name: string; arguments: string }[] = []) {
    return this.bus.call(
      sessionService.stepRun,
      { ...ref, token, step, role: 'assistant', content: [{ type: 'text', text: `step ${step}` }], calls },
      { keys: { agentId } },
    );
  }

  finish(
    { agentId, ref, token }: Attempt,
    status: 'completed' | 'waiting' | 'failed' | 'cancelled',
    more: { code?: 'WORKSPACE_UNAVAILABLE' } = {},
  ) {
    return this.bus.call(sessionService.finishRun, { ...ref, token, status, ...more }, { keys: { agentId } });
  }

  read({ agentId, ref, token }: Attempt) {
    return this.bus.call(sessionService.readTape, { ...ref, token }, { keys: { agentId } });
  }

  /** The newest message of a subject in the journal. */
  async fact(subject: string): Promise<{ seq: number; value: unknown } | null> {
    const manager = await jetstreamManager(this.nats.connection);
    const message = await manager.direct.getMessage('AMBIT_JOURNAL', { last_by_subj: subject });
    return message === null ? null : { seq: message.seq, value: message.json() };
  }

  /** The approved call that a session's newest job for the gateways is about. */
  async deferred(sessionId: string): Promise<unknown> {
    const manager = await jetstreamManager(this.nats.connection);
    const subject = pattern(toolGateway.executeDeferred, { sessionId });
    for (;;) {
      const message = await manager.direct.getMessage(toolGateway.executeDeferred.stream, { last_by_subj: subject });
      if (message !== null) return message.json();
    }
  }

  /** A bucket's value; empty where there is none. */
  async value(bucket: string, key: string): Promise<Uint8Array> {
    const manager = await jetstreamManager(this.nats.connection);
    return (await manager.direct.getMessage(`KV_${bucket}`, { last_by_subj: `$KV.${bucket}.${key}` }))?.data ?? new Uint8Array();
  }

  async write(subject: string, value: unknown): Promise<void> {
    await jetstream(this.nats.connection).publish(subject, JSON.stringify(value));
  }
}

export const call = (callId: string, name = 'question', args = '{}') => ({ callId, name, arguments: args });

type Asking = Input<typeof sessionService.requestInteractions>['requests'][number];

/** What the gateway asks for one call of a step. */
export function ask(originRunId: string, callId: string, more: Partial<Asking> = {}): Asking {
  return {
    kind: 'permission',
    callId,
    operationId: operationId(originRunId, 0, callId),
    tool: 'question',
    argumentsPreview: '{}',
    argumentsHash: sha256Hex('{}'),
    question: null,
    rule: null,
    approvers: [],
    notRequester: false,
    order: 0,
    expiresMs: 60_000,
    target: null,
    ...more,
  };
}

/** The code of the fault that a call ends with. */
export async function codeOf(answer: Promise<unknown>): Promise<string> {
  try {
    await answer;
    return 'none';
  } catch (error) {
    return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : String(error);
  }
}
