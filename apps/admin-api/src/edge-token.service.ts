import { randomBytes, randomUUID } from 'node:crypto';
import { Bus, traceIdOf, type Call } from '@ambit/bus';
import { adminApi, fault, httpApi, sessionService, type EdgeToken, type Output, type Parsed } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { auditOf } from './admin-audit.js';
import { hashToken } from './auth.service.js';
import { EdgeTokenRepository } from './edge-token.repository.js';
import type { RequestContext } from './http/bound-route.js';
import { paged, type Page } from './paging.js';

/** Another prefix than that of the API's tokens: neither opens what the other does, and people see which is which. */
const newEdgeToken = (): string => `ambit_edge_${randomBytes(32).toString('base64url')}`;
/** Use is noted once in that time. */
const NOTED_MS = 60_000;
/** A run that goes on for longer asks again. */
const RUN_TOKEN_MS = 24 * 3_600_000;

/** Tokens with which MCP clients use an agent's tools for a principal: issued, listed, revoked, and told to the edge by their hash. */
@Injectable()
export class EdgeTokenService {
  constructor(
    private readonly bus: Bus,
    private readonly tokens: EdgeTokenRepository,
  ) {}

  list({ query }: RequestContext<typeof httpApi.listEdgeTokens>): Promise<Page<EdgeToken>> {
    return paged(
      query.limit,
      ({ id }) => id,
      (limit) => this.tokens.list(query.agentId === undefined ? {} : { agentId: query.agentId }, { after: query.cursor, limit }),
    );
  }

  /** The token itself is in this answer alone; what is kept is its hash. */
  async create(request: RequestContext<typeof httpApi.createEdgeToken>): Promise<EdgeToken & { readonly token: string }> {
    const { body, caller, now, signal } = request;
    const sending = { ...caller.identity, signal };
    const agent = await this.bus.call(sessionService.getAgent, { id: body.agentId }, sending);
    caller.require('administer', { projectId: agent.projectId, agentId: agent.id });
    if (body.sessionId !== null) {
      const session = await this.bus.call(sessionService.getSession, { id: body.sessionId }, sending);
      if (session.agentId !== agent.id || session.principal.id !== body.principal) throw fault(httpApi.createEdgeToken, 'SESSION_UNKNOWN');
    }
    const { expiresInMs, ...what } = body;
    const token = newEdgeToken();
    const row = {
      ...what,
      id: randomUUID(),
      hash: hashToken(token),
      projectId: agent.projectId,
      runId: null,
      expiresAt: new Date(now.getTime() + expiresInMs),
      createdAt: now,
    };
    const audit = auditOf(request, { action: 'edge-token.created', target: row.id, projectId: agent.projectId, reason: body.name });
    return { ...(await this.tokens.create(row, audit)), token };
  }

  /** Of a worker's run: it is asked for by whoever knows the run, and reaches nothing else. */
  async issueForRun(
    { agentId, projectId, principal, runId }: Parsed<typeof adminApi.issueRunToken>,
    call: Call,
  ): Promise<Output<typeof adminApi.issueRunToken>> {
    const now = new Date();
    const token = newEdgeToken();
    const expiresAt = new Date(now.getTime() + RUN_TOKEN_MS);
    const id = randomUUID();
    await this.tokens.create(
      {
        id,
        hash: hashToken(token),
        name: `run ${runId}`,
        agentId,
        projectId,
        principal,
        sessionId: null,
        runId,
        names: 'qualified',
        expiresAt,
        createdAt: now,
      },
      {
        at: now.toISOString(),
        principal: null,
        actor: { id: `worker:${agentId}`, kind: 'worker', issuer: 'local', display: agentId },
        via: null,
        projectId,
        action: 'edge-token.created',
        target: id,
        beforeDigest: null,
        afterDigest: null,
        rule: null,
        reason: `run ${runId}`,
        traceId: traceIdOf(call.traceparent),
        retention: 'audit',
      },
    );
    return { token, expiresAt: expiresAt.toISOString() };
  }

  async revoke(request: RequestContext<typeof httpApi.revokeEdgeToken>) {
    const { id } = request.params;
    const token = await this.tokens.find(id);
    if (token === undefined) throw fault(httpApi.revokeEdgeToken, 'TOKEN_UNKNOWN');
    const { projectId, agentId } = token;
    request.caller.require('administer', { projectId, agentId });
    return { revoked: await this.tokens.revoke(id, auditOf(request, { action: 'edge-token.revoked', target: id, projectId })) };
  }

  async resolve(hash: string): Promise<EdgeToken> {
    const token = await this.tokens.byHash(hash);
    const now = new Date();
    if (token === undefined || token.revokedAt !== null || Date.parse(token.expiresAt) <= now.getTime())
      throw fault(adminApi.resolveEdgeToken, 'EDGE_TOKEN_UNKNOWN');
    if (token.lastUsedAt === null || now.getTime() - Date.parse(token.lastUsedAt) > NOTED_MS) await this.tokens.touch(token.id, now);
    return token;
  }
}
