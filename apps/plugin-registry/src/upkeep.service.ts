import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Fences } from './fences.js';
import { PluginRepository } from './plugin.repository.js';
import { RevocationService } from './revocation.service.js';

const RENEW_MS = 20_000;

/** Renews the leases of enabled plugins and settles revocations that were cut short, at boot and every 20 s. */
@Injectable()
export class UpkeepService implements OnApplicationBootstrap, OnApplicationShutdown {
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(
    private readonly repository: PluginRepository,
    private readonly fences: Fences,
    private readonly revocation: RevocationService,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => this.beat(), RENEW_MS);
    this.beat();
  }

  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    await this.running;
  }

  private beat(): void {
    this.running = this.running
      .then(() => this.keep())
      .catch((error: unknown) => this.log.error({ error }, 'renewing plugin leases failed'));
  }

  private async keep(): Promise<void> {
    for (const plugin of await this.repository.list({ state: 'enabled' }, { limit: 1_000 })) {
      await this.fences.publish(plugin.id, plugin);
      await this.fences.renew(plugin.id);
    }
    await this.revocation.settleOwed();
  }
}
