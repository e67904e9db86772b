import { mcpBroker, pluginRegistry, sessionService } from '@ambit/contracts';
import { until } from '@ambit/testing';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import { get } from 'node:http';
import { intend } from '../system/by-hand.js';
import { installPlugin, PLUGIN } from '../system/helper-plugin.js';
import { http, tokenFor } from '../system/http.js';
import { alice, bob, Scene } from '../system/scene.js';
import { AuthorizationServer, ProtectedServer } from '../system/sign-in-world.js';
import { verifies } from '../verifies.js';

jest.setTimeout(180_000);

let scene: Scene;
let issuer: AuthorizationServer;
let upstream: ProtectedServer;
beforeAll(async () => {
  scene = await Scene.start({ services: ['session-service', 'tool-gateway', 'mcp-broker', 'skill-store', 'plugin-registry', 'admin-api'] });
  issuer = await new AuthorizationServer().listen();
  upstream = await new ProtectedServer(issuer).listen();
});
afterAll(async () => {
  await upstream?.close();
  await issuer?.close();
  await scene?.stop();
});

/** What a person does in a browser: to the issuer, back to Ambit, and the one button there. */
async function browse(address: string): Promise<{ readonly asked: string; readonly done: Response; readonly callback: URL }> {
  const consent = await fetch(address, { redirect: 'manual' });
  const callback = new URL(consent.headers.get('location') ?? 'about:blank');
  const page = await fetch(callback);
  const asked = await page.text();
  const body = new URLSearchParams(
    [...asked.matchAll(/name="(\w+)" value="([^"]*)"/g)].map(([, name = '', value = '']): [string, string] => [name, value]),
  );
  const done = await fetch(new URL(callback.pathname, callback), { method: 'POST', body });
  return { asked, done, callback };
}

/** What an address answers to a browser that was led there by another name. */
function statusUnder(url: string, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get(url, { headers: { host } }, (answer) => resolve(answer.resume().statusCode)).once('error', reject);
  });
}

