import { Responder, silentLog } from '@ambit/bus';
import { fault, mcpBroker, toolGateway, type Input, type JsonObject, type Output } from '@ambit/contracts';
import { collect, until, type TestNats } from '@ambit/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { UrlElicitationRequiredError, type ServerContext } from '@modelcontextprotocol/server';
import { randomUUID } from 'node:crypto';
import { verifies } from '../../../test/verifies.js';
import { hex, startBroker, type BrokerAlone } from './broker-alone.js';
import { lists, startSdkServer, type SdkServer } from '../../../test/system/sdk-server.js';

type Server = Output<typeof mcpBroker.getServer>;
type Ask = Input<typeof toolGateway.askBack>;
const gatewayId = randomUUID();
const FORM = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };

let broker: BrokerAlone;
let nats: TestNats;
let gateway: Responder;
let asked: Ask[] = [];
/** How the gateway answers; a test may let it wait. */
let answer: (ask: Ask) => Promise<JsonObject> | JsonObject;
const upstreams: SdkServer[] = [];

beforeAll(async () => {
  broker = await startBroker(({ connection }) => {
    gateway = new Responder({ connection, log: silentLog, drainMs: 100 });
    gateway.answer(
      toolGateway.askBack,
      async (ask) => {
        asked.push(ask);
        return { result: await answer(ask) };
      },
      { keys: { gatewayId } },
    );
  });
  nats = broker.nats;
}, 120_000);
beforeEach(() => {
  asked = [];
  answer = () => ({ action: 'accept', content: { name: 'Ada' } });
});
afterAll(async () => {
  for (const upstream of upstreams) await upstream.stop();
  await broker.stop(() => gateway.close());
});

async function serverWith(
  slug: string,
  options: { eras: 'legacy' | 'modern'; sampling?: boolean; call: Parameters<SdkServer['answers']['set']>[1] },
) {
  const upstream = await startSdkServer({ capabilities: { tools: {}, logging: {} }, eras: options.eras });
  upstreams.push(upstream);
  lists(upstream, { tools: [{ name: 'work', inputSchema: { type: 'object' } }] });
  upstream.answers.set('tools/call', options.call);
  const { id } = await nats.bus.call(mcpBroker.putServer, {
    slug,
    transport: { type: 'http', url: upstream.url },
    sampling: options.sampling ?? false,
  });
  await until(async () => (await nats.bus.call(mcpBroker.getServer, { id })).state === 'connected', 20_000);
  return { upstream, server: await nats.bus.call(mcpBroker.getServer, { id }) };
}
async function call(server: Server, more: Partial<Input<typeof mcpBroker.executeCall>> = {}) {
  const { id: serverId, configGeneration, bindingHash } = server;
  const sessionId = more.sessionId ?? randomUUID();
  const { instanceId, leaseRevision } = await nats.bus.call(
    mcpBroker.ensureInstance,
    { configGeneration, bindingHash, agentId: 'guide', sessionId },
    { keys: { serverId }, timeoutMs: 20_000 },
  );
  const operationId = more.operationId ?? hex();
  const input = { serverId, configGeneration, bindingHash, leaseRevision, gatewayId, tool: 'work', arguments: {}, callTimeoutMs: 10_000 };
  const done = nats.bus.call(
    mcpBroker.executeCall,
    { ...input, ...more, operationId, sessionId },
    { keys: { instanceId }, timeoutMs: 15_000 },
  );
  done.catch(() => undefined);
  return { done, operationId, instanceId };
}
const text = (value: unknown) => ({ content: [{ type: 'text', text: JSON.stringify(value) }] });
const textOf = ({ result }: Output<typeof mcpBroker.executeCall>): unknown =>
  JSON.parse(String((result?.['content'] as { text: string }[] | undefined)?.[0]?.text));

