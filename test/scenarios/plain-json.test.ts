import { AgentSpec, platformFaults, services, sessionService, type ServiceName, type ServiceUse } from '@ambit/contracts';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import type { Msg } from '@nats-io/nats-core';
import { z } from 'zod';
import { replyOf } from '../system/by-hand.js';
import { startSystem, type System } from '../system/system.js';

jest.setTimeout(120_000);
const SUBJECT = 'ambit.rpc.session-service.v1.agent.get';
const names = Object.keys(services) as ServiceName[];
const Info = z.object({
  type: z.literal('io.nats.micro.v1.info_response'),
  name: z.string(),
  id: z.string(),
  version: z.string(),
  endpoints: z.array(z.object({ name: z.string(), subject: z.string(), queue_group: z.string() })),
});

let system: System;
beforeAll(async () => {
  system = await startSystem({ services: names });
  await system.bus.call(sessionService.putAgent, { id: 'guide', model: 'literal' });
});
afterAll(() => system?.stop());

/** What `nats req` sends: the words as they are, and no header. */
const byHand = (subject: string, words: string): Promise<Msg> => system.connection.request(subject, words, { timeout: 5_000 });

it('answers plain JSON to plain JSON', async () => {
  const answer = await byHand(SUBJECT, '{"id":"guide"}');
  expect(answer.headers?.get('Nats-Service-Error-Code') ?? '').toBe('');
  const agent: unknown = answer.json();
  expect(agent).toMatchObject({ id: 'guide', model: 'literal', enabled: true, version: 1 });
  expect(AgentSpec.safeParse(agent).success).toBe(true);
});

it('tells a failure in headers that any client of NATS services reads, and in a plain body', async () => {
  expect(replyOf(await byHand(SUBJECT, '{"id":"nobody"}'))).toEqual({
    status: '404',
    error: 'There is no such agent',
    body: { code: 'AGENT_UNKNOWN', message: 'There is no such agent' },
  });
  expect(replyOf(await byHand(SUBJECT, 'guide'))).toMatchObject({
    status: String(platformFaults.INVALID_INPUT.status),
    body: { code: 'INVALID_INPUT', data: { issues: [expect.anything()] } },
  });
  expect(replyOf(await byHand(SUBJECT, '{}'))).toMatchObject({ body: { code: 'INVALID_INPUT', data: { issues: [{ path: 'id' }] } } });
});

it('lists every service with all that it answers', async () => {
  const answers = new Map<string, z.output<typeof Info>>();
  for await (const message of await system.connection.requestMany('$SRV.INFO', '', { maxMessages: names.length, maxWait: 5_000 })) {
    const info = Info.parse(message.json());
    answers.set(info.name, info);
  }
  expect([...answers.keys()].sort()).toEqual([...names].sort());
  for (const name of names) {
    const use: ServiceUse = services[name];
    const subjects = new Set(answers.get(name)?.endpoints.map(({ subject }) => subject));
    for (const contract of use.answers) {
      const pattern = contract.subject.replace(/\{[A-Za-z]+\}/g, '*');
      expect({ name, subject: pattern, listed: subjects.has(pattern) }).toEqual({ name, subject: pattern, listed: true });
    }
    const [one] = await collectOne(`$SRV.PING.${name}`);
    expect(one).toMatchObject({ type: 'io.nats.micro.v1.ping_response', name, id: answers.get(name)?.id });
  }
});

async function collectOne(subject: string): Promise<unknown[]> {
  const heard: unknown[] = [];
  for await (const message of await system.connection.requestMany(subject, '', { maxMessages: 1, maxWait: 5_000 }))
    heard.push(message.json());
  return heard;
}
