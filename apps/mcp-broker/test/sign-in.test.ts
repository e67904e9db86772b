// Long because two brokers are started once for every way in which a sign-in can go.
import { afterAll, afterEach, beforeAll, expect } from '@jest/globals';
import { mcpBroker, type Input, type Output } from '@ambit/contracts';
import { openDatabase } from '@ambit/db';
import type { RunningService } from '@ambit/service';
import { startNats, startPostgres, startService, until, withClient, type TestNats, type TestPostgres } from '@ambit/testing';
import { randomBytes, randomUUID } from 'node:crypto';
import { Writable } from 'node:stream';
import { verifies } from '../../../test/verifies.js';
import { BrokerConfig } from '../src/config.js';
import { McpBrokerModule } from '../src/mcp-broker.module.js';
import { AuthorizationServer, browse, ProtectedServer, REDIRECT } from '../../../test/system/sign-in-world.js';

const hex = (): string => randomBytes(32).toString('hex');
type Server = Output<typeof mcpBroker.getServer>;
type Put = Input<typeof mcpBroker.putServer>;

let nats: TestNats;
let postgres: TestPostgres;
const brokers: RunningService[] = [];
const open: { close(): Promise<void> }[] = [];
let logged = '';
const logTo = new Writable({
  write(chunk: Buffer, _encoding, done) {
    logged += chunk.toString();
    done();
  },
});
const sealingKey = hex();
/** What a busy machine may take. */
const SLOW = { timeoutMs: 30_000 };
const WITHIN_MS = 60_000;
const startBroker = (environment: Record<string, string> = {}): Promise<RunningService> =>
  startService('mcp-broker', McpBrokerModule, {
    nats,
    postgres,
    config: BrokerConfig,
    database: openDatabase,
    environment: { AMBIT_SEALING_KEY: sealingKey, AMBIT_LOG_LEVEL: 'debug', ...environment },
    logTo,
  } as never);

beforeAll(async () => {
  [nats, postgres] = await Promise.all([startNats(), startPostgres()]);
  brokers.push(await startBroker(), await startBroker());
}, 120_000);
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});
afterAll(async () => {
  for (const broker of brokers) await broker.close();
  await postgres.stop();
  await nats.stop();
});

const get = (id: string): Promise<Server> => nats.bus.call(mcpBroker.getServer, { id }, SLOW);
const start = (serverId: string, subject = 'shared', clientMetadataUrl: string | null = null) =>
  nats.bus.call(mcpBroker.startAuthorization, { serverId, subject, redirectUri: REDIRECT, clientMetadataUrl }, SLOW);
const finish = (answer: Input<typeof mcpBroker.finishAuthorization>) => nats.bus.call(mcpBroker.finishAuthorization, answer, SLOW);
async function signIn(serverId: string, subject = 'shared'): Promise<void> {
  await finish(await browse((await start(serverId, subject)).url));
}
const credential = async (serverId: string, subject = 'shared') =>
  (await nats.bus.call(mcpBroker.listAuthorizations, { serverId }, SLOW)).items.find((one) => one.subject === subject);

async function world(
  slug: string,
  more: { readonly authorization?: Record<string, unknown>; readonly scope?: 'per-session' } = {},
  prepare: (issuer: AuthorizationServer, upstream: ProtectedServer) => void = () => undefined,
) {
  const issuer = await new AuthorizationServer().listen();
  const upstream = await new ProtectedServer(issuer).listen();
  open.push(issuer, upstream);
  prepare(issuer, upstream);
  const server = await nats.bus.call(
    mcpBroker.putServer,
    {
      slug,
      transport: { type: 'http', url: upstream.url, ...(more.authorization === undefined ? {} : { authorization: more.authorization }) },
      ...(more.scope === undefined ? {} : { instances: { scope: more.scope } }),
    } as Put,
    SLOW,
  );
  return { issuer, upstream, server };
}

/** As the gateway does: where nothing was done, because a busy machine lost a lease, the owner is asked for again. */
async function call(server: Server, tool = 'whoami', principalId?: string): Promise<string> {
  for (let tries = 1; ; tries++) {
    const answer = await callOnce(server, tool, principalId).catch((error: { code?: string }) => {
      if (tries === 5 || !['UNAVAILABLE', 'STALE_LEASE', 'SERVER_UNAVAILABLE'].includes(error.code ?? '')) throw error;
    });
    if (answer !== undefined) return answer;
  }
}