/** A tool that asks for one thing and answers with what it was told, in the way of its era. */
function asking(eras: 'legacy' | 'modern', method: string, params: JsonObject) {
  return async (input: JsonObject, context: ServerContext): Promise<JsonObject> => {
    if (eras === 'legacy') {
      const told = await (context.mcpReq.send as (request: object, schema: unknown) => Promise<unknown>)(
        { method, params },
        anything,
      ).catch((error: unknown) => ({ refused: (error as { code: number }).code }));
      return text(told);
    }
    const responses = context.mcpReq.inputResponses;
    if (responses === undefined) return { resultType: 'input_required', inputRequests: { one: { method, params } }, requestState: 'kept' };
    return text({ ...(responses['one'] as object), state: context.mcpReq.requestState(), arguments: input['arguments'] });
  };
}
const anything = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } };

describe.each(['legacy', 'modern'] as const)('in the %s era', (eras) => {
  it('a question is asked of the gateway of its call, and answered within it', async () => {
    const { server } = await serverWith(`form-${eras}`, {
      eras,
      call: asking(eras, 'elicitation/create', { mode: 'form', message: 'Who?', requestedSchema: FORM }),
    });
    const { done, operationId } = await call(server, { arguments: { a: 1 } });
    expect(textOf(await done)).toMatchObject({ action: 'accept', content: { name: 'Ada' } });
    if (eras === 'modern') expect(textOf(await done)).toMatchObject({ state: 'kept', arguments: { a: 1 } });
    expect(asked).toMatchObject([{ operationId, serverId: server.id, number: 1, kind: 'elicitation', params: { message: 'Who?' } }]);
  });

  it('an address to open is one too, and roots are told', async () => {
    const open = { mode: 'url', message: 'Sign in', url: 'https://example.com/', elicitationId: 'one' };
    const url = await serverWith(`url-${eras}`, { eras, call: asking(eras, 'elicitation/create', open) });
    answer = () => ({ action: 'decline' });
    expect(textOf(await (await call(url.server)).done)).toMatchObject({ action: 'decline' });
    expect(asked).toMatchObject([{ params: { mode: 'url', url: 'https://example.com/' } }]);
    const roots = await serverWith(`roots-${eras}`, { eras, call: asking(eras, 'roots/list', {}) });
    answer = () => ({ roots: [{ uri: 'file:///work' }] });
    expect(textOf(await (await call(roots.server)).done)).toMatchObject({ roots: [{ uri: 'file:///work' }] });
  });

  it('a completion is passed on where the server may ask for one, and is no business of any other', async () => {
    const params = { messages: [{ role: 'user', content: { type: 'text', text: 'Say' } }], maxTokens: 10 };
    const allowed = await serverWith(`sampling-${eras}`, { eras, sampling: true, call: asking(eras, 'sampling/createMessage', params) });
    answer = () => ({ role: 'assistant', model: 'm', content: { type: 'text', text: 'said' } });
    expect(textOf(await (await call(allowed.server)).done)).toMatchObject({ role: 'assistant', content: { text: 'said' } });
    answer = () => {
      throw fault(toolGateway.askBack, 'ASK_REFUSED', { reason: 'the policy lets no server' });
    };
    const refused = await (await call(allowed.server)).done.then(textOf, (error: unknown) => error);
    if (eras === 'legacy') expect(refused).toEqual({ refused: -1 });
    else expect(refused).toMatchObject({ code: 'TOOL_FAILED', data: { reason: expect.stringContaining('the policy lets no server') } });
    asked = [];
    const undeclared = await serverWith(`no-sampling-${eras}`, { eras, call: asking(eras, 'sampling/createMessage', params) });
    await (await call(undeclared.server)).done.then(textOf, (error: unknown) => error);
    expect(asked).toEqual(eras === 'legacy' ? [] : expect.anything());
  });

  verifies('R-MCP-18#2', `an answer that comes after its call was cancelled answers nobody (${eras})`, async () => {
    let release: (result: JsonObject) => void = () => undefined;
    const waiting = new Promise<JsonObject>((resolve) => (release = resolve));
    answer = () => waiting;
    const { server, upstream } = await serverWith(`late-${eras}`, {
      eras,
      call: asking(eras, 'elicitation/create', { message: 'Who?', requestedSchema: FORM }),
    });
    const { done, operationId, instanceId } = await call(server);
    await until(() => asked.length === 1);
    nats.bus.signal(mcpBroker.cancelCall, { operationId, reason: 'a person said so' }, { keys: { instanceId } });
    await expect(done).rejects.toMatchObject({ code: 'CANCELLED' });
    release({ action: 'accept', content: { name: 'too late' } });
    // The next call is none of the cancelled one's business.
    answer = () => ({ action: 'accept', content: { name: 'Bob' } });
    expect(textOf(await (await call(server)).done)).toMatchObject({ content: { name: 'Bob' } });
    expect(upstream.asked.get('tools/call')).toBe(eras === 'legacy' ? 2 : 3);
  });
});

