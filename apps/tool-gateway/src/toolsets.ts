import { BoundedMap, digestOf } from '@ambit/capability';
import { Bus } from '@ambit/bus';
import {
  buckets,
  epochKey,
  leaseKey,
  platformFault,
  toolGateway,
  fromToken,
  type Parsed,
  type Returns,
  type Target,
  type ToolRegistration,
  type Toolset,
} from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Kvm, type KV, type KvEntry } from '@nats-io/kv';
import type { QueuedIterator } from '@nats-io/nats-core';
import { z } from 'zod';
import { checkToolset } from './domain/check-toolset.js';
import { ToolsetRepository, type StoredToolset } from './toolset.repository.js';

type Registering = Parsed<typeof toolGateway.registerWorker>;
type WorkerTarget = Extract<Target, { kind: 'worker' }>;

const PREFIX = 'worker.';
const MAX_TOOLSETS = 2_000;
const Lease = z.object({ pool: z.string(), digest: z.string().nullable() });

interface LiveWorker {
  readonly agentId: string;
  readonly workerId: string;
  readonly pool: string;
  readonly digest: string | null;
}

/** Which workers live, and which tools they bring. Leases are shared by the bucket, so every replica sees every worker. */
@Injectable()
export class Toolsets implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #live = new Map<string, LiveWorker>();
  readonly #known = new BoundedMap<string, StoredToolset>(MAX_TOOLSETS);
  readonly #epochs = new Map<string, number>();
  readonly #waiting = new Set<() => void>();
  readonly #leaving = new Set<() => void>();
  #leases: KV | undefined;
  #epochsBucket: KV | undefined;
  #watch: QueuedIterator<KvEntry> | undefined;

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(ToolsetRepository) private readonly repository: ToolsetRepository,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const manager = new Kvm(this.bus.connection);
    this.#epochsBucket = await manager.open(buckets.epochs.name);
    this.#leases = await manager.open(buckets.leases15s.name);
    this.#watch = await this.#leases.watch({ key: `${PREFIX}>` });
    void this.#follow(this.#watch);
  }
  onApplicationShutdown(): void {
    this.#watch?.stop();
  }

  /** Keeps a worker's lease; asks for its tools where they are not known. The digest answered is the one to renew with. */
  async register(
    agentId: string,
    { workerId, pool, toolsetDigest, tools }: Registering,
  ): Promise<Returns<typeof toolGateway.registerWorker>> {
    const digest =
      tools === undefined ? toolsetDigest : tools.length === 0 ? null : await this.#store({ agentId, pool, tools }, toolsetDigest);
    if (digest !== null && tools === undefined && (await this.toolset(agentId, digest)) === undefined)
      return { toolsetDigest: digest, wantTools: true };
    await this.#leases?.put(leaseKey.worker(agentId, workerId), JSON.stringify({ pool, digest }));
    return { toolsetDigest: digest, wantTools: false };
  }

  async toolset(agentId: string, digest: string): Promise<StoredToolset | undefined> {
    const key = `${agentId} ${digest}`;
    const known = this.#known.get(key) ?? (await this.repository.find(agentId, digest));
    if (known !== undefined) this.#known.set(key, known);
    return known;
  }

  /** The agent's toolsets that live workers bring, and of the rest those asked for recently. */
  async list(agentId: string): Promise<{ epoch: number; toolsets: Toolset[] }> {
    const pairs = new Map(
      this.#workersOf(agentId).flatMap(({ digest, pool }): [string, { digest: string; pool: string }][] =>
        digest === null ? [] : [[`${digest} ${pool}`, { digest, pool }]],
      ),
    );
    const toolsets = await Promise.all(
      [...pairs.values()].map(async ({ digest, pool }): Promise<Toolset[]> => {
        const known = await this.toolset(agentId, digest);
        return known === undefined ? [] : [{ agentId, digest, pool, tools: [...known.tools], live: true }];
      }),
    );
    return { epoch: this.#epochs.get(agentId) ?? 1, toolsets: toolsets.flat() };
  }

  requiresConfirmation({ agentId, toolsetDigest, tool }: WorkerTarget): boolean {
    const known = this.#known.get(`${agentId} ${toolsetDigest}`);
    // What is not known is read beside; until then the call asks.
    if (known === undefined) void this.toolset(agentId, toolsetDigest).catch(() => undefined);
    return known === undefined || known.tools.some(({ name, requiresConfirmation }) => name === tool && requiresConfirmation);
  }

  /** Makes sure that a toolset's registrations are in memory before the gates ask about one of its tools. */
  async load({ agentId, toolsetDigest }: WorkerTarget): Promise<void> {
    await this.toolset(agentId, toolsetDigest);
  }

  /** A live worker of a pool that brings a toolset; waits for one, undefined when none came in time. */
  worker({ agentId, toolsetDigest }: WorkerTarget, pool: string, withinMs: number): Promise<string | undefined> {
    return this.#first({ agentId, pool }, withinMs, (digest) => Promise.resolve(digest === toolsetDigest));
  }

  /** The same of any toolset that has a tool of this name. */
  workerWith(name: string, place: { readonly agentId: string; readonly pool: string }, withinMs: number): Promise<string | undefined> {
    return this.#first(
      place,
      withinMs,
      async (digest) => (await this.toolset(place.agentId, digest))?.tools.some((tool) => tool.name === name) === true,
    );
  }

  /** The toolset that a live worker holds its lease with. */
  digestOf(agentId: string, workerId: string): string | undefined {
    return this.#live.get(leaseKey.worker(agentId, workerId))?.digest ?? undefined;
  }

  async #first(
    { agentId, pool }: { readonly agentId: string; readonly pool: string },
    withinMs: number,
    fits: (digest: string) => Promise<boolean>,
  ): Promise<string | undefined> {
    const until = performance.now() + withinMs;
    for (;;) {
      for (const worker of this.#workersOf(agentId))
        if (worker.pool === pool && worker.digest !== null && (await fits(worker.digest))) return worker.workerId;
      const left = until - performance.now();
      if (left <= 0) return undefined;
      await this.#change(left);
    }
  }

  /** The live workers of an agent, in every pool. */
  workersOf(agentId: string): string[] {
    return this.#workersOf(agentId).map(({ workerId }) => workerId);
  }

  /** Aborts when a worker that lives now has lost its lease. Call `end` when it is no longer needed. */
  whenGone({ agentId, workerId }: { readonly agentId: string; readonly workerId: string }): { readonly signal: AbortSignal; end(): void } {
    const key = leaseKey.worker(agentId, workerId);
    const gone = new AbortController();
    const look = (): void => {
      if (!this.#live.has(key)) gone.abort(new Error('the worker’s lease has lapsed'));
    };
    // One that never registered here has no lease to lose.
    if (this.#live.has(key)) this.#leaving.add(look);
    return { signal: gone.signal, end: () => void this.#leaving.delete(look) };
  }

  #workersOf(agentId: string): LiveWorker[] {
    return [...this.#live.values()].filter((worker) => worker.agentId === agentId);
  }

  /** A worker may name its toolset; what a name once stood for, it stands for as long as snapshots may pin it. */
  async #store(brought: { agentId: string; pool: string; tools: readonly ToolRegistration[] }, named: string | null): Promise<string> {
    const { agentId, tools } = brought;
    checkToolset(tools);
    const content = digestOf(JSON.parse(JSON.stringify(tools)));
    const digest = named ?? content;
    const known = await this.toolset(agentId, digest);
    if (known !== undefined && digestOf(JSON.parse(JSON.stringify(known.tools))) !== content) {
      throw platformFault('INVALID_INPUT', {
        issues: [{ path: 'toolsetDigest', message: 'this digest stands for other tools; give a changed toolset another one' }],
      });
    }
    const toolset = { ...brought, digest };
    await this.repository.put(toolset, new Date());
    this.#known.set(`${agentId} ${digest}`, toolset);
    return digest;
  }

  #change(withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, withinMs);
      this.#waiting.add(wake);
    });
  }

  async #follow(watch: QueuedIterator<KvEntry>): Promise<void> {
    for await (const entry of watch) {
      try {
        await this.#changed(entry);
      } catch (error) {
        this.log.warn({ error, key: entry.key }, 'a worker’s coming or going was not recorded');
      }
    }
  }

  async #changed(entry: KvEntry): Promise<void> {
    const [agent, id] = entry.key.slice(PREFIX.length).split('.');
    if (agent === undefined || id === undefined) return;
    const agentId = fromToken(agent);
    const before = this.#digests(agentId);
    const lease = entry.operation === 'PUT' ? Lease.safeParse(JSON.parse(entry.string())).data : undefined;
    if (lease === undefined) this.#live.delete(entry.key);
    else this.#live.set(entry.key, { agentId, workerId: fromToken(id), ...lease });
    for (const wake of [...this.#waiting, ...this.#leaving]) wake();
    const after = this.#digests(agentId);
    if (this.#epochs.has(agentId) && before.join() === after.join()) return;
    const changed = [
      ...after.filter((digest) => !before.includes(digest)).map((digest) => ({ agentId, digest, live: true })),
      ...before.filter((digest) => !after.includes(digest)).map((digest) => ({ agentId, digest, live: false })),
    ];
    await this.#moveEpoch(agentId, digestOf(after), changed);
  }

  #digests(agentId: string): string[] {
    return [...new Set(this.#workersOf(agentId).flatMap(({ digest }) => (digest === null ? [] : [digest])))].sort();
  }

  async #moveEpoch(agentId: string, digest: string, changed: readonly { agentId: string; digest: string; live: boolean }[]): Promise<void> {
    const owner = `worker:${agentId}`;
    const { epoch, moved } = await this.repository.move(owner, digest, { now: new Date(), changed });
    this.#epochs.set(agentId, epoch);
    if (moved) await this.#epochsBucket?.put(epochKey.epoch('tool-gateway', owner, 'tools'), String(epoch));
  }
}
