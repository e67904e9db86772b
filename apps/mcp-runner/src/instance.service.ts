import { Bus, Responder, type Listening } from '@ambit/bus';
import { fault, mcpBroker, mcpRunner, type Parsed, type Payload, type ResolvedServer, type Returns } from '@ambit/contracts';
import {
  HeldInstance,
  InstanceLeases,
  pageOfTools,
  sentenceOf,
  SHUTTING_DOWN,
  StartFailed,
  StartQueue,
  type Catalogue,
  type LeaseView,
  type OfferedKind,
} from '@ambit/mcp';
import { CONFIG, LOG, Metrics, type Logger } from '@ambit/service';
import { Inject, Injectable, type BeforeApplicationShutdown } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { childSpecOf } from './child-spec.js';
import type { RunnerConfig } from './config.js';
import { GuardedChild } from './guarded-child.js';
import { PackageCache } from './package-cache.js';
import { withoutValues } from './redact-values.js';

type Start = typeof mcpRunner.startInstance;
type StartInput = Parsed<Start>;
type StartAnswer = Returns<Start>;

interface Running {
  readonly held: HeldInstance;
  readonly server: ResolvedServer;
  readonly answer: () => StartAnswer;
}

/** A start under way, and what ends it. */
interface Starting {
  readonly done: Promise<StartAnswer>;
  readonly server: ResolvedServer;
  readonly abort: AbortController;
}

const PAGE_BYTES = 256 * 1024;
const WAITING_STARTS = 256;
const OTHER_POLL_MS = 100;

/** The stdio servers of this process: each under a lease, a guard and a bounded start. */
@Injectable()
export class InstanceService implements BeforeApplicationShutdown {
  private readonly runnerId = randomUUID();
  private readonly running = new Map<string, Running>();
  private readonly starting = new Map<string, Starting>();
  private readonly queue: StartQueue;
  private readonly leases: InstanceLeases;

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(Responder) private readonly responder: Responder,
    @Inject(CONFIG) private readonly config: RunnerConfig,
    @Inject(LOG) private readonly log: Logger,
    @Inject(PackageCache) private readonly packages: PackageCache,
    @Inject(Metrics) metrics: Metrics,
  ) {
    this.queue = new StartQueue(config.AMBIT_RUNNER_STARTS, WAITING_STARTS);
    this.leases = new InstanceLeases(bus.connection);
    metrics.gauge({ name: 'ambit_runner_instances', help: 'Stdio servers that this process holds', read: () => this.running.size });
  }

  /** Starts an instance, or tells of the one that runs: here at once, elsewhere as its lease tells. */
  start(input: StartInput): Promise<StartAnswer> {
    const { instanceId } = input;
    const running = this.running.get(instanceId);
    if (running?.held.lease.isHeld === true) return Promise.resolve(running.answer());
    const known = this.starting.get(instanceId);
    if (known !== undefined) return known.done;
    const abort = new AbortController();
    const done = this.queue
      .run(
        () => this.startNow(input, abort.signal),
        () => unavailable('Too many servers wait for their start; try again later'),
      )
      .finally(() => this.starting.delete(instanceId));
    this.starting.set(instanceId, { done, server: input.server, abort });
    return done;
  }

  cancel(instanceId: string, operationId: string): void {
    this.running.get(instanceId)?.held.cancel(operationId);
  }

  /** Ends the instances of a server, but for those of the generation that is to stay. */
  async closeServer({ serverId, keepGeneration, subject, instanceId, reason }: Payload<typeof mcpBroker.closeInstance>): Promise<void> {
    // Nobody signs in to a child: what it needs stands in its environment.
    if (subject !== undefined) return;
    const isMeant = ([id, { server }]: readonly [string, { readonly server: ResolvedServer }]): boolean =>
      server.serverId === serverId && server.configGeneration !== keepGeneration && (instanceId === undefined || instanceId === id);
    for (const [, start] of [...this.starting].filter(isMeant)) start.abort.abort(new Error(reason));
    const ending = [...this.running].filter(isMeant);
    await Promise.all(ending.map(([, { held }]) => held.stop(reason)));
  }

  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all([...this.running.values()].map(({ held }) => held.stop(SHUTTING_DOWN)));
  }

  private async startNow({ instanceId, server }: StartInput, signal: AbortSignal): Promise<StartAnswer> {
    try {
      signal.throwIfAborted();
      const folder = server.package === null ? undefined : await this.packages.folderOf(server.package.pluginId, server.package.digest);
      const { spec, user } = await childSpecOf(server, this.config, folder);
      let child: GuardedChild | undefined;
      const open = (): GuardedChild => (child = new GuardedChild(spec));
      const secrets = Object.values(server.env);
      const held = await HeldInstance.start({
        instanceId,
        pin: server,
        holder: this.runnerId,
        target: { kind: 'stdio', transports: [open] },
        runsAs: user.says,
        sampling: server.sampling,
        startTimeoutMs: server.startTimeoutMs,
        idleStopMs: server.idleStopMs,
        bus: this.bus,
        responder: this.responder,
        leases: this.leases,
        signal,
        alsoAnswer: (instance) => this.answersOf(instanceId, instance),
        onRenewed: () => child?.beat(),
        ...legacyVerdict(server.era),
        explain: () => withoutValues(child?.reason, secrets),
        onCatalogue: (catalogue) => {
          // The first list is in the answer to the start.
          if (this.running.has(instanceId)) this.tell(server, { instanceId, kind: 'tools', catalogHash: catalogue.hash, reason: null });
        },
        onDisconnected: () => this.tell(server, { instanceId, kind: 'disconnected', catalogHash: null, reason: null }),
        onOffers: (kind, offers) => this.tell(server, { instanceId, kind, catalogHash: offers.hash, reason: null }),
        onStale: (reason) =>
          this.tell(server, {
            instanceId,
            kind: 'tools',
            catalogHash: this.running.get(instanceId)?.held.instance.catalogue.current?.hash ?? null,
            reason: withoutValues(reason, secrets) ?? null,
          }),
        onEnded: (reason) => this.ended(server, instanceId, reason),
        onError: (error) =>
          this.log.debug({ slug: server.slug, reason: withoutValues(sentenceOf(error), secrets) }, 'an MCP server misbehaved'),
      });
      if (!(held instanceof HeldInstance)) return await this.other(instanceId, server.startTimeoutMs);
      const answer = (): StartAnswer => answerOf(this.runnerId, held);
      this.running.set(instanceId, { held, server, answer });
      this.log.info({ slug: server.slug, serverId: server.serverId, pid: child?.pid }, 'an MCP server started');
      return answer();
    } catch (error) {
      if (error instanceof StartFailed) throw unavailable(error.message);
      throw error instanceof Error && !('status' in error)
        ? unavailable(withoutValues(sentenceOf(error), Object.values(server.env)) ?? '')
        : error;
    }
  }

  private answersOf(instanceId: string, held: HeldInstance): readonly Listening[] {
    const keys = { instanceId };
    return [
      this.responder.answer(
        mcpRunner.instanceTools,
        ({ offset }) => {
          const catalogue = held.instance.catalogue.current;
          if (catalogue === undefined)
            throw fault(mcpRunner.instanceTools, 'SERVER_UNAVAILABLE', { reason: 'The server has not been listed yet' });
          return { catalogHash: catalogue.hash, ...pageOfTools(catalogue.tools, offset, PAGE_BYTES) };
        },
        { keys },
      ),
      this.responder.answer(
        mcpRunner.stopInstance,
        async ({ reason }) => {
          await held.stop(reason);
          return { stopped: true };
        },
        { keys },
      ),
    ];
  }

  /** Another runner holds the instance: waits until it serves. */
  private async other(instanceId: string, limitMs: number): Promise<StartAnswer> {
    const until = performance.now() + limitMs;
    while (performance.now() < until) {
      const lease = await this.leases.read(instanceId);
      if (lease === undefined) throw unavailable('The runner that was starting this server gave up; try again');
      if (lease.isReady) return answerOfLease(lease);
      await wait(OTHER_POLL_MS);
    }
    throw unavailable(`Another runner has not started this server within ${limitMs} ms`);
  }

  private tell(
    server: ResolvedServer,
    change: {
      readonly instanceId: string;
      readonly kind: 'tools' | OfferedKind | 'disconnected' | 'ended';
      readonly catalogHash: string | null;
      readonly reason: string | null;
    },
  ): void {
    this.bus.signal(
      mcpRunner.instanceChanged,
      { ...change, configGeneration: server.configGeneration },
      { keys: { serverId: server.serverId } },
    );
  }

  private ended(server: ResolvedServer, instanceId: string, reason: string): void {
    this.running.delete(instanceId);
    this.log.info(
      { slug: server.slug, serverId: server.serverId, reason: withoutValues(reason, Object.values(server.env)) },
      'an MCP server ended',
    );
    this.tell(server, {
      instanceId,
      kind: 'ended',
      catalogHash: null,
      reason: withoutValues(reason, Object.values(server.env))?.slice(0, 1_000) ?? null,
    });
  }
}

