import { Bus } from '@ambit/bus';
import { buckets, epochKey, leaseKey } from '@ambit/contracts';
import { JetStreamApiError } from '@nats-io/jetstream';
import { Kvm, type KV } from '@nats-io/kv';
import { Injectable } from '@nestjs/common';

const TRIES = 10;

/** What others read of this owner without asking: epochs, fences and the lease of each enabled plugin. */
@Injectable()
export class Fences {
  private readonly buckets = new Map<string, Promise<KV>>();
  constructor(private readonly bus: Bus) {}

  /** A number there never goes back, whoever is late with an older one. */
  async publish(pluginId: string, moved: { readonly epoch: number; readonly fence: number }): Promise<void> {
    const owner = `plugin:${pluginId}`;
    await this.raise(epochKey.epoch('plugin-registry', owner, 'plugins'), moved.epoch);
    await this.raise(epochKey.fence('plugin-registry', owner), moved.fence);
  }

  /** New dispatches to the plugin's tools need this lease; it lives 60 s. Gives what `drop` takes back exactly this renewal with. */
  async renew(pluginId: string): Promise<number> {
    return (await this.bucket(buckets.leases60s.name)).put(leaseKey.owner(`plugin:${pluginId}`), '1');
  }

  /** With a renewal: only where no other one came after it. */
  async drop(pluginId: string, renewal?: number): Promise<void> {
    const leases = await this.bucket(buckets.leases60s.name);
    try {
      await leases.delete(leaseKey.owner(`plugin:${pluginId}`), renewal === undefined ? {} : { previousSeq: renewal });
    } catch (error) {
      if (renewal === undefined || !(error instanceof JetStreamApiError)) throw error;
    }
  }

  private async raise(key: string, value: number): Promise<void> {
    const epochs = await this.bucket(buckets.epochs.name);
    for (let tries = 0; tries < TRIES; tries++) {
      const entry = await epochs.get(key);
      if (entry !== null && entry.operation === 'PUT' && Number(entry.string()) >= value) return;
      try {
        if (entry === null) await epochs.create(key, String(value));
        else await epochs.update(key, String(value), entry.revision);
        return;
      } catch (error) {
        // Another replica was quicker; its number may be the higher one.
        if (!(error instanceof JetStreamApiError)) throw error;
      }
    }
    throw new Error(`the key ${key} changes too often`);
  }

  private bucket(name: string): Promise<KV> {
    const known = this.buckets.get(name);
    if (known !== undefined) return known;
    const opened = new Kvm(this.bus.connection).open(name);
    this.buckets.set(name, opened);
    return opened;
  }
}
