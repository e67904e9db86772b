// Long because one broker serves every test: starting it takes longer than any of them.
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { instanceId as idOf } from '@ambit/capability';
import { buckets, epochKey, Fault, mcpBroker, mcpRunner, type Input, type Output } from '@ambit/contracts';
import { openDatabase } from '@ambit/db';
import type { RunningService } from '@ambit/service';
import {
  canary,
  collect,
  startNats,
  startPostgres,
  startService,
  until,
  withClient,
  type Collector,
  type TestNats,
  type TestPostgres,
} from '@ambit/testing';
import { Kvm } from '@nats-io/kv';
import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { Writable } from 'node:stream';
import { BrokerConfig } from '../src/config.js';
import { McpBrokerModule } from '../src/mcp-broker.module.js';
import { verifies } from '../../../test/verifies.js';

const require = createRequire(import.meta.url);
const everything = require.resolve('@modelcontextprotocol/server-everything/dist/index.js');
const hex = (): string => randomBytes(32).toString('hex');

let nats: TestNats;
let postgres: TestPostgres;
let broker: RunningService;
let changes: Collector<typeof mcpBroker.catalogueChanged>;
let logged = '';
const sealingKey = hex();
const logTo = new Writable({
  write(chunk: Buffer, _encoding, done) {
    logged += chunk.toString();
    done();
  },
});

type Server = Output<typeof mcpBroker.getServer>;
const startBroker = (): Promise<RunningService> =>
  startService('mcp-broker', McpBrokerModule, {
    nats,
    postgres,
    config: BrokerConfig,
    database: openDatabase,
    environment: { AMBIT_SEALING_KEY: sealingKey, AMBIT_LOG_LEVEL: 'debug' },
    logTo,
  } as never);

beforeAll(async () => {
  [nats, postgres] = await Promise.all([startNats(), startPostgres()]);
  changes = await collect(nats.connection, mcpBroker.catalogueChanged);
  broker = await startBroker();
}, 120_000);
afterAll(async () => {
  await broker.close();
  changes.stop();
  await postgres.stop();
  await nats.stop();
});

const put = (input: Input<typeof mcpBroker.putServer>): Promise<Server> => nats.bus.call(mcpBroker.putServer, input);
const get = (id: string): Promise<Server> => nats.bus.call(mcpBroker.getServer, { id });
const echo = (slug: string, more: Partial<Input<typeof mcpBroker.putServer>> = {}): Input<typeof mcpBroker.putServer> => ({
  slug,
  transport: { type: 'inmemory', name: 'echo' },
  ...more,
});
const ensure = (server: Server) =>
  nats.bus.call(
    mcpBroker.ensureInstance,
    { configGeneration: server.configGeneration, bindingHash: server.bindingHash, agentId: 'guide', sessionId: randomUUID() },
    { keys: { serverId: server.id }, timeoutMs: 30_000 },
  );
async function call(server: Server, tool: string, args: Record<string, unknown>) {
  const { instanceId, leaseRevision } = await ensure(server);
  return nats.bus.call(
    mcpBroker.executeCall,
    {
      serverId: server.id,
      configGeneration: server.configGeneration,
      bindingHash: server.bindingHash,
      leaseRevision,
      operationId: hex(),
      gatewayId: randomUUID(),
      tool,
      arguments: args,
      callTimeoutMs: 10_000,
    },
    { keys: { instanceId }, timeoutMs: 15_000 },
  );
}
/** Waits for the event after which a server has a list. */
const listed = (serverId: string) =>
  changes.next(({ payload }) => payload.serverId === serverId && payload.catalogHash !== null && payload.state === 'connected', 30_000);
const textOf = (answer: { readonly result?: Record<string, unknown> | undefined }): string =>
  String((answer.result?.['content'] as { text: string }[] | undefined)?.[0]?.text);