async function callOnce(server: Server, tool: string, principalId: string | undefined): Promise<string> {
  const { instanceId, leaseRevision } = await nats.bus.call(
    mcpBroker.ensureInstance,
    {
      configGeneration: server.configGeneration,
      bindingHash: server.bindingHash,
      agentId: 'guide',
      sessionId: randomUUID(),
      ...(principalId === undefined ? {} : { principalId }),
    },
    { keys: { serverId: server.id }, timeoutMs: 30_000 },
  );
  const answer = await nats.bus.call(
    mcpBroker.executeCall,
    {
      serverId: server.id,
      configGeneration: server.configGeneration,
      bindingHash: server.bindingHash,
      leaseRevision,
      operationId: hex(),
      gatewayId: randomUUID(),
      tool,
      arguments: {},
      callTimeoutMs: 10_000,
    },
    { keys: { instanceId }, timeoutMs: 15_000 },
  );
  return String((answer.result?.['content'] as { text: string }[] | undefined)?.[0]?.text);
}
const refused = (promise: Promise<unknown>): Promise<{ code?: string; data?: unknown }> =>
  promise.then(
    () => ({}),
    (error: { code?: string; data?: unknown }) => error,
  );

verifies(['R-MCP-16#1', 'R-MCP-16#3', 'R-MCP-16#7'], 'a sign-in is finished once, by its own state, and leaves nothing where it is not', {
  timeoutMs: 120_000,
  shows: async () => {
    const { issuer, upstream, server } = await world('signed');
    await until(async () => (await get(server.id)).state === 'needs-auth', WITHIN_MS);
    // Its state may be `connecting` again by now: it is tried now and then.
    expect(await get(server.id)).toMatchObject({
      authorization: { state: 'required', credentials: 'shared', issuer: issuer.origin },
    });
    expect(await refused(call(server))).toMatchObject({
      code: 'AUTHORIZATION_REQUIRED',
      data: { serverId: server.id, credentials: 'shared' },
    });

    // A second flow takes the first one's place.
    const first = await browse((await start(server.id)).url);
    const second = await start(server.id);
    expect((await get(server.id)).authorization.state).toBe('authenticating');
    expect(await refused(finish(first))).toMatchObject({ code: 'FLOW_UNKNOWN' });
    const answer = await browse(second.url);
    expect(await refused(finish({ ...answer, state: `${answer.state}x` }))).toMatchObject({ code: 'FLOW_UNKNOWN' });
    expect(issuer.access.size).toBe(0);

    // An answer of another issuer is a mix-up: it ends the sign-in, and its code is sent nowhere.
    issuer.saysIssuer = 'https://evil.example';
    expect(await refused(finish(await browse((await start(server.id)).url)))).toMatchObject({ code: 'AUTHORIZATION_FAILED' });
    issuer.saysIssuer = undefined;
    expect(issuer.access.size).toBe(0);
    expect((await get(server.id)).authorization).toMatchObject({ state: 'error' });
    // A code of another sign-in does not fit this one's verifier.
    const third = await browse((await start(server.id)).url);
    const fourth = await browse((await start(server.id)).url);
    expect(await refused(finish({ ...fourth, code: third.code }))).toMatchObject({
      code: 'AUTHORIZATION_FAILED',
      data: { reason: expect.stringContaining('invalid_grant') },
    });
    expect(issuer.access.size).toBe(0);

    const good = await browse((await start(server.id)).url);
    expect(await finish(good)).toMatchObject({ serverId: server.id, slug: 'signed', subject: 'shared' });
    expect(await refused(finish(good))).toMatchObject({ code: 'FLOW_UNKNOWN' });
    const [token] = [...issuer.access.keys()];
    expect(await call(server)).toBe(`Bearer ${token}`);
    expect(await get(server.id)).toMatchObject({ authorization: { state: 'authenticated', authenticated: 1 } });
    expect(issuer.asked.at(-1)?.get('resource')).toBe(upstream.url);
    expect(issuer.asked.at(-1)?.get('scope')).toBe('read');

    // Sealed where it is kept, and told nobody.
    const secrets = [...issuer.access.keys(), ...issuer.refreshes.keys()];
    const told = JSON.stringify([await get(server.id), await credential(server.id)]);
    let kept = '';
    await withClient(postgres.url, async (client) => {
      const { rows } = await client.query<{ sealed: Buffer }>('SELECT sealed FROM mcp_broker.credential');
      kept = rows.map(({ sealed }) => sealed.toString('latin1')).join();
    });
    expect(kept.length).toBeGreaterThan(100);
    for (const secret of secrets) {
      expect(told).not.toContain(secret);
      expect(logged).not.toContain(secret);
      expect(kept).not.toContain(secret);
    }
    await until(async () => (await get(server.id)).tools === 2);
  },
});

