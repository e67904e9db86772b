// Long because one running system serves every scenario of the edge: starting it takes longer than all of them.
import { Client, StreamableHTTPClientTransport, type ClientOptions } from '@modelcontextprotocol/client';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import { adminApi, mcpBroker, sessionService, skillStore, toolGateway, type Agent } from '@ambit/contracts';
import { until } from '@ambit/testing';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { createHash, randomUUID } from 'node:crypto';
import { execFile } from 'node:child_process';
import { request } from 'node:http';
import { promisify } from 'node:util';
import { fileURLToPath } from 'node:url';
import { http } from '../system/http.js';
import { alice, bob, Scene } from '../system/scene.js';
import { verifies } from '../verifies.js';

jest.setTimeout(180_000);

const program = fileURLToPath(new URL('../../examples/mcp-client/dist/client.js', import.meta.url));
const everything = fileURLToPath(new URL('../../tools/conformance/upstream.mjs', import.meta.url));

let scene: Scene;
const clients: Client[] = [];
beforeAll(async () => {
  scene = await Scene.start({ replicas: { 'mcp-edge': 2 }, environment: { AMBIT_EDGE_WAIT_MS: '500' } });
  await Promise.all(['one', 'two', 'asking'].map((slug) => scene.server(slug)));
  const transport = { type: 'stdio' as const, command: process.execPath, args: [everything] };
  const { id } = await scene.bus.call(mcpBroker.putServer, { slug: 'full', transport, sampling: true });
  await scene.bus.call(mcpBroker.testServer, { id });
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

interface Sending {
  readonly method?: string;
  readonly replica?: number;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
}
/** One request by hand. */
function send(token: string | undefined, { method = 'POST', replica = 0, headers = {}, body }: Sending = {}): Promise<Response> {
  return fetch(address(replica), {
    method,
    headers: {
      accept: 'application/json, text/event-stream',
      ...(token === undefined ? {} : bearer(token)),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
}
const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'hand', version: '1' } };
const initialize = { jsonrpc: '2.0', id: 0, method: 'initialize', params };
const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
async function sessionOf(token: string): Promise<string> {
  const answer = await send(token, { body: initialize });
  expect(answer.status).toBe(200);
  return answer.headers.get('mcp-session-id') ?? '';
}
const count = (server: string, name: string, key?: string) => ({
  name: `mcp__${server}__count`,
  arguments: { name },
  ...(key === undefined ? {} : { _meta: { 'ambit/idempotencyKey': key } }),
});
const callsOf = async (agent: Pick<Agent, 'id'>) => (await scene.bus.call(toolGateway.listCalls, { agentId: agent.id })).items;

async function putSkill(agentId: string, files: Readonly<Record<string, string | Buffer>>): Promise<void> {
  const tree = await Promise.all(
    Object.entries(files).map(async ([path, content]) => {
      const bytes = Buffer.from(content);
      const digest = createHash('sha256').update(bytes).digest('hex');
      await scene.bus.call(skillStore.putBlob, { digest, bytes: bytes.length, offset: 0, data: bytes.toString('base64') });
      return { path, mode: 'file' as const, bytes: bytes.length, digest };
    }),
  );
  await scene.bus.call(skillStore.putSkill, { agentId, files: tree });
}

verifies('R-MCP-13#1', 'clients of both eras see the snapshot’s tools under names of their own and call them, on any replica', async () => {
  const agent = await scene.agent();
  const { token } = await tokenOf(agent);
  for (const era of ['legacy', 'modern'] as const) {
    const client = await connect(token, { era, fetch: alternating() });
    const names = (await client.listTools()).tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['mcp__one__count', 'mcp__two__count', 'mcp__asking__count']));
    expect(names).toEqual([...names].sort());
    const name = randomUUID();
    expect(textOf(await client.callTool(count('two', name)))).toBe(`count ${name}`);
    expect(await scene.counting.ran('count', name)).toBe(1);
    await expect(client.callTool({ name: 'mcp__none__count', arguments: {} })).rejects.toMatchObject({ code: -32602 });
    const refused = await client.callTool({ name: 'mcp__one__count', arguments: { name: 1 } });
    expect(refused).toMatchObject({ isError: true });
    const large = await client.callTool({ name: 'mcp__one__count', arguments: { name, bytes: 700_000 } });
    expect(textOf(large).length).toBeGreaterThan(700_000);
  }
});

it('plain names are the servers’ own where they are one tool’s; of two the first server’s', async () => {
  const { token } = await tokenOf(await scene.agent(), { names: 'plain' });
  const plain = (await (await connect(token)).listTools()).tools.map(({ name }) => name);
  expect(plain).toEqual(expect.arrayContaining(['test_simple_text', 'mcp__one__count', 'mcp__two__count']));
  expect(plain).not.toContain('count');
  const client = await connect(token, { search: '?first=two' });
  const first = (await client.listTools()).tools.map(({ name }) => name);
  expect(first).toEqual(expect.arrayContaining(['count', 'mcp__one__count']));
  expect(first).not.toContain('mcp__two__count');
  expect(textOf(await client.callTool({ name: 'count', arguments: { name: 'plain' } }))).toBe('count plain');
});

it('a call that is sent again with its key runs once, whichever replica it comes to, and without a key again', async () => {
  const agent = await scene.agent();
  const { token } = await tokenOf(agent);
  const [here, there] = [await connect(token), await connect(token, { era: 'modern', replica: 1 })];
  const name = randomUUID();
  const twice = await Promise.all([here.callTool(count('one', name, 'k1')), there.callTool(count('one', name, 'k1'))]);
  expect(twice.map(textOf)).toEqual([`count ${name}`, `count ${name}`]);
  expect(textOf(await here.callTool(count('one', name, 'k1')))).toBe(`count ${name}`);
  expect(await scene.counting.ran('count', name)).toBe(1);
  // The same key is another call for somebody else.
  const other = await connect((await tokenOf(agent, { principal: bob.id })).token);
  await other.callTool(count('one', name, 'k1'));
  expect(await scene.counting.ran('count', name)).toBe(2);
  await here.callTool(count('one', name));
  await here.callTool(count('one', name));
  expect(await scene.counting.ran('count', name)).toBe(4);
  // In a session a request that is sent again under its own id is the same request.
  const session = await sessionOf(token);
  const again = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: count('two', name) };
  for (const replica of [0, 1])
    expect((await send(token, { replica, body: again, headers: { 'mcp-session-id': session } })).status).toBe(200);
  expect(await scene.counting.ran('count', name)).toBe(5);
});