describe('a configuration', () => {
  it('is stored, listed, changed by version, and its identity decides its generation', async () => {
    const first = await put(echo('configured', { display: 'One' }));
    expect(first).toMatchObject({ version: 1, configGeneration: 1, owner: 'user', enabled: true });
    const renamed = await put(echo('configured', { display: 'Two', ifVersion: 1 }));
    expect(renamed).toMatchObject({ id: first.id, version: 2, configGeneration: 1, bindingHash: first.bindingHash, display: 'Two' });
    await expect(put(echo('configured', { ifVersion: 1 }))).rejects.toMatchObject({ code: 'VERSION_CONFLICT', data: { version: 2 } });
    await expect(put(echo('configured', { owner: 'plugin:acme' }))).rejects.toMatchObject({ code: 'SLUG_TAKEN', data: { owner: 'user' } });
    const moved = await put({ slug: 'configured', transport: { type: 'http', url: 'http://127.0.0.1:9/mcp' } });
    expect(moved).toMatchObject({ id: first.id, configGeneration: 2 });
    expect(moved.bindingHash).not.toBe(first.bindingHash);
    expect((await nats.bus.call(mcpBroker.listServers, {})).items.map(({ slug }) => slug)).toContain('configured');
    expect(await nats.bus.call(mcpBroker.deleteServer, { id: first.id })).toEqual({ deleted: true });
    await expect(get(first.id)).rejects.toMatchObject({ code: 'SERVER_UNKNOWN' });
    const again = await put(echo('configured'));
    expect(again.id).not.toBe(first.id);
    await nats.bus.call(mcpBroker.deleteServer, { id: again.id });
  });

  it('of every type comes back as it was put', async () => {
    const transports: Input<typeof mcpBroker.putServer>['transport'][] = [
      { type: 'stdio', command: 'node', args: ['a.js', '--b'], env: { A: 'one' } },
      { type: 'http', url: 'https://mcp.example.com/mcp', headers: { 'X-Team': 'a' } },
      { type: 'sse', url: 'https://mcp.example.com/sse', headers: {} },
      { type: 'inmemory', name: 'echo' },
    ];
    for (const transport of transports) {
      const server = await put({ slug: `round-${transport.type}`, transport, enabled: false });
      expect((await get(server.id)).transport).toEqual(transport);
      expect(server.state).toBe('disabled');
    }
  });

  it('with autoApprove, with credentials in its URL, with a closed address or a broken header is refused', async () => {
    await expect(put({ ...echo('refused'), autoApprove: ['*'] } as never)).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      data: { issues: [{ message: expect.stringContaining('autoApprove') }] },
    });
    for (const url of ['http://user:pass@example.com/mcp', 'http://169.254.169.254/mcp', 'http://10.0.0.1/mcp'])
      await expect(put({ slug: 'refused', transport: { type: 'http', url } })).rejects.toMatchObject({ code: 'URL_REFUSED' });
    await expect(
      put({ slug: 'refused', transport: { type: 'http', url: 'https://example.com/', headers: { 'X-A': 'a\r\nX-B: b' } } }),
    ).rejects.toMatchObject({ code: 'HEADER_REFUSED', data: { header: 'X-A' } });
    await expect(
      put({ slug: 'refused', transport: { type: 'http', url: 'https://example.com/', headers: { 'X-A': { secret: 'no-such' } } } }),
    ).rejects.toMatchObject({ code: 'SECRET_UNKNOWN' });
  });
});

