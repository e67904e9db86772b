import { LOG, type Logger } from '@ambit/service';
import { Fault } from '@ambit/contracts';
import { sentenceOf } from '@ambit/mcp';
import { Inject, Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { Epochs } from './epochs.js';
import { InstanceService } from './instance.service.js';
import { ServerRepository } from './server.repository.js';

const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 60_000;
const SERVERS = 1_000;

interface Search {
  retryMs: number;
  timer: NodeJS.Timeout | undefined;
}

/** Reads a first list of every server that has none yet, again and again until it is there: what was never listed could never be called. */
@Injectable()
export class DiscoveryService implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly searches = new Map<string, Search>();
  private isOver = false;

  constructor(
    @Inject(ServerRepository) private readonly servers: ServerRepository,
    @Inject(InstanceService) private readonly instances: InstanceService,
    @Inject(Epochs) private readonly epochs: Epochs,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  /** Not waited for: a server that does not answer delays no start of ours. */
  onApplicationBootstrap(): void {
    this.catchUp().catch((error: unknown) => this.log.error({ error }, 'servers without a list could not be looked up'));
  }

  discover(serverId: string): void {
    if (this.isOver || this.searches.size >= SERVERS) return;
    this.forget(serverId);
    const search: Search = { retryMs: FIRST_RETRY_MS, timer: undefined };
    this.searches.set(serverId, search);
    void this.search(serverId, search);
  }

  forget(serverId: string): void {
    clearTimeout(this.searches.get(serverId)?.timer);
    this.searches.delete(serverId);
  }

  beforeApplicationShutdown(): void {
    this.isOver = true;
    for (const serverId of [...this.searches.keys()]) this.forget(serverId);
  }

  private async catchUp(): Promise<void> {
    for (const moved of await this.servers.owners()) await this.epochs.publish(moved);
    for (const row of await this.servers.unlisted(SERVERS)) this.discover(row.id);
  }

  private async search(serverId: string, search: Search): Promise<void> {
    const isCurrent = (): boolean => this.searches.get(serverId) === search;
    try {
      const row = await this.servers.find({ id: serverId });
      if (row !== null && row.enabled && row.catalogOf !== row.configGeneration) await this.instances.list(row);
      if (isCurrent()) this.searches.delete(serverId);
    } catch (error) {
      if (!isCurrent()) return;
      // Until somebody signs in nothing changes; the sign-in begins the search again.
      if (error instanceof Fault && error.code === 'AUTHORIZATION_REQUIRED') {
        this.searches.delete(serverId);
        return;
      }
      this.log.debug({ serverId, reason: sentenceOf(error) }, 'an MCP server could not be listed yet');
      search.timer = setTimeout(() => void this.search(serverId, search), search.retryMs);
      search.timer.unref();
      search.retryMs = Math.min(search.retryMs * 2, LAST_RETRY_MS);
    }
  }
}
