import { toolGateway, type Output, type Parsed } from '@ambit/contracts';
import { CONFIG, LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { ArtifactStore } from './artifact.store.js';
import type { ToolGatewayConfig } from './config.js';
import { EndedRuns } from './ended-runs.js';
import { ErasureRepository } from './erasure.repository.js';

const EVERY_MS = 10 * 60_000;
/** A run whose last call is so old has ended, or waits for a person. */
const UNHEARD_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** Erases what the gateway keeps of people, when it is asked to and when it was kept long enough. */
@Injectable()
export class PrincipalService implements OnApplicationBootstrap, OnApplicationShutdown {
  #timer: NodeJS.Timeout | undefined;
  /** Calls before it have no arguments left. */
  #sweptTo = new Date(0);

  constructor(
    @Inject(ErasureRepository) private readonly repository: ErasureRepository,
    @Inject(ArtifactStore) private readonly artifacts: ArtifactStore,
    @Inject(EndedRuns) private readonly ended: EndedRuns,
    @Inject(CONFIG) private readonly config: ToolGatewayConfig,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  onApplicationBootstrap(): void {
    this.#timer = setInterval(
      () => void this.sweep(new Date()).catch((error: unknown) => this.log.warn({ error }, 'arguments were not swept; it is tried again')),
      EVERY_MS,
    );
  }
  onApplicationShutdown(): void {
    clearInterval(this.#timer);
  }

  async erase({ principal, sessionIds }: Parsed<typeof toolGateway.erasePrincipal>): Promise<Output<typeof toolGateway.erasePrincipal>> {
    const now = new Date();
    const calls = await this.repository.principal(principal, now);
    const artifacts = await this.repository.sessions(sessionIds, now);
    // Not only unreadable: gone.
    while ((await this.artifacts.sweep(now)) > 0);
    return { calls, artifacts };
  }

  async sweep(now: Date): Promise<void> {
    const { AMBIT_KEEP_ARGUMENTS_DAYS: days } = this.config;
    if (days > 0) {
      const to = new Date(now.getTime() - days * DAY_MS);
      await this.repository.argumentsBetween(this.#sweptTo, to);
      // A day again: a journal that was away brings calls late.
      this.#sweptTo = new Date(to.getTime() - DAY_MS);
    }
    await this.ended.unnoticed(new Date(now.getTime() - UNHEARD_MS));
  }
}
