// Long because one running system serves every scenario of servers: starting it takes longer than all of them.
import { mcpBroker, toolGateway, type Input, type Output } from '@ambit/contracts';
import { canary, canariesIn, collect, until, type Collector } from '@ambit/testing';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server as HttpServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startSystem, type System } from '../system/system.js';
import { verifies } from '../verifies.js';

jest.setTimeout(180_000);
const fixture = fileURLToPath(new URL('../../apps/mcp-runner/test/fixtures/server.mjs', import.meta.url));

let system: System;
let folder: string;
let changes: Collector<typeof mcpBroker.catalogueChanged>;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ambit-mcp-scenario-'));
  system = await startSystem({ services: ['mcp-broker', 'mcp-runner'], environment: { AMBIT_RUNNER_CHILD_USER: 'same' } });
  changes = await collect(system.connection, mcpBroker.catalogueChanged);
});
afterAll(async () => {
  changes?.stop();
  await system?.stop();
  await rm(folder, { recursive: true, force: true });
});

type PutServer = Input<typeof mcpBroker.putServer>;
type Server = Output<typeof mcpBroker.getServer>;
const hex = (): string => randomBytes(32).toString('hex');
const put = (input: PutServer): Promise<Server> => system.bus.call(mcpBroker.putServer, input);
const get = (id: string): Promise<Server> => system.bus.call(mcpBroker.getServer, { id });
const listed = (id: string) =>
  changes.next(({ payload }) => payload.serverId === id && payload.catalogHash !== null && payload.state === 'connected', 60_000);

/** A stdio server that writes down what it is asked. */
function child(slug: string, env: Record<string, string | { secret: string }> = {}): PutServer & { readonly log: string } {
  const log = join(folder, `${slug}-${hex().slice(0, 8)}.log`);
  return { slug, transport: { type: 'stdio', command: process.execPath, args: [fixture], env: { LOG_FILE: log, ...env } }, log };
}
const putChild = async ({ log: _log, ...input }: ReturnType<typeof child>): Promise<Server> => put(input);
const linesOf = (log: string): string[] => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []);

const ensure = (server: Server) =>
  system.bus.call(
    mcpBroker.ensureInstance,
    { configGeneration: server.configGeneration, bindingHash: server.bindingHash, agentId: 'guide', sessionId: randomUUID() },
    { keys: { serverId: server.id }, timeoutMs: 60_000 },
  );
async function call(server: Server, tool: string, more: Partial<Input<typeof mcpBroker.executeCall>> = {}) {
  const { instanceId, leaseRevision } = await ensure(server);
  const { id: serverId, configGeneration, bindingHash } = server;
  const input = {
    serverId,
    configGeneration,
    bindingHash,
    leaseRevision,
    operationId: hex(),
    gatewayId: randomUUID(),
    tool,
    arguments: {},
    callTimeoutMs: 20_000,
    ...more,
  };
  return system.bus.call(mcpBroker.executeCall, input, { keys: { instanceId }, timeoutMs: 60_000 });
}
const textOf = (answer: { readonly result?: Record<string, unknown> | undefined }): string =>
  String((answer.result?.['content'] as { text: string }[] | undefined)?.[0]?.text);

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

