import { randomUUID } from 'node:crypto';
import { fault, httpApi } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { AccessRepository } from './access.repository.js';
import { auditOf } from './admin-audit.js';
import { AuthService, hashToken, newToken } from './auth.service.js';
import { bind } from './http/bound-route.js';
import { paged } from './paging.js';

/** Tokens, role grants, and who one is. */
@Injectable()
export class AccessRoutes {
  constructor(
    private readonly access: AccessRepository,
    private readonly auth: AuthService,
  ) {}

  readonly routes = [
    bind(httpApi.whoAmI, async ({ caller }) => ({ principal: caller.principal, groups: [...caller.groups], grants: [...caller.grants] }), [
      'send',
      'decide',
      'audit',
    ]),
    bind(httpApi.listTokens, async ({ query, caller }) => {
      caller.require('administer');
      return paged(
        query.limit,
        (token) => token.id,
        (limit) => this.access.listTokens(query.cursor, limit),
      );
    }),
    bind(httpApi.createToken, async (request) => {
      const { body, caller, now } = request;
      caller.require('administer');
      const token = newToken();
      const expiresAt = body.expiresInMs === undefined ? null : new Date(now.getTime() + body.expiresInMs);
      const row = {
        id: randomUUID(),
        hash: hashToken(token),
        name: body.name,
        principal: body.principal,
        groups: body.groups,
        expiresAt,
        createdAt: now,
      };
      const created = await this.access.createToken(
        row,
        auditOf(request, { action: 'token.created', target: body.principal, reason: body.name }),
      );
      return { ...created, token };
    }),
    bind(httpApi.revokeToken, async (request) => {
      request.caller.require('administer');
      if (!(await this.access.revokeToken(request.params.id, auditOf(request, { action: 'token.revoked', target: request.params.id }))))
        throw fault(httpApi.revokeToken, 'TOKEN_UNKNOWN');
      this.auth.forget();
      return { revoked: true };
    }),
    bind(httpApi.listAccess, async ({ query, caller }) => {
      caller.require('administer');
      return paged(
        query.limit,
        (grant) => grant.id,
        (limit) => this.access.listGrants(query.set === undefined ? {} : { set: query.set }, { after: query.cursor, limit }),
      );
    }),
    bind(httpApi.grantRole, async (request) => {
      request.caller.require('administer');
      const grant = { ...request.body, id: randomUUID(), set: null, createdAt: request.now.toISOString() };
      const created = await this.access.createGrant(
        grant,
        auditOf(request, { action: 'access.granted', target: `${grant.who} ${grant.role}`, projectId: grant.projectId }),
      );
      this.auth.forget();
      return created;
    }),
    bind(httpApi.revokeRole, async (request) => {
      request.caller.require('administer');
      if (!(await this.access.deleteGrant(request.params.id, auditOf(request, { action: 'access.revoked', target: request.params.id }))))
        throw fault(httpApi.revokeRole, 'GRANT_UNKNOWN');
      this.auth.forget();
      return { revoked: true };
    }),
  ];
}
