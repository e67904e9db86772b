import { platformFaults, sessionService, toolGateway } from '@ambit/contracts';
import { collectEndedCalls } from '@ambit/testing';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { intend } from '../system/by-hand.js';
import { factsOf } from '../system/facts.js';
import { Scene } from '../system/scene.js';

jest.setTimeout(180_000);
const AWAY_MS = 60_000;
const ENDED = /^(completed|failed|cancelled|indeterminate)$/;

let scene: Scene;
beforeAll(async () => {
  scene = await Scene.start();
  await scene.server('one');
});
afterAll(() => scene?.stop());

const services = ['session-service', 'tool-gateway', 'mcp-broker', 'skill-store', 'plugin-registry', 'admin-api'] as const;
type Name = (typeof services)[number];

async function isReady(name: Name): Promise<boolean> {
  return fetch(`${scene.system.process(name).opsUrl}/readyz`, { signal: AbortSignal.timeout(5_000) }).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** Asks each until it says so. */
async function say(names: readonly Name[], ready: boolean): Promise<void> {
  const end = performance.now() + AWAY_MS;
  for (const name of names) {
    while ((await isReady(name)) !== ready) {
      if (performance.now() > end)
        throw new Error(`${name} does not say that it is ${ready ? 'ready' : 'unready'} within ${AWAY_MS / 1_000} s`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

async function isAlive(): Promise<void> {
  for (const name of services) expect((await fetch(`${scene.system.process(name).opsUrl}/livez`)).status).toBe(200);
}

it('nats-server killed and started again: everything is there, the call in flight ends with a word within its deadline', async () => {
  const agent = await scene.agent();
  const worker = await scene.worker(agent);
  await scene.send(agent);
  const run = await worker.begin();
  const name = randomUUID();
  const stored = await run.step([intend('mcp__one__count', { name }), intend('mcp__one__hold', { name })]);
  run.batch(stored).catch(() => undefined);
  await scene.counting.held(name);
  const [counted, held] = stored.calls;

  await scene.system.nats.kill();
  await say(['session-service', 'tool-gateway', 'mcp-broker'], false);
  await isAlive();
  await scene.system.nats.restart();
  await say(services, true);
  scene.counting.release(name);

  // A worker that lost its connection comes back; its run is still its own, or is opened anew.
  const back = await scene.worker(agent);
  const again = await back.start(run.ref);
  expect(again.opened.attempt).toBe(2);
  const open =
    again.opened.openCalls.length > 0 ? await again.batch({ step: again.opened.step, calls: again.opened.openCalls }, 20_000) : [];
  for (const { status } of open) expect(status).toMatch(ENDED);
  const facts = await factsOf(scene.system.connection, run.ref, { step: stored.step, callId: held?.callId ?? '' });
  expect(facts.claim).toBeDefined();
  expect(facts.outcome?.status).toMatch(ENDED);
  const first = await factsOf(scene.system.connection, run.ref, { step: stored.step, callId: counted?.callId ?? '' });
  expect(first.outcome?.status).toBe('completed');
  expect((await again.tape()).openCalls).toEqual([]);
  await again.step([]);
  expect(await again.finish('completed')).toMatchObject({ status: 'completed' });
  expect(await scene.counting.ran('count', name)).toBe(1);
  expect(await scene.counting.ran('hold', name)).toBe(1);

  // And the next run is like any other.
  await scene.send(agent);
  const next = await back.begin();
  expect(await next.use(intend('mcp__one__count', { name: randomUUID() }))).toMatchObject([{ status: 'completed' }]);
  await next.step([]);
  await next.finish('completed');
});

it('PostgreSQL away for a moment: writes are refused whole and in words, readiness says so, and it comes back', async () => {
  const agent = await scene.agent();
  const worker = await scene.worker(agent);
  const { sessionId } = await scene.send(agent);
  const run = await worker.begin();
  const name = randomUUID();
  expect(await run.use(intend('mcp__one__count', { name }))).toMatchObject([{ status: 'completed' }]);
  const before = await scene.bus.call(sessionService.listTape, { sessionId });

  await scene.system.database.stop();
  await say(services, false);
  await isAlive();
  const key = randomUUID();
  const replies = await Promise.all([
    worker.ask(sessionService.stepRun, {
      ...run.ref,
      step: 1,
      role: 'assistant',
      content: [],
      calls: [intend('mcp__one__count', { name })],
    }),
    worker.ask(sessionService.finishRun, { ...run.ref, status: 'completed' }),
  ]);
  for (const reply of replies)
    expect(reply).toMatchObject({ status: String(platformFaults.UNAVAILABLE.status), body: { code: 'UNAVAILABLE' } });
  await expect(scene.send(agent, { idempotencyKey: key })).rejects.toMatchObject({ code: 'UNAVAILABLE' });

  await scene.system.database.restart();
  await say(services, true);
  expect(await scene.bus.call(sessionService.listTape, { sessionId })).toEqual(before);
  expect(await scene.bus.call(sessionService.getRun, { id: run.ref.runId })).toMatchObject({ status: 'running' });
  // The message that was refused was not taken; sent again with the same key it is, once.
  const sent = await Promise.all([
    scene.send(agent, { idempotencyKey: key, sceneId: key }),
    scene.send(agent, { idempotencyKey: key, sceneId: key }),
  ]);
  expect(sent[0]).toEqual(sent[1]);
  const next = await worker.begin();
  expect(next.ref.runId).toBe(sent[0].runId);
  const ended = await collectEndedCalls(scene.system.connection);
  expect(await next.use(intend('mcp__one__count', { name }))).toMatchObject([{ status: 'completed' }]);
  await next.step([]);
  await next.finish('completed');
  // The list is a projection of the journal, which follows the answer: the fact says that it has come so far.
  await ended.next(({ payload: one }) => one.runId === next.ref.runId);
  ended.stop();
  expect(await scene.counting.ran('count', name)).toBe(2);
  expect((await scene.bus.call(toolGateway.listCalls, { runId: next.ref.runId })).items).toHaveLength(1);
});