it('a token lets its own clients in, and only while it is good', async () => {
  const agent = await scene.agent();
  const { token, id } = await tokenOf(agent);
  const none = await send(undefined, { body: initialize });
  expect(none.status).toBe(401);
  const metadata = /resource_metadata="([^"]+)"/.exec(none.headers.get('www-authenticate') ?? '')?.[1] ?? '';
  expect(await (await fetch(metadata)).json()).toMatchObject({ resource: address().href, bearer_methods_supported: ['header'] });
  const forged = await send(`${token.slice(0, -4)}AAAA`, { body: initialize });
  expect([forged.status, forged.headers.get('www-authenticate')]).toEqual([401, expect.stringContaining('invalid_token')]);
  // A token of the API is none of the edge, nor the other way round.
  expect((await send(scene.system.token, { body: initialize })).status).toBe(401);
  expect((await http(scene.system, 'GET /v1/whoami', { token })).status).toBe(401);
  const session = await sessionOf(token);
  expect((await http(scene.system, `DELETE /v1/edge-token/${id}`)).body).toEqual({ revoked: true });
  await until(async () => (await send(token, { body: list, headers: { 'mcp-session-id': session } })).status === 401);
  for (const one of [token, 'none of ours'])
    await expect(scene.bus.call(adminApi.resolveEdgeToken, { hash: createHash('sha256').update(one).digest('hex') })).rejects.toMatchObject(
      {
        code: 'EDGE_TOKEN_UNKNOWN',
      },
    );
});

