import { Bus } from '@ambit/bus';
import { httpApi, mcpBroker, platformFault, type Server } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { bind, type RequestContext } from './http/bound-route.js';
import type { Caller } from './http/caller.js';
import { PublicUrl } from './public-url.js';

type Asking = Pick<RequestContext<typeof httpApi.getServer>, 'caller' | 'signal'>;
const ANYBODY = ['send', 'read', 'administer'] as const;

/** Sign-ins to MCP servers: one's own is everybody's to begin and end, everybody's is an administrator's. */
@Injectable()
export class AuthorizationRoutes {
  constructor(
    private readonly bus: Bus,
    private readonly url: PublicUrl,
  ) {}

  readonly routes = [
    bind(
      httpApi.authorizeServer,
      async (request) => {
        const { caller, signal, body } = request;
        const server = await this.server(request, request.params.id);
        const subject = body.subject ?? (server.authorization.credentials === 'user' ? caller.principal.id : 'shared');
        requireSubject(caller, subject, server);
        return this.bus.call(
          mcpBroker.startAuthorization,
          { serverId: server.id, subject, redirectUri: this.url.callback, clientMetadataUrl: this.url.client },
          { ...caller.identity, signal },
        );
      },
      ANYBODY,
    ),
    bind(httpApi.listAuthorizations, async (request) => {
      const { caller, signal, query } = request;
      const server = await this.server(request, request.params.id);
      caller.require('read', server);
      return this.bus.call(mcpBroker.listAuthorizations, { serverId: server.id, ...query }, { ...caller.identity, signal });
    }),
    bind(
      httpApi.removeAuthorization,
      async (request) => {
        const { caller, signal, params } = request;
        const server = await this.server(request, params.id);
        requireSubject(caller, params.subject, server);
        return this.bus.call(
          mcpBroker.removeAuthorization,
          { serverId: server.id, subject: params.subject },
          { ...caller.identity, signal },
        );
      },
      ANYBODY,
    ),
    bind(
      httpApi.completeAuthorization,
      async (request) => {
        const { caller, signal, body } = request;
        const answer = callbackOf(new URL(body.callback), this.url.callback);
        const flow = await this.bus.call(mcpBroker.describeAuthorization, { state: answer.state }, { ...caller.identity, signal });
        requireSubject(caller, flow.subject, await this.server(request, flow.serverId));
        return this.bus.call(mcpBroker.finishAuthorization, answer, { ...caller.identity, signal });
      },
      ANYBODY,
    ),
  ];

  private server({ caller, signal }: Asking, id: string): Promise<Server> {
    return this.bus.call(mcpBroker.getServer, { id }, { ...caller.identity, signal });
  }
}

function requireSubject(caller: Caller, subject: string, { projectId }: Server): void {
  const isOwn = subject === caller.principal.id || (!subject.startsWith('agent:') && subject !== 'shared' && caller.mayActFor(subject));
  if (!isOwn) caller.require('administer', { projectId });
}

/** What an authorization server put into the address it sent a browser to. One that says a thing twice says nothing. */
export function callbackOf(url: URL, expected: string): { state: string; code?: string; iss?: string; error?: string } {
  if (url.origin + url.pathname !== expected) throw invalid(`Sign-ins end at ${expected}; this address is another one`);
  const read = (name: string, longest: number): string | undefined => {
    const values = url.searchParams.getAll(name);
    if (values.length > 1 || (values[0]?.length ?? 0) > longest) throw invalid(`The address says "${name}" twice, or too much of it`);
    return values[0];
  };
  const state = read('state', 500);
  if (state === undefined) throw invalid('The address has no state');
  const [code, iss, error] = [read('code', 8_192), read('iss', 2_048), read('error', 500)];
  return {
    state,
    ...(code === undefined ? {} : { code }),
    ...(iss === undefined ? {} : { iss }),
    ...(error === undefined ? {} : { error }),
  };
}

const invalid = (message: string) => platformFault('INVALID_INPUT', { issues: [{ path: 'callback', message }] }, message);
