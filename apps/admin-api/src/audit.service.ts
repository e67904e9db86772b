import type { AuditRecord, httpApi } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import type { z } from 'zod';
import { AuditRepository } from './audit.repository.js';
import { chainProblem } from './domain/audit-chain.js';

const WALK = 500;
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
export class AuditService {
  constructor(private readonly audit: AuditRepository) {}

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