verifies(
  ['R-MCP-16#1', 'R-MCP-16#5'],
  'a call that wants its principal to sign in waits, for that principal alone, and goes on by the sign-in',
  {
    timeoutMs: 120_000,
    shows: async () => {
      upstream.isOpen = true;
      const { system } = scene;
      const put = await http(system, 'PUT /v1/server/mail', {
        body: { transport: { type: 'http', url: upstream.url, authorization: { type: 'interactive', credentials: 'user' } } },
      });
      expect(put.status).toBe(200);
      const server = String(put.body['id']);
      await until(async () => (await http(system, `GET /v1/server/${server}`)).body['state'] === 'connected', 30_000);

      const agent = await scene.agent({ mode: 'full_access' });
      const worker = await scene.worker(agent);
      await scene.send(agent);
      const run = await worker.begin();
      const [result] = await run.use(intend('mcp__mail__whoami', {}));
      expect(result).toMatchObject({ status: 'waiting' });
      const [interaction] = await scene.pending(run.ref.sessionId);
      expect(interaction).toMatchObject({ kind: 'authorize', serverId: server, approvers: [alice.id], principal: { id: alice.id } });
      const at = `/v1/interaction/${interaction?.id}`;

      // Nobody else gets the address, or says yes in alice's place.
      const others = await tokenFor(system, { principal: bob.id, role: 'operator' });
      expect((await http(system, `POST ${at}/authorize`, { token: others })).status).toBe(404);
      expect((await http(system, `POST ${at}/authorize`)).status).toBe(404);
      expect((await http(system, `POST ${at}/decide`, { body: { decision: 'allow' } })).status).toBe(403);
      expect((await http(system, `POST /v1/server/${server}/authorize`, { token: others, body: { subject: alice.id } })).status).toBe(403);

      const hers = await tokenFor(system, { principal: alice.id, role: 'client' });
      const begun = await http(system, `POST ${at}/authorize`, { token: hers });
      expect(begun).toMatchObject({ status: 200, body: { issuer: issuer.origin } });
      const { asked, done, callback } = await browse(String(begun.body['url']));
      expect(callback.origin).toBe(system.apiUrl);
      expect(asked).toContain(`will serve ${alice.id} in Ambit`);
      expect(done.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
      expect(await done.text()).toContain('Signed in to mail');
      // The code was taken: opened again, the same address finishes nothing.
      expect((await fetch(callback)).status).toBe(404);

      await run.finish('waiting');
      const settled = () => scene.bus.call(sessionService.getInteraction, { id: interaction?.id ?? '' });
      await until(async () => (await settled()).status === 'settled', 30_000);
      expect(upstream.executed).toBe(1);
      const resumed = await worker.begin();
      const text = JSON.stringify(resumed.opened.messages);
      expect(text).toContain(`Bearer ${[...issuer.access.keys()][0]}`);
      await resumed.finish('completed');

      // Another principal's call is another connection, without her token.
      await scene.send(agent, { principal: bob });
      const his = await worker.begin();
      expect((await his.use(intend('mcp__mail__whoami', {})))[0]).toMatchObject({ status: 'waiting' });
      await his.finish('waiting');

      const credentials = await http(system, `GET /v1/server/${server}/authorization`);
      expect(credentials.body['items']).toEqual([expect.objectContaining({ subject: alice.id, state: 'authenticated', scopes: ['read'] })]);
      const erased = await http(system, `DELETE /v1/principal/${encodeURIComponent(alice.id)}`);
      expect(erased.body).toMatchObject({ credentials: 1 });
      expect((await http(system, `GET /v1/server/${server}/authorization`)).body['items']).toEqual([]);
    },
  },
);

verifies(
  ['R-MCP-16#1', 'R-MCP-16#3'],
  'everybody’s sign-in is an administrator’s, and can be finished with the address that a browser could not open',
  {
    timeoutMs: 60_000,
    shows: async () => {
      const { system } = scene;
      const put = await http(system, 'PUT /v1/server/wiki', { body: { transport: { type: 'http', url: upstream.url } } });
      const at = `/v1/server/${String(put.body['id'])}`;
      // Until then a call says what is missing: no person whom the run is for could give it.
      await until(async () => (await http(system, `GET ${at}`)).body['state'] === 'connected', 30_000);
      const agent = await scene.agent();
      await scene.send(agent);
      const run = await (await scene.worker(agent)).begin();
      expect(await run.use(intend('mcp__wiki__whoami', {}))).toMatchObject([
        { status: 'failed', fault: { code: 'AUTHORIZATION_REQUIRED', data: { credentials: 'shared' } } },
      ]);
      expect(upstream.executed).toBe(1);
      await run.finish('completed');
      const client = await tokenFor(system, { principal: 'user:carl', role: 'client' });
      expect((await http(system, `POST ${at}/authorize`, { token: client, body: {} })).status).toBe(403);
      const first = await http(system, `POST ${at}/authorize`, { body: {} });
      const second = await http(system, `POST ${at}/authorize`, { body: {} });
      expect((await http(system, `GET ${at}`)).body['authorization']).toMatchObject({ state: 'authenticating' });
      const back = async (begun: typeof first): Promise<string> =>
        (await fetch(String(begun.body['url']), { redirect: 'manual' })).headers.get('location') ?? '';
      const complete = async (callback: string, token?: string) =>
        http(system, 'POST /v1/authorization/complete', { body: { callback }, ...(token === undefined ? {} : { token }) });
      // The first flow was cancelled by the second; another host, method or person ends none.
      expect(await complete(await back(first))).toMatchObject({ status: 404, body: { code: 'FLOW_UNKNOWN' } });
      const callback = await back(second);
      expect((await complete(callback.replace('/oauth/callback', '/oauth/other'))).status).toBe(400);
      expect((await complete(`${callback}&state=twice`)).status).toBe(400);
      expect((await complete(callback, client)).status).toBe(403);
      expect((await fetch(callback, { method: 'DELETE' })).status).toBe(405);
      expect(await statusUnder(callback, 'evil.example')).toBe(421);
      expect(await complete(callback)).toMatchObject({ status: 200, body: { subject: 'shared', slug: 'wiki' } });
      expect(await complete(callback)).toMatchObject({ status: 404 });
      expect((await http(system, `GET ${at}`)).body['authorization']).toMatchObject({ state: 'authenticated' });
      expect((await http(system, `DELETE ${at}/authorization/shared`)).body).toEqual({ removed: true });
      // Only over https could an issuer trust a document of ours.
      expect((await fetch(`${system.apiUrl}/oauth/client.json`)).status).toBe(404);
    },
  },
);

verifies(['R-MCP-5#3', 'R-MCP-5#4'], 'a server that a person switched off stays off when its plugin, or its configuration, comes again', {
  timeoutMs: 120_000,
  shows: async () => {
    const { system, bus } = scene;
    await installPlugin(scene);
    const enable = () => bus.call(pluginRegistry.enablePlugin, { id: PLUGIN }, { timeoutMs: 60_000 });
    const ofPlugin = async () => (await bus.call(mcpBroker.listServers, { owner: `plugin:${PLUGIN}` })).items[0];
    await enable();
    const at = `/v1/server/${(await ofPlugin())?.id}`;
    expect((await http(system, `POST ${at}/disable`)).body).toMatchObject({ state: 'disabled', switchedOff: true });
    await bus.call(pluginRegistry.disablePlugin, { id: PLUGIN }, { timeoutMs: 60_000 });
    await enable();
    expect(await ofPlugin()).toMatchObject({ state: 'disabled', switchedOff: true });
    const body = { transport: { type: 'http', url: upstream.url } };
    const own = await http(system, 'PUT /v1/server/switched', { body });
    await http(system, `POST /v1/server/${String(own.body['id'])}/disable`);
    expect((await http(system, 'PUT /v1/server/switched', { body })).body).toMatchObject({ state: 'disabled', switchedOff: true });
    const on = await http(system, `POST /v1/server/${String(own.body['id'])}/enable`);
    expect(on.body).toMatchObject({ switchedOff: false });
    expect(on.body['state']).not.toBe('disabled');
  },
});

verifies('R-MCP-16#7', 'tools that a server shows only to whoever signed in are in that principal’s runs, and in no other’s', {
  timeoutMs: 120_000,
  shows: async () => {
    const { system } = scene;
    upstream.isOpen = false;
    const authorization = { type: 'interactive', credentials: 'user' };
    const put = await http(system, 'PUT /v1/server/closed', { body: { transport: { type: 'http', url: upstream.url, authorization } } });
    const at = `/v1/server/${String(put.body['id'])}`;
    await until(async () => (await http(system, `GET ${at}`)).body['state'] === 'needs-auth', 60_000);
    const begun = await http(system, `POST ${at}/authorize`, {
      token: await tokenFor(system, { principal: 'user:dora', role: 'client' }),
      body: {},
    });
    expect(await (await browse(String(begun.body['url']))).done.text()).toContain('Signed in to closed');
    const dora = { id: 'user:dora', kind: 'person', issuer: 'local', display: 'Dora' } as const;
    const agent = await scene.agent();
    const worker = await scene.worker(agent);
    const toolsOf = async (principal: typeof dora | typeof bob): Promise<readonly string[]> => {
      await scene.send(agent, { principal });
      const run = await worker.begin();
      const { tools } = await worker.snapshot(run.ref.fingerprint);
      await run.finish('completed');
      return tools.map(({ name }) => name);
    };
    await until(async () => (await toolsOf(dora)).includes('mcp__closed__whoami'), 60_000);
    expect(await toolsOf(bob)).not.toContain('mcp__closed__whoami');
    expect(await toolsOf(dora)).toContain('mcp__closed__whoami');
  },
});
