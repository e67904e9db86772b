import { httpApi } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { bind } from './http/bound-route.js';
import { WorkerService } from './worker.service.js';

/** NATS identities of workers. */
@Injectable()
export class WorkerRoutes {
  constructor(private readonly workers: WorkerService) {}

  readonly routes = [
    bind(httpApi.listWorkers, async (request) => {
      request.caller.require('read', request.query);
      return this.workers.list(request);
    }),
    bind(httpApi.createWorker, (request) => this.workers.create(request)),
    bind(httpApi.revokeWorker, (request) => this.workers.revoke(request)),
  ];
}
