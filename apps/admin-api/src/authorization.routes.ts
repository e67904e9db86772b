import { Bus } from '@ambit/bus';
import { fault, httpApi, mcpBroker, platformFault, sessionService, type Server } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { bind, type RequestContext } from './http/bound-route.js';
import type { Caller } from './http/caller.js';
import { PublicUrl } from './public-url.js';
import { SignIns } from './sign-in.service.js';

type Asking = Pick<RequestContext<typeof httpApi.getServer>, 'caller' | 'signal'>;
const ANYBODY = ['send', 'read', 'administer'] as const;

/** Sign-ins to MCP servers: one's own is everybody's to begin and end, everybody's is an administrator's. */
@Injectable()
export class AuthorizationRoutes {
  constructor(
    private readonly bus: Bus,
    private readonly url: PublicUrl,
    private readonly signIns: SignIns,
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
    bind(
      httpApi.authorizeInteraction,
      async (request) => {
        const { caller, signal, params } = request;
        const found = await this.bus.call(sessionService.getInteraction, { id: params.id }, { ...caller.identity, signal });
        const { serverId, principal } = found;
        // Of another principal's sign-in nobody learns anything here, whatever their role.
        if (serverId === undefined || found.status !== 'pending' || !caller.standsFor(principal.id, found))
          throw fault(httpApi.authorizeInteraction, 'NO_INTERACTION');
        return this.bus.call(
          mcpBroker.startAuthorization,
          { serverId, subject: principal.id, redirectUri: this.url.callback, clientMetadataUrl: this.url.client, interactionId: found.id },
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
        if (!caller.standsFor(params.subject, server)) caller.require('administer', server);
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
        return this.signIns.finish(answer, { ...caller.identity, signal });
      },
      ANYBODY,
    ),
  ];

  private server({ caller, signal }: Asking, id: string): Promise<Server> {
    return this.bus.call(mcpBroker.getServer, { id }, { ...caller.identity, signal });
  }
}

/** Everybody's and an agent's credentials are an administrator's to give; a principal's are its own, whoever else may do what. */
function requireSubject(caller: Caller, subject: string, server: Server): void {
  if (subject === 'shared' || subject.startsWith('agent:')) return caller.require('administer', server);
  if (!caller.standsFor(subject, server)) throw platformFault('FORBIDDEN', undefined, `Only ${subject} can sign in as itself`);
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
