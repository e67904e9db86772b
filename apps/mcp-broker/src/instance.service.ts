// Long because one map of instances is filled and emptied here: every way into it and out of it stands beside the others.
import { Bus, Responder } from '@ambit/bus';
import {
  Fault,
  fault,
  mcpBroker,
  mcpRunner,
  Uuid,
  type Input,
  type Output,
  type Parsed,
  type Payload,
  type Returns,
} from '@ambit/contracts';
import { Egress } from '@ambit/egress';
import {
  egressFetch,
  HeldInstance,
  InstanceLeases,
  isUnauthorized,
  isUnchangedBy,
  LISTED,
  sentenceOf,
  SHUTTING_DOWN,
  StartQueue,
  wantsSignIn,
} from '@ambit/mcp';
import { CONFIG, LOG, type Logger } from '@ambit/service';
import type { FetchLike } from '@modelcontextprotocol/client';
import { Inject, Injectable, type BeforeApplicationShutdown } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { fetchFor } from './authorization/authorized-fetch.js';
import { Challenges } from './authorization/challenges.service.js';
import { Tokens } from './authorization/tokens.service.js';
import type { BrokerConfig } from './config.js';
import { authorizationOf, subjectFor } from './domain/authorization.js';
import { instanceIdOf, reasonOf, signInOf, signInWanted, unavailable, type Start, type Wanted } from './instance.facts.js';
import { KnownServers } from './known-servers.service.js';
import { SecretResolver } from './secret.resolver.js';
import { ServerRepository } from './server.repository.js';
import { comparesDefinitions, isFromPackage, offersOf, specOf, statusOf, type ServerRow } from './server.view.js';
import { SkillDiscovery } from './skill-discovery.service.js';
import { targetOf } from './transport-target.js';

type Ensure = typeof mcpBroker.ensureInstance;
const WAITING_STARTS = 512;
const LEASE_POLL_MS = 100;
/** All runners may be away for a moment, as when the only one died. */
const RUNNER_BACK_WITHIN_MS = 10_000;
/** A runner that dies while it starts a server says nothing; whoever is asked again joins the start, or begins it. */
const ASKED_AGAIN_MS = 5_000;
/** How much longer than a runner a start's answer may take. */
const RUNNER_ANSWERS_WITHIN_MS = 10_000;
/**
 * What a start may take beyond `startMs`: until a runner is back, until its answer is given up, and until a lease of five seconds is gone
 * with its holder. What was started before that and has no lease has ended.
 */
const LAPSED_MS = RUNNER_BACK_WITHIN_MS + RUNNER_ANSWERS_WITHIN_MS + 10_000;
/** A lease lapses 5 s after its silent holder's last word. */
const CLOSED_WITHIN_MS = 10_000;

