import { Bus } from '@ambit/bus';
import type { SnapshotTool, TargetFacts } from '@ambit/capability';
import { buckets, fromToken, type Authority } from '@ambit/contracts';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Kvm, type KvEntry } from '@nats-io/kv';
import type { QueuedIterator } from '@nats-io/nats-core';
import { BuiltinRegistry } from './builtins/builtin.registry.js';
import type { HeldSnapshot } from './snapshot.cache.js';
import { Toolsets } from './toolsets.js';

const OWNER_PREFIX = 'owner.';

/** What stands behind a snapshot's tools now, as far as it can be known without asking anybody: owners' leases are watched, the rest is ours. */
@Injectable()
export class TargetFactsSource implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #leases = new Map<string, number>();
  #watch: QueuedIterator<KvEntry> | undefined;

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(BuiltinRegistry) private readonly builtins: BuiltinRegistry,
    @Inject(Toolsets) private readonly toolsets: Toolsets,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const bucket = await new Kvm(this.bus.connection).open(buckets.leases60s.name);
    this.#watch = await bucket.watch({ key: `${OWNER_PREFIX}>` });
    void this.#follow(this.#watch);
  }

  onApplicationShutdown(): void {
    this.#watch?.stop();
  }

  /** Where the owner of the target (broker, worker) knows more, it is the last gate and refuses by itself. */
  of(tool: SnapshotTool, authority: Authority, snapshot: HeldSnapshot): TargetFacts {
    const isRevoked = authority.revokedOwners.includes(tool.owner);
    const isShared = tool.owner === 'user' || tool.owner === 'builtin';
    const fence = isRevoked ? 1 : 0;
    return {
      ...this.#target(tool, snapshot),
      effect: tool.effect,
      access: tool.access,
      pluginVerdict: tool.pluginVerdict ?? null,
      ownerFence: fence,
      // A shared owner's fence moves with anything of its name; whether this one is still there, its own owner says at dispatch.
      readAtFence: isShared ? fence : 0,
      ownerLeaseUntil: tool.owner.startsWith('plugin:') ? (this.#leases.get(tool.owner) ?? 0) : null,
    };
  }

  #target(tool: SnapshotTool, snapshot: HeldSnapshot): Pick<TargetFacts, 'target' | 'server' | 'requiresConfirmation'> {
    const { target } = tool;
    switch (target.kind) {
      case 'builtin': {
        const builtin = this.builtins.find(target.id);
        if (builtin === undefined) return { target: null, server: null, requiresConfirmation: false };
        const { name, version, requiresConfirmation } = builtin.registration;
        return { target: { kind: 'builtin', id: name, version }, server: null, requiresConfirmation };
      }
      case 'mcp': {
        const slug = snapshot.slugs.get(target.serverId);
        return { target, server: slug === undefined ? null : { id: target.serverId, slug }, requiresConfirmation: false };
      }
      case 'worker':
        return { target, server: null, requiresConfirmation: this.toolsets.requiresConfirmation(target) };
    }
  }

  async #follow(watch: QueuedIterator<KvEntry>): Promise<void> {
    for await (const entry of watch) {
      const owner = fromToken(entry.key.slice(OWNER_PREFIX.length));
      if (entry.operation === 'PUT') this.#leases.set(owner, entry.created.getTime() + buckets.leases60s.ttlMs);
      else this.#leases.delete(owner);
    }
  }
}