verifies('R-MCP-16#2', 'with another endpoint or another issuer the stored token is not used', {
  timeoutMs: 120_000,
  shows: async () => {
    const { issuer, upstream, server } = await world('moved');
    await signIn(server.id);
    expect(await call(server)).toContain('Bearer');
    // Another issuer: the server names one that never gave this token.
    const other = await new AuthorizationServer().listen();
    open.push(other);
    upstream.issuer = other;
    nats.bus.signal(
      mcpBroker.closeInstance,
      { serverId: server.id, keepGeneration: null, reason: 'test' },
      { keys: { serverId: server.id } },
    );
    const before = upstream.seen.length;
    await until(async () => (await refused(call(server))).code === 'AUTHORIZATION_REQUIRED');
    expect(other.access.size + other.refreshes.size).toBe(0);
    expect(upstream.seen.slice(before).filter((header) => header !== undefined)).toEqual([]);
    expect(await credential(server.id)).toMatchObject({ state: 'required', issuer: issuer.origin });

    // Another endpoint: another server, whose requests carry nothing of what was given for the first.
    await signIn(server.id);
    const elsewhere = await new ProtectedServer(other).listen();
    open.push(elsewhere);
    const moved = await nats.bus.call(mcpBroker.putServer, { slug: 'moved', transport: { type: 'http', url: elsewhere.url } });
    expect(moved.configGeneration).toBe(2);
    expect(await refused(call(moved))).toMatchObject({ code: 'AUTHORIZATION_REQUIRED', data: { credentials: 'shared' } });
    expect(elsewhere.seen.filter((header) => header !== undefined)).toEqual([]);
    expect(await credential(server.id)).toBeUndefined();
  },
});

verifies('R-MCP-16#4', 'two replicas that find a token old renew it once; a revoked one ends in the state required', {
  timeoutMs: 120_000,
  shows: async () => {
    const { issuer, server } = await world(
      'renewed',
      { authorization: { type: 'interactive', credentials: 'user' }, scope: 'per-session' },
      (one) => (one.expiresIn = 0),
    );
    let refreshes = 0;
    issuer.onRefresh = () => refreshes++;
    await signIn(server.id, 'user:ann');
    issuer.expiresIn = 3_600;
    // Instances of eight sessions start on both replicas, and all of them find the token old.
    let release: () => void = () => undefined;
    issuer.hold = new Promise((resolve) => (release = resolve));
    const calls = Promise.all(Array.from({ length: 8 }, () => call(server, 'whoami', 'user:ann')));
    await until(() => refreshes > 0);
    release();
    const answers = new Set(await calls);
    expect(answers.size).toBe(1);
    expect(refreshes).toBe(1);

    // The issuer takes it all back: the refused token is not renewed for ever.
    for (const given of [...issuer.access.values(), ...issuer.refreshes.values()]) given.isGood = false;
    expect(await refused(call(server, 'whoami', 'user:ann'))).toMatchObject({
      code: 'AUTHORIZATION_REQUIRED',
      data: { credentials: 'user' },
    });
    expect(await credential(server.id, 'user:ann')).toMatchObject({ state: 'required' });
    const after = refreshes;
    await refused(call(server, 'whoami', 'user:ann'));
    expect(refreshes).toBe(after);

    // An old token whose refresh token was revoked meanwhile.
    issuer.expiresIn = 0;
    await signIn(server.id, 'user:ann');
    for (const given of issuer.refreshes.values()) given.isGood = false;
    expect(await refused(call(server, 'whoami', 'user:ann'))).toMatchObject({ code: 'AUTHORIZATION_REQUIRED' });
    expect(await credential(server.id, 'user:ann')).toMatchObject({ state: 'required', reason: expect.stringContaining('invalid_grant') });
  },
});

