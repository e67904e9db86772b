import type { ServerResponse } from 'node:http';
import { AmbitClient, type FollowedEvent } from '@ambit/client';
import { httpApi } from '@ambit/contracts';
import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { ApiServer, ProblemAnswer } from './api-server.js';

const RUN = '019a0000-0000-7000-8000-000000000001';
const RESUME = '019a0000-0000-8000-8000-000000000002';
const FINGERPRINT = 'a'.repeat(64);

let api: ApiServer;
let client: AmbitClient;
beforeAll(async () => {
  api = await ApiServer.start();
  client = new AmbitClient({ url: api.url, token: 't' });
});
beforeEach(() => void api.received.splice(0));
afterAll(() => api.stop());

const changed = (status: string, runId = RUN) => ({
  runId,
  originRunId: RUN,
  sessionId: '019a0000-0000-7000-8000-00000000000a',
  agentId: 'guide',
  status,
  attempt: 1,
  fingerprint: FINGERPRINT,
  resumes: runId === RUN ? null : RUN,
  fault: null,
  at: '2026-01-01T00:00:00Z',
});
const frame = (id: number, data: unknown, type = 'run.changed') => `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
const stream = (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/event-stream' });

async function collect(events: AsyncIterable<FollowedEvent>): Promise<FollowedEvent[]> {
  const all: FollowedEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}
const statuses = (events: readonly FollowedEvent[]) =>
  events.map((event) => (event.type === 'run.changed' ? event.data.status : event.type));

it('follows a run through its suspension to the end of its resume run, over a broken stream', async () => {
  api.on(httpApi.followRun, ({ headers }, response) => {
    stream(response);
    if (headers['last-event-id'] === undefined) {
      response.write(
        `: hello\n\n${frame(1, changed('running'))}${frame(2, { later: 'kinds' }, 'weather.changed')}${frame(3, changed('suspended'))}id: 4\nevent: run.ch`,
      );
      setImmediate(() => response.destroy());
      return;
    }
    response.end(frame(5, changed('queued', RESUME)) + frame(6, changed('completed', RESUME)) + frame(7, changed('queued')));
  });
  expect(statuses(await collect(client.follow(RUN)))).toEqual(['running', 'suspended', 'queued', 'completed']);
  expect(api.received.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, '3']);
});

it('begins after the event that it is given', async () => {
  api.on(httpApi.followRun, (_received, response) => void stream(response).end(frame(9, changed('failed'))));
  await collect(client.follow(RUN, { lastEventId: 8 }));
  expect(api.received[0]?.headers['last-event-id']).toBe('8');
});

it('ends by itself where a run had ended and its events are gone', async () => {
  api.on(httpApi.followRun, (_received, response) => void stream(response).end());
  api.on(httpApi.getRun, () => ({
    ...changed('completed'),
    id: RUN,
    projectId: 'default',
    kind: 'worker',
    pool: 'shared',
    principal: { id: 'user:alice', kind: 'person' },
    createdAt: '2026-01-01T00:00:00Z',
    startedAt: null,
    endedAt: null,
  }));
  expect(await collect(client.follow(RUN))).toEqual([]);
});

it('throws what the server refuses, without asking again', async () => {
  api.on(httpApi.followRun, () => new ProblemAnswer(404, 'RUN_UNKNOWN', { detail: 'There is no such run' }));
  await expect(collect(client.follow(RUN))).rejects.toMatchObject({ code: 'RUN_UNKNOWN' });
  expect(api.received).toHaveLength(1);
});

it('stops with its signal while nothing happens', async () => {
  const stop = new AbortController();
  api.on(httpApi.followRun, (_received, response) => {
    stream(response).write(frame(1, changed('running')));
  });
  const seen: string[] = [];
  const following = (async () => {
    for await (const event of client.follow(RUN, { signal: stop.signal })) {
      seen.push(...statuses([event]));
      stop.abort(new Error('enough'));
    }
  })();
  await expect(following).rejects.toThrow();
  expect(seen).toEqual(['running']);
});
