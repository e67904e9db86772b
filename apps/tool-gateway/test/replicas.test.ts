import { toolGateway } from '@ambit/contracts';
import { collect } from '@ambit/testing';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { intend, mcpTool, World } from './world.js';

let world: World;
beforeAll(async () => {
  world = await World.start();
  await Promise.all([world.gateway(), world.gateway()]);
}, 60_000);
afterAll(() => world.stop());

it('dispatches once when two gateways get the same batch', async () => {
  const run = await world.run([mcpTool('slow')]);
  world.serve = async (call) => {
    await new Promise((resolve) => setTimeout(resolve, 30));
    return { result: { content: [{ type: 'text', text: String(call.arguments['text']) }] } };
  };
  const calls = [intend('mcp__echo__slow', { text: 'a' }), intend('mcp__echo__slow', { text: 'b' })];
  world.store(run, 0, calls);
  // A queue group spreads requests over both.
  const all = await Promise.all(Array.from({ length: 12 }, () => world.send(run, { calls })));
  for (const results of all) expect(results.map((result) => [result.status, result.content?.[0]?.['text']])).toEqual([['completed', 'a'], ['completed', 'b']]);
  for (const call of calls) expect(world.effects(world.operation(run, 0, call.callId))).toBe(1);
});

it('never has two effects of one operation, whatever batches overlap on which gateway', async () => {
  const run = await world.run([mcpTool('say'), mcpTool('look', { effect: 'read', parallel: true })]);
  world.serve = async (call) => {
    await new Promise((resolve) => setImmediate(resolve));
    return { result: { content: [{ type: 'text', text: String(call.arguments['text']) }] } };
  };
  let step = 0;
  const batch = fc.record({ picks: fc.uniqueArray(fc.nat(3), { minLength: 1, maxLength: 4 }), move: fc.boolean(), delayMs: fc.nat(4) });
  await fc.assert(
    fc.asyncProperty(fc.array(batch, { minLength: 2, maxLength: 8 }), async (batches) => {
      const at = step++;
      const calls = [0, 1, 2, 3].map((index) => intend(index % 2 === 0 ? 'mcp__echo__say' : 'mcp__echo__look', { text: `${at}-${index}` }));
      world.store(run, at, calls, at * 4);
      const answers = await Promise.all(
        batches.map(async ({ picks, move, delayMs }) => {
          await new Promise((resolve) => setTimeout(resolve, delayMs));
          if (move) await world.move(run, {});
          const picked = picks.flatMap((index) => calls[index] ?? []);
          return { picked, results: await world.send(run, { step: at, calls: picked }) };
        }),
      );
      for (const { picked, results } of answers) {
        expect(results.map((result) => [result.callId, result.status])).toEqual(picked.map((call) => [call.callId, 'completed']));
      }
      for (const call of calls) expect(world.effects(world.operation(run, at, call.callId))).toBeLessThanOrEqual(1);
    }),
    { numRuns: 25 },
  );
}, 60_000);

it('parks the calls of a gateway that died, within ten seconds, and never repeats them', async () => {
  const doomed = await World.start();
  const first = await doomed.gateway();
  const run = await doomed.run([mcpTool('slow')]);
  let reached: () => void = () => undefined;
  const isReached = new Promise<void>((resolve) => (reached = resolve));
  doomed.serve = () => {
    reached();
    return new Promise(() => undefined);
  };
  const parkedThere = await collect(doomed.nats.connection, toolGateway.callParked);
  const call = intend('mcp__echo__slow');
  doomed.store(run, 0, [call]);
  const asked = doomed.send(run, { calls: [call], timeoutMs: 15_000 }).catch((error: unknown) => error);
  await isReached;
  const second = await doomed.gateway();
  // Its process is gone for everybody else: no lease, no outcome, no answer.
  await first.bus.connection.close();
  doomed.gateways.splice(doomed.gateways.indexOf(first), 1);
  const died = performance.now();
  const operation = doomed.operation(run, 0, call.callId);
  await parkedThere.next((event) => event.payload.operationId === operation);
  expect(performance.now() - died).toBeLessThan(10_000);
  expect(await doomed.fact(run, operation, 'outcome')).toMatchObject({ status: 'indeterminate', fault: { code: 'INDETERMINATE' } });
  expect(await doomed.send(run, { calls: [call] })).toMatchObject([{ status: 'indeterminate', fault: { code: 'INDETERMINATE' } }]);
  expect(doomed.effects(operation)).toBe(1);
  expect(await doomed.nats.bus.call(toolGateway.listCalls, { parked: true })).toMatchObject({ items: [{ operationId: operation, status: 'indeterminate', parked: true }] });
  const by = { id: 'user:bob', kind: 'person' as const };
  expect(await doomed.nats.bus.call(toolGateway.resolveCall, { operationId: operation, as: 'completed', note: 'it is there', by })).toMatchObject({ parked: false, resolution: { as: 'completed', note: 'it is there', by: { id: 'user:bob' } } });
  await expect(doomed.nats.bus.call(toolGateway.resolveCall, { operationId: operation, as: 'failed', note: 'again', by })).rejects.toMatchObject({ code: 'CALL_NOT_PARKED' });
  expect(second).toBeDefined();
  void asked;
  await Promise.race([doomed.stop(), new Promise((resolve) => setTimeout(resolve, 5_000).unref())]);
}, 60_000);