describe('the built-in echo server', () => {
  let server: Server;
  beforeAll(async () => {
    server = await put(echo('echo'));
    await listed(server.id);
  }, 30_000);

  it('is listed without being asked, heads and pages agree, and the epoch stands in its bucket', async () => {
    const { epoch, servers } = await nats.bus.call(mcpBroker.catalogueHeads, { projectId: 'default' });
    const head = servers.find(({ serverId }) => serverId === server.id);
    expect(head).toMatchObject({ slug: 'echo', state: 'connected', stale: false, reason: null, enabled: true });
    const page = await nats.bus.call(mcpBroker.cataloguePage, { serverId: server.id, catalogHash: head?.catalogHash ?? '' });
    expect(page).toMatchObject({ tools: [{ name: 'echo' }], next: null });
    await expect(nats.bus.call(mcpBroker.cataloguePage, { serverId: server.id, catalogHash: hex() })).rejects.toMatchObject({
      code: 'CATALOGUE_MOVED',
    });
    await expect(nats.bus.call(mcpBroker.cataloguePage, { serverId: randomUUID(), catalogHash: hex() })).rejects.toMatchObject({
      code: 'SERVER_UNKNOWN',
    });
    const bucket = await new Kvm(nats.connection).open(buckets.epochs.name);
    expect(Number((await bucket.get(epochKey.epoch('mcp-broker', 'user', 'servers')))?.string())).toBeLessThanOrEqual(epoch);
  });

  it('answers calls, and refuses another pin', async () => {
    expect(textOf(await call(server, 'echo', { text: 'hello' }))).toBe('hello');
    expect((await call(server, 'echo', {})).result).toMatchObject({ isError: true });
    await expect(ensure({ ...server, configGeneration: 9 })).rejects.toMatchObject({ code: 'TARGET_CHANGED' });
    await expect(ensure({ ...server, id: randomUUID() })).rejects.toMatchObject({ code: 'TOOL_GONE' });
  });

  it('200 who ask at once get one lease', async () => {
    const fresh = await put(echo('echo-cold', { instances: { scope: 'per-agent' } }));
    const answers = await Promise.all(Array.from({ length: 200 }, () => ensure(fresh)));
    expect(new Set(answers.map(({ leaseRevision }) => leaseRevision)).size).toBe(1);
  });

  it('has as many instances as it may have, and one more when one of them has ended', async () => {
    const fresh = await put(echo('several', { instances: { scope: 'per-session', max: 2, idleStopMs: 1_000 } }));
    // Its tools are read, and what read them has ended.
    await listed(fresh.id);
    await until(async () => (await get(fresh.id)).state === 'idle');
    const ensureFor = (sessionId: string) =>
      nats.bus.call(
        mcpBroker.ensureInstance,
        { configGeneration: fresh.configGeneration, bindingHash: fresh.bindingHash, agentId: 'a', sessionId },
        { keys: { serverId: fresh.id } },
      );
    const [one, two, three] = [randomUUID(), randomUUID(), randomUUID()];
    const first = await ensureFor(one);
    // Reading the tools anew ends what read them, and nothing that a session has.
    await nats.bus.call(mcpBroker.testServer, { id: fresh.id });
    expect(await ensureFor(one)).toEqual(first);
    await ensureFor(two);
    await expect(ensureFor(three)).rejects.toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      data: { reason: expect.stringContaining('instances.max') },
    });
    // Another replica is starting that very instance: a refusal here leaves its start remembered.
    const { configGeneration: generation, id: serverId } = fresh;
    const instanceId = idOf({ serverId, configGeneration: generation, scope: `session:${three}`, credentialSubject: 'shared' });
    await withClient(postgres.url, async (client) => {
      const instance = '"mcp_broker"."instance"';
      await client.query(`INSERT INTO ${instance} VALUES ($1, $2, $3, now())`, [instanceId, serverId, generation]);
      await expect(ensureFor(three)).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' });
      expect((await client.query(`SELECT FROM ${instance} WHERE "instance_id" = $1`, [instanceId])).rowCount).toBe(1);
    });
    // Whoever has one keeps it.
    expect(await ensureFor(one)).toEqual(first);
    // Idle ones end by themselves.
    await until(
      () =>
        ensureFor(three).then(
          () => true,
          () => false,
        ),
      20_000,
    );
  });

  it('that is switched off ends, and stays off after a restart of the broker', async () => {
    const off = await put(echo('echo', { enabled: false }));
    expect(off.state).toBe('disabled');
    await expect(ensure(off)).rejects.toMatchObject({ code: 'TOOL_GONE' });
    await broker.close();
    broker = await startBroker();
    expect(await get(server.id)).toMatchObject({ enabled: false, state: 'disabled' });
    const on = await put(echo('echo'));
    expect(on.catalogHash).not.toBeNull();
    expect(textOf(await call(on, 'echo', { text: 'back' }))).toBe('back');
  }, 30_000);

  it('of an owner that is revoked is closed before the answer, its fence moves, and removal takes the record too', async () => {
    const owned = await put(echo('owned', { owner: 'plugin:acme' }));
    await listed(owned.id);
    const fence = Date.now();
    expect(await nats.bus.call(mcpBroker.revokeOwner, { owner: 'plugin:acme', fence })).toEqual({ closed: 1 });
    await expect(ensure(owned)).rejects.toMatchObject({ code: 'TOOL_GONE' });
    expect(await get(owned.id)).toMatchObject({ enabled: false, state: 'disabled' });
    const bucket = await new Kvm(nats.connection).open(buckets.epochs.name);
    expect((await bucket.get(epochKey.fence('mcp-broker', 'plugin:acme')))?.string()).toBe(String(fence));
    await nats.bus.call(mcpBroker.revokeOwner, { owner: 'plugin:acme', fence: fence + 1, remove: true });
    await expect(get(owned.id)).rejects.toMatchObject({ code: 'SERVER_UNKNOWN' });
  }, 30_000);
});

