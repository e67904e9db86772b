import { Bus } from '@ambit/bus';
import { mcpBroker, mcpRunner, type JsonObject, type Returns, type ToolDefinition } from '@ambit/contracts';
import { refusedNames } from '@ambit/capability';
import { admitTools, catalogueHash, type Catalogue, type OfferedKind, type Offers } from '@ambit/mcp';
import { LOG, Metrics, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { Epochs } from './epochs.js';
import { OfferRepository, type OfferList, type StoredOffer } from './offer.repository.js';
import { ServerRepository } from './server.repository.js';
import { statusOf, type ServerRow, type Status } from './server.view.js';

/** A list may claim more; so many are shown, and none is had. */
const REFUSED_KEPT = 400;

/** What is known of servers that run or ran: their tools and how they are, written down and told. */
@Injectable()
export class KnownServers {
  /** What is still being written down; a shutdown waits for it. */
  private readonly writing = new Set<Promise<void>>();
  private readonly refusals: ReturnType<Metrics['counter']>;

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(ServerRepository) private readonly servers: ServerRepository,
    @Inject(OfferRepository) private readonly offers: OfferRepository,
    @Inject(Epochs) private readonly epochs: Epochs,
    @Inject(LOG) private readonly log: Logger,
    @Inject(Metrics) metrics: Metrics,
  ) {
    this.refusals = metrics.counter({
      name: 'ambit_names_refused_total',
      help: 'Names that tools of MCP servers claimed and that belong to the platform',
    });
  }

  /** Reads the tools of a stdio server from its runner, page by page, and keeps them. */
  async readTools(row: ServerRow, instanceId: string): Promise<void> {
    const tools: ToolDefinition[] = [];
    let hash: string | undefined;
    let offset: number | null = 0;
    while (offset !== null) {
      const page: Returns<typeof mcpRunner.instanceTools> = await this.bus.call(
        mcpRunner.instanceTools,
        { offset },
        { keys: { instanceId } },
      );
      // The list changed between two pages; the hint of that change is on its way.
      if (hash !== undefined && page.catalogHash !== hash) return this.readTools(row, instanceId);
      hash = page.catalogHash;
      tools.push(...page.tools.map((tool) => ({ description: '', ...tool })));
      offset = page.next;
    }
    if (hash !== undefined) await this.save(row, { subject: 'shared', from: 'server' }, { hash, tools });
  }

  /** Keeps the tools that a server told of itself to whoever has this subject's credentials. */
  async keep(row: ServerRow, subject: string, catalogue: Catalogue): Promise<void> {
    await this.save(row, { subject, from: 'server' }, catalogue);
  }

  /** Keeps the tools that a package lists of its server, bounded as a server's own list is; they stand until the server is listed itself. */
  async keepPackaged(row: ServerRow, listed: readonly JsonObject[]): Promise<void> {
    const { tools, diagnostics } = admitTools(listed);
    for (const { tool, message } of diagnostics.slice(0, 20))
      this.log.warn({ slug: row.slug, tool, reason: message }, 'a tool that a package lists is left out');
    await this.save(row, { subject: 'shared', from: 'package' }, { hash: catalogueHash(tools), tools });
  }

  /** Reads a list beside the tools from whoever holds the instance, page by page, and keeps it. */
  async readOffers(row: ServerRow, instanceId: string, kind: OfferedKind): Promise<void> {
    const items: StoredOffer[] = [];
    let hash: string | undefined;
    for (let offset: number | null = 0; offset !== null;) {
      const page: Returns<typeof mcpBroker.instanceOffers> = await this.bus.call(
        mcpBroker.instanceOffers,
        { kind, offset },
        { keys: { instanceId } },
      );
      // The list changed between two pages; the hint of that change is on its way.
      if (hash !== undefined && page.hash !== hash) return this.readOffers(row, instanceId, kind);
      hash = page.hash;
      items.push(...page.items);
      offset = page.next;
    }
    if (hash !== undefined) await this.saveOffers(row, { kind, hash, items });
  }

  /** Keeps a list beside the tools that a server told of itself. */
  async keepOffers(row: ServerRow, kind: OfferedKind, offers: Offers): Promise<void> {
    const items = [
      ...offers.items.map((definition) => ({ template: false, definition })),
      ...offers.templates.map((definition) => ({ template: true, definition })),
    ];
    for (const { tool, message } of offers.diagnostics.slice(0, 20))
      this.log.warn({ slug: row.slug, kind, name: tool, reason: message }, 'something that a server offers is left out');
    await this.saveOffers(row, { kind, hash: offers.hash, items });
  }

  /** A refresh failed, for a reason, or works again. */
  async stale(row: ServerRow, reason: string | undefined): Promise<void> {
    const now = await this.servers.find({ id: row.id });
    if (now !== null)
      await this.tell(now, { ...statusOf(now), state: reason === undefined ? 'connected' : 'degraded', reason: reason ?? null });
  }

  /** Writes down how a server is; whoever asks for the same generation sees it. */
  async tell(row: ServerRow, status: Status, era?: { readonly kind: string; readonly at: string }): Promise<void> {
    await this.move(
      this.servers.status(row.id, row.configGeneration, {
        ...status,
        reason: status.reason?.slice(0, 1_000) ?? null,
        at: new Date(),
        ...(era === undefined ? {} : { era: { ...era } }),
      }),
    );
  }

  /** For what nobody waits for: a failure is logged, and what it left undone is done at the next change. */
  background(task: Promise<void>): Promise<void> {
    const done = task
      .catch((error: unknown) => this.log.error({ error }, 'what is known of an MCP server could not be written down'))
      .finally(() => this.writing.delete(done));
    this.writing.add(done);
    return done;
  }

  /** Resolves when nothing is being written down any more. */
  async settled(): Promise<void> {
    await Promise.all(this.writing);
  }

  /** What a list claims of the platform's names is refused as soon as it is known, whoever may use the server. */
  private async save(
    row: ServerRow,
    whose: { readonly subject: string; readonly from: 'server' | 'package' },
    { hash, tools }: Pick<Catalogue, 'hash' | 'tools'>,
  ): Promise<void> {
    const refused = tools.flatMap(({ name }) => refusedNames(row.slug, name)).slice(0, REFUSED_KEPT);
    const saved = await this.servers.saveCatalogue(row.id, row.configGeneration, { ...whose, hash, tools, refused, at: new Date() });
    if (saved === undefined) return;
    this.refusals.inc(saved.newlyRefused);
    await this.epochs.publish(saved.moved);
  }

  private async saveOffers(row: ServerRow, list: Omit<OfferList, 'at' | 'generation'>): Promise<void> {
    const moved = await this.offers.save(row.id, { ...list, generation: row.configGeneration, at: new Date() });
    if (moved !== undefined) await this.epochs.publish(moved);
  }

  private async move(change: ReturnType<ServerRepository['status']>): Promise<void> {
    const moved = await change;
    if (moved !== undefined) await this.epochs.publish(moved);
  }
}