it('a session is its token’s alone, as it was sealed, until its client ends it', async () => {
  const agent = await scene.agent();
  const [own, other] = [await tokenOf(agent), await tokenOf(agent)];
  const session = await sessionOf(own.token);
  const asked = (token: string, id: string, replica = 0) =>
    send(token, { replica, body: list, headers: { 'mcp-session-id': id } }).then(({ status }) => status);
  expect([await asked(own.token, session), await asked(own.token, session, 1)]).toEqual([200, 200]);
  expect(await asked(other.token, session)).toBe(404);
  const flipped = `${session.slice(0, 40)}${session[40] === 'A' ? 'B' : 'A'}${session.slice(41)}`;
  expect([await asked(own.token, flipped), await asked(own.token, 'x'.repeat(5_000)), await asked(own.token, 'nothing')]).toEqual([
    404, 404, 404,
  ]);
  expect((await send(own.token, { body: list })).status).toBe(400);
  expect((await send(own.token, { method: 'DELETE', headers: { 'mcp-session-id': session } })).status).toBe(204);
  expect(await asked(own.token, session)).toBe(404);
  await until(async () => (await asked(own.token, session, 1)) === 404);
});

it('only requests to its own names, of pages that may, of a bounded size and shape, are taken', async () => {
  const { token } = await tokenOf(await scene.agent());
  const status = async (more: Sending) => (await send(token, { body: initialize, ...more })).status;
  expect(await status({ headers: { origin: 'http://evil.example' } })).toBe(403);
  expect(await status({ headers: { origin: 'null' } })).toBe(403);
  expect(await status({ headers: { origin: 'http://localhost:5173' } })).toBe(200);
  expect(await status({ body: '{' })).toBe(400);
  expect(await status({ body: [initialize] })).toBe(400);
  expect(await status({ body: ' '.repeat(1_100_000) })).toBe(413);
  expect(await status({ headers: { 'content-type': 'text/plain' } })).toBe(415);
  expect((await send(token, { method: 'PUT', body: initialize })).status).toBe(405);
  expect((await send(token, { method: 'GET' })).status).toBe(405);
  const foreign = await byHost('rebound.example', token);
  expect(foreign).toBe(403);
});

it('a cancel reaches the call from another replica, and nothing of it goes on', async () => {
  const agent = await scene.agent();
  const { token } = await tokenOf(agent);
  const cancelled = async (era: 'legacy' | 'modern') => {
    const client = await connect(token, { era, ...(era === 'legacy' ? { fetch: alternating() } : {}) });
    const name = randomUUID();
    const stop = new AbortController();
    const call = client.callTool({ name: 'mcp__one__hold', arguments: { name } }, { signal: stop.signal });
    await scene.counting.held(name);
    stop.abort('enough');
    await expect(call).rejects.toBeDefined();
    await until(async () => (await callsOf(agent)).every(({ status }) => status !== 'running' && status !== 'aborting'), 20_000);
    scene.counting.release(name);
  };
  await cancelled('legacy');
  await cancelled('modern');
  const calls = await callsOf(agent);
  expect(calls).toHaveLength(2);
  expect(calls.map(({ status }) => status)).not.toContain('completed');
});

it('progress and what a server logs reach the client on the stream of its call', async () => {
  const { token } = await tokenOf(await scene.agent(), { names: 'plain' });
  for (const era of ['legacy', 'modern'] as const) {
    const client = await connect(token, { era });
    const logs: unknown[] = [];
    client.setNotificationHandler('notifications/message', ({ params: { data } }) => void logs.push(data));
    const progress: number[] = [];
    await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, { onprogress: (told) => void progress.push(told.progress) });
    expect(progress).toEqual([0, 50, 100]);
    // The stateless revision says with each request whether it wants to hear of it.
    await client.callTool({ name: 'test_tool_with_logging', arguments: {} });
    expect(logs).toHaveLength(era === 'legacy' ? 3 : 0);
    logs.length = 0;
    await client.callTool({ name: 'test_tool_with_logging', arguments: {}, _meta: { 'io.modelcontextprotocol/logLevel': 'info' } });
    expect(logs).toEqual(['Tool execution started', 'Tool processing data', 'Tool execution completed']);
  }
});

