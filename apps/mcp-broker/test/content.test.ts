import { mcpBroker, type Input, type Output } from '@ambit/contracts';
import { collect, until, type Collector, type TestNats } from '@ambit/testing';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { verifies } from '../../../test/verifies.js';
import { hex, startBroker, type BrokerAlone } from './broker-alone.js';
import { startRuns, type StandIn } from './run-stand-in.js';
import { lists, startSdkServer, type Kind, type SdkServer } from '../../../test/system/sdk-server.js';

let broker: BrokerAlone;
let nats: TestNats;
let runs: StandIn;
let changes: Collector<typeof mcpBroker.catalogueChanged>;
const upstreams: SdkServer[] = [];

beforeAll(async () => {
  broker = await startBroker(async ({ connection }) => {
    runs = startRuns(connection);
    changes = await collect(connection, mcpBroker.catalogueChanged);
  });
  nats = broker.nats;
}, 120_000);
afterAll(async () => {
  changes.stop();
  for (const upstream of upstreams) await upstream.stop();
  await broker.stop(() => runs.close());
});

type Server = Output<typeof mcpBroker.getServer>;
const get = (id: string): Promise<Server> => nats.bus.call(mcpBroker.getServer, { id });
const LISTED = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  completions: {},
};

async function upstream(
  held: Parameters<typeof lists>[1],
  options: Partial<Parameters<typeof startSdkServer>[0]> & { readonly prepare?: (server: SdkServer) => void } = {},
): Promise<SdkServer> {
  const server = await startSdkServer({ capabilities: LISTED, ...options });
  lists(server, held);
  options.prepare?.(server);
  upstreams.push(server);
  return server;
}
async function put(slug: string, url: string, more: Partial<Input<typeof mcpBroker.putServer>> = {}): Promise<Server> {
  const { id } = await nats.bus.call(mcpBroker.putServer, { slug, transport: { type: 'http', url }, ...more });
  await until(async () => (await get(id)).state === 'connected', 20_000);
  return get(id);
}
const runWith = (...servers: readonly Server[]) =>
  runs.run(
    servers.map(({ id, slug, owner, configGeneration, catalogHash }) => ({
      serverId: id,
      slug,
      owner,
      configGeneration,
      catalogHash: catalogHash ?? '',
    })),
  );
const whose = ({ runId, sessionId }: { readonly runId: string; readonly sessionId: string }) => ({ runId, sessionId });
const offered = async (run: ReturnType<typeof runWith>, kind: 'prompts' | 'resources' | 'templates') =>
  (await nats.bus.call(mcpBroker.listOffers, { ...whose(run), kind })).items;

verifies(
  ['R-MCP-9#1', 'R-MCP-9#2', 'R-MCP-9#3', 'R-MCP-9#4'],
  'lists are read to their end, and only those that are declared',
  async () => {
    const pages: Record<string, { prompts: object[]; nextCursor?: string }> = {
      first: { prompts: [{ name: 'c' }], nextCursor: '' },
      '': { prompts: [{ name: 'a' }], nextCursor: 'last' },
      last: { prompts: [{ name: 'b', strange: { kept: true } }], nextCursor: 'last' },
    };
    const server = await upstream(
      {},
      {
        prepare: ({ answers }) =>
          answers.set('prompts/list', ({ cursor }) => ({ ...pages[typeof cursor === 'string' ? cursor : 'first'] })),
      },
    );
    const paged = await put('paged', server.url);
    const run = runWith(paged);
    await until(async () => (await offered(run, 'prompts')).length === 3);
    expect((await offered(run, 'prompts')).map(({ definition }) => definition)).toEqual([
      { name: 'a' },
      { name: 'b', strange: { kept: true } },
      { name: 'c' },
    ]);
    expect(server.asked.get('prompts/list')).toBe(3);
    // Pages of two readings are never joined.
    const another = 'f'.repeat(64);
    const moved = { code: 'OFFERS_MOVED' };
    await expect(nats.bus.call(mcpBroker.listOffers, { ...whose(run), kind: 'prompts', version: another })).rejects.toMatchObject(moved);
    await expect(nats.bus.call(mcpBroker.skillPage, { serverId: paged.id, hash: another })).rejects.toMatchObject(moved);
    const bare = await upstream({}, { capabilities: { tools: {} } });
    const declared = await put('bare', bare.url);
    expect(await offered(runWith(declared), 'prompts')).toEqual([]);
    await expect(
      nats.bus.call(mcpBroker.getPrompt, { ...whose(runWith(declared)), requestId: hex(), serverId: declared.id, name: 'x' }),
    ).rejects.toMatchObject({ code: 'NOT_OFFERED' });
    expect([...bare.asked.keys()].filter((method) => method.startsWith('prompts') || method.startsWith('resources'))).toEqual([]);
  },
);

