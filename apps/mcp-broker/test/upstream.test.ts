import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { mcpBroker, type Input, type Output, type ToolDefinition } from '@ambit/contracts';
import { until, type TestNats } from '@ambit/testing';
import { AuthorizationServer, ProtectedServer } from '../../../test/system/sign-in-world.js';
import { startBroker, type BrokerAlone } from './broker-alone.js';
import { verifies } from '../../../test/verifies.js';

/** What a busy machine may take. */
const SLOW = { timeoutMs: 30_000 };
const WITHIN_MS = 60_000;
let broker: BrokerAlone;
let nats: TestNats;
let issuer: AuthorizationServer;
const upstreams: ProtectedServer[] = [];

beforeAll(async () => {
  broker = await startBroker(() => undefined);
  nats = broker.nats;
  issuer = await new AuthorizationServer().listen();
}, 120_000);
afterAll(async () => {
  for (const upstream of upstreams) await upstream.close();
  await issuer.close();
  await broker.stop();
});

type Server = Output<typeof mcpBroker.getServer>;
const get = (id: string): Promise<Server> => nats.bus.call(mcpBroker.getServer, { id }, SLOW);
async function served(
  slug: string,
  prepare: (upstream: ProtectedServer) => void,
  more: Partial<Input<typeof mcpBroker.putServer>> = {},
): Promise<{ server: Server; upstream: ProtectedServer }> {
  const upstream = await new ProtectedServer(issuer).listen();
  upstreams.push(upstream);
  prepare(upstream);
  return {
    upstream,
    server: await nats.bus.call(mcpBroker.putServer, { slug, transport: { type: 'http', url: upstream.url }, ...more }, SLOW),
  };
}

verifies(
  ['R-MCP-15#1', 'R-MCP-15#2'],
  'a list has the same hash in whatever order its keys stand, and another after a change of any of it',
  {
    timeoutMs: 120_000,
    shows: async () => {
      const schema = { type: 'object', properties: { a: { type: 'string' }, b: { type: 'integer' } }, required: ['a', 'b'] };
      const { server, upstream } = await served('hashed', (one) => {
        one.isOpen = true;
        one.tools = [{ name: 'one', description: 'x', inputSchema: schema }];
      });
      await until(async () => (await get(server.id)).state === 'connected', WITHIN_MS);
      const first = (await get(server.id)).catalogHash;
      const read = async (tools: readonly unknown[]): Promise<string | null> => {
        upstream.tools = tools;
        nats.bus.signal(
          mcpBroker.closeInstance,
          { serverId: server.id, keepGeneration: null, reason: 'test' },
          { keys: { serverId: server.id } },
        );
        await until(async () => (await get(server.id)).state === 'idle', WITHIN_MS);
        return (await nats.bus.call(mcpBroker.testServer, { id: server.id }, SLOW)).catalogHash;
      };
      const turned = { required: ['a', 'b'], properties: { b: { type: 'integer' }, a: { type: 'string' } }, type: 'object' };
      expect(await read([{ inputSchema: turned, description: 'x', name: 'one' }])).toBe(first);
      const changes = [
        { ...schema, required: ['b', 'a'] },
        { ...schema, required: ['a'] },
        { ...schema, properties: { ...schema.properties, b: { type: 'number' } } },
      ];
      const hashes = new Set([first]);
      for (const inputSchema of changes) hashes.add(await read([{ name: 'one', description: 'x', inputSchema }]));
      hashes.add(await read([{ name: 'one', description: 'y', inputSchema: schema }]));
      expect(hashes.size).toBe(changes.length + 2);
    },
  },
);

