import { Bus } from '@ambit/bus';
import { sessionService, toolGateway, type NotifiedEvent } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { DeliveryService } from './delivery.service.js';
import { happeningOf, type Happening } from './domain/notify.js';
import { NotifyRepository } from './notify.repository.js';

const ROUND_MS = 60_000;
const PAGE = 200;
/** Pages of one project that one round looks through at most. */
const PAGES = 20;
/** What is older is not told any more. */
const YOUNG_MS = 24 * 3_600_000;

interface FoundPage {
  readonly items: readonly Happening[];
  readonly cursor?: string | undefined;
}

/** Finds what webhooks are to be told and no event told us: events are hints, what waits for a person stands at its owner. */
@Injectable()
export class MissedEvents implements OnApplicationBootstrap, OnModuleDestroy {
  readonly #found: Readonly<Record<NotifiedEvent, (projectId: string, cursor: string | undefined) => Promise<FoundPage>>> = {
    'interaction.requested': (projectId, cursor) => this.#pending(projectId, cursor),
    'call.parked': (projectId, cursor) => this.#parked(projectId, cursor),
  };
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;

  constructor(
    private readonly bus: Bus,
    private readonly sinks: NotifyRepository,
    private readonly deliveries: DeliveryService,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  onApplicationBootstrap(): void {
    this.#timer = setInterval(() => this.#begin(), ROUND_MS);
    this.#begin();
  }

  async onModuleDestroy(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  #begin(): void {
    this.#looking ??= this.#look()
      .catch((error: unknown) => this.log.warn({ error }, 'what webhooks may have missed could not be looked for; it is tried again'))
      .finally(() => (this.#looking = undefined));
  }

  async #look(): Promise<void> {
    const young = new Date(Date.now() - YOUNG_MS).toISOString();
    for (const { projectId, event } of await this.sinks.wanted()) await this.#add(young, (cursor) => this.#found[event](projectId, cursor));
  }

  async #add(young: string, read: (cursor: string | undefined) => Promise<FoundPage>): Promise<void> {
    let cursor: string | undefined;
    for (let pages = 0; pages < PAGES; pages++) {
      const page = await read(cursor);
      const fresh = page.items.filter(({ at }) => at > young);
      if (fresh.length > 0 && (await this.sinks.add(fresh, { found: true })) > 0) this.deliveries.wake();
      cursor = page.cursor;
      if (cursor === undefined) return;
    }
  }

  async #pending(projectId: string, cursor: string | undefined): Promise<FoundPage> {
    const page = await this.bus.call(sessionService.listInteractions, { projectId, status: 'pending', cursor, limit: PAGE });
    return { ...page, items: page.items.map(happeningOf.interaction) };
  }

  async #parked(projectId: string, cursor: string | undefined): Promise<FoundPage> {
    const page = await this.bus.call(toolGateway.listCalls, { projectId, parked: true, cursor, limit: PAGE });
    return { ...page, items: page.items.map(happeningOf.parkedCall) };
  }
}