verifies(
  ['R-MCP-10#1', 'R-MCP-10#2', 'R-MCP-10#3'],
  'each kind of changed list moves the version of its server once, however often it is told, and no other’s',
  async () => {
    const held: Record<Kind, Record<string, unknown>[]> = {
      tools: [{ name: 'one', inputSchema: { type: 'object' } }],
      prompts: [{ name: 'one' }],
      resources: [{ uri: 'a://one', name: 'one' }],
    };
    const server = await upstream(held);
    const moving = await put('moving', server.url);
    const still = await put('still', (await upstream({ prompts: [{ name: 'p' }] })).url);
    await until(
      async () => ((await get(moving.id)).offers?.resources ?? null) !== null && ((await get(moving.id)).offers?.prompts ?? null) !== null,
    );
    await until(async () => ((await get(still.id)).offers?.prompts ?? null) !== null);
    for (const kind of ['tools', 'prompts', 'resources'] as const satisfies Kind[]) {
      const before = { told: changes.all.length, ...(await get(moving.id)) };
      held[kind] = [...held[kind], { name: 'two', uri: 'a://two', inputSchema: { type: 'object' } }];
      for (let times = 0; times < 100; times++) await server.changed(kind);
      const hashOf = (one: Server): unknown => (kind === 'tools' ? one.catalogHash : one.offers?.[kind]);
      await until(async () => hashOf(await get(moving.id)) !== hashOf(before));
      // A list that changed again would be told by now: what follows the burst is read first.
      await server.changed(kind);
      const asked = server.asked.get(`${kind}/list`) ?? 0;
      await until(() => (server.asked.get(`${kind}/list`) ?? 0) > asked);
      await nats.connection.flush();
      const told = changes.all.slice(before.told);
      expect(told.filter(({ payload }) => payload.serverId === moving.id)).toHaveLength(1);
      expect(told.filter(({ payload }) => payload.serverId === still.id)).toHaveLength(0);
    }
    expect(server.asked.get('prompts/list')).toBeLessThan(10);
  },
);

verifies('R-MCP-11#1', 'a list that changed while it was read is never published', async () => {
  const held = { prompts: [{ name: 'new' }] };
  const server = await upstream(held);
  let release: () => void = () => undefined;
  const reading = new Promise<void>((resolve) => (release = resolve));
  let times = 0;
  server.answers.set('prompts/list', async () => {
    if (++times > 1) return { prompts: held.prompts };
    await reading;
    return { prompts: [{ name: 'stale' }] };
  });
  const overtaken = await put('overtaken', server.url);
  const run = runWith(overtaken);
  await until(() => times === 1);
  await server.changed('prompts');
  release();
  await until(async () => (await offered(run, 'prompts')).length > 0);
  expect((await offered(run, 'prompts')).map(({ definition }) => definition['name'])).toEqual(['new']);
  expect(times).toBeGreaterThan(1);
});

