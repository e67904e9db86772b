// Long because the gateway’s neighbours answer from one state: session-service, the broker, a worker and the runs they all know.
import { randomBytes, randomUUID } from 'node:crypto';
import { Responder, silentLog } from '@ambit/bus';
import {
  argumentsHash,
  canonicalRecord,
  cataloguePolicyHash,
  fingerprint,
  operationId,
  RESERVED_TABLE_VERSION,
  sha256Hex,
  type SnapshotRecord,
  type SnapshotTool,
} from '@ambit/capability';
import {
  buckets,
  leaseKey,
  type Claim,
  type DeferredCall,
  type Outcome,
  fault,
  journalSubject,
  mcpBroker,
  Policy,
  RunState,
  ServerSpec,
  sessionService,
  type Authority,
  type CallResult,
  type IntendedCall,
  type Input,
  type Output,
  type Parsed,
  toolGateway,
} from '@ambit/contracts';
import { openDatabase } from '@ambit/db';
import type { RunningService } from '@ambit/service';
import { startNats, startPostgres, startService, until, type TestNats, type TestPostgres } from '@ambit/testing';
import { Kvm } from '@nats-io/kv';
import { headers } from '@nats-io/nats-core';
import { ToolGatewayConfig } from '../src/config.js';
import { callDigest } from '../src/domain/stored-step.js';
import { ToolGatewayModule } from '../src/tool-gateway.module.js';

const AGENT = 'writer';
const SERVER = '0193b0a0-0000-7000-8000-000000000001';
const BINDING = 'b'.repeat(64);
const INSTANCE = 'c'.repeat(64);
const LEASE_REVISION = 1;
const RENEW_MS = 1_500;
const WORKER = '0193b0a0-0000-7000-8000-0000000000aa';

type ExecuteCall = Parsed<typeof mcpBroker.executeCall>;
type Asked = Parsed<typeof sessionService.requestInteractions>;
type Executed = Output<typeof mcpBroker.executeCall>;

/** A run as session-service would hold it. */
export interface TestRun {
  readonly runId: string;
  readonly originRunId: string;
  readonly sessionId: string;
  readonly token: string;
  readonly agentId: string;
  authority: Authority;
  snapshot: SnapshotRecord;
}

export function mcpTool(name: string, more: Partial<SnapshotTool> = {}): SnapshotTool {
  return {
    name: `mcp__echo__${name}`,
    qualifiedName: `mcp__echo__${name}`,
    exposure: 'user-configurable',
    description: name,
    inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
    outputSchema: null,
    effect: 'write',
    access: 'mcp',
    parallel: false,
    owner: 'user',
    target: { kind: 'mcp', serverId: SERVER, configGeneration: 1, bindingHash: BINDING, tool: name },
    ...more,
  };
}

export function builtinTool(name: string, more: Partial<SnapshotTool> = {}): SnapshotTool {
  return {
    name,
    qualifiedName: name,
    exposure: 'user-configurable',
    description: name,
    inputSchema: { type: 'object' },
    outputSchema: null,
    effect: 'read',
    access: 'session',
    parallel: true,
    owner: 'builtin',
    target: { kind: 'builtin', id: name, version: 1 },
    ...more,
  };
}

export interface RunOptions {
  readonly policy?: Input<typeof sessionService.putAgent>['policy'];
  readonly skills?: Authority['skills'];
  readonly agentId?: string;
  readonly workerId?: string | null;
  readonly mode?: Authority['mode'];
}
type SendOptions = Partial<Input<typeof toolGateway.executeBatch>> & { readonly agentId?: string; readonly timeoutMs?: number };

/**
 * One NATS, one Postgres and any number of gateways; session-service and a broker are small responders that keep to their contracts: the run's
 * state facts in the journal are real, and so is their sequence.
 */
export class World {
  readonly executed: ExecuteCall[] = [];
  readonly ensured: string[] = [];
  readonly recorded: Parsed<typeof sessionService.recordResults>[] = [];
  readonly asked: Asked[] = [];
  readonly settled: Parsed<typeof sessionService.settleInteraction>[] = [];
  readonly cancels: string[] = [];
  readonly gateways: RunningService[] = [];
  authorityCalls = 0;
  /** What the server does with a call. */
  serve: (call: ExecuteCall) => Promise<Executed> | Executed = (call) => ({
    result: { content: [{ type: 'text', text: `echo ${JSON.stringify(call.arguments)}` }] },
  });
  /** Called after an authority was read and before it is answered. */
  onAuthority: (run: TestRun) => Promise<void> | void = () => undefined;
  readonly responder: Responder;
  readonly #forgotten = new Set<string>();
  readonly #runs = new Map<string, TestRun>();
  #holding: NodeJS.Timeout | undefined;

