import { sessionService, toolGateway, type TapeEntry } from '@ambit/contracts';
import { collect, collectEndedCalls } from '@ambit/testing';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { intend } from '../system/by-hand.js';
import { Scene } from '../system/scene.js';
import { startWorker } from '../system/worker-process.js';
import { verifies } from '../verifies.js';

jest.setTimeout(240_000);
/** A job comes again 30 s after its worker's last word. */
const REDELIVERED_MS = 90_000;

let scene: Scene;
/** A run whose worker is dead, by where it died; gives what is left to be seen of it. They wait for their jobs together, and not one after the other. */
const deaths = new Map<string, Promise<() => Promise<void>>>();
beforeAll(async () => {
  scene = await Scene.start();
  await scene.server('one');
  await scene.server('two');
  for (const diesAt of ['batch.execute', 'run.step']) {
    const death = dies(diesAt);
    // The test that it is for tells of what went wrong.
    death.catch(() => undefined);
    deaths.set(diesAt, death);
  }
});
afterAll(() => scene?.stop());

const listed = (sessionId: string): Promise<TapeEntry[]> =>
  scene.bus.call(sessionService.listTape, { sessionId, limit: 200 }).then(({ items }) => items);

/** A run whose first worker kills itself when the answer to `diesAt` is there. */
async function dies(diesAt: string): Promise<() => Promise<void>> {
  const { system } = scene;
  const agent = await scene.agent();
  const name = randomUUID();
  const values = JSON.stringify({ name });
  const changes = await collect(system.connection, sessionService.runChanged);
  const first = await startWorker(system, agent, diesAt);
  const content = `use mcp__one__count with ${values}\nuse mcp__two__count with ${values}\n\nuse mcp__one__look with ${values}`;
  const { sessionId, runId } = await scene.send(agent, { content });
  expect(await first.exited).toMatchObject({ signal: 'SIGKILL' });
  const stored = (await listed(sessionId)).filter(({ kind }) => kind === 'tool_call');
  expect(stored).toHaveLength(2);
  const second = await startWorker(system, agent);
  return async () => {
    const { payload } = await changes.next(({ payload: one }) => one.runId === runId && one.status === 'completed', REDELIVERED_MS);
    expect(payload.attempt).toBe(2);
    await second.stop();
    changes.stop();
    await ranOnce({ name, sessionId, runId: runId ?? '', stored });
  };
}

async function survives(diesAt: string): Promise<void> {
  const comesBack = await deaths.get(diesAt);
  await comesBack?.();
  expect(comesBack).toBeDefined();
}

interface Survivor {
  readonly name: string;
  readonly sessionId: string;
  readonly runId: string;
  readonly stored: readonly TapeEntry[];
}
async function ranOnce({ name, sessionId, runId, stored }: Survivor): Promise<void> {
  const { counting } = scene;
  // Both calls of the step ran once each, the next step's once, and the step was sampled once.
  expect(await counting.ran('count', name)).toBe(2);
  expect(await counting.ran('look', name)).toBe(1);
  const tape = await listed(sessionId);
  expect(tape.filter(({ kind, step }) => kind === 'tool_call' && step === 0)).toEqual(stored);
  const results = tape.filter(({ kind }) => kind === 'tool_result');
  expect(results.map(({ content: result }) => result)).toEqual([
    expect.objectContaining({ status: 'completed' }),
    expect.objectContaining({ status: 'completed' }),
    expect.objectContaining({ status: 'completed' }),
  ]);
  const { items } = await scene.bus.call(toolGateway.listCalls, { runId });
  expect(items.map(({ status }) => status)).toEqual(['completed', 'completed', 'completed']);
}

verifies('R-NATS-3#1', 'a worker killed in the middle of a call: the call ends in bounded time and is not repeated', async () => {
  const { system, counting } = scene;
  const agent = await scene.agent();
  const worker = await scene.worker(agent);
  const ended = await collectEndedCalls(system.connection);
  await scene.send(agent);
  const { ref, job } = await worker.take();
  const lost = await worker.start(ref);
  const name = randomUUID();
  const stored = await lost.step([intend('mcp__one__count', { name }), intend('mcp__two__hold', { name })]);
  lost.batch(stored).catch(() => undefined);
  await counting.held(name);
  lost.abandon();
  const [, held] = stored.calls;
  const { payload } = await ended.next(({ payload: one }) => one.callId === held?.callId, 40_000);
  expect(payload.status).toMatch(/^(cancelled|indeterminate)$/);
  ended.stop();

  // Another worker takes it up.
  job.nak();
  const again = await worker.begin();
  expect(again.opened).toMatchObject({ attempt: 2, openCalls: [] });
  expect(again.opened.messages.at(-1)).toMatchObject({ role: 'tool', results: [{ status: 'completed' }, { status: payload.status }] });
  await expect(lost.tape()).rejects.toMatchObject({ code: 'STALE_INSTANCE' });
  counting.release(name);
  await again.step([]);
  expect(await again.finish('completed')).toMatchObject({ status: 'completed' });
  expect(await counting.ran('count', name)).toBe(1);
  expect(await counting.ran('hold', name)).toBe(1);
});

verifies(
  ['R-EXEC-20#3', 'R-EXEC-20#4', 'R-NATS-2#2', 'R-EXEC-12#1'],
  'a worker killed after the outcome and before it knew of it: the run comes again and nothing runs twice',
  () => survives('batch.execute'),
);

verifies(
  ['R-EXEC-20#1', 'R-NATS-2#2'],
  'a worker killed after the step and before its calls: the run comes again and each call runs once',
  () => survives('run.step'),
);
