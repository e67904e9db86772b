import { Bus } from '@ambit/bus';
import { buckets, epochKey, leaseKey } from '@ambit/contracts';
import { Kvm, type KV } from '@nats-io/kv';
import { Injectable } from '@nestjs/common';

/** What others read of this owner without asking: epochs, fences and the lease of each enabled plugin. */
@Injectable()
export class Fences {
  private readonly buckets = new Map<string, Promise<KV>>();
  constructor(private readonly bus: Bus) {}

  async publish(pluginId: string, moved: { readonly epoch: number; readonly fence: number }): Promise<void> {
    const epochs = await this.bucket(buckets.epochs.name);
    const owner = `plugin:${pluginId}`;
    await epochs.put(epochKey.epoch('plugin-registry', owner, 'plugins'), String(moved.epoch));
    await epochs.put(epochKey.fence('plugin-registry', owner), String(moved.fence));
  }

  /** New dispatches to the plugin's tools need this lease; it lives 60 s. */
  async renew(pluginId: string): Promise<void> {
    await (await this.bucket(buckets.leases60s.name)).put(leaseKey.owner(`plugin:${pluginId}`), '1');
  }

  async drop(pluginId: string): Promise<void> {
    await (await this.bucket(buckets.leases60s.name)).delete(leaseKey.owner(`plugin:${pluginId}`));
  }

  private bucket(name: string): Promise<KV> {
    const known = this.buckets.get(name);
    if (known !== undefined) return known;
    const opened = new Kvm(this.bus.connection).open(name);
    this.buckets.set(name, opened);
    return opened;
  }
}
