import { httpApi } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { EdgeTokenService } from './edge-token.service.js';
import { bind } from './http/bound-route.js';

/** Tokens of MCP clients. */
@Injectable()
export class EdgeTokenRoutes {
  constructor(private readonly tokens: EdgeTokenService) {}

  readonly routes = [
    bind(httpApi.listEdgeTokens, (request) => {
      request.caller.require('administer', request.query);
      return this.tokens.list(request);
    }),
    bind(httpApi.createEdgeToken, (request) => this.tokens.create(request)),
    bind(httpApi.revokeEdgeToken, (request) => this.tokens.revoke(request)),
  ];
}