verifies(
  ['R-INGRESS-6#2', 'R-INGRESS-6#3'],
  'of generations committed at once there is one, and what is not committed leaves the one before it at work',
  async () => {
    const first = await put(echo('raced', { ifGeneration: 0 }));
    await listed(first.id);
    const answer = async (): Promise<string> => textOf(await call(first, 'echo', { text: 'still here' }));
    const held = await ensure(first);
    const http = (url: string, ifGeneration: number) => ({ slug: 'raced', transport: { type: 'http' as const, url }, ifGeneration });
    const secret = { ...http('https://example.com/', 1).transport, headers: { 'X-A': { secret: 'no-such' } } };
    for (const [refused, code] of [
      [http('http://169.254.169.254/', 1), 'URL_REFUSED'],
      [{ ...http('', 1), transport: secret }, 'SECRET_UNKNOWN'],
      [http('http://127.0.0.1:9/', 7), 'GENERATION_CONFLICT'],
      [http('http://127.0.0.1:9/', 0), 'GENERATION_CONFLICT'],
    ] as const) {
      await expect(put(refused)).rejects.toMatchObject({ code });
      expect(await get(first.id)).toMatchObject({ configGeneration: 1, bindingHash: first.bindingHash, state: 'connected', tools: 1 });
      expect(await answer()).toBe('still here');
    }
    expect(await ensure(first)).toEqual(held);
    for (let generation = 1; generation <= 5; generation++) {
      const racing = ['a', 'b'].map((path) => put(http(`http://127.0.0.1:9/${path}${generation}`, generation)));
      const ended = await Promise.allSettled(racing);
      expect(ended.flatMap((one) => (one.status === 'fulfilled' ? [one.value.configGeneration] : []))).toEqual([generation + 1]);
      expect(ended.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))).toEqual([
        expect.objectContaining({ code: 'GENERATION_CONFLICT', data: { configGeneration: generation + 1 } }),
      ]);
    }
    await expect(ensure(first)).rejects.toMatchObject({ code: 'TARGET_CHANGED' });
    await nats.bus.call(mcpBroker.deleteServer, { id: first.id });
  },
);

