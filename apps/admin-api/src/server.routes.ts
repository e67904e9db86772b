import { Bus } from '@ambit/bus';
import { httpApi, mcpBroker, skillStore, type Server, type Switch } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { bind, type RequestContext } from './http/bound-route.js';
import { NotifyService } from './notify.service.js';

/** MCP servers and secrets. */
@Injectable()
export class ServerRoutes {
  constructor(
    private readonly bus: Bus,
    private readonly notify: NotifyService,
  ) {}

  readonly routes = [
    bind(httpApi.listServers, ({ query, caller, signal }) => {
      caller.require('read', { projectId: query.projectId });
      return this.bus.call(mcpBroker.listServers, query, { ...caller.identity, signal });
    }),
    bind(httpApi.getServer, (request) => this.server(request, 'read')),
    bind(httpApi.putServer, ({ params, body, caller, ifVersion, signal }) => {
      caller.require('administer', { projectId: body.projectId });
      return this.bus.call(
        mcpBroker.putServer,
        { ...body, slug: params.slug, owner: 'user', ...(ifVersion === undefined ? {} : { ifVersion }) },
        { ...caller.identity, signal },
      );
    }),
    bind(httpApi.deleteServer, async (request) => {
      const { id } = await this.server(request, 'administer');
      return this.bus.call(mcpBroker.deleteServer, { id }, { ...request.caller.identity, signal: request.signal });
    }),
    bind(httpApi.testServer, async (request) => {
      const { id } = await this.server(request, 'operate');
      return this.bus.call(mcpBroker.testServer, { id }, { ...request.caller.identity, signal: request.signal });
    }),
    bind(httpApi.getHeldTool, async (request) => {
      const { id } = await this.server(request, 'read');
      return this.bus.call(mcpBroker.getHeldTool, { id, ...request.query }, { ...request.caller.identity, signal: request.signal });
    }),
    bind(httpApi.acceptTool, async (request) => {
      const { id } = await this.server(request, 'administer');
      return this.bus.call(mcpBroker.acceptTool, { id, ...request.body }, { ...request.caller.identity, signal: request.signal });
    }),
    bind(httpApi.listSwitches, async ({ caller, signal }) => {
      caller.require('read');
      const within = { ...caller.identity, signal };
      const all = await Promise.all([
        this.bus.call(mcpBroker.listSwitches, {}, within),
        this.bus.call(skillStore.listSwitches, {}, within),
      ]);
      return { items: all.flatMap(({ items }): Switch[] => items) };
    }),
    bind(httpApi.putSwitch, ({ params: { name }, body, caller, signal }) => {
      caller.require('administer');
      const within = { ...caller.identity, signal };
      return name === 'skills'
        ? this.bus.call(skillStore.putSwitch, { ...body, name }, within)
        : this.bus.call(mcpBroker.putSwitch, { ...body, name }, within);
    }),
    bind(httpApi.enableServer, (request) => this.switch(request, true)),
    bind(httpApi.disableServer, (request) => this.switch(request, false)),
    bind(httpApi.listSecrets, ({ query, caller, signal }) => {
      caller.require('read', { projectId: query.projectId });
      return this.bus.call(mcpBroker.listSecrets, query, { ...caller.identity, signal });
    }),
    bind(httpApi.putSecret, ({ params, body, caller, signal }) => {
      caller.require('administer', { projectId: body.projectId });
      return this.bus.call(mcpBroker.putSecret, { ...body, ...params }, { ...caller.identity, signal });
    }),
    bind(httpApi.deleteSecret, async ({ params, query, caller, signal }) => {
      caller.require('administer', query);
      await this.notify.requireUnused({ ...params, ...query });
      return this.bus.call(mcpBroker.deleteSecret, { ...params, ...query }, { ...caller.identity, signal });
    }),
  ];

  private async switch(
    request: Pick<RequestContext<typeof httpApi.enableServer>, 'params' | 'caller' | 'signal'>,
    on: boolean,
  ): Promise<Server> {
    const { id } = await this.server(request, 'operate');
    return this.bus.call(mcpBroker.switchServer, { id, on }, { ...request.caller.identity, signal: request.signal });
  }

  private async server(
    { params, caller, signal }: Pick<RequestContext<typeof httpApi.getServer>, 'params' | 'caller' | 'signal'>,
    action: 'read' | 'operate' | 'administer',
  ): Promise<Server> {
    const server = await this.bus.call(mcpBroker.getServer, { id: params.id }, { ...caller.identity, signal });
    caller.require(action, { projectId: server.projectId });
    return server;
  }
}