const http: HttpServer[] = [];
afterAll(() => {
  for (const server of http) server.close().closeAllConnections();
});
async function listen(answer: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(answer);
  http.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/mcp`;
}
async function bodyOf(request: IncomingMessage): Promise<{ readonly id?: number; readonly method?: string }> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk as Uint8Array);
  const text = Buffer.concat(chunks).toString();
  return text === '' ? {} : (JSON.parse(text) as { id?: number; method?: string });
}
/** A Streamable HTTP server that can forget its sessions. */
async function forgetful(): Promise<{ readonly url: string; readonly seen: string[]; forget(): void; answer: 'result' | 'hang' }> {
  const seen: string[] = [];
  let session = randomUUID();
  const state = { url: '', seen, answer: 'result' as 'result' | 'hang', forget: () => void (session = randomUUID()) };
  state.url = await listen((request, response) => {
    void bodyOf(request).then(({ id, method }) => {
      if (request.method !== 'POST') return response.writeHead(405).end();
      seen.push(method ?? 'nothing');
      const reply = (result: unknown): void =>
        void response
          .writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': session })
          .end(JSON.stringify({ jsonrpc: '2.0', id, result }));
      if (method === 'server/discover')
        return response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }));
      if (method === 'initialize')
        return reply({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'forgetful', version: '1' } });
      if (request.headers['mcp-session-id'] !== session) return response.writeHead(404).end('Session not found');
      if (method === 'tools/list') return reply({ tools: [{ name: 'count', inputSchema: { type: 'object' } }] });
      if (method === 'tools/call' && state.answer === 'result') return reply({ content: [{ type: 'text', text: 'counted' }] });
      if (method !== 'tools/call') return response.writeHead(202).end();
      return response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .write(': waiting\n\n', () => setTimeout(() => response.destroy(), 200));
    });
  });
  return state;
}

verifies(
  ['R-MCP-1#1', 'R-MCP-1#2', 'R-MCP-1#3', 'R-MCP-2#1'],
  'a configuration of each transport comes back as written; what it may not say is refused',
  async () => {
    const transports: PutServer['transport'][] = [
      { type: 'stdio', command: 'node', args: ['a.js'], env: { A: 'one' } },
      { type: 'http', url: 'https://mcp.example.com/mcp', headers: { 'X-Team': 'a' } },
      { type: 'sse', url: 'https://mcp.example.com/sse', headers: {} },
      { type: 'inmemory', name: 'echo' },
    ];
    for (const transport of transports)
      expect((await get((await put({ slug: `kept-${transport.type}`, transport, enabled: false })).id)).transport).toEqual(transport);
    const strange = { slug: 'strange', transport: { type: 'pigeon', url: 'https://mcp.example.com' } };
    await expect(put(strange as never)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    await expect(
      put({ slug: 'strange', transport: { type: 'http', url: 'https://mcp.example.com', headers: { 'X-A': 'a\r\nX-B: b' } } }),
    ).rejects.toMatchObject({ code: 'HEADER_REFUSED' });
    for (const wish of [
      { slug: 'strange', transport: transports[0], autoApprove: ['*'] },
      { slug: 'strange', transport: { ...transports[0], autoApprove: ['*'] } },
    ]) {
      await expect(put(wish as never)).rejects.toMatchObject({
        code: 'INVALID_INPUT',
        data: { issues: [{ message: expect.stringContaining('autoApprove') }] },
      });
    }
  },
);

verifies(
  ['R-MCP-1#4', 'R-MCP-7#1', 'R-MCP-7#2'],
  'a secret reaches its server alone, in an environment that holds nothing of ours',
  async () => {
    const value = canary('mcpscenario');
    await system.bus.call(mcpBroker.putSecret, { name: 'scenario-key', from: 'store', value });
    const server = await putChild(child('keyed', { KEY: { secret: 'scenario-key' } }));
    const environment = JSON.parse(textOf(await call(server, 'env'))) as Record<string, string>;
    expect(environment['KEY']).toBe(value);
    expect(Object.keys(environment).filter((name) => /^(NATS|AMBIT|DATABASE|OPS)/.test(name))).toEqual([]);
    const told = JSON.stringify([
      await get(server.id),
      await system.bus.call(mcpBroker.listServers, {}),
      await system.bus.call(mcpBroker.listSecrets, {}),
      changes.all,
    ]);
    expect(canariesIn(told)).toEqual([]);
  },
);

verifies(['R-MCP-3#1', 'R-MCP-3#2', 'R-MCP-3#3'], 'the generation moves with what a server is, and with nothing else', async () => {
  const { log: _log, ...base } = child('identity');
  const first = await put({ ...base, enabled: false });
  const same = await put({ ...base, enabled: false, display: 'Another name', timeouts: { callMs: 5_000 } });
  expect(same).toMatchObject({ id: first.id, configGeneration: 1, bindingHash: first.bindingHash });
  const edits: PutServer['transport'][] = [
    { type: 'stdio', command: 'deno', args: [fixture] },
    { type: 'stdio', command: 'deno', args: ['other.js'] },
    { type: 'stdio', command: 'deno', args: ['other.js'], env: { A: '1' } },
    { type: 'http', url: 'https://mcp.example.com/a' },
    { type: 'http', url: 'https://mcp.example.com/b' },
    { type: 'http', url: 'https://mcp.example.com/b', headers: { A: '1' } },
  ];
  for (const [index, transport] of edits.entries())
    expect((await put({ slug: 'identity', transport, enabled: false })).configGeneration).toBe(index + 2);
  await system.bus.call(mcpBroker.deleteServer, { id: first.id });
  expect((await put({ ...base, enabled: false })).id).not.toBe(first.id);
});

verifies(
  ['R-MCP-4#1', 'R-MCP-4#2', 'R-MCP-12#1'],
  'a server that never answers is killed at its limit and said to have failed, and delays no other',
  async () => {
    const silent = child('silent', { SILENT: '1' });
    const quick = child('quick');
    const failing = put({ slug: silent.slug, transport: silent.transport, timeouts: { startMs: 4_000 } });
    const server = await putChild(quick);
    const at = performance.now();
    await listed(server.id);
    expect(performance.now() - at).toBeLessThan(20_000);
    const { id } = await failing;
    await changes.next(({ payload }) => payload.serverId === id && payload.state === 'failed', 60_000);
    expect(await get(id)).toMatchObject({ reason: expect.stringContaining('4000 ms'), catalogHash: null });
    const pids = linesOf(silent.log).map((line) => Number(line.replace('start ', '')));
    await put({ slug: silent.slug, transport: silent.transport, enabled: false });
    await until(() => !pids.some(isRunning));
    const { servers } = await system.bus.call(mcpBroker.catalogueHeads, { projectId: 'default' });
    expect(servers.find(({ serverId }) => serverId === server.id)).toMatchObject({ state: 'connected', stale: false });
  },
);

verifies(
  ['R-MCP-4#3', 'R-MCP-4#4', 'R-MCP-5#1'],
  'what is switched off is gone with its grandchildren, does not come up later, and stays off',
  async () => {
    const on = child('switched');
    const server = await putChild(on);
    const pids = [
      Number(textOf(await call(server, 'pid'))),
      Number(textOf(await call(server, 'child'))),
      Number(textOf(await call(server, 'stray'))),
    ];
    expect(pids.every(isRunning)).toBe(true);
    expect(await put({ slug: on.slug, transport: on.transport, enabled: false })).toMatchObject({ state: 'disabled' });
    await until(() => !pids.some(isRunning));
    await expect(ensure(server)).rejects.toMatchObject({ code: 'TOOL_GONE' });

    const slow = child('slow-start', { SILENT: '1' });
    const starting = await putChild(slow);
    await until(() => linesOf(slow.log).length > 0, 30_000);
    await put({ slug: slow.slug, transport: slow.transport, enabled: false });
    await until(() => !isRunning(Number(linesOf(slow.log)[0]?.replace('start ', ''))), 60_000);

    const broker = system.process('mcp-broker');
    await broker.stop();
    await broker.start();
    for (const id of [server.id, starting.id]) expect(await get(id)).toMatchObject({ enabled: false, state: 'disabled' });
  },
);

verifies(
  ['R-MCP-6#1', 'R-MCP-6#2'],
  'a session that the server forgot is opened anew once; a call whose end is unknown is not repeated',
  async () => {
    const upstream = await forgetful();
    const server = await put({ slug: 'forgetful', transport: { type: 'http', url: upstream.url } });
    await listed(server.id);
    upstream.forget();
    upstream.seen.length = 0;
    expect(textOf(await call(server, 'count'))).toBe('counted');
    expect(upstream.seen.filter((method) => method === 'initialize')).toHaveLength(1);
    expect(upstream.seen.filter((method) => method === 'tools/call')).toHaveLength(2);
    upstream.answer = 'hang';
    upstream.seen.length = 0;
    await expect(call(server, 'count')).rejects.toMatchObject({ code: 'INDETERMINATE' });
    expect(upstream.seen.filter((method) => method === 'tools/call')).toHaveLength(1);
  },
);

verifies(['R-MCP-8#1', 'R-MCP-8#2'], '151 tools are listed whole, and one monster is left out alone', async () => {
  const server = await putChild(child('many', { MANY: '1' }));
  await listed(server.id);
  const { catalogHash, tools } = await get(server.id);
  expect(tools).toBe(151 + 12);
  const names: string[] = [];
  for (let offset: number | null = 0; offset !== null;) {
    const page: Output<typeof mcpBroker.cataloguePage> = await system.bus.call(mcpBroker.cataloguePage, {
      serverId: server.id,
      catalogHash: catalogHash ?? '',
      offset,
    });
    names.push(...page.tools.map(({ name }) => name));
    offset = page.next;
  }
  expect(names).toHaveLength(tools);
  expect(names).not.toContain('monster');
});

verifies(
  ['R-MCP-9#1', 'R-MCP-9#2', 'R-MCP-9#3', 'R-MCP-9#4'],
  'every page of what is offered is read, and nothing else is asked for',
  async () => {
    const paged = child('paged', { PAGES: '1' });
    const server = await putChild(paged);
    await listed(server.id);
    expect((await get(server.id)).tools).toBe(12);
    const lines = linesOf(paged.log);
    expect(lines.filter((line) => line.startsWith('list'))).toEqual(['list undefined', 'list ', 'list last']);
    expect(lines.filter((line) => /prompts|resources/.test(line))).toEqual([]);
  },
);

verifies(['R-MCP-10#2', 'R-MCP-10#3'], 'a burst of a hundred notices moves one version of one catalogue, once', async () => {
  const growing = child('growing');
  const [server, other] = await Promise.all([putChild(growing), putChild(child('still'))]);
  await Promise.all([listed(server.id), listed(other.id)]);
  const before = { all: changes.all.length, hash: (await get(server.id)).catalogHash, other: (await get(other.id)).catalogHash };
  await call(server, 'grow', { arguments: { notices: 100 } });
  await changes.next(
    ({ payload }) => payload.serverId === server.id && payload.catalogHash !== null && payload.catalogHash !== before.hash,
  );
  expect((await get(server.id)).tools).toBe(13);
  expect((await get(other.id)).catalogHash).toBe(before.other);
  const moved = changes.all.slice(before.all).map(({ payload }) => payload);
  expect(moved.filter(({ serverId }) => serverId === server.id)).toHaveLength(1);
  expect(moved.filter(({ serverId }) => serverId === other.id)).toEqual([]);
});

verifies('R-MCP-12#2', 'a tool of a server that fails ends in a typed fault', async () => {
  const upstream = await forgetful();
  const server = await put({ slug: 'failing', transport: { type: 'http', url: upstream.url } });
  await listed(server.id);
  const [last] = http.splice(-1);
  last?.close().closeAllConnections();
  await expect(call(server, 'count')).rejects.toMatchObject({
    code: 'SERVER_UNAVAILABLE',
    data: { reason: expect.stringContaining('ECONNREFUSED') },
  });
});

verifies(
  ['R-MCP-17#1', 'R-MCP-17#2', 'R-MCP-17#3', 'R-MCP-17#4'],
  'a call has its time-out, its progress, its cancel and a bounded result',
  async () => {
    const limited = child('limited');
    for (const callMs of [999, 3_600_001])
      await expect(put({ slug: limited.slug, transport: limited.transport, timeouts: { callMs } })).rejects.toMatchObject({
        code: 'INVALID_INPUT',
      });
    for (const callMs of [1_000, 3_600_000])
      expect((await put({ slug: limited.slug, transport: limited.transport, timeouts: { callMs } })).timeouts.callMs).toBe(callMs);
    const server = await put({ slug: limited.slug, transport: limited.transport, timeouts: { callMs: 1_000, onProgress: 'extend' } });
    expect(await ensure(server)).toMatchObject({ callTimeoutMs: 1_000, onProgress: 'extend' });

    await expect(call(server, 'hang', { callTimeoutMs: 1_000 })).rejects.toMatchObject({ code: 'CALL_TIMEOUT' });
    const progress = await collect(system.connection, toolGateway.callProgress);
    const operationId = hex();
    const { instanceId } = await ensure(server);
    const slow = call(server, 'slow', { operationId, callTimeoutMs: 1_000, onProgress: 'extend' });
    const ended = expect(slow).rejects.toMatchObject({ code: 'CANCELLED' });
    // More than the time-out long, on progress alone.
    await progress.next(({ payload }) => payload.operationId === operationId && payload.progress > 30);
    system.bus.signal(mcpBroker.cancelCall, { operationId, reason: 'test' }, { keys: { instanceId } });
    await ended;
    await until(() => linesOf(limited.log).some((line) => line.startsWith('cancelled')));
    progress.stop();

    await expect(call(server, 'big', { arguments: { bytes: 11 * 1024 * 1024 } })).rejects.toMatchObject({
      code: 'RESULT_TOO_LARGE',
      data: { limitBytes: 10 * 1024 * 1024 },
    });
  },
);

verifies('R-MCP-18#2', 'what a server says of a cancelled call later is ignored', async () => {
  const server = await putChild(child('late'));
  const { instanceId } = await ensure(server);
  const operationId = hex();
  const hanging = call(server, 'hang', { operationId });
  const ended = expect(hanging).rejects.toMatchObject({ code: 'CANCELLED' });
  await wait(300);
  system.bus.signal(mcpBroker.cancelCall, { operationId, reason: 'test' }, { keys: { instanceId } });
  await ended;
  expect(textOf(await call(server, 'count', { arguments: { value: 'after' } }))).toBe('after');
});

verifies(['R-MCP-20#1', 'R-MCP-20#2', 'R-MCP-20#3'], 'credentials stay with their origin, and closed addresses closed', async () => {
  const refused: PutServer['transport'][] = [
    'http://user:word@mcp.example.com/',
    'http://169.254.169.254/latest',
    'http://10.0.0.1/mcp',
    'http://[fe80::1]/mcp',
  ].map((url) => ({ type: 'http', url }));
  for (const transport of refused) await expect(put({ slug: 'closed', transport })).rejects.toMatchObject({ code: 'URL_REFUSED' });
  const arrived: (string | undefined)[] = [];
  const elsewhere = await listen((request, response) => {
    arrived.push(request.headers.authorization);
    response.writeHead(404).end();
  });
  const url = await listen((_request, response) => void response.writeHead(307, { location: elsewhere }).end());
  const server = await put({ slug: 'redirected', transport: { type: 'http', url, headers: { Authorization: 'Bearer of-this-origin' } } });
  expect(await system.bus.call(mcpBroker.testServer, { id: server.id })).toMatchObject({ state: 'failed' });
  expect(arrived).toEqual([]);
});

verifies('R-MCP-4#3', 'a runner that is killed leaves nothing, and another takes its servers over', async () => {
  const server = await putChild(child('orphaned'));
  const pids = [
    Number(textOf(await call(server, 'pid'))),
    Number(textOf(await call(server, 'child'))),
    Number(textOf(await call(server, 'stray'))),
  ];
  const old = await ensure(server);
  const runner = system.process('mcp-runner');
  await runner.kill();
  await until(() => !pids.some(isRunning));
  await runner.start();
  await until(() => existsSync(fixture));
  let next = await ensure(server).catch(() => undefined);
  for (
    const end = performance.now() + 15_000;
    (next === undefined || next.leaseRevision === old.leaseRevision) && performance.now() < end;
    await wait(200)
  )
    next = await ensure(server).catch(() => undefined);
  expect(next?.leaseRevision).toBeGreaterThan(old.leaseRevision);
  expect(textOf(await call(server, 'count'))).toBe('counted');
});
