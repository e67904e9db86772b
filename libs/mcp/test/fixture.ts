import type { StandardSchemaV1, Transport } from '@modelcontextprotocol/client';
import { Server } from '@modelcontextprotocol/server';
import { inMemoryTarget, McpInstance, type Catalogue, type InstanceOptions, type ServerTarget } from '../src/index.js';

/** A server whose every answer the test decides. */
export class FixtureServer {
  listings = 0;
  calls = 0;
  connections = 0;
  cancelled: unknown[] = [];
  server: Server | undefined;
  tools: readonly unknown[] = [{ name: 'a', inputSchema: { type: 'object' } }];
  onList: (cursor: string | undefined) => Promise<Record<string, unknown>> | Record<string, unknown> = () => ({ tools: this.tools });
  onCall: (
    params: Record<string, unknown>,
    signal: AbortSignal,
    progress: (at: number) => Promise<void>,
  ) => Promise<Record<string, unknown>> | Record<string, unknown> = () => ({ content: [] });
  capabilities: Record<string, unknown> = { tools: { listChanged: true } };

  serve(transport: Transport): void {
    this.connections++;
    const server = new Server({ name: 'fixture', version: '1' }, { capabilities: this.capabilities });
    this.server = server;
    const any: StandardSchemaV1<Record<string, unknown>, Record<string, unknown>> = {
      '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value: value as Record<string, unknown> }) },
    };
    if (this.capabilities['tools'] !== undefined) {
      server.setRequestHandler('tools/list', { params: any }, async (params) => {
        this.listings++;
        return this.onList(typeof params['cursor'] === 'string' ? params['cursor'] : undefined);
      });
      server.setRequestHandler('tools/call', { params: any }, async (params, context) => {
        this.calls++;
        const token = context.mcpReq._meta?.progressToken;
        context.mcpReq.signal.addEventListener('abort', () => this.cancelled.push(context.mcpReq.signal.reason));
        return this.onCall(params, context.mcpReq.signal, async (at) => {
          if (token !== undefined)
            await context.mcpReq.notify({ method: 'notifications/progress', params: { progressToken: token, progress: at } });
        });
      });
    }
    void server.connect(transport);
  }

  async changed(): Promise<void> {
    await this.server?.notification({ method: 'notifications/tools/list_changed' });
  }

  target(): ServerTarget {
    return inMemoryTarget((transport) => this.serve(transport));
  }
}

/** An instance that remembers what it told, and lets a test wait for the next telling. */
export class Watched {
  readonly catalogues: Catalogue[] = [];
  readonly stale: (string | undefined)[] = [];
  private waiting: { readonly isMet: () => boolean; readonly resolve: () => void }[] = [];
  readonly instance: McpInstance;
  constructor(target: ServerTarget, more: Partial<InstanceOptions> = {}) {
    this.instance = new McpInstance({
      target,
      onCatalogue: (catalogue) => {
        this.catalogues.push(catalogue);
        this.wake();
      },
      onStale: (reason) => {
        this.stale.push(reason);
        this.wake();
      },
      ...more,
    });
  }
  private wake(): void {
    for (const waiter of this.waiting) if (waiter.isMet()) waiter.resolve();
  }
  until(isMet: () => boolean): Promise<void> {
    if (isMet()) return Promise.resolve();
    return new Promise((resolve) => this.waiting.push({ isMet, resolve }));
  }
  async call(name: string, args: Record<string, unknown> = {}, more: { timeoutMs?: number; abort?: AbortController } = {}) {
    return this.instance.call({
      request: { name, arguments: args },
      timeoutMs: more.timeoutMs ?? 5_000,
      abort: more.abort ?? new AbortController(),
    });
  }
}
