import { CONFIG, LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import type { SessionServiceConfig } from './config.js';
import { erasure } from './erasure.repository.js';
import { Transactions } from './transactions.repository.js';

const EVERY_MS = 10 * 60_000;
const DAY_MS = 86_400_000;
const AT_ONCE = 5_000;

/** Removes what has been kept as long as it may: what was said, and snapshots that nobody uses. */
@Injectable()
export class Retention implements OnApplicationBootstrap, OnModuleDestroy {
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<unknown> = Promise.resolve();
  #isClosing = false;

  constructor(
    private readonly transactions: Transactions,
    @Inject(CONFIG) private readonly config: SessionServiceConfig,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  onApplicationBootstrap(): void {
    this.#round();
  }

  async onModuleDestroy(): Promise<void> {
    this.#isClosing = true;
    clearTimeout(this.#timer);
    await this.#sweeping;
  }

  async sweep(now: Date): Promise<void> {
    const before = (days: number) => new Date(now.getTime() - days * DAY_MS);
    const { AMBIT_KEEP_MESSAGES_DAYS: messages, AMBIT_KEEP_SNAPSHOTS_DAYS: snapshots } = this.config;
    if (messages > 0) {
      while (!this.#isClosing && (await this.transactions.run(({ sql }) => erasure.entriesBefore(sql, before(messages), AT_ONCE))) > 0);
      await this.transactions.run(({ sql }) => erasure.interactionsBefore(sql, before(messages)));
    }
    if (snapshots > 0) await this.transactions.run(({ sql }) => erasure.snapshotsBefore(sql, before(snapshots)));
  }

  #round(): void {
    if (this.#isClosing) return;
    this.#sweeping = this.sweep(new Date())
      .catch((error: unknown) => this.log.warn({ error }, 'what was kept long enough could not be removed; it is tried again'))
      .finally(() => {
        if (!this.#isClosing) this.#timer = setTimeout(() => this.#round(), EVERY_MS);
      });
  }
}