  private constructor(
    readonly nats: TestNats,
    readonly postgres: TestPostgres,
  ) {
    this.responder = new Responder({ connection: nats.connection, log: silentLog });
    this.#session();
    this.#broker();
  }

  static async start(): Promise<World> {
    const [nats, postgres] = await Promise.all([startNats(), startPostgres()]);
    const world = new World(nats, postgres);
    await world.#hold();
    return world;
  }

  /** Holds the instance's lease, as the owner of a server does: without it a gateway takes calls for lost. */
  async #hold(): Promise<void> {
    const bucket = await new Kvm(this.nats.connection).open(buckets.leases5s.name);
    const hold = () => bucket.put(leaseKey.instance(INSTANCE), JSON.stringify({ since: LEASE_REVISION }));
    await hold();
    // Where a test takes NATS away, the lease lapses as it would.
    this.#holding = setInterval(() => void hold().catch(() => undefined), RENEW_MS);
  }

  async gateway(environment: Readonly<Record<string, string>> = {}): Promise<RunningService> {
    const service = await startService('tool-gateway', ToolGatewayModule, {
      config: ToolGatewayConfig,
      environment,
      nats: this.nats,
      postgres: this.postgres,
      database: openDatabase,
    });
    this.gateways.push(service);
    return service;
  }

  async stop(): Promise<void> {
    clearInterval(this.#holding);
    await Promise.all(this.gateways.map((gateway) => gateway.close()));
    await this.responder.close();
    await this.postgres.stop();
    await this.nats.stop();
  }

  /** Opens a run with these tools, its state in the journal. */
  async run(tools: readonly SnapshotTool[], more: RunOptions = {}): Promise<TestRun> {
    const policy = Policy.parse({ servers: null, plugins: null, skills: null, mode: 'full_access', ...more.policy });
    const agentId = more.agentId ?? AGENT;
    const snapshot: SnapshotRecord = {
      format: 'ambit.snapshot',
      schemaVersion: 1,
      agentId,
      cataloguePolicyHash: cataloguePolicyHash(policy),
      project: { id: 'default', workspaceId: null },
      model: { name: 'none', vision: false },
      tools: [...tools],
      skills: (more.skills ?? []).map((skill) => ({
        name: skill.name,
        origin: 'owned',
        owner: 'user',
        digest: skill.digest,
        description: `about ${skill.name}`,
      })),
      promptCommands: [],
      plugins: [],
      servers: [{ serverId: SERVER, slug: 'echo', owner: 'user', configGeneration: 1, catalogHash: 'd'.repeat(64) }],
      subagents: null,
      switches: { skills: true, mcp: true, mcpSkills: false },
      reservedTableVersion: RESERVED_TABLE_VERSION,
    };
    const runId = randomUUID();
    const token = randomBytes(24).toString('base64url');
    const authority: Authority = {
      runId,
      originRunId: runId,
      sessionId: randomUUID(),
      agentId,
      projectId: 'default',
      kind: 'worker',
      status: 'running',
      stateSequence: 1,
      stateVersion: 0,
      fingerprint: fingerprint(snapshot),
      tokens: [{ attempt: 1, hash: sha256Hex(token) }],
      workerId: more.workerId === undefined ? WORKER : more.workerId,
      pool: 'shared',
      principal: { id: 'user:alice', kind: 'person', issuer: 'local', display: 'Alice' },
      mode: more.mode ?? policy.mode,
      enabled: true,
      policy,
      policyVersion: 1,
      ancestors: [],
      revokedOwners: [],
      knownAgents: [],
      skills: more.skills ?? [],
      openedSkills: [],
      step: null,
      remainingMs: 60_000,
    };
    const run: TestRun = { runId, originRunId: runId, sessionId: authority.sessionId, token, agentId, authority, snapshot };
    this.#runs.set(runId, run);
    await this.move(run, {});
    return run;
  }

  /** Changes what a run may do and moves its state, as session-service does. */
  async move(run: TestRun, change: Partial<Authority>): Promise<void> {
    const version = run.authority.stateVersion + 1;
    const attempt = (change.tokens ?? run.authority.tokens).at(-1)?.attempt ?? 1;
    const state = RunState.parse({
      schemaVersion: 1,
      runId: run.runId,
      sessionId: run.sessionId,
      agentId: run.agentId,
      version,
      status: change.status ?? run.authority.status,
      attempt,
      at: new Date().toISOString(),
    });
    const rollup = headers();
    rollup.set('Nats-Rollup', 'sub');
    const ack = await this.nats.connection.request(journalSubject.runState(run.runId), JSON.stringify(state), {
      headers: rollup,
      timeout: 5_000,
    });
    run.authority = { ...run.authority, ...change, stateVersion: version, stateSequence: ack.json<{ seq: number }>().seq };
  }

  /** Stores a step with these calls. */
  store(run: TestRun, at: number | { readonly step: number; readonly callsBefore: number }, calls: readonly IntendedCall[]): void {
    const { step, callsBefore } = typeof at === 'number' ? { step: at, callsBefore: 0 } : at;
    run.authority = {
      ...run.authority,
      step: { step, callsBefore, calls: calls.map((call) => ({ callId: call.callId, digest: callDigest(call) })) },
    };
  }

  /** Stores a step and executes it. */
  async execute(run: TestRun, step: number, calls: readonly IntendedCall[]): Promise<CallResult[]> {
    this.store(run, step, calls);
    return this.send(run, { step, calls: [...calls] });
  }

  async send(run: TestRun, { agentId, timeoutMs, ...body }: SendOptions): Promise<CallResult[]> {
    const input = {
      runId: run.runId,
      originRunId: run.originRunId,
      sessionId: run.sessionId,
      fingerprint: run.authority.fingerprint,
      token: run.token,
      step: 0,
      calls: [],
      ...body,
    };
    const { results } = await this.nats.bus.call(toolGateway.executeBatch, input, {
      keys: { agentId: agentId ?? run.agentId },
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });
    return results;
  }

  operation(run: TestRun, step: number, callId: string): string {
    return operationId(run.originRunId, step, callId);
  }

  /** How often an operation reached the server. */
  effects(operation: string): number {
    return this.executed.filter((call) => call.operationId === operation).length;
  }

  /** Resolves when the owner of an operation was told to stop it. */
  cancelled(operation: string): Promise<void> {
    return until(() => this.cancels.includes(operation) && !this.#forgotten.has(operation));
  }
  /** The owner of this operation does not hear that it is to stop. */
  forget(operation: string): void {
    this.#forgotten.add(operation);
  }
  claimed(run: TestRun, operation: string): Promise<void> {
    return until(async () => (await this.fact(run, operation, 'claim')) !== undefined && this.effects(operation) > 0);
  }
  /** The n-th settlement of an operation. */
  async settlement(operation: string, count = 1): Promise<World['settled'][number]> {
    const found = (): World['settled'] => this.settled.filter((one) => one.operationId === operation);
    await until(() => found().length >= count);
    const last = found()[count - 1];
    if (last === undefined) throw new Error('not settled');
    return last;
  }
  /** The job of an approved call of a run's first step. */
  approval(run: TestRun, call: IntendedCall, more: Partial<DeferredCall> = {}): DeferredCall {
    return {
      schemaVersion: 1,
      interactionId: randomUUID(),
      operationId: this.operation(run, 0, call.callId),
      runId: run.runId,
      originRunId: run.originRunId,
      sessionId: run.sessionId,
      agentId: run.agentId,
      fingerprint: run.authority.fingerprint,
      step: 0,
      call,
      argumentsHash: argumentsHash(call.arguments),
      target: run.snapshot.tools.find((tool) => tool.name === call.name)?.target ?? null,
      policyVersion: 1,
      decidedBy: { id: 'user:bob', kind: 'person', issuer: 'local', display: 'Bob' },
      decidedAt: new Date().toISOString(),
      ...more,
    };
  }

  async approve(approved: DeferredCall, id: string = randomUUID()): Promise<void> {
    await this.nats.bus.enqueue(toolGateway.executeDeferred, approved, { keys: { sessionId: approved.sessionId }, id });
  }

  /** Claims a call as another gateway would, which lives for one lease and is never heard of again; gives its id. */
  async claimElsewhere(run: TestRun, { step, call }: { step: number; call: IntendedCall }): Promise<string> {
    const gatewayId = randomUUID();
    const { authority } = run;
    const bucket = await new Kvm(this.nats.connection).open(buckets.leases5s.name);
    await bucket.put(leaseKey.gateway(gatewayId), '{}');
    const target = run.snapshot.tools.find((tool) => tool.name === call.name)?.target;
    const claim: Claim = {
      schemaVersion: 1,
      operationId: this.operation(run, step, call.callId),
      runId: run.runId,
      originRunId: run.originRunId,
      sessionId: run.sessionId,
      agentId: run.agentId,
      projectId: 'default',
      serial: 0,
      attempt: 1,
      step,
      callId: call.callId,
      tool: call.name,
      target: target ?? { kind: 'builtin', id: call.name, version: 1 },
      argumentsHash: argumentsHash(call.arguments),
      fingerprint: authority.fingerprint,
      rule: null,
      interactionId: null,
      principal: authority.principal.id,
      gatewayId,
      at: new Date().toISOString(),
    };
    await this.nats.connection.request(journalSubject.claim(run.originRunId, claim.operationId), JSON.stringify(claim), { timeout: 5_000 });
    return gatewayId;
  }

  async writeOutcome(outcome: Outcome): Promise<void> {
    await this.nats.connection.request(journalSubject.outcome(outcome.originRunId, outcome.operationId), JSON.stringify(outcome), {
      timeout: 5_000,
    });
  }

  /** A fact of an operation, as it stands in the journal. */
  async fact(run: TestRun, operation: string, which: 'claim' | 'outcome' | 'abort'): Promise<Record<string, unknown> | undefined> {
    const message = await this.nats.connection.request(
      `$JS.API.DIRECT.GET.AMBIT_JOURNAL.${journalSubject[which](run.originRunId, operation)}`,
      '',
    );
    return message.headers?.code === 404 ? undefined : message.json<Record<string, unknown>>();
  }

  /** What stands of an operation that another gateway left: for the message of a test that waited in vain. */
  async howFar(run: TestRun, operation: string, gatewayId: string): Promise<string> {
    const lease = await (await new Kvm(this.nats.connection).open(buckets.leases5s.name)).get(leaseKey.gateway(gatewayId));
    const { items } = await this.nats.bus.call(toolGateway.listCalls, { runId: run.runId });
    return JSON.stringify({
      lease: lease?.operation ?? null,
      leaseAgeMs: lease === null ? null : Date.now() - lease.created.getTime(),
      outcome: (await this.fact(run, operation, 'outcome')) ?? null,
      inPostgres: items.map(({ operationId, status, parked }) => ({ operationId, status, parked })),
    });
  }

  #session(): void {
    this.responder.answer(sessionService.getAuthority, async ({ runId }) => {
      this.authorityCalls++;
      const run = this.#runs.get(runId);
      if (run === undefined) throw fault(sessionService.getAuthority, 'TOOL_NOT_IN_SNAPSHOT');
      const answer = run.authority;
      await this.onAuthority(run);
      return answer;
    });
    this.responder.answer(sessionService.readSnapshot, ({ fingerprint: wanted, offset }) => {
      const run = [...this.#runs.values()].find((one) => one.authority.fingerprint === wanted);
      if (run === undefined) throw fault(sessionService.readSnapshot, 'SNAPSHOT_UNKNOWN');
      const text = canonicalRecord(run.snapshot);
      return {
        text: text.slice(offset, offset + 200_000),
        next: offset + 200_000 < text.length ? offset + 200_000 : null,
        agentId: run.agentId,
      };
    });
    this.responder.answer(sessionService.recordResults, (input) => {
      this.recorded.push(input);
      return { recorded: input.results.length };
    });
    this.responder.answer(sessionService.requestInteractions, (input) => {
      this.asked.push(input);
      return {
        interactions: input.requests.map(({ operationId: operation }) => ({
          operationId: operation,
          interactionId: randomUUID(),
          status: 'pending' as const,
          answer: null,
        })),
      };
    });
    this.responder.answer(sessionService.settleInteraction, (input) => {
      this.settled.push(input);
      return { resumeRunId: null };
    });
  }

  #broker(): void {
    this.responder.answer(mcpBroker.ensureInstance, (_input, call) => {
      this.ensured.push(call.keys.serverId);
      return { instanceId: INSTANCE, leaseRevision: LEASE_REVISION, callTimeoutMs: 10_000, onProgress: 'ignore' as const };
    });
    this.responder.answer(mcpBroker.executeCall, (input) => {
      this.executed.push(input);
      return this.serve(input);
    });
    this.responder.listen(mcpBroker.cancelCall, ({ operationId: operation }) => void this.cancels.push(operation));
    this.responder.answer(mcpBroker.getServer, () => serverOf(SERVER));
  }
}

/** What the broker says of the one server: arguments are kept as is usual. */
function serverOf(id: string): Output<typeof mcpBroker.getServer> {
  const at = '2026-01-01T00:00:00.000Z';
  return {
    ...ServerSpec.parse({ slug: 'echo', transport: { type: 'inmemory', name: 'echo' } }),
    id,
    switchedOff: false,
    configGeneration: 1,
    bindingHash: BINDING,
    state: 'connected',
    reason: null,
    authorization: { state: 'none', reason: null, credentials: 'shared', issuer: null, authenticated: 0 },
    catalogHash: null,
    tools: 0,
    refusedNames: [],
    held: [],
    stale: false,
    runsAs: null,
    protocol: null,
    version: 1,
    createdAt: at,
    updatedAt: at,
  };
}

let calls = 0;
/** An intended call with an id of its own. */
export function intend(name: string, input: object = {}, callId = `call-${++calls}`): IntendedCall {
  return { callId, name, arguments: JSON.stringify(input) };
}
