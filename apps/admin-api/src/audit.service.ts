import type { AuditRecord, httpApi } from '@ambit/contracts';
import { CONFIG, LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import type { z } from 'zod';
import { AuditRepository } from './audit.repository.js';
import type { AdminApiConfig } from './config.js';
import { chainProblem } from './domain/audit-chain.js';

const WALK = 500;
const TRIM_MS = 60_000;
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

  constructor(
    private readonly audit: AuditRepository,
    @Inject(CONFIG) private readonly config: AdminApiConfig,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  onApplicationBootstrap(): void {
    const { AMBIT_KEEP_AUDIT_DAYS: days } = this.config;
    const trim = (): void =>
      void this.audit
        .trim(new Date(Date.now() - days * DAY_MS))
        .catch((error: unknown) => this.log.warn({ error }, 'the audit view was not trimmed; it is tried again'));
    if (days > 0) this.#timer = setInterval(trim, TRIM_MS);
  }

  onModuleDestroy(): void {
    clearInterval(this.#timer);
  }

  add(record: AuditRecord): Promise<void> {
    return this.audit.add(record);
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
