import { fault, mcpBroker, type Parsed, type Returns } from '@ambit/contracts';
import { pageOf } from '@ambit/mcp';
import { Inject, Injectable } from '@nestjs/common';
import { jointOffers, storedOffers, type Offer, type OfferedBy } from './domain/offered.js';
import { OfferRepository } from './offer.repository.js';
import { RunScopes, type RunScope } from './run-scope.service.js';
import { ServerRepository } from './server.repository.js';
import { offersOf } from './server.view.js';

const PAGE_BYTES = 256 * 1024;
const KEPT = 64;

/** Prompts and resources of the servers that a run has, as they were read last; asks no server. */
@Injectable()
export class OfferService {
  /** By server, kind and hash, so an entry is never wrong; the least recently read goes first. */
  private readonly parsed = new Map<string, OfferedBy['items']>();

  constructor(
    @Inject(RunScopes) private readonly scopes: RunScopes,
    @Inject(ServerRepository) private readonly servers: ServerRepository,
    @Inject(OfferRepository) private readonly offers: OfferRepository,
  ) {}

  async list({ kind, offset, version, ...who }: Parsed<typeof mcpBroker.listOffers>): Promise<Returns<typeof mcpBroker.listOffers>> {
    const scope = await this.scopes.of(who);
    const joint = jointOffers(await this.of(scope, kind === 'prompts' ? 'prompts' : 'resources'), kind === 'templates');
    if (version !== undefined && version !== joint.version) throw fault(mcpBroker.listOffers, 'OFFERS_MOVED');
    return { version: joint.version, ...pageOf<Offer>(joint.offers, offset, PAGE_BYTES) };
  }

  /** What each server of the scope offers of one kind; one whose list moved since its head was read is left to the next question. */
  async of({ servers }: Pick<RunScope, 'servers'>, kind: 'prompts' | 'resources'): Promise<OfferedBy[]> {
    const rows = await this.servers.byIds(servers.map(({ serverId }) => serverId));
    const found = await Promise.all(
      servers.map(async ({ serverId, slug, configGeneration }): Promise<OfferedBy[]> => {
        const row = rows.find(({ id }) => id === serverId);
        if (row === undefined || !row.enabled || row.configGeneration !== configGeneration) return [];
        const hash = offersOf(row)[kind];
        if (hash === null) return [];
        const items = await this.items(serverId, kind, hash);
        return items === undefined ? [] : [{ serverId, slug, hash, items }];
      }),
    );
    return found.flat();
  }

  private async items(serverId: string, kind: 'prompts' | 'resources', hash: string): Promise<OfferedBy['items'] | undefined> {
    const key = `${serverId} ${kind} ${hash}`;
    const kept = this.parsed.get(key);
    if (kept === undefined) {
      const text = await this.offers.read(serverId, kind, hash);
      if (text === null) return undefined;
      this.parsed.set(key, storedOffers(text));
    } else {
      this.parsed.delete(key);
      this.parsed.set(key, kept);
    }
    const [oldest] = this.parsed.keys();
    const items = this.parsed.get(key);
    if (this.parsed.size > KEPT && oldest !== undefined) this.parsed.delete(oldest);
    return items;
  }
}
