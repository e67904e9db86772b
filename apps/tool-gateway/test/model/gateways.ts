import { randomUUID } from 'node:crypto';
import { Bus, silentLog } from '@ambit/bus';
import { cataloguePolicyHash, RESERVED_TABLE_VERSION, sha256Hex, type SnapshotRecord, type SnapshotTool } from '@ambit/capability';
import { Claim, Outcome, Policy, type Authority } from '@ambit/contracts';
import { CONFIG, LOG, Metrics } from '@ambit/service';
import type { MsgHdrs } from '@nats-io/nats-core';
import { ArtifactStore } from '../../src/artifact.store.js';
import { AuthorityCache } from '../../src/authority.cache.js';
import { CallHooks } from '../../src/call.hooks.js';
import { CallRepository } from '../../src/call.repository.js';
import { CallRunner } from '../../src/call.runner.js';
import { ToolGatewayConfig } from '../../src/config.js';
import { BuiltinDispatcher } from '../../src/dispatch/builtin.dispatcher.js';
import type { Dispatch } from '../../src/dispatch/dispatch.js';
import { McpDispatcher } from '../../src/dispatch/mcp.dispatcher.js';
import { WorkerDispatcher } from '../../src/dispatch/worker.dispatcher.js';
import { stopped, type CallEnd, type DispatchEnd } from '../../src/domain/call-end.js';
import { operationFacts } from '../../src/domain/operation-facts.js';
import { operationOf, type Operation } from '../../src/domain/operation.js';
import { GatewayLease } from '../../src/gateway.lease.js';
import { Housekeeping } from '../../src/housekeeping.js';
import { Previews } from '../../src/previews.js';
import { Reconciliation } from '../../src/reconciliation.js';
import { SchemaValidators } from '../../src/schema.validators.js';
import { SnapshotCache, type HeldSnapshot } from '../../src/snapshot.cache.js';
import { TargetFactsSource } from '../../src/target.facts.js';
import { Injector } from './injector.js';
import { JournalStream, noAnswer } from './journal-stream.js';
import type { Living, Machine } from './machine.js';

const LEASE_MS = 5_000;
const AGENT = 'writer';
const TOKEN = sha256Hex('token');
const TOOL: SnapshotTool = {
  name: 'mcp__echo__say',
  qualifiedName: 'mcp__echo__say',
  exposure: 'user-configurable',
  description: '',
  inputSchema: { type: 'object' },
  outputSchema: null,
  effect: 'write',
  access: 'mcp',
  parallel: false,
  owner: 'user',
  target: { kind: 'mcp', serverId: randomUUID(), configGeneration: 1, bindingHash: 'b'.repeat(64), tool: 'say' },
};
const POLICY = Policy.parse({ mode: 'full_access', servers: null, plugins: null, skills: null });
const RECORD: SnapshotRecord = {
  format: 'ambit.snapshot',
  schemaVersion: 1,
  agentId: AGENT,
  cataloguePolicyHash: cataloguePolicyHash(POLICY),
  project: { id: 'default', workspaceId: null },
  model: { name: '', vision: false },
  tools: [TOOL],
  skills: [],
  promptCommands: [],
  plugins: [],
  servers: [],
  subagents: null,
  switches: { skills: true, mcp: true, mcpSkills: true },
  reservedTableVersion: RESERVED_TABLE_VERSION,
};
const SNAPSHOT: HeldSnapshot = { record: RECORD, tools: new Map([[TOOL.name, TOOL]]), slugs: new Map() };

/** What the tool does when it is reached: what it answers with, or that it was not reached after all. */
export type Doing = 'small' | 'large' | 'fails' | 'not there' | 'unsure';

/** One gateway process: everything that decides is the gateway's own; what it asks is answered by the world. */
export interface Gateway extends Living {
  readonly id: string;
  readonly app: Injector;
}

interface Lease {
  isHeldUp: boolean;
  /** Of a process that ended: when others see it. */
  endsAt: number | undefined;
}

/** Two runs of one origin, their calls, and the gateways that are asked for them. */
export class Gateways {
  readonly journal = new JournalStream();
  /** How often each operation had its effect. */
  readonly effects = new Map<string, number>();
  /** Every answer that was given about an operation, in the order in which they came. */
  readonly ends = new Map<string, CallEnd[]>();
  readonly #leases = new Map<string, Lease>();
  readonly #runs: Authority[];
  readonly #gateways: (Gateway | undefined)[] = [];

