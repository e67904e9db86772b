import { randomUUID } from 'node:crypto';
import { Bus } from '@ambit/bus';
import { fault, httpApi, sessionService, type WorkerCredential } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { auditOf } from './admin-audit.js';
import type { RequestContext } from './http/bound-route.js';
import { paged, type Page } from './paging.js';
import { CREDENTIAL_MS, WorkerCredentials } from './worker-credentials.js';
import { WorkerRepository } from './worker.repository.js';

/** Live credentials of one agent that are looked at together. */
const LIVE = { limit: 1_000 };

/** NATS identities of workers: issued, listed, revoked; with the pools that they take runs from. */
@Injectable()
export class WorkerService {
  constructor(
    private readonly bus: Bus,
    private readonly credentials: WorkerCredentials,
    private readonly workers: WorkerRepository,
  ) {}

  list({ query }: RequestContext<typeof httpApi.listWorkers>): Promise<Page<WorkerCredential>> {
    return paged(
      query.limit,
      ({ id }) => id,
      (limit) => this.workers.list(query.agentId === undefined ? {} : { agentId: query.agentId }, { after: query.cursor, limit }),
    );
  }

  async create(request: RequestContext<typeof httpApi.createWorker>) {
    const { body, caller, now, signal } = request;
    const agent = await this.bus.call(sessionService.getAgent, { id: body.agentId }, { ...caller.identity, signal });
    caller.require('administer', { projectId: agent.projectId, agentId: agent.id });
    if (!this.credentials.isOn) throw fault(httpApi.createWorker, 'ISOLATION_OFF');
    const live = await this.workers.list({ agentId: body.agentId, revokedAt: null }, LIVE);
    if (live.some(({ name }) => name === body.name)) throw fault(httpApi.createWorker, 'WORKER_EXISTS');
    for (const pool of body.pools)
      await this.bus.call(sessionService.ensurePool, { agentId: body.agentId, pool }, { ...caller.identity, signal });
    const { publicKey, file } = await this.credentials.make({ agentId: body.agentId, credentialName: body.name, pools: body.pools }, now);
    const times = { issuedAt: now, expiresAt: new Date(now.getTime() + CREDENTIAL_MS) };
    const audit = auditOf(request, { action: 'worker.created', target: `${body.agentId}/${body.name}`, projectId: agent.projectId });
    return { ...(await this.workers.create({ id: randomUUID(), ...body, publicKey }, times, audit)), credentials: file };
  }

  async revoke(request: RequestContext<typeof httpApi.revokeWorker>) {
    const { params, caller, now, signal } = request;
    const credential = await this.workers.find({ id: params.id });
    if (credential === undefined) throw fault(httpApi.revokeWorker, 'CREDENTIAL_UNKNOWN');
    caller.require('administer', { agentId: credential.agentId });
    if (credential.revokedAt !== null) return { revoked: false };
    const { agentId, name, pools, publicKey } = credential;
    await this.workers.revoke(credential, auditOf(request, { action: 'worker.revoked', target: `${agentId}/${name}` }));
    await this.credentials.revoke([publicKey], now);
    const left = await this.workers.list({ agentId, revokedAt: null }, LIVE);
    for (const pool of pools) {
      if (!left.some((other) => other.pools.includes(pool)))
        await this.bus.call(sessionService.removePool, { agentId, pool }, { ...caller.identity, signal });
    }
    return { revoked: true };
  }
}
