import type { ServerResponse } from 'node:http';
import { randomUUID } from 'node:crypto';
import { Bus } from '@ambit/bus';
import {
  Fault,
  httpApi,
  pattern,
  platformFault,
  sessionService,
  skillStore,
  type ImportSource,
  type Parsed,
  type Returns,
} from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { bind, type RequestContext } from './http/bound-route.js';
import { problemOf } from './http/problem.js';

type Context = Pick<RequestContext<typeof httpApi.executeImport>, 'caller' | 'signal' | 'traceId'>;
type Execute = Omit<Parsed<typeof skillStore.executeImport>, 'importId'>;

/** Imports of skills: a preview, and the import with its progress for whoever asks for it. */
@Injectable()
export class ImportRoutes {
  constructor(private readonly bus: Bus) {}

  readonly routes = [
    bind(httpApi.previewImport, async ({ body, caller, signal, traceId }) => {
      await this.#require(body, { caller, signal, traceId });
      return this.bus.call(skillStore.previewImport, body, { ...caller.identity, signal });
    }),
    bind(httpApi.executeImport, async ({ body, accept, ...context }, response) => {
      await this.#require(body, context);
      if (accept.includes('text/event-stream')) return this.#withProgress(body, context, response);
      return this.#execute(body, context, randomUUID());
    }),
  ];

  #execute(body: Execute, { caller, signal }: Context, importId: string): Promise<Returns<typeof skillStore.executeImport>> {
    return this.bus.call(skillStore.executeImport, { ...body, importId }, { ...caller.identity, signal });
  }

  /** Server-sent events: how far it is, and at the end the answer or what went wrong. */
  async #withProgress(body: Execute, context: Context, response: ServerResponse): Promise<void> {
    const importId = randomUUID();
    const progress = this.bus.connection.subscribe(pattern(skillStore.importProgressed, { importId }), {
      callback: (error, message) => void (error === null && response.write(frame('import.progressed', message.json()))),
    });
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store', 'x-accel-buffering': 'no' });
    try {
      response.write(frame('import.finished', await this.#execute(body, context, importId)));
    } catch (error) {
      const { traceId } = context;
      const fault = error instanceof Fault ? error : platformFault('INTERNAL', { traceId });
      response.write(frame('import.failed', problemOf(fault, traceId)));
    } finally {
      progress.unsubscribe();
      response.end();
    }
  }

  /** Whoever imports may change the target, and read the agent that the skills come from. */
  async #require(
    { agentId, source }: { readonly agentId: string; readonly source: ImportSource },
    { caller, signal }: Context,
  ): Promise<void> {
    const place = async (id: string): Promise<{ readonly projectId: string; readonly agentId: string }> => {
      const { projectId } = await this.bus.call(sessionService.getAgent, { id }, { ...caller.identity, signal });
      return { projectId, agentId: id };
    };
    if (!caller.may('operate')) caller.require('operate', await place(agentId));
    if (source.kind === 'agent' && !caller.may('read')) caller.require('read', await place(source.agentId));
  }
}

function frame(type: string, data: unknown): string {
  return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
}
