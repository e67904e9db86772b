import { Bus } from '@ambit/bus';
import { mcpBroker, pluginRegistry, sessionService, skillStore, toolGateway, type AuditRecord, type httpApi } from '@ambit/contracts';
import { AuditTrail } from '@ambit/db';
import { CONFIG, LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import type { z } from 'zod';
import { AuditRepository } from './audit.repository.js';
import type { AdminApiConfig } from './config.js';
import { chainProblem } from './domain/audit-chain.js';

const WALK = 500;
const PAGE = 100;
const ROUND_MS = 60_000;
/** Records that one round takes over from an owner at most. */
const PAGES = 200;
const DAY_MS = 86_400_000;
type Query = z.output<(typeof httpApi.listAudit)['query']>;

const whereOf = (query: Query) => ({
  ...(query.owner === undefined ? {} : { owner: query.owner }),
  ...(query.action === undefined ? {} : { action: query.action }),
  ...(query.target === undefined ? {} : { target: query.target }),
  ...(query.principal === undefined ? {} : { principal: query.principal }),
  ...(query.since === undefined ? {} : { at: { gte: new Date(query.since) } }),
});
const skipOf = (query: Query) => Math.max(0, Number(query.cursor ?? 0) || 0);

/** Who did what, for whom, by which rule; and whether anybody changed that afterwards. */
@Injectable()
export class AuditService implements OnApplicationBootstrap, OnModuleDestroy {
  #timer: NodeJS.Timeout | undefined;

  readonly #unbroken = new Map<string, number>();
  #catchingUp: Promise<void> | undefined;
  readonly #readers: ReadonlyMap<string, (after: number) => Promise<AuditRecord[]>>;

  constructor(
    private readonly audit: AuditRepository,
    trail: AuditTrail,
    bus: Bus,
    @Inject(CONFIG) private readonly config: AdminApiConfig,
    @Inject(LOG) private readonly log: Logger,
  ) {
    const asking = [
      sessionService.listAudit,
      toolGateway.listAudit,
      mcpBroker.listAudit,
      skillStore.listAudit,
      pluginRegistry.listAudit,
    ] as const;
    this.#readers = new Map([
      ['admin-api', (after: number) => trail.after(after, PAGE)],
      ...asking.map((contract): [string, (after: number) => Promise<AuditRecord[]>] => [
        contract.subject.split('.')[2] ?? '',
        async (after) => (await bus.call(contract, { after, limit: PAGE })).items,
      ]),
    ]);
  }

  onApplicationBootstrap(): void {
    const { AMBIT_KEEP_AUDIT_DAYS: days } = this.config;
    const trim = (): void =>
      void this.audit
        .trim([...this.#readers.keys()], new Date(Date.now() - days * DAY_MS))
        .catch((error: unknown) => this.log.warn({ error }, 'the audit view was not trimmed; it is tried again'));
    const round = (): void => {
      if (days > 0) trim();
      void this.catchUp();
    };
    this.#timer = setInterval(round, ROUND_MS);
    round();
  }

  onModuleDestroy(): void {
    clearInterval(this.#timer);
  }

  add(records: readonly AuditRecord[]): Promise<void> {
    return this.audit.add(records);
  }

  /** Reads from each owner what it told and nobody here heard: events are hints, its chain is the truth. */
  catchUp(): Promise<void> {
    this.#catchingUp ??= this.#readAll().finally(() => (this.#catchingUp = undefined));
    return this.#catchingUp;
  }

  async #readAll(): Promise<void> {
    for (const [owner, read] of this.#readers) {
      try {
        let after = await this.audit.unbrokenTo(owner, this.#unbroken.get(owner) ?? 0);
        for (let pages = 0; pages < PAGES; pages++) {
          const items = await read(after);
          await this.audit.add(items);
          after = items.at(-1)?.sequence ?? after;
          if (items.length < PAGE) break;
        }
        this.#unbroken.set(owner, after);
      } catch (error) {
        this.log.warn({ error, owner }, 'the audit records of an owner could not be read; it is tried again');
      }
    }
  }

  async page(query: Query): Promise<{ items: AuditRecord[]; cursor?: string }> {
    const skip = skipOf(query);
    const items = await this.audit.list(whereOf(query), { skip, take: query.limit });
    return items.length === query.limit ? { items, cursor: String(skip + items.length) } : { items };
  }

  /** Everything from there on, a part at a time. */
  async *all(query: Query): AsyncGenerator<AuditRecord[]> {
    for (let skip = skipOf(query); ; skip += WALK) {
      const items = await this.audit.list(whereOf(query), { skip, take: WALK });
      yield items;
      if (items.length < WALK) return;
    }
  }

  async verify() {
    await this.catchUp();
    const owners = [];
    for (const owner of await this.audit.owners()) owners.push(await this.walk(owner));
    return { intact: owners.every(({ intact }) => intact), owners };
  }

  private async walk(owner: string): Promise<{ owner: string; records: number; intact: boolean; problem: string | null }> {
    let previous: AuditRecord | undefined;
    for (let records = 0; ;) {
      const part = await this.audit.chain(owner, previous?.sequence ?? 0, WALK);
      for (const record of part) {
        const problem = chainProblem(record, previous);
        if (problem !== undefined) return { owner, records, intact: false, problem };
        previous = record;
        records += 1;
      }
      if (part.length < WALK) return { owner, records, intact: true, problem: null };
    }
  }
}
