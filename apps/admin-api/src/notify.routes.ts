import { httpApi } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { bind } from './http/bound-route.js';
import { NotifyService } from './notify.service.js';

/** Webhooks, and what they were told. */
@Injectable()
export class NotifyRoutes {
  constructor(private readonly notify: NotifyService) {}

  readonly routes = [
    bind(httpApi.listNotify, async (request) => {
      request.caller.require('administer', { projectId: request.query.projectId });
      return this.notify.list(request);
    }),
    bind(httpApi.listDeliveries, (request) => this.notify.told(request)),
  ];
}
