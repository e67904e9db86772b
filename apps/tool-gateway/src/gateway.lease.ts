import { randomUUID } from 'node:crypto';
import { Bus } from '@ambit/bus';
import { buckets, leaseKey } from '@ambit/contracts';
import { LOG, Readiness, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Kvm, type KV } from '@nats-io/kv';

const RENEW_MS = 1_500;
/** A little less than the bucket's, counted from before the renewal: we stop before others may think so. */
const HELD_MS = buckets.leases5s.ttlMs - 500;

/** This process's name in claims, and the lease that says it lives. Without it nothing new is claimed. */
@Injectable()
export class GatewayLease implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly id = randomUUID();
  #bucket: KV | undefined;
  #heldUntil = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(Readiness) readiness: Readiness,
    @Inject(LOG) private readonly log: Logger,
  ) {
    readiness.add('lease', async () => {
      if (!this.isHeld) throw new Error('the gateway lease lapsed');
    });
  }

  get isHeld(): boolean {
    return performance.now() < this.#heldUntil;
  }

  /** Tells whether the lease is held, after renewing it where it lapsed: a process that was held up may go on, its open calls may not. */
  async hold(): Promise<boolean> {
    if (!this.isHeld) await this.#renew().catch((error: unknown) => this.log.warn({ error }, 'the gateway lease was not renewed'));
    return this.isHeld;
  }

  async onApplicationBootstrap(): Promise<void> {
    this.#bucket = await new Kvm(this.bus.connection).open(buckets.leases5s.name);
    await this.#renew();
    this.#timer = setInterval(
      () => void this.#renew().catch((error: unknown) => this.log.warn({ error }, 'the gateway lease was not renewed')),
      RENEW_MS,
    );
  }

  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.#timer);
    this.#heldUntil = 0;
    await this.#bucket?.purge(leaseKey.gateway(this.id)).catch(() => undefined);
  }

  /** Tells whether another gateway still says that it lives. */
  async isAlive(gatewayId: string): Promise<boolean> {
    if (gatewayId === this.id) return true;
    const entry = await this.#bucket?.get(leaseKey.gateway(gatewayId));
    return entry !== null && entry !== undefined && entry.operation === 'PUT';
  }

  async #renew(): Promise<void> {
    const before = performance.now();
    await this.#bucket?.put(leaseKey.gateway(this.id), JSON.stringify({ gatewayId: this.id }));
    this.#heldUntil = before + HELD_MS;
  }
}