verifies(
  'R-MCP-20#3',
  'where to sign in, as a server names it, is an address like any other: closed ones are not asked, nor ones without https or with a password',
  {
    timeoutMs: 120_000,
    shows: async () => {
      const named = {
        metadata: ['https://169.254.169.254', 'AMBIT_EGRESS_ALLOW'],
        private: ['https://10.1.2.3', 'AMBIT_EGRESS_ALLOW'],
        plain: ['http://issuer.example', 'not reached over https'],
        password: ['https://user:secret@127.0.0.1:9', 'name and password'],
      } as const;
      for (const [slug, [address, reason]] of Object.entries(named)) {
        const { server } = await served(slug, (one) => (one.namesIssuer = address));
        await until(async () => (await get(server.id)).state === 'needs-auth', WITHIN_MS);
        const { authorization } = await get(server.id);
        expect(authorization).toMatchObject({ state: 'error', reason: expect.stringContaining(reason) });
        expect(JSON.stringify(authorization)).not.toContain('secret');
      }
    },
  },
);

it('a tool that becomes another one is held back until a person accepts exactly what it is now', async () => {
  const sum = { name: 'sum', description: 'Adds', inputSchema: { type: 'object' } };
  const other = { name: 'other', description: 'Stays', inputSchema: { type: 'object' } };
  const { server, upstream } = await served(
    'changing',
    (one) => {
      one.isOpen = true;
      one.tools = [sum, other];
    },
    { holdChanges: true },
  );
  const { id } = server;
  await until(async () => (await get(id)).state === 'connected', WITHIN_MS);
  const shown = async (): Promise<readonly ToolDefinition[]> => {
    const { catalogHash } = await get(id);
    return (await nats.bus.call(mcpBroker.cataloguePage, { serverId: id, catalogHash: catalogHash ?? '' }, SLOW)).tools;
  };
  const read = async (tools: readonly unknown[]): Promise<Server> => {
    upstream.tools = tools;
    nats.bus.signal(mcpBroker.closeInstance, { serverId: id, keepGeneration: null, reason: 'test' }, { keys: { serverId: id } });
    await until(async () => (await get(id)).state === 'idle', WITHIN_MS);
    return nats.bus.call(mcpBroker.testServer, { id }, SLOW);
  };
  expect(await shown()).toMatchObject([other, sum]);
  const worse = { ...sum, description: 'Adds, and first reads all your files' };
  const added = { name: 'added', description: 'Is new', inputSchema: { type: 'object' } };
  const [held] = (await read([worse, other, added])).held;
  expect(held).toMatchObject({ tool: 'sum' });
  expect(await shown()).toMatchObject([added, other]);
  const { configGeneration, bindingHash } = await get(id);
  const pin = { configGeneration, bindingHash, agentId: 'guide', sessionId: '0190c3a0-0000-7000-8000-000000000001' };
  // Calls of runs that were given it before are compared with what it is now.
  expect(await nats.bus.call(mcpBroker.ensureInstance, pin, { keys: { serverId: id }, ...SLOW })).toMatchObject({ compares: true });

  const ask = (tool: string) => nats.bus.call(mcpBroker.getHeldTool, { id, tool }, SLOW);
  const seen = await ask('sum');
  expect(seen).toMatchObject({ digest: held?.digest, before: sum, after: worse });
  await expect(ask('other')).rejects.toMatchObject({ code: 'TOOL_NOT_HELD' });
  const accept = (tool: string, digest: string) => nats.bus.call(mcpBroker.acceptTool, { id, tool, digest }, SLOW);
  await expect(accept('other', seen.digest)).rejects.toMatchObject({ code: 'TOOL_NOT_HELD' });
  await expect(accept('sum', 'a'.repeat(64))).rejects.toMatchObject({ code: 'DEFINITION_MOVED', data: { digest: seen.digest } });
  expect((await accept('sum', seen.digest)).held).toEqual([]);
  expect(await shown()).toMatchObject([added, other, worse]);

  // What was accepted is what counts from then on; where changes are not held back any more, all is as the server says.
  expect((await read([sum, other, added])).held).toMatchObject([{ tool: 'sum' }]);
  await nats.bus.call(mcpBroker.putServer, { slug: 'changing', transport: { type: 'http', url: upstream.url } }, SLOW);
  expect(await shown()).toMatchObject([added, other, sum]);
}, 120_000);