it('a call that asks is asked of the client’s person; only an explicit yes is one', async () => {
  const agent = await scene.agent();
  const { token } = await tokenOf(agent);
  for (const era of ['legacy', 'modern'] as const) {
    const client = await connect(token, { era, fetch: alternating(), options: { capabilities: { elicitation: {} } } });
    const asked: string[] = [];
    let content: Record<string, string> = { decision: 'allow' };
    client.setRequestHandler('elicitation/create', ({ params: { message } }) => {
      asked.push(message);
      return { action: 'accept' as const, content };
    });
    const name = randomUUID();
    expect(textOf(await client.callTool(count('asking', name)))).toBe(`count ${name}`);
    expect(asked).toEqual([expect.stringContaining('mcp__asking__count')]);
    expect(await scene.counting.ran('count', name)).toBe(1);
    content = { decision: 'deny' };
    expect(await client.callTool(count('asking', name))).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('DENIED') }],
    });
    content = {};
    expect(textOf(await client.callTool(count('asking', name)))).toContain('DECISION_PENDING');
    expect(await scene.counting.ran('count', name)).toBe(1);
    for (const { id, sessionId } of (await scene.bus.call(sessionService.listInteractions, { status: 'pending' })).items)
      await scene.bus.call(sessionService.decideInteraction, { id, sessionId, decision: 'deny', by: alice });
  }
});

it('a client that cannot ask is told which decision its call waits for, and gets the result once it is taken', async () => {
  const agent = await scene.agent();
  const { token } = await tokenOf(agent);
  const client = await connect(token);
  const name = randomUUID();
  const waiting = await client.callTool(count('asking', name, 'wait'));
  expect(waiting).toMatchObject({ isError: true });
  const id = /interaction ([0-9a-f-]{36})/.exec(textOf(waiting))?.[1] ?? '';
  expect((await http(scene.system, `POST /v1/interaction/${id}/decide`, { body: { decision: 'allow' } })).status).toBe(200);
  await until(async () => textOf(await client.callTool(count('asking', name, 'wait'))) === `count ${name}`);
  expect(await scene.counting.ran('count', name)).toBe(1);
});

it('what a server asks within a call goes to a client that can answer, and is refused for one that cannot', async () => {
  const agent = await scene.agent({ serverRequests: { sampling: 'ask' } });
  const { token } = await tokenOf(agent, { names: 'plain' });
  for (const era of ['legacy', 'modern'] as const) {
    const client = await connect(token, { era, fetch: alternating(), options: { capabilities: { elicitation: {}, sampling: {} } } });
    const name = { username: 'ann', email: 'ann@example.org' };
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept' as const, content: name }));
    const said = { role: 'assistant' as const, content: { type: 'text' as const, text: 'Paris' }, model: 'test' };
    client.setRequestHandler('sampling/createMessage', () => said);
    expect(textOf(await client.callTool({ name: 'test_elicitation', arguments: { message: 'Who?' } }))).toContain('ann@example.org');
    expect(textOf(await client.callTool({ name: 'test_sampling', arguments: { prompt: 'Where?' } }))).toBe('LLM response: Paris');
  }
  const without = await connect(token, { era: 'modern' });
  await expect(without.callTool({ name: 'test_sampling', arguments: { prompt: 'Where?' } })).rejects.toMatchObject({ code: -32021 });
});

it('prompts, resources and completions are those of the snapshot’s servers', async () => {
  const { token } = await tokenOf(await scene.agent());
  for (const era of ['legacy', 'modern'] as const) {
    const client = await connect(token, { era, fetch: alternating() });
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toContain('mcp__full__test_prompt_with_arguments');
    const prompt = await client.getPrompt({ name: 'mcp__full__test_prompt_with_arguments', arguments: { arg1: 'a', arg2: 'b' } });
    expect(prompt.messages[0]?.content).toMatchObject({ text: "Prompt with arguments: arg1='a', arg2='b'" });
    expect((await client.listResources()).resources.map(({ uri }) => uri)).toContain('test://static-text');
    expect((await client.readResource({ uri: 'test://static-text' })).contents[0]).toMatchObject({
      text: expect.stringContaining('static text'),
    });
    expect((await client.readResource({ uri: 'test://template/7/data' })).contents[0]).toMatchObject({
      text: expect.stringContaining('"7"'),
    });
    expect((await client.listResourceTemplates()).resourceTemplates).toMatchObject([{ uriTemplate: 'test://template/{id}/data' }]);
    const ref = { type: 'ref/prompt' as const, name: 'mcp__full__test_prompt_with_arguments' };
    expect((await client.complete({ ref, argument: { name: 'arg1', value: 'pa' } })).completion.values).toEqual(['paris', 'park']);
    await expect(client.readResource({ uri: 'test://nowhere' })).rejects.toBeDefined();
  }
  const without = await connect((await tokenOf(await scene.agent({ servers: ['one'] }))).token);
  expect([await without.listPrompts(), await without.listResources()]).toMatchObject([{ prompts: [] }, { resources: [] }]);
});