describe.each(['legacy', 'modern'] as const)('a server of the %s era', (eras) => {
  let server: SdkServer;
  let one: Server;
  let run: ReturnType<typeof runWith>;
  beforeAll(async () => {
    server = await upstream(
      {
        prompts: [{ name: 'greet', arguments: [{ name: 'who' }] }],
        resources: [{ uri: `doc://${eras}/a`, name: 'a' }],
        templates: [{ uriTemplate: `doc://${eras}/page/{id}`, name: 'page' }],
      },
      {
        eras,
        prepare: ({ answers }) => {
          answers.set('prompts/get', ({ name, arguments: values }) => ({
            messages: [{ role: 'user', content: { type: 'text', text: `${String(name)} ${JSON.stringify(values)}` } }],
          }));
          answers.set('resources/read', ({ uri }) => {
            if (uri === `doc://${eras}/page/404`) throw Object.assign(new Error('no such page'), { code: -32_602 });
            return {
              contents: [{ uri, text: uri === `doc://${eras}/page/long` ? 'x'.repeat(600_000) : 'text' }],
              ttlMs: 1,
              cacheScope: 'private',
            };
          });
          answers.set('completion/complete', ({ argument }) => ({
            completion: { values: [`${(argument as { value: string }).value}da`] },
          }));
          answers.set('resources/subscribe', () => ({}));
          answers.set('resources/unsubscribe', () => ({}));
        },
      },
    );
    one = await put(`content-${eras}`, server.url);
    run = runWith(one);
    await until(async () => (await offered(run, 'resources')).length === 1);
  }, 30_000);

  it('answers prompts, reads and completions untouched', async () => {
    expect(await offered(run, 'prompts')).toMatchObject([{ serverId: one.id, slug: one.slug, definition: { name: 'greet' } }]);
    expect(await offered(run, 'templates')).toMatchObject([{ definition: { uriTemplate: `doc://${eras}/page/{id}` } }]);
    const scope = whose(run);
    const prompt = { ...scope, requestId: hex(), serverId: one.id, name: 'greet', arguments: { who: 'Ada' } };
    expect((await nats.bus.call(mcpBroker.getPrompt, prompt)).result).toMatchObject({
      messages: [{ content: { text: 'greet {"who":"Ada"}' } }],
    });
    const complete = { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'who', value: 'A' } };
    expect(
      (await nats.bus.call(mcpBroker.completeArgument, { ...scope, requestId: hex(), serverId: one.id, ...complete })).result,
    ).toMatchObject({ completion: { values: ['Ada'] } });
    const read = (uri: string) => nats.bus.call(mcpBroker.readResource, { ...scope, requestId: hex(), uri });
    expect((await read(`doc://${eras}/a`)).result).toMatchObject({ contents: [{ text: 'text' }] });
    await expect(read(`doc://${eras}/page/404`)).rejects.toMatchObject({
      code: 'UPSTREAM_ERROR',
      data: { code: -32_602, message: expect.any(String) },
    });
    const { large, serverId } = await read(`doc://${eras}/page/long`);
    expect(serverId).toBe(one.id);
    let text = '';
    for (let offset: number | null = 0; offset !== null && large !== undefined;) {
      const page: Output<typeof mcpBroker.resultPage> = await nats.bus.call(
        mcpBroker.resultPage,
        { operationId: large.requestId, offset },
        { keys: { instanceId: large.instanceId } },
      );
      text += Buffer.from(page.data, 'base64').toString();
      offset = page.next;
    }
    expect(JSON.parse(text)).toMatchObject({ contents: [{ text: 'x'.repeat(600_000) }] });
  });

  it('tells the sessions that follow a resource, and no others', async () => {
    const told = await collect(nats.connection, mcpBroker.resourceUpdated);
    const uri = `doc://${eras}/a`;
    expect(await nats.bus.call(mcpBroker.subscribeResource, { ...whose(run), uri })).toMatchObject({ serverId: one.id, isNew: true });
    expect(await nats.bus.call(mcpBroker.subscribeResource, { ...whose(run), uri })).toMatchObject({ isNew: false });
    await until(async () => {
      await server.updated(uri);
      return told.all.length > 0;
    });
    expect(told.all[0]).toMatchObject({ keys: { sessionId: run.sessionId }, payload: { serverId: one.id, uri, params: { uri } } });
    expect(await nats.bus.call(mcpBroker.unsubscribeResource, { ...whose(run), uri })).toEqual({ ended: true });
    expect(await nats.bus.call(mcpBroker.unsubscribeResource, { ...whose(run), uri })).toEqual({ ended: false });
    told.stop();
  });

  it('is there only for a run that has it: not for another session, after its policy narrowed, or as another server', async () => {
    const ask = (scope: { runId: string; sessionId: string }, serverId = one.id) =>
      nats.bus.call(mcpBroker.readResource, { ...whose(scope), requestId: hex(), serverId, uri: `doc://${eras}/a` });
    await expect(ask({ ...run, sessionId: randomUUID() })).rejects.toMatchObject({ code: 'TOOL_NOT_IN_SNAPSHOT' });
    await expect(ask({ ...run, runId: randomUUID() })).rejects.toMatchObject({ code: 'TOOL_NOT_IN_SNAPSHOT' });
    await expect(ask(run, randomUUID())).rejects.toMatchObject({ code: 'TOOL_NOT_IN_SNAPSHOT' });
    const snapshot = [{ serverId: one.id, slug: one.slug, owner: one.owner, configGeneration: one.configGeneration, catalogHash: hex() }];
    const as = (authority: NonNullable<Parameters<StandIn['run']>[1]>['authority']) => runs.run(snapshot, { authority: authority ?? {} });
    const { policy } = run;
    if (policy === null) throw new Error('the run has a policy');
    await expect(ask(as({ policy: { ...policy, servers: [] } }))).rejects.toMatchObject({ code: 'SERVER_NOT_ALLOWED' });
    await expect(ask(as({ revokedOwners: [one.owner] }))).rejects.toMatchObject({ code: 'TOOL_GONE' });
    await expect(ask(as({ status: 'cancelled' }))).rejects.toMatchObject({ code: 'TURN_ENDED' });
    await expect(ask(as({ enabled: false }))).rejects.toMatchObject({ code: 'AGENT_DISABLED' });
    const older = runs.run(snapshot.map((server) => ({ ...server, configGeneration: server.configGeneration + 1 })));
    await expect(ask(older)).rejects.toMatchObject({ code: 'TARGET_CHANGED' });
  });
});

