import { journalSubject, services, streams, toolGateway, workerInboxPrefix, type ServiceUse } from '@ambit/contracts';
import { allContracts } from '@ambit/identity';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import { createInbox, type NatsConnection } from '@nats-io/nats-core';
import { mayHear, mayPublish } from '../system/permission.js';
import { startSystem, type System } from '../system/system.js';
import { verifies } from '../verifies.js';

jest.setTimeout(120_000);
const uses: ServiceUse[] = Object.values(services);
const forWorkers = allContracts().filter((contract) => 'audience' in contract && contract.audience === 'worker');
const notForWorkers = allContracts().filter((contract) => !forWorkers.includes(contract));
/** A subject that a contract covers, with keys of the one who asks where it can have them. */
const sample = (contract: { readonly subject: string }, agentId: string): string =>
  contract.subject.replace('{agentId}', agentId).replace(/\{[A-Za-z]+\}/g, 'x');

let system: System;
beforeAll(async () => {
  system = await startSystem({ services: ['tool-gateway'] });
});
afterAll(() => system?.stop());

/** The connection works, and a service stands at the other end. */
async function asksTheService(connection: NatsConnection, subject: string): Promise<void> {
  const answer = await connection.request(subject, '{}', { timeout: 5_000 });
  expect(answer.json()).toMatchObject({ code: expect.any(String) });
}

verifies('R-NATS-1#2', 'a worker asks what is for workers, for its own agent, and nothing else', async () => {
  const worker = await system.connectWorker({ agentId: 'alpha' });
  await asksTheService(worker, sample(toolGateway.registerWorker, 'alpha'));
  for (const contract of forWorkers) {
    expect({ subject: contract.subject, own: await mayPublish(worker, sample(contract, 'alpha')) }).toEqual({
      subject: contract.subject,
      own: true,
    });
    expect({ subject: contract.subject, others: await mayPublish(worker, sample(contract, 'beta')) }).toEqual({
      subject: contract.subject,
      others: false,
    });
  }
  for (const contract of notForWorkers) {
    expect({ subject: contract.subject, may: await mayPublish(worker, sample(contract, 'alpha')) }).toEqual({
      subject: contract.subject,
      may: false,
    });
  }
});

verifies('R-NATS-1#2', 'a worker hears its own inbox and no other', async () => {
  const worker = await system.connectWorker({ agentId: 'alpha', credentialName: 'one' });
  await asksTheService(worker, sample(toolGateway.registerWorker, 'alpha'));
  expect(await mayHear(worker, createInbox(workerInboxPrefix({ agentId: 'alpha', credentialName: 'one' })))).toBe(true);
  const others = [
    workerInboxPrefix({ agentId: 'alpha', credentialName: 'two' }),
    workerInboxPrefix({ agentId: 'beta', credentialName: 'one' }),
    '_INBOX.session-service',
    '_INBOX',
  ];
  for (const prefix of others) expect({ prefix, may: await mayHear(worker, `${prefix}.>`) }).toEqual({ prefix, may: false });
  expect(await mayHear(worker, '>')).toBe(false);
});

verifies('R-OWN-1#3', "a worker's credential cannot publish where an owner writes", async () => {
  const worker = await system.connectWorker({ agentId: 'alpha' });
  await asksTheService(worker, sample(toolGateway.registerWorker, 'alpha'));
  const written = new Set<string>([
    journalSubject.runState('x'),
    journalSubject.claim('x', 'y'),
    journalSubject.outcome('x', 'y'),
    '$JS.API.STREAM.CREATE.X',
    `$JS.API.STREAM.DELETE.${streams.journal.name}`,
    `$JS.API.STREAM.PURGE.${streams.runs.name}`,
    ...uses.flatMap((use) => [...use.emits, ...use.enqueues].map((contract) => sample(contract, 'alpha'))),
    ...uses.flatMap((use) =>
      Object.entries(use.stores.writes).flatMap(([store, prefixes]) =>
        prefixes.flatMap((prefix) => [`$KV.${store}.${prefix}x`, `$O.${store}.C.x`]),
      ),
    ),
  ]);
  expect(written.size).toBeGreaterThan(20);
  for (const subject of written) expect({ subject, may: await mayPublish(worker, subject) }).toEqual({ subject, may: false });
});
