import { randomUUID } from 'node:crypto';
import { fault, httpApi, type RoleGrant, type Token } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { AccessRepository } from './access.repository.js';
import { auditOf } from './admin-audit.js';
import { AuthService, hashToken, newToken } from './auth.service.js';
import type { RequestContext } from './http/bound-route.js';
import { paged, type Page } from './paging.js';

/** Tokens and role grants: who may do what over HTTP. */
@Injectable()
export class AccessService {
  constructor(
    private readonly access: AccessRepository,
    private readonly auth: AuthService,
  ) {}

  listTokens({ query }: RequestContext<typeof httpApi.listTokens>): Promise<Page<Token>> {
    return paged(
      query.limit,
      (token) => token.id,
      (limit) => this.access.listTokens(query.cursor, limit),
    );
  }

  /** The token itself is in this answer alone; what is kept is its hash. */
  async createToken(request: RequestContext<typeof httpApi.createToken>): Promise<Token & { readonly token: string }> {
    const { body, now } = request;
    const token = newToken();
    const row = {
      id: randomUUID(),
      hash: hashToken(token),
      name: body.name,
      principal: body.principal,
      groups: body.groups,
      expiresAt: body.expiresInMs === undefined ? null : new Date(now.getTime() + body.expiresInMs),
      createdAt: now,
    };
    const audit = auditOf(request, { action: 'token.created', target: body.principal, reason: body.name });
    return { ...(await this.access.createToken(row, audit)), token };
  }

  async revokeToken(request: RequestContext<typeof httpApi.revokeToken>) {
    const { id } = request.params;
    if (!(await this.access.revokeToken(id, auditOf(request, { action: 'token.revoked', target: id }))))
      throw fault(httpApi.revokeToken, 'TOKEN_UNKNOWN');
    this.auth.forget();
    return { revoked: true };
  }

  listGrants({ query }: RequestContext<typeof httpApi.listAccess>): Promise<Page<RoleGrant>> {
    return paged(
      query.limit,
      (grant) => grant.id,
      (limit) => this.access.listGrants(query.set === undefined ? {} : { set: query.set }, { after: query.cursor, limit }),
    );
  }

  async grant(request: RequestContext<typeof httpApi.grantRole>): Promise<RoleGrant> {
    const grant = { ...request.body, id: randomUUID(), set: null, createdAt: request.now.toISOString() };
    const target = `${grant.who} ${grant.role}`;
    const created = await this.access.createGrant(
      grant,
      auditOf(request, { action: 'access.granted', target, projectId: grant.projectId }),
    );
    this.auth.forget();
    return created;
  }

  async revokeGrant(request: RequestContext<typeof httpApi.revokeRole>) {
    const { id } = request.params;
    if (!(await this.access.deleteGrant(id, auditOf(request, { action: 'access.revoked', target: id }))))
      throw fault(httpApi.revokeRole, 'GRANT_UNKNOWN');
    this.auth.forget();
    return { revoked: true };
  }
}