verifies('R-INGRESS-2#1', 'a server that is declared is asked nothing and lists nothing until somebody switches it on', async () => {
  let asked = 0;
  const http = createServer((_request, response) => {
    asked++;
    response.writeHead(500).end();
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const address = http.address();
  const url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/mcp`;
  const declared = await put({ slug: 'declared', transport: { type: 'http', url }, enabled: false });
  expect(declared).toMatchObject({ state: 'disabled', catalogHash: null, tools: 0 });
  const listed = { tool: {}, name: 'look', description: 'Looks', inputSchema: { type: 'object' } };
  const packed = await put({ slug: 'packed', transport: { type: 'stdio', command: 'node' }, packaged: [listed] });
  // Neither a broker that starts, nor whoever asks what there is, nor a test of one that is off, connects it.
  await broker.close();
  broker = await startBroker();
  await nats.bus.call(mcpBroker.testServer, { id: declared.id });
  const { servers } = await nats.bus.call(mcpBroker.catalogueHeads, { projectId: 'default', agentId: 'guide' });
  expect(servers.find(({ serverId }) => serverId === declared.id)).toMatchObject({ enabled: false, catalogHash: null });
  await expect(ensure(declared)).rejects.toMatchObject({ code: 'TOOL_GONE' });
  expect([asked, (await get(declared.id)).state, (await get(packed.id)).state]).toEqual([0, 'disabled', 'idle']);
  await put({ slug: 'declared', transport: { type: 'http', url } });
  await until(() => asked > 0);
  for (const { id } of [declared, packed]) await nats.bus.call(mcpBroker.deleteServer, { id });
  http.close().closeAllConnections();
});

describe('a secret', () => {
  const value = canary('mcpsecret');
  it('is told by name only, and reaches the server it is for', async () => {
    const secret = await nats.bus.call(mcpBroker.putSecret, { name: 'team-key', from: 'store', value });
    expect(secret).toMatchObject({ name: 'team-key', from: 'store', version: 1, keyId: expect.stringMatching(/^[0-9a-f]{16}$/) });
    const seen: (string | undefined)[] = [];
    const http = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(401).end();
    });
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    const address = http.address();
    const server = await put({
      slug: 'guarded',
      transport: {
        type: 'http',
        url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/mcp`,
        headers: { Authorization: { secret: 'team-key' } },
      },
    });
    const tested = await nats.bus.call(mcpBroker.testServer, { id: server.id });
    expect(tested.state).toBe('needs-auth');
    expect(seen[0]).toBe(value);
    await expect(nats.bus.call(mcpBroker.deleteSecret, { name: 'team-key', projectId: 'default' })).rejects.toMatchObject({
      code: 'SECRET_IN_USE',
      data: { servers: ['guarded'] },
    });
    await nats.bus.call(mcpBroker.deleteServer, { id: server.id });
    const told = JSON.stringify([
      secret,
      server,
      tested,
      await nats.bus.call(mcpBroker.listSecrets, {}),
      await nats.bus.call(mcpBroker.listServers, {}),
      changes.all,
    ]);
    expect(told).not.toContain(value);
    expect(logged).not.toContain(value);
    expect(await nats.bus.call(mcpBroker.deleteSecret, { name: 'team-key', projectId: 'default' })).toEqual({ deleted: true });
    http.close().closeAllConnections();
  }, 30_000);

  it('keeps its rules: where it comes from, and none of our own', async () => {
    const refused = { code: 'SECRET_SOURCE' };
    const base = { name: 'bad' };
    await expect(nats.bus.call(mcpBroker.putSecret, { ...base, from: 'env' })).rejects.toMatchObject(refused);
    await expect(nats.bus.call(mcpBroker.putSecret, { ...base, from: 'env', key: 'AMBIT_SEALING_KEY' })).rejects.toMatchObject(refused);
    await expect(nats.bus.call(mcpBroker.putSecret, { ...base, from: 'file', key: 'a', value: 'x' })).rejects.toMatchObject(refused);
    await expect(nats.bus.call(mcpBroker.putSecret, { ...base, from: 'store' })).rejects.toMatchObject(refused);
    expect(await nats.bus.call(mcpBroker.putSecret, { name: 'outside', from: 'file', key: '../../etc/passwd' })).toMatchObject({
      from: 'file',
    });
    const server = await put({
      slug: 'outside',
      transport: { type: 'http', url: 'http://127.0.0.1:9/mcp', headers: { 'X-A': { secret: 'outside' } } },
    });
    expect(await nats.bus.call(mcpBroker.testServer, { id: server.id })).toMatchObject({
      state: 'failed',
      reason: expect.stringContaining('folder of secrets'),
    });
    await nats.bus.call(mcpBroker.deleteServer, { id: server.id });
  });
});