verifies('R-MCP-18#1', 'a server without a call in progress is answered by nobody', async () => {
  const { server, upstream } = await serverWith('idle', { eras: 'legacy', sampling: true, call: () => text('done') });
  await (
    await call(server)
  ).done;
  const params = { messages: [], maxTokens: 1 };
  await expect(upstream.askClient('sampling/createMessage', params)).rejects.toMatchObject({ code: -32_600 });
  await expect(upstream.askClient('elicitation/create', { message: 'x', requestedSchema: FORM })).rejects.toMatchObject({ code: -32_600 });
  expect(await upstream.askClient('roots/list', {})).toEqual({ roots: [] });
  expect(asked).toEqual([]);
});

it('what comes on a call’s own stream is that call’s; what comes on a shared one is nobody’s while several sessions have calls', async () => {
  const releases: (() => void)[] = [];
  const { server, upstream } = await serverWith('shared', {
    eras: 'legacy',
    call: async (input, context) => {
      const who = (input['arguments'] as { who: string }).who;
      await new Promise<void>((resolve) => releases.push(resolve));
      return asking('legacy', 'elicitation/create', { message: who, requestedSchema: FORM })(input, context);
    },
  });
  const [one, two] = [await call(server, { arguments: { who: 'one' } }), await call(server, { arguments: { who: 'two' } })];
  await until(() => releases.length === 2);
  await expect(upstream.askClient('elicitation/create', { message: 'whose?', requestedSchema: FORM })).rejects.toMatchObject({
    code: -32_600,
  });
  for (const release of releases.reverse()) release();
  await Promise.all([one.done, two.done]);
  expect(new Map(asked.map(({ operationId, params }) => [operationId, params['message']]))).toEqual(
    new Map([
      [one.operationId, 'one'],
      [two.operationId, 'two'],
    ]),
  );
});

it('a call that is refused until somebody has opened an address is sent again when they have, and not when they would not', async () => {
  let times = 0;
  const { server } = await serverWith('url-required', {
    eras: 'legacy',
    call: () => {
      if (++times % 2 === 0) return text('done');
      const elicitations = [{ mode: 'url', elicitationId: 'one', url: 'https://example.com/', message: 'Sign in' }];
      throw new UrlElicitationRequiredError(elicitations as never);
    },
  });
  answer = () => ({ action: 'accept' });
  expect(textOf(await (await call(server)).done)).toBe('done');
  expect(asked).toMatchObject([{ kind: 'elicitation', params: { mode: 'url', url: 'https://example.com/' } }]);
  answer = () => ({ action: 'decline' });
  await expect((await call(server)).done).rejects.toMatchObject({ code: 'TOOL_FAILED' });
  expect(times).toBe(3);
});

it('what a server logs within a call is told to its gateway', async () => {
  const logs = await collect(nats.connection, toolGateway.callLogged);
  const { server } = await serverWith('logging', {
    eras: 'legacy',
    call: async (_input, context) => {
      await context.mcpReq.notify({ method: 'notifications/message', params: { level: 'info', logger: 'l', data: { at: 1 } } });
      return text('done');
    },
  });
  const { done, operationId } = await call(server);
  await done;
  expect((await logs.next()).payload).toEqual({ operationId, level: 'info', logger: 'l', data: { at: 1 } });
  logs.stop();
});
