import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { until } from '@ambit/testing';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server as HttpServer, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { connectServer, egressFetch, httpTarget } from '../src/index.js';
import { Watched } from './fixture.js';

const require = createRequire(import.meta.url);
const everything = require.resolve('@modelcontextprotocol/server-everything/dist/index.js');
const fetch = egressFetch({ allows: () => true });

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function startEverything(mode: 'streamableHttp' | 'sse', port: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, [everything, mode], {
    env: { PATH: process.env['PATH'], PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await new Promise<void>((resolve, reject) => {
    child.stderr?.on('data', (chunk: Buffer) => {
      if (/listening|running on port/i.test(chunk.toString())) resolve();
    });
    child.once('exit', () => reject(new Error('server-everything ended')));
  });
  return child;
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

describe('a real Streamable HTTP server', () => {
  let port: number;
  let child: ChildProcess;
  let watched: Watched;
  beforeAll(async () => {
    port = await freePort();
    child = await startEverything('streamableHttp', port);
    watched = new Watched(httpTarget({ url: new URL(`http://127.0.0.1:${port}/mcp`), headers: {}, fetch }));
  });
  afterAll(async () => {
    await watched.instance.stop();
    await stop(child);
  });

  it('is listed and called', async () => {
    const { tools } = await watched.instance.catalogue.get();
    expect(tools.map((tool) => tool.name)).toContain('echo');
    expect(await watched.call('echo', { message: 'hello' })).toMatchObject({
      status: 'completed',
      result: { content: [{ text: 'Echo: hello' }] },
    });
  });

  it('that restarts and forgets its sessions is initialised once more, and the call it refused succeeds', async () => {
    await stop(child);
    child = await startEverything('streamableHttp', port);
    expect(await watched.call('echo', { message: 'again' })).toMatchObject({ status: 'completed' });
  });

  it('that dies during a call leaves it uncertain at once, and a later call is not dispatched while it is away', async () => {
    const abort = new AbortController();
    const progress = new Promise<void>((resolve) => {
      void watched.instance
        .call({
          request: { name: 'trigger-long-running-operation', arguments: { duration: 20, steps: 200 } },
          timeoutMs: 30_000,
          abort,
          onProgress: () => resolve(),
        })
        .then((outcome) => ended(outcome));
    });
    let ended: (outcome: unknown) => void = () => undefined;
    const outcome = new Promise((resolve) => (ended = resolve));
    await progress;
    await stop(child);
    expect(await outcome).toMatchObject({ status: 'uncertain', cause: 'connection_lost' });
    expect(await watched.call('echo', { message: 'x' })).toMatchObject({ status: 'not_dispatched', cause: 'unreachable' });
    child = await startEverything('streamableHttp', port);
    // After a failure it is not tried again for a moment: calls are told so, and nothing is sent.
    let later = await watched.call('echo', { message: 'x' });
    await until(async () => {
      later = await watched.call('echo', { message: 'x' });
      return later.status !== 'not_dispatched';
    }, 30_000);
    expect(later).toMatchObject({ status: 'completed' });
  });
});

it('a server that speaks only the old SSE transport is reached by the fall-back', async () => {
  const port = await freePort();
  const child = await startEverything('sse', port);
  try {
    const session = await connectServer(httpTarget({ url: new URL(`http://127.0.0.1:${port}/sse`), headers: {}, fetch }));
    expect(session.facts.era).toBe('legacy');
    expect(await session.call({ name: 'echo', arguments: { message: 'sse' } }, { timeoutMs: 5_000 })).toMatchObject({
      status: 'completed',
    });
    await session.close();
  } finally {
    await stop(child);
  }
});

describe('a server of the modern era', () => {
  const servers: HttpServer[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close().closeAllConnections();
  });

  it('is discovered, called, heard when its list changes, and reached without a probe when its verdict is known', async () => {
    let names = ['one'];
    const handler = createMcpHandler(
      () => {
        const server = new McpServer({ name: 'modern', version: '1' }, { capabilities: { tools: { listChanged: true } } });
        for (const name of names) server.registerTool(name, { description: name }, () => ({ content: [{ type: 'text', text: name }] }));
        return server;
      },
      { legacy: 'reject' },
    );
    const methods: string[] = [];
    const http = createServer((request, response) => void relay(request, response, { serve: handler.fetch, methods }));
    servers.push(http);
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    const address = http.address();
    const url = new URL(`http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/mcp`);
    const watched = new Watched(httpTarget({ url, headers: {}, fetch }));
    await watched.instance.catalogue.get();
    expect(watched.instance.facts).toMatchObject({ era: 'modern', protocolVersion: '2026-07-28', name: 'modern' });
    expect(await watched.call('one')).toMatchObject({ status: 'completed', result: { content: [{ text: 'one' }] } });
    names = ['one', 'two'];
    handler.notify.toolsChanged();
    await watched.until(() => watched.catalogues.length === 2);
    expect(watched.catalogues[1]?.tools).toHaveLength(2);
    const verdict = watched.instance.facts?.verdict;
    await watched.instance.stop();
    methods.length = 0;
    const again = await connectServer(httpTarget({ url, headers: {}, fetch }), verdict === undefined ? {} : { verdict });
    expect(await again.call({ name: 'two', arguments: {} }, { timeoutMs: 5_000 })).toMatchObject({ status: 'completed' });
    expect(methods).not.toContain('server/discover');
    await again.close();
    await handler.close();
  });
});

async function relay(
  request: IncomingMessage,
  response: ServerResponse,
  { serve, methods }: { readonly serve: (request: Request) => Promise<Response>; readonly methods: string[] },
): Promise<void> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk as Uint8Array);
  const body = Buffer.concat(chunks).toString();
  if (body !== '') methods.push(String((JSON.parse(body) as { method?: string }).method));
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const answer = await serve(
    new Request(`http://127.0.0.1${request.url ?? '/'}`, {
      method: request.method ?? 'GET',
      headers: request.headers as Record<string, string>,
      signal: gone.signal,
      ...(body === '' ? {} : { body }),
    }),
  );
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.flushHeaders();
  if (answer.body !== null) for await (const chunk of answer.body) response.write(chunk);
  response.end();
}

describe('what a server may send', () => {
  it('an answer over the limit is an error with the limit, as JSON and as a stream', async () => {
    for (const type of ['application/json', 'text/event-stream']) {
      const http = createServer((_request, response) => {
        response.writeHead(200, { 'content-type': type });
        response.write(`data: ${'x'.repeat(2_000)}`);
        response.end();
      });
      http.listen(0, '127.0.0.1');
      await once(http, 'listening');
      const address = http.address();
      const small = egressFetch({ allows: () => true, limitBytes: 1_000 });
      const read = small(`http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/`).then((answer) =>
        answer.text(),
      );
      await expect(read).rejects.toMatchObject({ name: 'TooLargeError', limitBytes: 1_000 });
      http.close().closeAllConnections();
    }
  });

  it('no connection is made to an address that is not allowed, by number or by name', async () => {
    const closed = egressFetch({ allows: () => false });
    await expect(closed('http://127.0.0.1:9/')).rejects.toMatchObject({ code: 'AMBIT_EGRESS_REFUSED' });
    await expect(closed('http://localhost:9/')).rejects.toMatchObject({ code: 'AMBIT_EGRESS_REFUSED' });
  });
});