it('a resource of two servers is nobody’s until one is named, and a server’s resource has a thousand followers at most', async () => {
  const resources = [{ uri: 'doc://both/a', name: 'a' }];
  const make = async (slug: string): Promise<Server> => {
    const server = await upstream({ resources });
    server.answers.set('resources/read', ({ uri }) => ({ contents: [{ uri, text: slug }] }));
    server.answers.set('resources/subscribe', () => ({}));
    return put(slug, server.url);
  };
  const [one, two] = [await make('both-one'), await make('both-two')];
  const run = runWith(one, two);
  await until(async () => (await offered(run, 'resources')).length === 2);
  const read = (more: { serverId?: string } = {}) =>
    nats.bus.call(mcpBroker.readResource, { ...whose(run), requestId: hex(), uri: 'doc://both/a', ...more });
  await expect(read()).rejects.toMatchObject({ code: 'OFFER_AMBIGUOUS', data: { serverIds: expect.arrayContaining([one.id, two.id]) } });
  expect((await read({ serverId: two.id })).result).toMatchObject({ contents: [{ text: 'both-two' }] });

  const follow = () => nats.bus.call(mcpBroker.subscribeResource, { ...whose(runWith(one)), uri: 'doc://both/a', serverId: one.id });
  for (let followers = 0; followers < 1_000; followers += 50) await Promise.all(Array.from({ length: 50 }, follow));
  await expect(follow()).rejects.toMatchObject({ code: 'SUBSCRIPTION_LIMIT', data: { limit: 1_000 } });
}, 60_000);
