import { subject, toolGateway, worker } from '@ambit/contracts';
import { startNats, until, type TestNats } from '@ambit/testing';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { headers } from '@nats-io/nats-core';
import { randomUUID } from 'node:crypto';
import { answerOver, signalOf } from './answer.js';
import { RepeatableRequest } from './caller.js';

let nats: TestNats;
beforeAll(async () => {
  nats = await startNats({ streams: false });
}, 60_000);
afterAll(() => nats.stop());

const traced = (more: Readonly<Record<string, string>> = {}) => {
  const sent = headers();
  for (const [name, value] of Object.entries({ traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, ...more })) sent.set(name, value);
  return sent;
};

it('takes for a signal only what nobody’s answer can look like, and no text that is no JSON', () => {
  const json = () => ({ reason: 'enough' });
  expect(signalOf({ headers: traced(), json })).toEqual({ reason: 'enough' });
  expect(signalOf({ json })).toBeUndefined();
  expect(signalOf({ headers: headers(), json })).toBeUndefined();
  expect(signalOf({ headers: traced(), reply: '_INBOX.somebody', json })).toBeUndefined();
  expect(signalOf({ headers: traced({ 'Nats-Service-Error-Code': '500' }), json })).toBeUndefined();
  expect(signalOf({ headers: traced(), json: () => JSON.parse('{') })).toBeUndefined();
});

it('answers a question, and never what names another subject than an inbox to answer to', async () => {
  const at = subject(worker.callTool, { agentId: 'a', workerId: 'w' });
  let asked = 0;
  answerOver(nats.connection, worker.callTool, { subject: at, handle: () => Promise.resolve((asked++, { content: [], isError: false })) });
  const input = {
    operationId: 'a'.repeat(64),
    runId: randomUUID(),
    sessionId: randomUUID(),
    workspaceId: null,
    toolsetDigest: 'b'.repeat(64),
    tool: 't',
    arguments: {},
  };
  nats.connection.publish(at, JSON.stringify(input), { reply: 'ambit.rpc.elsewhere' });
  nats.connection.publish(at, JSON.stringify(input));
  await nats.connection.request(at, JSON.stringify(input), { timeout: 5_000 });
  expect(asked).toBe(1);
});

it('waits anew for who went away after somebody had taken a request up', async () => {
  const agentId = randomUUID();
  const at = subject(toolGateway.executeBatch, { agentId });
  const input = {
    ...{ runId: randomUUID(), originRunId: randomUUID(), sessionId: randomUUID() },
    fingerprint: 'a'.repeat(64),
    token: 't'.repeat(43),
    step: 0,
    calls: [],
  };
  let heard = 0;
  const request = new RepeatableRequest(nats.connection, toolGateway.executeBatch, { input, keys: { agentId }, inboxPrefix: '_INBOX' });
  // Nobody is there at first; then somebody takes it up, works on it for long, and dies.
  const first = nats.connection.subscribe(at, { callback: () => void heard++ });
  await until(() => heard === 1);
  request.heard();
  const now = performance.now.bind(performance);
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => now() + 60_000);
  try {
    first.unsubscribe();
    await nats.connection.flush();
    request.send();
    await nats.connection.flush();
    nats.connection.subscribe(at, { callback: (_error, message) => void message.respond(JSON.stringify({ results: [] })) });
    expect(await request.answer).toEqual({ results: [] });
  } finally {
    clock.mockRestore();
  }
});
