import { httpApi } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { ApplyService } from './apply.service.js';
import { bind } from './http/bound-route.js';

/** Desired states: what would change, and changing it. */
@Injectable()
export class ApplyRoutes {
  constructor(private readonly applying: ApplyService) {}

  readonly routes = [
    bind(httpApi.plan, (request) => {
      request.caller.require('read', { projectId: request.body.desired.project });
      return this.applying.plan(request.body.desired, request.body.prune, request);
    }),
    bind(httpApi.apply, (request) => {
      // A set may grant roles, which reach beyond its project.
      request.caller.require('administer', request.body.desired.access.length > 0 ? {} : { projectId: request.body.desired.project });
      return this.applying.apply(request.body, request);
    }),
  ];
}
