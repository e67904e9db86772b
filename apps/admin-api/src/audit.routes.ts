import { httpApi, type AuditRecord } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { AuditRepository } from './audit.repository.js';
import { chainProblem } from './domain/audit-chain.js';
import { bind } from './http/bound-route.js';

const WALK = 500;

/** Who did what, for whom, by which rule; and whether anybody changed that afterwards. */
@Injectable()
export class AuditRoutes {
  constructor(private readonly audit: AuditRepository) {}

  readonly routes = [
    bind(httpApi.listAudit, async ({ query, caller, accept }, response) => {
      caller.require('audit');
      const where = {
        ...(query.owner === undefined ? {} : { owner: query.owner }),
        ...(query.action === undefined ? {} : { action: query.action }),
        ...(query.target === undefined ? {} : { target: query.target }),
        ...(query.principal === undefined ? {} : { principal: query.principal }),
        ...(query.since === undefined ? {} : { at: { gte: new Date(query.since) } }),
      };
      const skip = Math.max(0, Number(query.cursor ?? 0) || 0);
      if (!accept.includes('application/x-ndjson')) {
        const items = await this.audit.list(where, { skip, take: query.limit });
        return items.length === query.limit ? { items, cursor: String(skip + items.length) } : { items };
      }
      response.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' });
      for (let at = skip; ; at += WALK) {
        const items = await this.audit.list(where, { skip: at, take: WALK });
        for (const item of items) response.write(`${JSON.stringify(item)}\n`);
        if (items.length < WALK) break;
      }
      response.end();
      return undefined;
    }),
    bind(httpApi.verifyAudit, async ({ caller }) => {
      caller.require('audit');
      const owners = [];
      for (const owner of await this.audit.owners()) owners.push(await this.walk(owner));
      return { intact: owners.every(({ intact }) => intact), owners };
    }),
  ];

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
