import type { StandardSchemaV1 } from '@modelcontextprotocol/client';
import {
  createMcpHandler,
  isLegacyRequest,
  Server,
  WebStandardStreamableHTTPServerTransport,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';

type Json = Record<string, unknown>;
export type Kind = 'tools' | 'prompts' | 'resources';
/** What a request is answered with; `context` reaches the client that asked. */
export type Answering = (params: Json, context: ServerContext) => Json | Promise<Json>;

/** A server of either era on the real SDK over Streamable HTTP, whose every answer the test decides. */
export interface SdkServer {
  readonly url: string;
  /** Requests that came, by method. */
  readonly asked: Map<string, number>;
  /** By method; a method without an answer is not known. */
  readonly answers: Map<string, Answering>;
  /** Tells every open connection that a list changed. */
  changed(kind: Kind): Promise<void>;
  /** Tells every open connection that a resource changed. */
  updated(uri: string): Promise<void>;
  /** Sends a request to the client of some open connection, outside of any call. */
  askClient(method: string, params: Json): Promise<unknown>;
  /** Ends every connection, as a server does that goes away. */
  drop(): Promise<void>;
  stop(): Promise<void>;
}

const any: StandardSchemaV1<Json, Json> = {
  '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value: value as Json }) },
};

export async function startSdkServer(options: {
  readonly capabilities: Json;
  readonly eras?: 'legacy' | 'modern' | 'both';
}): Promise<SdkServer> {
  const asked = new Map<string, number>();
  const answers = new Map<string, Answering>();
  const sessions = new Map<string, { readonly server: Server; readonly transport: WebStandardStreamableHTTPServerTransport }>();
  const eras = options.eras ?? 'legacy';

  function make(): Server {
    const server = new Server({ name: 'sdk-server', version: '1.0.0' }, { capabilities: options.capabilities });
    for (const method of answers.keys()) {
      const needed = method.startsWith('completion') ? 'completions' : (method.split('/')[0] ?? '');
      if (['tools', 'prompts', 'resources', 'completions'].includes(needed) && options.capabilities[needed] === undefined) continue;
      server.setRequestHandler(method, { params: any }, (params: Json, context: ServerContext) => {
        asked.set(method, (asked.get(method) ?? 0) + 1);
        const answer = answers.get(method);
        if (answer === undefined) throw new Error(`no answer to ${method}`);
        return answer(params, context);
      });
    }
    return server;
  }
  const modern = createMcpHandler(() => make(), { legacy: 'reject' });

  async function legacy(request: Request): Promise<Response> {
    const id = request.headers.get('mcp-session-id');
    if (id !== null)
      return (await sessions.get(id)?.transport.handleRequest(request)) ?? new Response('Session not found', { status: 404 });
    const server = make();
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (sessionId) => void sessions.set(sessionId, { server, transport }),
    });
    await server.connect(transport);
    return transport.handleRequest(request);
  }
  async function serve(request: Request): Promise<Response> {
    const isLegacy = await isLegacyRequest(request.clone());
    if (isLegacy && eras === 'modern') return modern.fetch(request);
    return isLegacy || eras === 'legacy' ? legacy(request) : modern.fetch(request);
  }

  const http = createServer((request, response) => {
    void webRequest(request)
      .then(serve)
      .then((answer) => reply(answer, response))
      .catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined));
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const address = http.address();
  const drop = async (): Promise<void> => {
    for (const [id, { server }] of [...sessions]) {
      sessions.delete(id);
      await server.close();
    }
    http.closeAllConnections();
  };
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/mcp`,
    asked,
    answers,
    changed: async (kind) => {
      for (const { server } of sessions.values()) await server.notification({ method: `notifications/${kind}/list_changed` });
      if (kind === 'tools') modern.notify.toolsChanged();
      if (kind === 'prompts') modern.notify.promptsChanged();
      if (kind === 'resources') modern.notify.resourcesChanged();
    },
    updated: async (uri) => {
      for (const { server } of sessions.values()) await server.notification({ method: 'notifications/resources/updated', params: { uri } });
      modern.notify.resourceUpdated(uri);
    },
    askClient: async (method, params) => {
      const [first] = sessions.values();
      return first?.server.request({ method, params }, any, { timeout: 5_000 });
    },
    drop,
    stop: async () => {
      await drop();
      await modern.close();
      http.close().closeAllConnections();
    },
  };
}

async function webRequest(request: IncomingMessage): Promise<Request> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk as Uint8Array);
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) if (typeof value === 'string') headers.set(name, value);
  const gone = new AbortController();
  request.socket.setMaxListeners(0).once('close', () => gone.abort());
  const body = Buffer.concat(chunks);
  return new Request(`http://${request.headers.host ?? 'localhost'}${request.url ?? ''}`, {
    method: request.method ?? 'GET',
    headers,
    signal: gone.signal,
    ...(body.length === 0 ? {} : { body }),
  });
}

function reply(answer: Response, response: ServerResponse): void {
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body === null) return void response.end();
  response.flushHeaders();
  const body = Readable.fromWeb(answer.body as never);
  body.on('error', () => response.destroy());
  response.on('close', () => body.destroy());
  body.pipe(response);
}

/** The usual answers of a server that lists what `lists` holds. */
export function lists(server: SdkServer, held: { tools?: Json[]; prompts?: Json[]; resources?: Json[]; templates?: Json[] }): void {
  const dated = { ttlMs: 60_000, cacheScope: 'private' };
  server.answers.set('tools/list', () => ({ tools: held.tools ?? [], ...dated }));
  server.answers.set('prompts/list', () => ({ prompts: held.prompts ?? [], ...dated }));
  server.answers.set('resources/list', () => ({ resources: held.resources ?? [], ...dated }));
  server.answers.set('resources/templates/list', () => ({ resourceTemplates: held.templates ?? [], ...dated }));
}
