// Long because one running system serves every scenario of the edge: starting it takes longer than all of them.
import { Client, StreamableHTTPClientTransport, type ClientOptions } from '@modelcontextprotocol/client';
import type { Agent } from '@ambit/contracts';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { http } from '../../../test/system/http.js';
import { alice, Scene } from '../../../test/system/scene.js';

jest.setTimeout(180_000);

let scene: Scene;
const clients: Client[] = [];
beforeAll(async () => {
  scene = await Scene.start({ replicas: { 'mcp-edge': 2 } });
  await scene.server('one');
  await scene.server('two');
  await scene.server('asking');
}, 600_000);
afterAll(async () => {
  await Promise.allSettled(clients.map((client) => client.close()));
  await scene?.stop();
});

type TokenBody = {
  readonly names?: 'plain' | 'qualified';
  readonly principal?: string;
  readonly expiresInMs?: number;
  readonly sessionId?: string;
};
async function tokenOf(agent: Pick<Agent, 'id'>, body: TokenBody = {}): Promise<{ readonly id: string; readonly token: string }> {
  const made = await http(scene.system, 'POST /v1/edge-token', { body: { name: 'test', agentId: agent.id, principal: alice.id, ...body } });
  expect(made).toMatchObject({ status: 201 });
  return { id: String(made.body['id']), token: String(made.body['token']) };
}

const address = (replica = 0, search = ''): URL => new URL(`${scene.system.edgeUrls[replica] ?? ''}${search}`);
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

interface Connecting {
  readonly era?: 'legacy' | 'modern';
  readonly replica?: number;
  readonly search?: string;
  readonly options?: ClientOptions;
  readonly fetch?: typeof fetch;
}
async function connect(
  token: string,
  { era = 'legacy', replica = 0, search = '', options = {}, fetch: sends }: Connecting = {},
): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1' },
    { ...(era === 'modern' ? { versionNegotiation: { mode: { pin: '2026-07-28' } } } : {}), ...options },
  );
  clients.push(client);
  const transport = new StreamableHTTPClientTransport(address(replica, search), {
    requestInit: { headers: bearer(token) },
    ...(sends === undefined ? {} : { fetch: sends }),
  });
  await client.connect(transport);
  return client;
}

/** Sends each request to the next replica, as a balancer without affinity does. */
const alternating = (): typeof fetch => {
  let turn = 0;
  return (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    url.port = address(turn++ % 2).port;
    return fetch(url, init);
  };
};

const textOf = (result: unknown): string => (result as { content: { text: string }[] }).content[0]?.text ?? '';

it.each(['legacy', 'modern'] as const)('a %s client sees the snapshot’s tools and calls them, on any replica', async (era) => {
  const agent = await scene.agent();
  const { token } = await tokenOf(agent);
  const client = await connect(token, { era, fetch: alternating() });
  const { tools } = await client.listTools();
  const names = tools.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['mcp__one__count', 'mcp__two__count', 'mcp__asking__count']));
  expect(names).toEqual([...names].sort());
  const name = randomUUID();
  expect(textOf(await client.callTool({ name: 'mcp__two__count', arguments: { name } }))).toBe(`count ${name}`);
  expect(await scene.counting.ran('count', name)).toBe(1);
  await expect(client.callTool({ name: 'mcp__none__count', arguments: {} })).rejects.toMatchObject({ code: -32602 });
  const large = await client.callTool({ name: 'mcp__one__count', arguments: { name, bytes: 700_000 } });
  expect(textOf(large).length).toBeGreaterThan(700_000);
});