verifies(
  'R-MCP-16#5',
  'a server that asks for a sign-in only at a tool reaches the state required; wider rights are asked for the same way',
  {
    timeoutMs: 120_000,
    shows: async () => {
      const { issuer, upstream, server } = await world('open', {}, (_, one) => (one.isOpen = true));
      await until(async () => (await get(server.id)).state === 'connected');
      expect(await get(server.id)).toMatchObject({ tools: 2, authorization: { state: 'none' } });
      expect(await refused(call(server))).toMatchObject({ code: 'AUTHORIZATION_REQUIRED' });
      expect(await get(server.id)).toMatchObject({ state: 'connected', tools: 2, authorization: { state: 'required' } });
      expect(upstream.executed).toBe(0);
      await signIn(server.id);
      expect(await call(server)).toContain('Bearer');

      // The tool wants more than the sign-in gave: nothing is done until somebody gives it, and what worked goes on.
      expect(await refused(call(server, 'write'))).toMatchObject({ code: 'AUTHORIZATION_REQUIRED' });
      expect(upstream.executed).toBe(1);
      expect((await get(server.id)).authorization).toMatchObject({ state: 'required', reason: expect.stringContaining('write') });
      expect(await call(server)).toContain('Bearer');
      await signIn(server.id);
      expect(issuer.asked.at(-1)?.get('scope')).toBe('read write');
      expect(await call(server, 'write')).toContain('Bearer');
      expect((await get(server.id)).authorization.state).toBe('authenticated');
    },
  },
);

verifies('R-MCP-16#6', 'a server that wants credentials and does not say where from is asked once, and shown so', {
  timeoutMs: 120_000,
  shows: async () => {
    const { upstream, server } = await world('silent', {}, (issuer, one) => {
      one.publishes = false;
      issuer.takesRegistrations = false;
    });
    await until(async () => (await get(server.id)).state === 'needs-auth', WITHIN_MS);
    const { authorization } = await get(server.id);
    expect(authorization).toMatchObject({ state: 'unsupported', reason: expect.stringContaining('Authorization header') });
    const asked = { requests: upstream.seen.length, metadata: upstream.asks };
    // Each call is one more try of its own, and finds out nothing anew.
    expect(await refused(call(server))).toMatchObject({ code: 'AUTHORIZATION_REQUIRED' });
    expect(upstream.asks).toBe(asked.metadata);
    expect(upstream.seen.length - asked.requests).toBeLessThanOrEqual(asked.requests);
    expect(await refused(start(server.id))).toMatchObject({ code: 'AUTHORIZATION_UNSUPPORTED' });
  },
});

verifies('R-MCP-16#7', 'each principal has its own token and connection, and nothing is left of one that is removed', {
  timeoutMs: 120_000,
  shows: async () => {
    const { issuer, server } = await world('own', { authorization: { type: 'interactive', credentials: 'user' } });
    expect(await refused(call(server))).toMatchObject({ code: 'AUTHORIZATION_REQUIRED', data: { credentials: 'user' } });
    expect(await refused(start(server.id, 'agent:guide'))).toMatchObject({ code: 'SUBJECT_REFUSED', data: { credentials: 'user' } });
    await signIn(server.id, 'user:cyn');
    await signIn(server.id, 'user:bob');
    const [ann, bob] = await Promise.all([call(server, 'whoami', 'user:cyn'), call(server, 'whoami', 'user:bob')]);
    expect(ann).not.toBe(bob);
    expect(await refused(call(server, 'whoami', 'user:eve'))).toMatchObject({ code: 'AUTHORIZATION_REQUIRED' });
    expect((await get(server.id)).authorization).toMatchObject({ state: 'authenticated', authenticated: 2 });
    // Whoever has signed in sees the list that was read for them; the others see what is there for nobody.
    const heads = async (principalId: string) =>
      (await nats.bus.call(mcpBroker.catalogueHeads, { projectId: 'default', principalId }, SLOW)).servers.find(
        ({ serverId }) => serverId === server.id,
      );
    await until(async () => ((await heads('user:cyn'))?.catalogHash ?? null) !== null);
    expect((await heads('user:eve'))?.catalogHash).toBeNull();

    expect(await nats.bus.call(mcpBroker.erasePrincipal, { principal: 'user:cyn' }, SLOW)).toEqual({ credentials: 1 });
    expect(await refused(call(server, 'whoami', 'user:cyn'))).toMatchObject({ code: 'AUTHORIZATION_REQUIRED' });
    expect(await call(server, 'whoami', 'user:bob')).toBe(bob);
    expect(await credential(server.id, 'user:cyn')).toBeUndefined();
    expect(await nats.bus.call(mcpBroker.removeAuthorization, { serverId: server.id, subject: 'user:bob' }, SLOW)).toEqual({
      removed: true,
    });
    expect(issuer.registrations).toBe(1);
  },
});

