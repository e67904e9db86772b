import { httpApi } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { AccessService } from './access.service.js';
import { bind } from './http/bound-route.js';

/** Tokens, role grants, and who one is. */
@Injectable()
export class AccessRoutes {
  constructor(private readonly access: AccessService) {}

  readonly routes = [
    bind(httpApi.whoAmI, async ({ caller }) => ({ principal: caller.principal, groups: [...caller.groups], grants: [...caller.grants] }), [
      'send',
      'decide',
      'audit',
    ]),
    bind(httpApi.listTokens, async (request) => {
      request.caller.require('administer');
      return this.access.listTokens(request);
    }),
    bind(httpApi.createToken, async (request) => {
      request.caller.require('administer');
      return this.access.createToken(request);
    }),
    bind(httpApi.revokeToken, async (request) => {
      request.caller.require('administer');
      return this.access.revokeToken(request);
    }),
    bind(httpApi.listAccess, async (request) => {
      request.caller.require('administer');
      return this.access.listGrants(request);
    }),
    bind(httpApi.grantRole, async (request) => {
      request.caller.require('administer');
      return this.access.grant(request);
    }),
    bind(httpApi.revokeRole, async (request) => {
      request.caller.require('administer');
      return this.access.revokeGrant(request);
    }),
  ];
}
