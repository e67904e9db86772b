import { buckets, leaseKey } from '@ambit/contracts';
import { JetStreamApiError } from '@nats-io/jetstream';
import { Kvm, type KV } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/nats-core';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';

/** What the holder of an instance tells in its lease; small, without secrets. */
const LeaseFacts = z.object({
  schemaVersion: z.literal(1),
  holder: z.string().max(100),
  /** The revision at which the holder took it: the number that calls carry. Null until the first renewal. */
  since: z.int().nullable(),
  isReady: z.boolean(),
  runsAs: z.string().max(200),
  protocol: z.string().max(20),
  catalogHash: z.string().max(64),
  tools: z.int(),
});
export type LeaseFacts = z.output<typeof LeaseFacts>;
type OwnFacts = Omit<LeaseFacts, 'schemaVersion' | 'since'>;

/** Who holds an instance, as last stored. */
export type LeaseView = LeaseFacts & { readonly revision: number };

const TTL_MS = buckets.leases5s.ttlMs;
const RENEW_MS = 1_500;
const RETRY_MS = 250;
const WRITE_TIMEOUT_MS = 1_000;
/** Time for a dead owner's guards to have killed its children before the new owner's start. */
const TAKEOVER_MS = 1_000;

const keyOf = leaseKey.instance;

export interface TakeOptions {
  readonly instanceId: string;
  readonly facts: OwnFacts;
  /** Each time the lease was stored anew: the moment to tell guards that the owner lives. */
  readonly onRenewed?: () => void;
  /** The lease is gone, or can no longer be proved: everything done under it must stop now. Called once. */
  readonly onLost: (reason: string) => void;
}

/** Leases on MCP instances: one owner each, 5 s, in a KV bucket. */
export class InstanceLeases {
  private bucket: Promise<KV> | undefined;
  constructor(private readonly connection: NatsConnection) {}

  private kv(): Promise<KV> {
    this.bucket ??= new Kvm(this.connection).open(buckets.leases5s.name, { allow_direct: true });
    return this.bucket;
  }

  /** Who holds the instance now; undefined when nobody does. */
  async read(instanceId: string): Promise<LeaseView | undefined> {
    const entry = await (await this.kv()).get(keyOf(instanceId));
    if (entry === null || entry.operation !== 'PUT') return undefined;
    const facts = LeaseFacts.safeParse(entry.json());
    return facts.success ? { ...facts.data, revision: facts.data.since ?? entry.revision } : undefined;
  }

  /** Takes the lease, or gives undefined when another holds it. After an owner that died it waits until that one's children are dead. */
  async take(options: TakeOptions): Promise<InstanceLease | undefined> {
    const kv = await this.kv();
    const before = await kv.get(keyOf(options.instanceId));
    if (before?.operation === 'PUT') return undefined;
    const startedAt = performance.now();
    let revision: number;
    try {
      revision = await kv.create(
        keyOf(options.instanceId),
        JSON.stringify({ schemaVersion: 1, since: null, ...options.facts } satisfies LeaseFacts),
      );
    } catch (error) {
      if (error instanceof JetStreamApiError) return undefined;
      throw error;
    }
    const lease = new InstanceLease(kv, options, { revision, heldUntil: startedAt + TTL_MS });
    // A lease given back leaves a DEL; any other mark was left by the server when one expired.
    if (before !== null && before.operation !== 'DEL') await wait(TAKEOVER_MS);
    return lease;
  }
}

interface Held {
  readonly revision: number;
  readonly heldUntil: number;
}

/** One held lease. It renews itself until it is released or lost. */
export class InstanceLease {
  /** What calls must carry: the revision at which this owner took the lease. */
  readonly revision: number;
  private stored: number;
  private heldUntil: number;
  private facts: OwnFacts;
  private timer: NodeJS.Timeout | undefined;
  private watchdog: NodeJS.Timeout | undefined;
  private writing: Promise<void> = Promise.resolve();
  private isOver = false;

  constructor(
    private readonly kv: KV,
    private readonly options: TakeOptions,
    held: Held,
  ) {
    this.revision = held.revision;
    this.stored = held.revision;
    this.heldUntil = held.heldUntil;
    this.facts = options.facts;
    this.watch();
    this.renewIn(RENEW_MS);
  }

  /** True while the lease is certainly ours, by our own monotonic clock. */
  get isHeld(): boolean {
    return !this.isOver && performance.now() < this.heldUntil;
  }

  /** Changes what the lease tells, at once. */
  async tell(facts: Partial<OwnFacts>): Promise<void> {
    this.facts = { ...this.facts, ...facts };
    await this.renew();
  }

  /** Gives the lease back. Everything done under it must have ended. */
  async release(): Promise<void> {
    if (this.isOver) return;
    this.finish();
    await this.writing;
    await this.kv.delete(keyOf(this.options.instanceId), { previousSeq: this.stored }).catch(() => undefined);
  }

  private renewIn(ms: number): void {
    if (this.isOver) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.renew(), ms);
  }

  private renew(): Promise<void> {
    this.writing = this.writing.then(() => this.write());
    return this.writing;
  }

  private async write(): Promise<void> {
    if (this.isOver) return;
    const startedAt = performance.now();
    const value = JSON.stringify({ schemaVersion: 1, since: this.revision, ...this.facts } satisfies LeaseFacts);
    try {
      this.stored = await this.kv.update(keyOf(this.options.instanceId), value, this.stored, WRITE_TIMEOUT_MS);
      this.renewed(startedAt);
    } catch (error) {
      if (error instanceof JetStreamApiError) await this.compare(startedAt);
      else this.renewIn(RETRY_MS);
    }
  }

  /** The server refused the renewal: either an earlier one arrived after all, or the lease is another's or nobody's. */
  private async compare(startedAt: number): Promise<void> {
    const entry = await this.kv.get(keyOf(this.options.instanceId)).catch(() => undefined);
    if (entry === undefined) return this.renewIn(RETRY_MS);
    const facts = entry?.operation === 'PUT' ? LeaseFacts.safeParse(entry.json()) : undefined;
    if (entry === null || facts?.success !== true || facts.data.holder !== this.facts.holder || facts.data.since !== this.revision)
      return this.lose('The lease of the instance has passed to another owner');
    this.stored = entry.revision;
    // Its age is unknown, so it counts for nothing until the next renewal.
    if (startedAt > this.heldUntil) return this.lose('The lease of the instance could not be renewed in time');
    this.renewIn(0);
  }

  private renewed(startedAt: number): void {
    if (this.isOver) return;
    this.heldUntil = startedAt + TTL_MS;
    this.watch();
    this.options.onRenewed?.();
    this.renewIn(RENEW_MS);
  }

  private watch(): void {
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(
      () => this.lose('The lease of the instance could not be renewed in time'),
      Math.max(0, this.heldUntil - performance.now()),
    );
  }

  private lose(reason: string): void {
    if (this.isOver) return;
    this.finish();
    this.options.onLost(reason);
  }

  private finish(): void {
    this.isOver = true;
    clearTimeout(this.timer);
    clearTimeout(this.watchdog);
  }
}