verifies('R-MCP-16#1', 'who Ambit is to an issuer: a configured client, a published document, or a registered one', {
  timeoutMs: 120_000,
  shows: async () => {
    const document = 'https://ambit.example/oauth/client.json';
    const { issuer, server } = await world('known', {}, (one) => (one.takesDocuments = true));
    await finish(await browse((await start(server.id, 'shared', document)).url));
    expect(issuer.asked.at(-1)?.get('client_id')).toBe(document);
    // Without a document of ours it registers us.
    await signIn(server.id);
    expect(issuer.asked.at(-1)?.get('client_id')).toBe('registered-1');

    await nats.bus.call(mcpBroker.putSecret, { name: 'client-secret', from: 'store', value: 'the-client-secret' }, SLOW);
    const configured = await world(
      'configured',
      { authorization: { type: 'interactive', clientId: 'ours', clientSecret: { secret: 'client-secret' }, scopes: ['mail'] } },
      (one) => {
        one.clients.set('ours', 'the-client-secret');
        one.takesDocuments = true;
      },
    );
    await finish(await browse((await start(configured.server.id, 'shared', document)).url));
    expect(configured.issuer.asked.at(-1)?.get('client_id')).toBe('ours');
    expect(configured.issuer.asked.at(-1)?.get('scope')).toBe('mail');
    expect(await call(configured.server)).toContain('Bearer');
    expect(configured.issuer.registrations).toBe(0);

    // A machine signs in by itself, and asks for more by itself.
    const machine = await world(
      'machine',
      { authorization: { type: 'client_credentials', clientId: 'robot', clientSecret: { secret: 'client-secret' } } },
      (one) => one.clients.set('robot', 'the-client-secret'),
    );
    expect(await call(machine.server)).toContain('Bearer');
    expect(await call(machine.server, 'write')).toContain('Bearer');
    expect((await get(machine.server.id)).authorization).toMatchObject({ state: 'authenticated' });
    expect(await refused(start(machine.server.id))).toMatchObject({ code: 'AUTHORIZATION_UNSUPPORTED' });
    // A header that a person configured wins: nothing is asked for.
    const header = await nats.bus.call(
      mcpBroker.putServer,
      {
        slug: 'header',
        transport: { type: 'http', url: machine.upstream.url, headers: { Authorization: 'Bearer mine' } },
      },
      SLOW,
    );
    expect(header.authorization).toMatchObject({ state: 'none' });
    expect(await refused(call(header))).toMatchObject({ code: 'SERVER_UNAVAILABLE' });
    expect(machine.upstream.seen.at(-1)).toBe('Bearer mine');
  },
});

verifies('R-MCP-16#7', 'after the sealing key was replaced tokens and secrets go on working, and are sealed with the new one', {
  timeoutMs: 120_000,
  shows: async () => {
    const { server } = await world('rotated', { authorization: { type: 'interactive', credentials: 'user' } });
    await signIn(server.id, 'user:dan');
    await nats.bus.call(mcpBroker.putSecret, { name: 'rotated', from: 'store', value: 'whsec_a2V5' }, SLOW);
    const before = await call(server, 'whoami', 'user:dan');
    for (const broker of brokers.splice(0)) await broker.close();
    const rotated = { AMBIT_SEALING_KEY: hex(), AMBIT_SEALING_KEYS_OLD: sealingKey };
    brokers.push(await startBroker(rotated));
    expect(await call(server, 'whoami', 'user:dan')).toBe(before);
    const keys = async (): Promise<number> => {
      let found = 0;
      await withClient(postgres.url, async (client) => {
        const { rows } = await client.query<{ keys: string }>(
          'SELECT count(DISTINCT key_id) AS keys FROM (SELECT key_id FROM mcp_broker.credential UNION ALL SELECT key_id FROM mcp_broker.secret UNION ALL SELECT key_id FROM mcp_broker.client) AS sealed WHERE key_id IS NOT NULL',
        );
        found = Number(rows[0]?.keys);
      });
      return found;
    };
    await until(async () => (await keys()) === 1, WITHIN_MS);
    // The old key can be thrown away.
    for (const broker of brokers.splice(0)) await broker.close();
    brokers.push(await startBroker({ AMBIT_SEALING_KEY: rotated.AMBIT_SEALING_KEY }));
    expect(await call(server, 'whoami', 'user:dan')).toBe(before);
    expect(await nats.bus.call(mcpBroker.signWithSecret, { projectId: 'default', name: 'rotated', text: 'x' }, SLOW)).toHaveProperty(
      'signature',
    );
  },
});
