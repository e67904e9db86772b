import { randomUUID } from 'node:crypto';
import { Bus } from '@ambit/bus';
import { fault, httpApi, sessionService } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { auditOf } from './admin-audit.js';
import { bind } from './http/bound-route.js';
import { paged } from './paging.js';
import { CREDENTIAL_MS, WorkerCredentials } from './worker-credentials.js';
import { WorkerRepository } from './worker.repository.js';

/** NATS identities of workers: issued, listed, revoked. */
@Injectable()
export class WorkerRoutes {
  constructor(
    private readonly bus: Bus,
    private readonly credentials: WorkerCredentials,
    private readonly workers: WorkerRepository,
  ) {}

  readonly routes = [
    bind(httpApi.listWorkers, ({ query, caller }) => {
      caller.require('read', query);
      return paged(
        query.limit,
        ({ id }) => id,
        (limit) => this.workers.list(query.agentId === undefined ? {} : { agentId: query.agentId }, { after: query.cursor, limit }),
      );
    }),
    bind(httpApi.createWorker, async (request) => {
      const { body, caller, now, signal } = request;
      const agent = await this.bus.call(sessionService.getAgent, { id: body.agentId }, { ...caller.identity, signal });
      caller.require('administer', { projectId: agent.projectId, agentId: agent.id });
      if (!this.credentials.isOn) throw fault(httpApi.createWorker, 'ISOLATION_OFF');
      const live = await this.workers.list({ agentId: body.agentId, revokedAt: null }, { limit: 1_000 });
      if (live.some(({ name }) => name === body.name)) throw fault(httpApi.createWorker, 'WORKER_EXISTS');
      for (const pool of body.pools)
        await this.bus.call(sessionService.ensurePool, { agentId: body.agentId, pool }, { ...caller.identity, signal });
      const { publicKey, file } = await this.credentials.make({ agentId: body.agentId, credentialName: body.name, pools: body.pools }, now);
      const times = { issuedAt: now, expiresAt: new Date(now.getTime() + CREDENTIAL_MS) };
      const created = await this.workers.create(
        { id: randomUUID(), ...body, publicKey },
        times,
        auditOf(request, { action: 'worker.created', target: `${body.agentId}/${body.name}`, projectId: agent.projectId }),
      );
      return { ...created, credentials: file };
    }),
    bind(httpApi.revokeWorker, async (request) => {
      const { params, caller, now, signal } = request;
      const credential = await this.workers.find({ id: params.id });
      if (credential === undefined) throw fault(httpApi.revokeWorker, 'CREDENTIAL_UNKNOWN');
      caller.require('administer', { agentId: credential.agentId });
      if (credential.revokedAt !== null) return { revoked: false };
      await this.workers.revoke(
        credential,
        auditOf(request, { action: 'worker.revoked', target: `${credential.agentId}/${credential.name}` }),
      );
      await this.credentials.revoke(credential.publicKey, now);
      const left = await this.workers.list({ agentId: credential.agentId, revokedAt: null }, { limit: 1_000 });
      for (const pool of credential.pools) {
        if (!left.some(({ pools }) => pools.includes(pool)))
          await this.bus.call(sessionService.removePool, { agentId: credential.agentId, pool }, { ...caller.identity, signal });
      }
      return { revoked: true };
    }),
  ];
}
