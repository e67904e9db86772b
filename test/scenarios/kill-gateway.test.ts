import { toolGateway } from '@ambit/contracts';
import { collect, until } from '@ambit/testing';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { intend, type HandRun } from '../system/by-hand.js';
import { factsOf } from '../system/facts.js';
import { bob, Scene } from '../system/scene.js';
import type { ServiceProcess } from '../system/service-process.js';
import { verifies } from '../verifies.js';

jest.setTimeout(120_000);
const KNOWN_WITHIN_MS = 10_000;

let scene: Scene;
beforeAll(async () => {
  scene = await Scene.start({ replicas: { 'tool-gateway': 2, 'mcp-runner': 2 } });
  await scene.server('slow');
});
afterAll(() => scene?.stop());

const gateways = (): ServiceProcess[] => [1, 2].map((replica) => scene.system.process('tool-gateway', replica));

/** The gateway that executes a call just now. */
async function executing(among: readonly ServiceProcess[]): Promise<ServiceProcess> {
  for (const gateway of among) {
    const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
    if (/^ambit_open_calls(?:\{[^}]*\})? 1$/m.test(metrics)) return gateway;
  }
  throw new Error('no gateway executes a call');
}

async function inTheMiddle(): Promise<{ run: HandRun; stored: Awaited<ReturnType<HandRun['step']>>; name: string }> {
  const agent = await scene.agent();
  const worker = await scene.worker(agent);
  await scene.send(agent);
  const run = await worker.begin();
  const name = randomUUID();
  const stored = await run.step([intend('mcp__slow__hold', { name }), intend('mcp__slow__count', { name })]);
  // Its answer never comes: whoever would give it is killed.
  run.batch(stored).catch(() => undefined);
  await scene.counting.held(name);
  return { run, stored, name };
}

/** Once the gateway is gone: asking again repeats nothing, and the run's tape says so. */
async function isParkedAndNotRepeated({ run, stored, name }: Awaited<ReturnType<typeof inTheMiddle>>): Promise<void> {
  const [held, next] = stored.calls;
  if (held === undefined || next === undefined) throw new Error('two calls were stored');
  const again = await run.batch(stored);
  expect(again).toMatchObject([
    { callId: held.callId, status: 'indeterminate', fault: { code: 'INDETERMINATE' } },
    { callId: next.callId, status: 'completed' },
  ]);
  const { outcome } = await factsOf(scene.system.connection, run.ref, { step: stored.step, callId: held.callId });
  expect(outcome).toMatchObject({ status: 'indeterminate', fault: { code: 'INDETERMINATE' } });
  scene.counting.release(name);
  expect(await run.batch(stored)).toEqual(again);
  expect(await scene.counting.ran('hold', name)).toBe(1);
  expect(await scene.counting.ran('count', name)).toBe(1);

  const tape = await run.tape();
  expect(tape.openCalls).toEqual([]);
  expect(tape.messages.at(-1)).toMatchObject({
    role: 'tool',
    results: [
      {
        callId: held.callId,
        status: 'indeterminate',
        fault: { code: 'INDETERMINATE', message: expect.stringContaining('a person has to look') },
      },
      { callId: next.callId, status: 'completed' },
    ],
  });
  await run.step([]);
  expect(await run.finish('completed')).toMatchObject({ status: 'completed' });
}

describe.each([
  { title: 'the other replica', another: true },
  { title: 'the one replica, started again', another: false },
])('a gateway killed in the middle of a call', ({ title, another }) => {
  verifies(['R-EXEC-20#2', 'R-EXEC-20#5'], `is recorded as indeterminate within 10 s by ${title}, and never repeated`, async () => {
    const all = gateways();
    const spare = all[1];
    if (spare === undefined) throw new Error('two gateways were started');
    if (!another) await spare.stop();
    const parked = await collect(scene.system.connection, toolGateway.callParked);
    const middle = await inTheMiddle();
    const victim = await executing(another ? all : all.slice(0, 1));
    await victim.kill();
    // How long a process takes to start is the machine's; from the moment that a gateway is there the time runs.
    if (!another) await victim.start();
    const from = performance.now();
    const { payload } = await parked.next(({ payload: { runId } }) => runId === middle.run.ref.runId, 2 * KNOWN_WITHIN_MS);
    expect(performance.now() - from).toBeLessThan(KNOWN_WITHIN_MS);
    await isParkedAndNotRepeated(middle);

    const { bus } = scene;
    const list = async (): Promise<string[]> =>
      (await bus.call(toolGateway.listCalls, { runId: middle.run.ref.runId, parked: true })).items.map(({ operationId }) => operationId);
    expect(await list()).toEqual([payload.operationId]);
    await bus.call(toolGateway.resolveCall, { operationId: payload.operationId, as: 'completed', note: 'It is in the file', by: bob });
    expect(await list()).toEqual([]);
    parked.stop();
    await (another ? victim : spare).start();
  });
});

it('a runner killed in the middle of a call: the call is parked within 10 s, and the next call waits for the other runner', async () => {
  const middle = await inTheMiddle();
  const runners = [1, 2].map((replica) => scene.system.process('mcp-runner', replica));
  const victim = await holding(runners);
  await victim.kill();
  const from = performance.now();
  const [held] = middle.stored.calls;
  await until(async () => {
    const facts = await factsOf(scene.system.connection, middle.run.ref, { step: middle.stored.step, callId: held?.callId ?? '' });
    return facts.outcome !== undefined;
  }, 2 * KNOWN_WITHIN_MS);
  expect(performance.now() - from).toBeLessThan(KNOWN_WITHIN_MS);
  await isParkedAndNotRepeated(middle);
  await victim.start();
});

/** The runner that holds the server. */
async function holding(among: readonly ServiceProcess[]): Promise<ServiceProcess> {
  for (const runner of among) {
    const metrics = await (await fetch(`${runner.opsUrl}/metrics`)).text();
    if (/^ambit_runner_instances(?:\{[^}]*\})? 1$/m.test(metrics)) return runner;
  }
  throw new Error('no runner holds a server');
}