/** Instances of every server: started where nobody holds them, ended where they may not be any more. */
@Injectable()
export class InstanceService implements BeforeApplicationShutdown {
  private readonly brokerId = randomUUID();
  private readonly held = new Map<string, { readonly instance: HeldInstance; readonly row: ServerRow; readonly subject: string }>();
  private readonly startingHere = new Map<string, { readonly row: ServerRow; readonly subject: string; readonly abort: AbortController }>();
  private readonly serving = new Map<string, Promise<number>>();
  private readonly connecting = new Map<string, number>();
  private readonly queue: StartQueue;
  private readonly leases: InstanceLeases;
  private readonly fetch: FetchLike;
  readonly egress: Egress;

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(Responder) private readonly responder: Responder,
    @Inject(ServerRepository) private readonly servers: ServerRepository,
    @Inject(SecretResolver) private readonly secrets: SecretResolver,
    @Inject(KnownServers) private readonly known: KnownServers,
    @Inject(Tokens) readonly tokens: Tokens,
    @Inject(Challenges) readonly challenges: Challenges,
    @Inject(SkillDiscovery) private readonly skills: SkillDiscovery,
    @Inject(CONFIG) config: BrokerConfig,
    @Inject(LOG) private readonly log: Logger,
  ) {
    this.queue = new StartQueue(config.AMBIT_BROKER_STARTS, WAITING_STARTS);
    this.leases = new InstanceLeases(bus.connection);
    this.egress = new Egress(config.AMBIT_EGRESS_ALLOW);
    this.fetch = egressFetch({ allows: (address) => this.egress.allows(address) });
  }

  /** True while a start of this server is under way here. */
  isConnecting(serverId: string): boolean {
    return this.connecting.has(serverId);
  }

  /** Makes sure that somebody serves the instance a caller needs, and says under which lease. */
  async ensure(serverId: string, input: Parsed<Ensure>): Promise<Returns<Ensure>> {
    const row = Uuid.safeParse(serverId).success ? await this.servers.find({ id: serverId }) : null;
    if (row === null || !row.enabled) throw fault(mcpBroker.ensureInstance, 'TOOL_GONE');
    if (row.configGeneration !== input.configGeneration || row.bindingHash !== input.bindingHash)
      throw fault(mcpBroker.ensureInstance, 'TARGET_CHANGED');
    const spec = specOf(row);
    const scopes = { shared: 'shared', 'per-agent': `agent:${input.agentId}`, 'per-session': `session:${input.sessionId}` };
    const subject = subjectFor(authorizationOf(spec.transport), { agentId: input.agentId, principalId: input.principalId });
    if (subject === undefined) throw signInWanted(row, 'The call is for nobody who could sign in');
    const instanceId = instanceIdOf(row, scopes[spec.instances.scope], subject);
    const leaseRevision = await this.serve(row, { instanceId, subject });
    return {
      instanceId,
      leaseRevision,
      callTimeoutMs: spec.timeouts.callMs,
      onProgress: spec.timeouts.onProgress,
      ...(comparesDefinitions(row) ? { compares: true } : {}),
    };
  }

  /** Starts the server once to read its tools. An instance that nobody could call by its scope is ended again. */
  async list(row: ServerRow, subject = 'shared'): Promise<void> {
    const isShared = specOf(row).instances.scope === 'shared';
    const instanceId = instanceIdOf(row, isShared ? 'shared' : 'discovery', subject);
    await this.serve(row, { instanceId, subject });
    if (isShared) return;
    const serverId = row.id;
    // Those that sessions have go on.
    this.bus.signal(mcpBroker.closeInstance, { serverId, keepGeneration: null, instanceId, reason: LISTED }, { keys: { serverId } });
    await this.ended([instanceId], CLOSED_WITHIN_MS);
  }

  /** Ends what runs of a server: the next call starts it anew. */
  restart(serverId: string, reason: string): void {
    this.bus.signal(mcpBroker.closeInstance, { serverId, keepGeneration: null, reason }, { keys: { serverId } });
  }

  /** Has these servers' instances ended wherever they run, and waits until none of them is held: its holder's word, or its lapse. */
  async close(serverIds: readonly string[], instanceIds: readonly string[], reason: string): Promise<void> {
    for (const serverId of serverIds) this.restart(serverId, reason);
    await this.ended(instanceIds, CLOSED_WITHIN_MS);
  }

  /** Has a server's instances with one subject's credentials ended, and waits until none of them is held. */
  async endOf(row: Pick<ServerRow, 'id'>, subject: string, reason: string): Promise<void> {
    const instanceIds = await this.servers.instancesWith(row.id, subject);
    this.bus.signal(mcpBroker.closeInstance, { serverId: row.id, keepGeneration: null, subject, reason }, { keys: { serverId: row.id } });
    await this.ended(instanceIds, CLOSED_WITHIN_MS);
  }

  /** Has a server's instances of other generations ended, or all, and waits for a while until they are. */
  async closeOlder(
    row: ServerRow,
    how: { readonly keep: number | null; readonly instanceIds: readonly string[]; readonly withinMs: number },
  ): Promise<void> {
    const reason = how.keep === null ? 'The server was switched off' : 'The configuration of the server changed';
    this.bus.signal(mcpBroker.closeInstance, { serverId: row.id, keepGeneration: how.keep, reason }, { keys: { serverId: row.id } });
    await this.ended(how.instanceIds, how.withinMs);
  }

  /** Some replica or the service itself says that instances have to end; ours do. */
  async closeHere({ serverId, keepGeneration, subject, instanceId, reason }: Payload<typeof mcpBroker.closeInstance>): Promise<void> {
    const isMeant = ([id, one]: readonly [string, { readonly row: ServerRow; readonly subject: string }]): boolean =>
      one.row.id === serverId &&
      one.row.configGeneration !== keepGeneration &&
      (subject === undefined || subject === one.subject) &&
      (instanceId === undefined || instanceId === id);
    for (const [, start] of [...this.startingHere].filter(isMeant)) start.abort.abort(new Error(reason));
    const ending = [...this.held].filter(isMeant);
    await Promise.all(ending.map(([, { instance }]) => instance.stop(reason)));
  }

  cancel(instanceId: string, operationId: string): void {
    this.held.get(instanceId)?.instance.cancel(operationId);
  }

  /** A runner's hint. What it says of the tools is read, not believed. */
  async changed(serverId: string, change: Payload<typeof mcpRunner.instanceChanged>): Promise<void> {
    const row = await this.servers.find({ id: serverId });
    if (row === null || row.configGeneration !== change.configGeneration) return;
    if (change.kind === 'disconnected') return this.skills.closed(serverId);
    if (change.kind === 'ended') {
      if (!isUnchangedBy(change.reason)) await this.skills.closed(serverId);
      await this.servers.forgetInstances([change.instanceId]);
      if (row.state === 'connected' || row.state === 'degraded')
        await this.known.tell(row, { ...statusOf(row), state: 'idle', reason: null });
      return;
    }
    if (change.kind === 'prompts' || change.kind === 'resources') {
      if (change.catalogHash !== offersOf(row)[change.kind]) await this.known.readOffers(row, change.instanceId, change.kind);
      if (change.kind === 'resources') await this.skills.resourcesRead(row, change.instanceId, change.catalogHash);
      return;
    }
    if (change.reason !== null) return this.known.tell(row, { ...statusOf(row), state: 'degraded', reason: change.reason });
    if (change.catalogHash !== row.catalogHash) await this.known.readTools(row, change.instanceId);
    await this.known.tell(row, { ...statusOf(row), state: 'connected', reason: null });
  }

  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all([...this.held.values()].map(({ instance }) => instance.stop(SHUTTING_DOWN)));
    await this.known.settled();
  }

  /** The revision of the lease under which the instance is served; starts it where it is not, once for all who ask. */
  private serve(row: ServerRow, wanted: Wanted): Promise<number> {
    const { instanceId } = wanted;
    const known = this.serving.get(instanceId);
    if (known !== undefined) return known;
    const served = this.findOrStart(row, wanted).finally(() => this.serving.delete(instanceId));
    this.serving.set(instanceId, served);
    return served;
  }

  /** Waits until nobody holds these instances, and forgets those. */
  private async ended(instanceIds: readonly string[], withinMs: number): Promise<void> {
    const until = performance.now() + withinMs;
    const isEnded = await Promise.all(
      instanceIds.map(async (instanceId) => {
        while ((await this.leases.read(instanceId)) !== undefined) {
          if (performance.now() > until) return false;
          await wait(LEASE_POLL_MS);
        }
        return true;
      }),
    );
    await this.servers.forgetInstances(instanceIds.filter((_, index) => isEnded[index]));
  }

  private async findOrStart(row: ServerRow, wanted: Wanted): Promise<number> {
    const { instanceId } = wanted;
    const until = performance.now() + specOf(row).timeouts.startMs;
    for (let lease = await this.leases.read(instanceId); lease !== undefined; lease = await this.leases.read(instanceId)) {
      if (lease.isReady) return lease.revision;
      if (performance.now() > until) throw unavailable('Another process has not started this server in time');
      await wait(LEASE_POLL_MS);
    }
    return this.queue.run(
      () => this.start(row, wanted),
      () => unavailable('Too many servers wait for their start; try again later'),
    );
  }

  private async start(row: ServerRow, wanted: Wanted): Promise<number> {
    const { instanceId, subject } = wanted;
    await this.remember(row, wanted);
    this.connecting.set(row.id, (this.connecting.get(row.id) ?? 0) + 1);
    try {
      const spec = specOf(row);
      const values = await this.secrets.resolve(row.projectId, spec.transport);
      const revision =
        spec.transport.type === 'stdio'
          ? await this.startChild(row, { spec, instanceId, subject, values })
          : await this.startHere(row, { spec, instanceId, subject, values });
      await this.mayLive(row);
      return revision;
    } catch (error) {
      // Whoever did not answer in time may still start it.
      if (!(error instanceof Fault) || error.code !== 'TIMEOUT') await this.servers.forgetInstances([instanceId]);
      throw await this.failed(row, subject, error);
    } finally {
      const left = (this.connecting.get(row.id) ?? 1) - 1;
      if (left === 0) this.connecting.delete(row.id);
      else this.connecting.set(row.id, left);
    }
  }

  /** Remembers an instance before it runs: a revocation that comes in between must find it, and so must whoever counts. */
  private async remember(row: ServerRow, { instanceId, subject }: Wanted): Promise<void> {
    const start = { instanceId, subject, serverId: row.id, generation: row.configGeneration, startedAt: new Date() };
    const isNew = await this.servers.rememberStart(start);
    try {
      await this.mayBeOneMore(row, instanceId);
    } catch (error) {
      // What was remembered before is another replica's start of the same instance, or what one left behind.
      if (isNew) await this.servers.forgetStart(start);
      throw error;
    }
    if (!isNew) await this.servers.rememberRestart(start);
  }

  /** Throws where as many others of this server live as it may have. Those that begin at once count each other: they may all be refused, and none is too many. */
  private async mayBeOneMore(row: ServerRow, instanceId: string): Promise<void> {
    const { instances, timeouts } = specOf(row);
    // The one that only reads the tools is nobody's.
    const reading = instanceIdOf(row, 'discovery', 'shared');
    if (instanceId === reading) return;
    const others = (await this.servers.othersOf(row.id, instanceId)).filter((other) => other.instanceId !== reading);
    if (others.length < instances.max) return;
    // What has no lease and cannot be starting any more has ended without a word.
    const startedBefore = Date.now() - timeouts.startMs - LAPSED_MS;
    const leases = await Promise.all(others.map((other) => this.leases.read(other.instanceId)));
    const ended = others.filter(({ startedAt }, index) => leases[index] === undefined && startedAt.getTime() < startedBefore);
    if (others.length - ended.length < instances.max) return this.servers.forgetInstances(ended.map((other) => other.instanceId));
    await this.servers.forgetInstances(ended.map((other) => other.instanceId));
    throw unavailable(
      `${instances.max} instances of this server run already, as many as it may have; try again later, or raise instances.max`,
    );
  }

  private async startChild(row: ServerRow, start: Start): Promise<number> {
    const { spec, instanceId, values } = start;
    const { transport, timeouts, instances } = spec;
    if (transport.type !== 'stdio') throw new TypeError('only stdio servers run as children');
    const server = {
      serverId: row.id,
      slug: row.slug,
      configGeneration: row.configGeneration,
      bindingHash: row.bindingHash,
      command: transport.command,
      args: transport.args,
      env: values,
      package: transport.package ?? null,
      startTimeoutMs: timeouts.startMs,
      idleStopMs: instances.idleStopMs,
      sampling: spec.sampling,
      memoryBytes: instances.memoryBytes ?? null,
      era: mcpRunner.startInstance.input.shape.server.shape.era.catch(null).parse(row.era),
    };
    const answer = await this.askRunner({ instanceId, server });
    if (answer.catalogHash !== row.catalogHash || row.catalogOf !== row.configGeneration || isFromPackage(row))
      await this.known.readTools(row, instanceId);
    for (const kind of ['prompts', 'resources'] as const) {
      const hash = answer.offers?.[kind] ?? null;
      // What is not read yet is told of when it is.
      if (hash !== null && hash !== offersOf(row)[kind]) void this.known.background(this.known.readOffers(row, instanceId, kind));
      if (hash !== null && kind === 'resources') void this.known.background(this.skills.resourcesRead(row, instanceId, hash));
    }
    for (const { name, reason } of answer.dropped) this.log.warn({ slug: row.slug, tool: name, reason }, 'a tool is left out');
    await this.known.tell(
      row,
      { state: 'connected', reason: null, runsAs: answer.runsAs, protocol: answer.protocol },
      answer.era ?? undefined,
    );
    return answer.leaseRevision;
  }

  /** Where no runner is there nothing was done: it is asked again until one is back. */
  private async askRunner(start: Input<typeof mcpRunner.startInstance>): Promise<Output<typeof mcpRunner.startInstance>> {
    const { startTimeoutMs } = start.server;
    for (const until = performance.now() + Math.min(startTimeoutMs, RUNNER_BACK_WITHIN_MS); ; await wait(LEASE_POLL_MS)) {
      try {
        return await this.bus.call(mcpRunner.startInstance, start, {
          timeoutMs: startTimeoutMs + RUNNER_ANSWERS_WITHIN_MS,
          eachMs: ASKED_AGAIN_MS,
        });
      } catch (error) {
        if (!(error instanceof Fault) || error.code !== 'UNAVAILABLE' || performance.now() > until) throw error;
      }
    }
  }

  private async startHere(row: ServerRow, start: Start): Promise<number> {
    const { spec, instanceId, subject, values } = start;
    if (spec.transport.type === 'stdio') throw new TypeError('stdio servers run under the runner');
    const fetch = await fetchFor({ server: row, subject }, this.fetch, this);
    const runsAs = spec.transport.type === 'inmemory' ? 'this process' : 'a remote server';
    const saving: Promise<void>[] = [];
    const abort = new AbortController();
    this.startingHere.set(instanceId, { row, subject, abort });
    const instance = await HeldInstance.start({
      instanceId,
      pin: { serverId: row.id, configGeneration: row.configGeneration, bindingHash: row.bindingHash },
      holder: this.brokerId,
      target: targetOf(spec.transport, values, fetch),
      runsAs,
      sampling: spec.sampling,
      credentials: signInOf(row),
      startTimeoutMs: spec.timeouts.startMs,
      idleStopMs: spec.instances.idleStopMs,
      bus: this.bus,
      responder: this.responder,
      leases: this.leases,
      signal: abort.signal,
      onCatalogue: (catalogue) => saving.push(this.known.background(this.known.keep(row, subject, catalogue))),
      // What one subject is offered is not everybody's.
      onOffers: (kind, offers) => {
        if (subject !== 'shared') return;
        void this.known.background(this.known.keepOffers(row, kind, offers));
        if (kind === 'resources') void this.known.background(this.skills.resourcesRead(row, instanceId, offers.hash));
      },
      onDisconnected: () => {
        if (subject === 'shared') void this.known.background(this.skills.closed(row.id));
      },
      onStale: (reason) => void this.known.background(this.known.stale(row, reason)),
      onEnded: (reason) => void this.known.background(this.endedHere(row, instanceId, reason)),
      onError: (error) => this.log.debug({ slug: row.slug, reason: sentenceOf(error) }, 'an MCP server misbehaved'),
    }).finally(() => this.startingHere.delete(instanceId));
    if (!(instance instanceof HeldInstance)) return this.findOrStart(row, start);
    this.held.set(instanceId, { instance, row, subject });
    await Promise.all(saving);
    const current = instance.instance.catalogue.current;
    for (const { tool, message } of current?.diagnostics ?? [])
      this.log.warn({ slug: row.slug, tool, reason: message }, 'a tool is left out');
    await this.known.tell(row, {
      state: 'connected',
      reason: null,
      runsAs,
      protocol: (instance.facts?.protocolVersion ?? '').slice(0, 20),
    });
    return instance.lease.revision;
  }

  /** Whoever switched the server off while it started has the last word. */
  private async mayLive(row: ServerRow): Promise<void> {
    const now = await this.servers.find({ id: row.id });
    if (now?.enabled === true && now.configGeneration === row.configGeneration) return;
    this.bus.signal(
      mcpBroker.closeInstance,
      {
        serverId: row.id,
        keepGeneration: now?.enabled === true ? now.configGeneration : null,
        reason: 'It was switched off or changed while it started',
      },
      { keys: { serverId: row.id } },
    );
    throw fault(mcpBroker.ensureInstance, now?.enabled === true ? 'TARGET_CHANGED' : 'TOOL_GONE');
  }

  private async endedHere(row: ServerRow, instanceId: string, reason: string): Promise<void> {
    const isShared = this.held.get(instanceId)?.subject === 'shared';
    this.held.delete(instanceId);
    // Idle, it would serve again as it was; otherwise what it offered is gone with it.
    if (isShared && !isUnchangedBy(reason)) await this.skills.closed(row.id);
    await this.servers.forgetInstances([instanceId]);
    const now = await this.servers.find({ id: row.id });
    if (now?.state === 'connected' || now?.state === 'degraded')
      await this.known.tell(row, { ...statusOf(now), state: 'idle', reason: null });
  }

  /** Writes down why a start failed, and makes the fault of it. */
  private async failed(row: ServerRow, subject: string, error: unknown): Promise<Fault> {
    if (error instanceof Fault && (error.code === 'TOOL_GONE' || error.code === 'TARGET_CHANGED')) return error;
    const isSignIn = signInOf(row) !== undefined && wantsSignIn(error);
    const reason = isSignIn ? `The server asks for a sign-in (ambit server auth ${row.slug})` : reasonOf(error);
    // That one subject has no credentials says nothing about the server.
    if (subject === 'shared' || !isSignIn)
      await this.known.background(
        this.known.tell(row, { ...statusOf(row), state: isUnauthorized(error) ? 'needs-auth' : 'failed', reason }),
      );
    return isSignIn ? signInWanted(row, reason) : unavailable(reason);
  }
}