it('the example of the documents lists and calls tools', async () => {
  const { token } = await tokenOf(await scene.agent());
  const env = { PATH: process.env.PATH, AMBIT_EDGE_URL: address().href, AMBIT_EDGE_TOKEN: token };
  const example = (...args: string[]) => promisify(execFile)(process.execPath, [program, ...args], { env });
  expect((await example()).stdout).toMatch(/^mcp__one__count {2}Counts a name$/m);
  expect((await example('mcp__one__count', '{"name":"example"}')).stdout).toBe('count example\n');
  await expect(example('mcp__one__count', '{}')).rejects.toMatchObject({ code: 1, stdout: expect.stringContaining('BAD_ARGUMENTS') });
});

it('skills of the snapshot are served by the skills extension, to clients of both eras, byte for byte', async () => {
  const agent = await scene.agent();
  const other = await scene.agent();
  const files = {
    'SKILL.md': '---\nname: brewing\ndescription: How to brew tea.\nlicense: MIT\nmetadata:\n  author: someone\n---\n\nBoil water.\n',
    'references/deep/LEAVES.md': '\uFEFFGreen, black.\n',
    'assets/pot.bin': Buffer.from([0, 255, 254, 1]),
  };
  await putSkill(agent.id, files);
  await putSkill(other.id, { 'SKILL.md': '---\nname: roasting\ndescription: How to roast.\n---\n\nSlowly.\n' });
  const { token } = await tokenOf(agent);
  for (const era of ['legacy', 'modern'] as const) {
    const client = await connect(token, { era, fetch: alternating() });
    const skills = new SkillsClient(client);
    expect([skills.supported, skills.directoryRead]).toEqual([true, true]);
    const { skills: listed } = await skills.list();
    expect(listed.map(({ uri }) => uri)).toContain('skill://brewing/SKILL.md');
    expect(listed.map(({ uri }) => uri)).not.toContain('skill://roasting/SKILL.md');
    const { skill } = await skills.get('skill://brewing/SKILL.md');
    expect(skill.frontmatter).toEqual({
      name: 'brewing',
      description: 'How to brew tea.',
      license: 'MIT',
      metadata: { author: 'someone' },
    });
    for (const [path, content] of Object.entries(files))
      expect(await skills.read(skill, path)).toMatchObject({ verified: true, bytes: new Uint8Array(Buffer.from(content)) });
    expect((await skills.readDirectory('skill://brewing')).resources.map(({ name, mimeType }) => [name, mimeType])).toEqual([
      ['SKILL.md', 'text/markdown'],
      ['assets', 'inode/directory'],
      ['references', 'inode/directory'],
    ]);
    expect((await skills.readDirectory('skill://brewing/references/deep')).resources.map(({ uri }) => uri)).toEqual([
      'skill://brewing/references/deep/LEAVES.md',
    ]);
    for (const uri of ['skill://roasting/SKILL.md', 'skill://brewing', 'skill://brewing/../roasting/SKILL.md', 'skill://none/SKILL.md'])
      await expect(skills.get(uri)).rejects.toMatchObject({ code: -32602 });
    await expect(client.readResource({ uri: 'skill://roasting/SKILL.md' })).rejects.toMatchObject({ code: -32602 });
    await expect(client.readResource({ uri: 'skill://brewing/none.md' })).rejects.toMatchObject({ code: -32602 });
    await expect(skills.readDirectory('skill://brewing/none')).rejects.toMatchObject({ code: -32602 });
  }
  // One that is switched off is not there any more, and who listens hears of it.
  let changes = 0;
  const listener = await connect(token, {
    options: { listChanged: { resources: { autoRefresh: false, onChanged: () => void changes++ } } },
  });
  const { skill } = await new SkillsClient(listener).get('skill://brewing/SKILL.md');
  await scene.bus.call(skillStore.disableSkill, { agentId: agent.id, name: 'brewing' });
  await until(() => changes > 0);
  expect((await new SkillsClient(listener).list()).skills.map(({ uri }) => uri)).not.toContain('skill://brewing/SKILL.md');
  await expect(new SkillsClient(listener).read(skill)).rejects.toMatchObject({ code: -32602 });
});

