import { Bus } from '@ambit/bus';
import { diffSnapshots, readSnapshot, type SnapshotRecord } from '@ambit/capability';
import { httpApi, sessionService, toolGateway, type CallRecord } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { principalOf } from './auth.service.js';
import { bind, type RequestContext } from './http/bound-route.js';

type Asking = Pick<RequestContext<typeof httpApi.getSnapshot>, 'caller' | 'signal'>;

/** What may be seen and what was done: tools, snapshots, explanations, calls. */
@Injectable()
export class CapabilityRoutes {
  constructor(private readonly bus: Bus) {}

  readonly routes = [
    bind(httpApi.listTools, async ({ query, caller, signal }) => {
      caller.require('read', query);
      const { tools } = await this.bus.call(toolGateway.listTools, { purpose: 'configurable', ...query }, { ...caller.identity, signal });
      return { tools };
    }),
    bind(httpApi.diagnose, async ({ params, body, caller, signal }) => {
      caller.require('operate', await this.bus.call(sessionService.getSession, params, { ...caller.identity, signal }));
      return this.bus.call(toolGateway.askTool, { ...body, sessionId: params.id }, { ...caller.identity, signal });
    }),
    bind(
      httpApi.readArtifact,
      async ({ params, query, caller, signal }) => {
        const { id: sessionId, digest } = params;
        caller.requireSession(await this.bus.call(sessionService.getSession, { id: sessionId }, { ...caller.identity, signal }));
        return this.bus.call(toolGateway.getArtifact, { sessionId, digest, ...query }, { ...caller.identity, signal });
      },
      ['send'],
    ),
    bind(httpApi.listSnapshots, ({ query, caller, signal }) => {
      caller.require('read', query);
      return this.bus.call(sessionService.listSnapshots, query, { ...caller.identity, signal });
    }),
    bind(httpApi.getSnapshot, async (request) => ({ ...(await this.snapshot(request, request.params.fingerprint)) })),
    bind(httpApi.diffSnapshots, async (request) => {
      const [from, to] = await Promise.all([
        this.snapshot(request, request.params.fingerprint),
        this.snapshot(request, request.params.other),
      ]);
      return { ...diffSnapshots(from, to) };
    }),
    bind(httpApi.explain, ({ query, caller, signal }) => {
      caller.require('read', query);
      const { as, ...asked } = query;
      return this.bus.call(
        sessionService.explain,
        { ...asked, ...(as === undefined ? {} : { principal: principalOf(as) }) },
        { ...caller.identity, signal },
      );
    }),

    bind(
      httpApi.listCalls,
      async ({ query, caller, signal }) => {
        if (query.sessionId === undefined) caller.require('read', query);
        else caller.requireSession(await this.bus.call(sessionService.getSession, { id: query.sessionId }, { ...caller.identity, signal }));
        return this.bus.call(toolGateway.listCalls, query, { ...caller.identity, signal });
      },
      ['send'],
    ),
    bind(httpApi.getCall, (request) => this.call(request, request.params.operationId)),
    bind(httpApi.resolveCall, async (request) => {
      const call = await this.call(request, request.params.operationId);
      request.caller.require('operate', call);
      return this.bus.call(
        toolGateway.resolveCall,
        { ...request.params, ...request.body, by: request.caller.principal },
        { ...request.caller.identity, signal: request.signal },
      );
    }),
    bind(httpApi.cancelCall, async (request) => {
      const call = await this.call(request, request.params.operationId);
      request.caller.require('operate', call);
      return this.bus.call(toolGateway.cancelCall, request.params, { ...request.caller.identity, signal: request.signal });
    }),
  ];

  private async call({ caller, signal }: Asking, operationId: string): Promise<CallRecord> {
    const call = await this.bus.call(toolGateway.getCall, { operationId }, { ...caller.identity, signal });
    caller.require('read', call);
    return call;
  }

  private async snapshot({ caller, signal }: Asking, fingerprint: string): Promise<SnapshotRecord> {
    let text = '';
    let offset: number | null = 0;
    while (offset !== null) {
      const part: { readonly text: string; readonly next: number | null; readonly agentId: string } = await this.bus.call(
        sessionService.readSnapshot,
        { fingerprint, offset },
        { ...caller.identity, signal },
      );
      if (offset === 0 && !caller.may('read'))
        caller.require('read', {
          agentId: part.agentId,
          projectId: (await this.bus.call(sessionService.getAgent, { id: part.agentId }, { ...caller.identity, signal })).projectId,
        });
      text += part.text;
      offset = part.next;
    }
    return readSnapshot(text, fingerprint);
  }
}