const VERDICT_MS = 86_400_000;

/** A server known to be of the older era is not asked again for a day; one of the newer era answers the probe in one round trip. */
function legacyVerdict(era: ResolvedServer['era']): { readonly verdict?: { readonly kind: 'legacy' } } {
  return era?.kind === 'legacy' && Date.now() - Date.parse(era.at) < VERDICT_MS ? { verdict: { kind: 'legacy' } } : {};
}

function unavailable(reason: string): Error {
  return fault(mcpRunner.startInstance, 'SERVER_UNAVAILABLE', { reason });
}

function answerOf(runnerId: string, held: HeldInstance): StartAnswer {
  const { facts } = held;
  const catalogue: Catalogue | undefined = held.instance.catalogue.current;
  return {
    runnerId,
    leaseRevision: held.lease.revision,
    runsAs: held.options.runsAs,
    protocol: facts?.protocolVersion ?? '',
    era: facts === undefined ? null : { kind: facts.era, at: new Date().toISOString() },
    serverInfo: { name: facts?.name ?? '', version: facts?.version ?? '' },
    capabilities: {},
    catalogHash: catalogue?.hash ?? '',
    tools: catalogue?.tools.length ?? 0,
    offers: { prompts: hashOf(held, 'prompts'), resources: hashOf(held, 'resources'), skills: null },
    dropped: (catalogue?.diagnostics ?? []).slice(0, 200).map(({ tool, message }) => ({ name: tool, reason: message })),
  };
}

const hashOf = (held: HeldInstance, kind: OfferedKind): string | null => held.instance.offers[kind].current?.hash ?? null;

function answerOfLease(lease: LeaseView): StartAnswer {
  return {
    runnerId: lease.holder,
    leaseRevision: lease.revision,
    runsAs: lease.runsAs,
    protocol: lease.protocol,
    era: null,
    serverInfo: {},
    capabilities: {},
    catalogHash: lease.catalogHash,
    tools: lease.tools,
    dropped: [],
  };
}