  constructor(
    private readonly machine: Machine,
    private readonly doing: readonly Doing[],
  ) {
    const originRunId = randomUUID();
    const sessionId = randomUUID();
    this.#runs = [originRunId, randomUUID()].map((runId) => authorityOf({ runId, originRunId, sessionId }));
    for (const { runId } of this.#runs) this.journal.move(runId);
  }

  operation(run: number, call: number): Operation {
    const authority = this.#run(run);
    const at = { step: 0, callsInRun: call, traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` };
    return operationOf(authority, { ...at, call: { callId: `call-${call}`, name: TOOL.name, arguments: `{"n":${call}}` } });
  }

  /** The gateway of this number, started where it is gone. */
  gateway(number: number): Gateway {
    const known = this.#gateways[number];
    if (known?.isAlive === true) return known;
    const started = this.#start();
    this.#gateways[number] = started;
    return started;
  }

  crash(number: number): void {
    const known = this.#gateways[number];
    if (known?.isAlive !== true) return;
    this.machine.end(known);
    const lease = this.#leases.get(known.id);
    if (lease !== undefined) lease.endsAt = this.machine.now + LEASE_MS;
  }

  /** It is held up so long that others take it for dead, and goes on. */
  holdUp(number: number): void {
    const lease = this.#leases.get(this.#gateways[number]?.id ?? '');
    if (lease !== undefined) lease.isHeldUp = true;
  }

  move(run: number, status?: Authority['status']): void {
    const authority = this.#run(run);
    if (status !== undefined) authority.status = status;
    this.journal.move(authority.runId);
  }

  /** Asks a gateway for one call; the answer is noted when it comes. */
  deliver(number: number, run: number, call: number): void {
    const { app } = this.gateway(number);
    const operation = this.operation(run, call);
    void this.#ask(app, operation).then(
      (end) => this.ends.set(operation.operationId, [...(this.ends.get(operation.operationId) ?? []), end]),
      // Nothing can be said: whoever asked sends the batch again.
      () => undefined,
    );
  }

  /** Has a gateway look for claims without an end. */
  sweep(number: number): void {
    const { app } = this.gateway(number);
    void app
      .get(Housekeeping)
      .park()
      .catch(() => undefined);
  }

  /** The claims that Postgres would know, and no end of them. */
  #unended(): { operationId: string; originRunId: string; gatewayId: string; claimedAt: Date }[] {
    const ended = new Set(this.outcomes().map(({ operationId }) => operationId));
    // In the end it is long ago.
    const ageMs = this.machine.isCalm ? 600_000 : 0;
    return this.claims().flatMap(({ operationId, originRunId, gatewayId, at }) =>
      ended.has(operationId) ? [] : [{ operationId, originRunId, gatewayId, claimedAt: new Date(Date.parse(at) - ageMs) }],
    );
  }

  claims(): Claim[] {
    return this.#facts('claim').map((text) => Claim.parse(JSON.parse(text)));
  }
  outcomes(): Outcome[] {
    return this.#facts('outcome').map((text) => Outcome.parse(JSON.parse(text)));
  }

  #facts(kind: 'claim' | 'outcome'): string[] {
    return this.journal
      .subjects()
      .flatMap((subject) => (operationFacts.place(subject)?.kind === kind ? (this.journal.read(subject) ?? []) : []));
  }

  async #ask(app: Injector, operation: Operation): Promise<CallEnd> {
    const { runId } = operation;
    const authorities = app.get(AuthorityCache);
    const held = authorities.held(runId) ?? (await authorities.fetch(runId));
    if (held === undefined) throw new Error('there is no such run');
    const caller = { agentId: AGENT, sessionId: operation.sessionId, fingerprint: operation.fingerprint, tokenHash: TOKEN };
    const runner = app.get(CallRunner);
    const end = await runner.run({ caller, operation }, { held, snapshot: SNAPSHOT });
    return end.kind === 'refused' ? runner.refusedOrClaimed(operation, end) : end;
  }

  #run(index: number): Authority {
    const run = this.#runs[index];
    if (run === undefined) throw new Error(`there is no run ${index}`);
    return run;
  }

  #start(): Gateway {
    const id = randomUUID();
    const living: Living = { isAlive: true };
    const outside = <T>(happens: () => T): Promise<T> => this.machine.outside(gateway, happens, noAnswer);
    const standing: Lease = { isHeldUp: false, endsAt: undefined };
    this.#leases.set(id, standing);
    const lease = {
      id,
      get isHeld() {
        return !standing.isHeldUp;
      },
      hold: () =>
        outside(() => (standing.isHeldUp = false)).then(
          () => true,
          () => !standing.isHeldUp,
        ),
      isAlive: (other: string) => (other === id ? Promise.resolve(true) : outside(() => this.#vouches(other))),
    };
    const bus = {
      request: (to: string, body: string, { headers }: { readonly headers?: MsgHdrs | undefined }) =>
        outside(() => this.journal.answer(to, { body, headers, isBusy: !this.machine.isCalm && this.machine.draw(10) === 0 })),
      call: (_contract: unknown, { runId }: { readonly runId: string }) => outside(() => this.#authority(runId)),
    };
    const dispatcher = { dispatch: (dispatch: Dispatch) => this.#dispatch(gateway, dispatch) };
    const app = new Injector(
      new Map<unknown, unknown>([
        [Bus, bus],
        [LOG, silentLog],
        [CONFIG, CONFIGURATION],
        [SchemaValidators, VALIDATORS],
        [GatewayLease, lease],
        [ArtifactStore, { put: (_session: string, bytes: Buffer) => outside(() => artifactOf(bytes)) }],
        [SnapshotCache, { held: () => SNAPSHOT, get: () => Promise.resolve(SNAPSHOT) }],
        [TargetFactsSource, { of: () => FACTS }],
        [CallRepository, { unended: () => outside(() => this.#unended()) }],
        [Reconciliation, {}],
        [Metrics, { gauge: () => undefined }],
        [Previews, { keep: () => undefined }],
        [CallHooks, { started: () => undefined }],
        ...[BuiltinDispatcher, McpDispatcher, WorkerDispatcher].map((owner): [unknown, unknown] => [owner, dispatcher]),
      ]),
    );
    const gateway: Gateway = Object.assign(living, { id, app });
    return gateway;
  }

  /** A lease is renewed while its process runs, and lapses some time after it ended. */
  #vouches(id: string): boolean {
    const { isHeldUp = true, endsAt = Number.POSITIVE_INFINITY } = this.#leases.get(id) ?? {};
    return !isHeldUp && this.machine.now < endsAt;
  }

  #authority(runId: string): Authority {
    const run = this.#runs.find((one) => one.runId === runId);
    if (run === undefined) throw new Error('there is no such run');
    return { ...run, stateSequence: this.journal.stateOf(runId) };
  }

  /** The tool is reached, and then says so: between the two its gateway may end, or lose the answer. */
  async #dispatch(of: Living, { operation, signal }: Dispatch): Promise<DispatchEnd> {
    const doing = this.doing[operation.callsInRun % this.doing.length] ?? 'small';
    if (signal.aborted) return stopped('cancelled', 'CANCELLED');
    if (doing === 'not there') return stopped('failed', 'TOOL_GONE');
    const { operationId } = operation;
    try {
      await this.machine.outside(of, () => this.effects.set(operationId, (this.effects.get(operationId) ?? 0) + 1), noAnswer);
    } catch {
      return stopped('indeterminate', 'INDETERMINATE');
    }
    if (doing === 'unsure') return stopped('indeterminate', 'INDETERMINATE');
    const text = doing === 'large' ? 'x'.repeat(9_000) : `said ${operationId}`;
    return { kind: 'answered', result: { content: [{ type: 'text', text }], isError: doing === 'fails' } };
  }
}

/** Compiled schemas know nothing of a process. */
const VALIDATORS = new Injector(new Map([[LOG, silentLog]])).get(SchemaValidators);
const CONFIGURATION = ToolGatewayConfig.parse({});
const FACTS = {
  target: TOOL.target,
  effect: TOOL.effect,
  access: TOOL.access,
  requiresConfirmation: false,
  pluginVerdict: null,
  server: null,
  ownerFence: 0,
  readAtFence: 0,
  ownerLeaseUntil: null,
};

const artifactOf = (bytes: Buffer) => ({ digest: sha256Hex(bytes.toString()), bytes: bytes.length });

function authorityOf(ids: Pick<Authority, 'runId' | 'originRunId' | 'sessionId'>): Authority {
  return {
    ...ids,
    agentId: AGENT,
    projectId: 'default',
    kind: 'worker',
    status: 'running',
    stateSequence: 1,
    stateVersion: 1,
    fingerprint: 'f'.repeat(64),
    tokens: [{ attempt: 1, hash: TOKEN }],
    workerId: null,
    pool: 'shared',
    principal: { id: 'user:alice', kind: 'person', issuer: 'local', display: 'Alice' },
    mode: 'full_access',
    enabled: true,
    policy: POLICY,
    policyVersion: 1,
    ancestors: [],
    revokedOwners: [],
    knownAgents: [],
    skills: [],
    openedSkills: [],
    step: null,
    remainingMs: 1_800_000,
  };
}
