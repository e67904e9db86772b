import { httpApi } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { auditOf } from './admin-audit.js';
import { bind } from './http/bound-route.js';
import { PrincipalService } from './principal.service.js';

/** Erasing of people and applications. */
@Injectable()
export class PrincipalRoutes {
  constructor(private readonly principals: PrincipalService) {}

  readonly routes = [
    bind(httpApi.erasePrincipal, async (request) => {
      const { params, caller, signal } = request;
      caller.require('administer');
      const audit = auditOf(request, { action: 'principal.erase', target: `principal:${params.id}` });
      return this.principals.erase(params.id, { identity: caller.identity, audit, signal });
    }),
  ];
}
