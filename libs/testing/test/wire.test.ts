import { HEADER, refusals, sessionService, toolGateway } from '@ambit/contracts';
import { throwAwayNats, type NatsServer } from '@ambit/embedded';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { headers, type NatsConnection } from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { canary, canariesIn } from '../src/canary.js';
import { countServed, servedCount } from '../src/served.js';
import { watchWire } from '../src/wire.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const agentCall = sessionService.getAgent.subject;
const batchCall = toolGateway.executeBatch.subject.replace('{agentId}', 'a');
const planted = canary('wiretest');

let folder: string;
let server: NatsServer;
let connection: NatsConnection;
let web: Server;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ambit-shown-'));
  watchWire(folder);
  server = await throwAwayNats({ cacheDir: `${root}.ambit/bin` });
  connection = await connect({ servers: server.url });
  connection.subscribe(agentCall, {
    callback: (_error, message) => {
      const failed = headers();
      failed.set(HEADER.errorCode, '404');
      message.respond(JSON.stringify({ code: 'AGENT_UNKNOWN', message: planted }), { headers: failed });
    },
  });
  connection.subscribe(batchCall, {
    callback: (_error, message) =>
      void message.respond(
        JSON.stringify({ results: [{ callId: '1', fault: { code: 'TOOL_GONE', message: refusals.TOOL_GONE.message } }] }),
      ),
  });
  connection.subscribe(sessionService.getRun.subject, {
    callback: (_error, message) => void message.respond(JSON.stringify({ id: '1', fault: { code: 'WORKER_FAILED', message: 'none' } })),
  });
  web = createServer((request, response) => {
    response.setHeader('content-type', request.url === '/v1/refused' ? 'application/problem+json' : 'text/plain');
    response.end(JSON.stringify({ code: 'FORBIDDEN' }));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => web.once('listening', resolve));
}, 120_000);

afterAll(async () => {
  await connection?.close();
  await server?.stop();
  await new Promise((resolve) => web?.close(resolve));
  await rm(folder, { recursive: true, force: true });
});

async function recorded(): Promise<Record<string, unknown>[]> {
  const name = createHash('sha256').update('libs/testing/test/wire.test.ts').digest('hex').slice(0, 16);
  const text = await readFile(join(folder, `${name}.jsonl`), 'utf8');
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

it('counts an answered request of the test, through request() and through publish() with a reply, and no other', async () => {
  const counted = await countServed(async () => {
    await connection.request(agentCall, '{}');
    const answers = connection.subscribe('_INBOX.by.hand', { max: 1 });
    connection.publish(agentCall, '{}', { reply: '_INBOX.by.hand' });
    for await (const answer of answers) expect(answer.data.length).toBeGreaterThan(0);
    await connection.request('some.other.subject', '').catch(() => undefined);
    await connection.request(sessionService.listAgents.subject, '').catch(() => undefined);
    return servedCount();
  });
  expect(counted).toBe(2);
  expect(servedCount()).toBe(0);
});

it('does not count what others send while the test runs', async () => {
  const other = connection.request(agentCall, '{}');
  expect(
    await countServed(async () => {
      await other;
      return servedCount();
    }),
  ).toBe(0);
});

it('records faults of replies, of single calls, of runs and of problem+json, and counts HTTP to our paths', async () => {
  const { port } = web.address() as AddressInfo;
  const counted = await countServed(async () => {
    await connection.request(batchCall, '{}');
    await connection.request(sessionService.getRun.subject, '{}');
    await (await fetch(`http://127.0.0.1:${port}/v1/refused`)).text();
    await (await fetch(`http://127.0.0.1:${port}/elsewhere`)).text();
    return servedCount();
  });
  expect(counted).toBe(3);
  const entries = await recorded();
  expect(entries).toContainEqual({ kind: 'fault', subject: agentCall, code: 'AGENT_UNKNOWN', where: 'reply' });
  expect(entries).toContainEqual({ kind: 'fault', subject: sessionService.listAgents.subject, code: 'UNAVAILABLE', where: 'reply' });
  expect(entries).toContainEqual({ kind: 'fault', subject: toolGateway.executeBatch.subject, code: 'TOOL_GONE', where: 'result' });
  expect(entries).toContainEqual({ kind: 'fault', subject: 'GET /v1/refused', code: 'FORBIDDEN', where: 'http' });
  expect(entries).toContainEqual({ kind: 'fault', subject: sessionService.getRun.subject, code: 'WORKER_FAILED', where: 'run' });
  expect(entries).toContainEqual({ kind: 'leak', where: agentCall, secret: planted });
});

it('finds a planted secret plain, in hex and in base64 at any position', () => {
  const secret = canary('form');
  for (const prefix of ['', 'a', 'ab', 'abc']) {
    const text = `${prefix}${secret}`;
    for (const form of [
      text,
      Buffer.from(text).toString('base64'),
      Buffer.from(text).toString('base64url'),
      Buffer.from(text).toString('hex'),
    ]) {
      expect({ form, found: canariesIn(`before ${form} after`).length }).toEqual({ form, found: 1 });
    }
  }
  expect(canariesIn('ambit-canary, a word in a text')).toEqual([]);
  expect(() => canary('Not a name')).toThrow(/lower-case/);
});
