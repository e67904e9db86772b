import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Fences } from './fences.js';
import { LifecycleService } from './lifecycle.service.js';
import { Operations } from './operations.js';
import { PluginRepository, type Installation } from './plugin.repository.js';

const RENEW_MS = 20_000;
const SETTLE_MS = 2_000;
const PLUGINS = 1_000;

/** One task that is repeated, never twice at once. */
class Beat {
  private running: Promise<void> | undefined;
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly task: () => Promise<void>,
    everyMs: number,
  ) {
    this.timer = setInterval(() => this.now(), everyMs);
    this.now();
  }

  async end(): Promise<void> {
    clearInterval(this.timer);
    await this.running;
  }

  private now(): void {
    this.running ??= this.task().finally(() => (this.running = undefined));
  }
}

/**
 * Keeps plugins as people want them, at boot and from then on: renews the leases of those that are enabled, and finishes what a crash, a silent
 * service or a package that is whole again left to do.
 */
@Injectable()
export class UpkeepService implements OnApplicationBootstrap, OnApplicationShutdown {
  private beats: readonly Beat[] = [];

  constructor(
    private readonly repository: PluginRepository,
    private readonly fences: Fences,
    private readonly operations: Operations,
    private readonly lifecycle: LifecycleService,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  onApplicationBootstrap(): void {
    let isBoot = true;
    const keep = async (): Promise<void> => {
      for (const plugin of await this.repository.list({}, { limit: PLUGINS })) {
        if (plugin.state === 'enabled') await this.vouch(plugin);
        if (isBoot || plugin.state === 'unavailable') await this.reconcile(plugin.id);
      }
      isBoot = false;
    };
    const settle = async (): Promise<void> => {
      for (const { id } of await this.repository.unsettled()) await this.reconcile(id);
    };
    this.beats = [this.beat(keep, RENEW_MS), this.beat(settle, SETTLE_MS)];
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.beats.map((beat) => beat.end()));
  }

  private beat(task: () => Promise<void>, everyMs: number): Beat {
    return new Beat(
      () => task().catch((error: unknown) => this.log.error({ error }, 'plugins could not be looked after; it is tried again')),
      everyMs,
    );
  }

  /** A plugin that was taken away in the meantime gets no lease by somebody who read it before. */
  private async vouch(plugin: Installation): Promise<void> {
    await this.fences.publish(plugin.id, plugin);
    const renewal = await this.fences.renew(plugin.id);
    if ((await this.repository.find(plugin.id))?.state !== 'enabled') await this.fences.drop(plugin.id, renewal);
  }

  private async reconcile(id: string): Promise<void> {
    try {
      await this.operations.ifFree(id, async (held) => {
        const found = await this.repository.package(held.installation.digest);
        if (found === undefined) throw new Error(`the package ${held.installation.digest} is missing`);
        await this.lifecycle.reconcile(held, found);
      });
    } catch (error) {
      this.log.warn({ error, plugin: id }, 'a plugin could not be brought in line; it is tried again');
    }
  }
}