describe('a real server over Streamable HTTP', () => {
  let child: ChildProcess;
  let port: number;
  let server: Server;
  const start = async (): Promise<void> => {
    child = spawn(process.execPath, [everything, 'streamableHttp'], {
      env: { PATH: process.env['PATH'], PORT: String(port) },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    await new Promise<void>((resolve) => child.stderr?.on('data', (chunk: Buffer) => /listening/i.test(chunk.toString()) && resolve()));
  };
  const stop = async (): Promise<void> => {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  beforeAll(async () => {
    const probe = createServer().listen(0, '127.0.0.1');
    await once(probe, 'listening');
    const address = probe.address();
    port = typeof address === 'object' && address !== null ? address.port : 0;
    probe.close();
  });
  afterAll(stop);

  it('is found by itself once it is up, and failed with a sentence until then', async () => {
    server = await put({ slug: 'remote', transport: { type: 'http', url: `http://127.0.0.1:${port}/mcp` } });
    const failed = await changes.next(({ payload }) => payload.serverId === server.id && payload.state === 'failed', 30_000);
    expect(failed.payload.catalogHash).toBeNull();
    expect((await get(server.id)).reason).toContain('ECONNREFUSED');
    await start();
    await listed(server.id);
    expect(textOf(await call(server, 'echo', { message: 'http' }))).toBe('Echo: http');
  }, 60_000);

  it('is called while credentials cannot be read: the connection knows that it has none', async () => {
    const rename = (from: string, to: string) =>
      withClient(postgres.url, async (client) => void (await client.query(`ALTER TABLE mcp_broker."${from}" RENAME TO "${to}"`)));
    const instances = { scope: 'per-session' as const };
    const scoped = await put({ slug: 'scoped', transport: { type: 'http', url: `http://127.0.0.1:${port}/mcp` }, instances });
    await listed(scoped.id);
    await rename('credential', 'away');
    try {
      expect(textOf(await call(server, 'echo', { message: 'without' }))).toBe('Echo: without');
      // Nor does a start just then say how records are read.
      await expect(ensure(scoped)).rejects.toMatchObject({
        code: 'SERVER_UNAVAILABLE',
        data: { reason: expect.stringMatching(/^The broker could not read or write its records/) },
      });
    } finally {
      await rename('away', 'credential');
    }
    await nats.bus.call(mcpBroker.deleteServer, { id: scoped.id });
  });

  it('that restarts is initialised once more; while it is away nothing is dispatched, and its list stands', async () => {
    await stop();
    await expect(call(server, 'echo', { message: 'x' })).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' });
    const { servers } = await nats.bus.call(mcpBroker.catalogueHeads, { projectId: 'default' });
    expect(servers.find(({ serverId }) => serverId === server.id)?.catalogHash).not.toBeNull();
    await start();
    // After a failure it is not tried again for a moment: calls are told to come again, and nothing is sent.
    let answer: Awaited<ReturnType<typeof call>> | undefined;
    await until(async () => {
      answer = await call(server, 'echo', { message: 'again' }).catch((error: unknown) => {
        if (error instanceof Fault && error.code === 'SERVER_UNAVAILABLE') return undefined;
        throw error;
      });
      return answer !== undefined;
    }, 30_000);
    expect(answer === undefined ? '' : textOf(answer)).toBe('Echo: again');
  }, 60_000);
});

it('a stdio server without a runner fails with a sentence', async () => {
  const server = await put({ slug: 'child', transport: { type: 'stdio', command: 'node' } });
  await expect(ensure(server)).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE', data: { reason: expect.stringContaining('stdio') } });
  await nats.bus.call(mcpBroker.deleteServer, { id: server.id });
  expect(mcpRunner.startInstance.owner).toBe('mcp-runner');
});
