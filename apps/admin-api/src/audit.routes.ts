import { httpApi } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { AuditService } from './audit.service.js';
import { bind } from './http/bound-route.js';

/** The audit view, as pages or as NDJSON, and the check of its chains. */
@Injectable()
export class AuditRoutes {
  constructor(private readonly audit: AuditService) {}

  readonly routes = [
    bind(httpApi.listAudit, async ({ query, caller, accept }, response) => {
      caller.require('audit');
      if (!accept.includes('application/x-ndjson')) return this.audit.page(query);
      response.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' });
      for await (const items of this.audit.all(query)) for (const item of items) response.write(`${JSON.stringify(item)}\n`);
      response.end();
      return undefined;
    }),
    bind(httpApi.verifyAudit, async ({ caller }) => {
      caller.require('audit');
      return this.audit.verify();
    }),
  ];
}