it('a list that changes is told to who listens, and one that does not is not', async () => {
  const agent = await scene.agent({ servers: ['one', 'late'] });
  const { token } = await tokenOf(agent);
  const told: string[] = [];
  const listening = async (era: 'legacy' | 'modern', replica: number) => {
    const listChanged = {
      tools: {
        autoRefresh: true,
        onChanged: (_error: unknown, tools: readonly { name: string }[] | null) =>
          void told.push(`${era} ${(tools ?? []).some(({ name }) => name === 'mcp__late__count')}`),
      },
    };
    const client = await connect(token, { era, replica, options: { listChanged } });
    await client.listTools();
  };
  await listening('legacy', 0);
  await listening('modern', 1);
  const { id } = await scene.server('late');
  await until(() => told.includes('legacy true') && told.includes('modern true'), 20_000);
  const before = told.length;
  // Something moved that is nobody's list.
  await scene.bus.call(mcpBroker.testServer, { id });
  const quiet = await connect(token);
  await quiet.listTools();
  expect(told.length).toBe(before);
});

it('two projects do not meet, and an agent that is switched off serves nobody', async () => {
  await scene.bus.call(sessionService.putProject, { id: 'elsewhere' });
  const theirs = await scene.bus.call(mcpBroker.putServer, { ...scene.counting.server('theirs'), projectId: 'elsewhere' });
  await scene.bus.call(mcpBroker.testServer, { id: theirs.id });
  const policy = { servers: null, rules: [{ decision: 'allow' as const, tool: 'mcp__*' }] };
  const agent = await scene.bus.call(sessionService.putAgent, { id: `away-${randomUUID().slice(0, 8)}`, projectId: 'elsewhere', policy });
  const there = await connect((await tokenOf(agent)).token);
  const servers = (tools: readonly { name: string }[]) => [
    ...new Set(tools.map(({ name }) => /^mcp__(.+?)__/.exec(name)?.[1]).filter((slug) => slug !== undefined)),
  ];
  expect(servers((await there.listTools()).tools)).toEqual(['theirs']);
  await expect(there.callTool(count('one', 'x'))).rejects.toMatchObject({ code: -32602 });
  const here = await connect((await tokenOf(await scene.agent())).token);
  expect(servers((await here.listTools()).tools)).not.toContain('theirs');
  await scene.bus.call(sessionService.putAgent, { id: agent.id, projectId: 'elsewhere', policy, enabled: false });
  await expect(there.callTool(count('theirs', 'x')))
    .resolves.toMatchObject({ isError: true })
    .catch(() => undefined);
  expect(await scene.counting.ran('count', 'x')).toBe(0);
});

it('a replica that dies takes no call with it: the next one answers with what became of it', async () => {
  const agent = await scene.agent();
  const { token } = await tokenOf(agent);
  const name = randomUUID();
  const call = { name: 'mcp__two__hold', arguments: { name }, _meta: { 'ambit/idempotencyKey': 'dies' } };
  const lost = (await connect(token, { replica: 1 })).callTool(call);
  lost.catch(() => undefined);
  await scene.counting.held(name);
  await scene.system.process('mcp-edge', 2).kill();
  const again = (await connect(token)).callTool(call);
  scene.counting.release(name);
  expect(textOf(await again)).toBe(`hold ${name}`);
  expect(await scene.counting.ran('hold', name)).toBe(1);
});

/** A request as a page sends it whose name was made to resolve to us. */
function byHost(host: string, token: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const { hostname, port, pathname } = address();
    const sent = request(
      { hostname, port, path: pathname, method: 'POST', headers: { host, ...bearer(token), 'content-type': 'application/json' } },
      (answer) => {
        answer.resume();
        resolve(answer.statusCode ?? 0);
      },
    );
    sent.on('error', reject);
    sent.end(JSON.stringify(initialize));
  });
}
