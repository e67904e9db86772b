import { toolGateway } from '@ambit/contracts';
import { collect } from '@ambit/testing';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { OpenCalls } from '../src/open-calls.js';
import { intend, mcpTool, World, type RunOptions } from './world.js';

jest.setTimeout(60_000);
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
  for (const results of all)
    expect(results.map((result) => [result.status, result.content?.[0]?.['text']])).toEqual([
      ['completed', 'a'],
      ['completed', 'b'],
    ]);
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
      world.store(run, { step: at, callsBefore: at * 4 }, calls);
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
    { numRuns: 12 },
  );
}, 60_000);

/** As many calls as a property likes. */
const MANY: RunOptions = { policy: { limits: { runsAtOnce: 5, callsPerRun: 10_000, callsPerMinute: 10_000 } } };
/** Cases that go on beside each other. */
const AT_ONCE = 20;

it('has one effect of each operation under any doubled delivery and any move of its run, in a thousand cases', async () => {
  world.serve = (call) => ({ result: { content: [{ type: 'text', text: String(call.arguments['text']) }] } });
  const one = fc.record({ copies: fc.integer({ min: 2, max: 4 }), moves: fc.nat(2), isSuspended: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(one, { minLength: AT_ONCE, maxLength: AT_ONCE }), async (cases) => {
      await Promise.all(
        cases.map(async ({ copies, moves, isSuspended }) => {
          const run = await world.run([mcpTool('say')], MANY);
          const call = intend('mcp__echo__say', { text: 'once' });
          const operation = world.operation(run, 0, call.callId);
          world.store(run, 0, [call]);
          const sent = Array.from({ length: copies }, () => world.send(run, { calls: [call] }));
          for (let count = 0; count < moves; count++) await world.move(run, {});
          if (isSuspended) await world.move(run, { status: 'suspended' });
          const answers = (await Promise.allSettled(sent)).flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
          expect(world.effects(operation)).toBeLessThanOrEqual(1);
          const claim = await world.fact(run, operation, 'claim');
          expect(world.effects(operation)).toBe(claim === undefined ? 0 : 1);
          // All who were told its result were told the same one.
          const completed = answers.filter(({ status }) => status === 'completed');
          expect(completed.every(({ content }) => content?.[0]?.['text'] === 'once')).toBe(true);
          if (completed.length > 0) expect(world.effects(operation)).toBe(1);
        }),
      );
    }),
    { numRuns: 1_000 / AT_ONCE },
  );
}, 120_000);

it('comes to rest after an abort at any point, in a thousand cases', async () => {
  world.serve = async (call) => {
    for (let turns = Number(call.arguments['turns']); turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve));
    return { result: { content: [{ type: 'text', text: 'done' }] } };
  };
  const one = fc.record({ before: fc.nat(6), turns: fc.nat(40), how: fc.constantFrom('call', 'run', 'both') });
  await fc.assert(
    fc.asyncProperty(fc.array(one, { minLength: AT_ONCE, maxLength: AT_ONCE }), async (cases) => {
      await Promise.all(
        cases.map(async ({ before, turns, how }) => {
          const run = await world.run([mcpTool('say')], MANY);
          const calls = [intend('mcp__echo__say', { turns }), intend('mcp__echo__say', { turns: 0 })];
          const [first, next] = calls.map(({ callId }) => world.operation(run, 0, callId));
          world.store(run, 0, calls);
          const results = world.send(run, { calls });
          for (let turn = 0; turn < before; turn++) await world.nats.connection.flush();
          if (how !== 'call') {
            await world.move(run, { status: 'cancelled' });
            world.nats.bus.signal(
              toolGateway.cancelRunCalls,
              { runId: run.runId, abort: true, reason: 'enough' },
              { keys: { runId: run.runId } },
            );
          }
          const operationId = first ?? '';
          if (how !== 'run')
            world.nats.bus.signal(toolGateway.cancelOperation, { operationId, reason: 'enough' }, { keys: { operationId } });
          const ends = await results.then(
            (all) => all.map(({ status }) => status),
            () => ['refused', 'refused'],
          );
          // Each has an end, and what was claimed has its outcome in the journal.
          for (const status of ends) expect(['completed', 'cancelled', 'refused', 'failed']).toContain(status);
          for (const operation of [first ?? '', next ?? '']) {
            const [claim, outcome] = await Promise.all([world.fact(run, operation, 'claim'), world.fact(run, operation, 'outcome')]);
            expect(outcome === undefined).toBe(claim === undefined);
            expect(world.effects(operation)).toBeLessThanOrEqual(claim === undefined ? 0 : 1);
          }
        }),
      );
    }),
    { numRuns: 1_000 / AT_ONCE },
  );
  expect(world.gateways.flatMap(({ app }) => app.get(OpenCalls).all())).toEqual([]);
}, 120_000);

it('parks the calls of a gateway that died, within ten seconds, and never repeats them', async () => {
  const run = await world.run([mcpTool('say')]);
  const call = intend('mcp__echo__say', { text: 'lost' });
  const operation = world.operation(run, 0, call.callId);
  world.store(run, 0, [call]);
  const dead = await world.claimElsewhere(run, { step: 0, call });
  const parked = await collect(world.nats.connection, toolGateway.callParked);
  const died = performance.now();
  // Whoever asks meanwhile waits: the other gateway may yet say how the call ended.
  const asking = world.send(run, { calls: [call] });
  await parked
    .next((event) => event.payload.operationId === operation)
    .catch(async (error: unknown) => {
      throw new Error(`the call was not parked; ${await world.howFar(run, operation, dead)}`, { cause: error });
    });
  expect(performance.now() - died).toBeLessThan(10_000);
  expect(await asking).toMatchObject([{ status: 'indeterminate', fault: { code: 'INDETERMINATE' } }]);
  expect(await world.send(run, { calls: [call] })).toMatchObject([{ status: 'indeterminate' }]);
  expect(world.effects(operation)).toBe(0);
  const { items } = await world.nats.bus.call(toolGateway.listCalls, { parked: true, runId: run.runId });
  expect(items).toMatchObject([{ operationId: operation, status: 'indeterminate', parked: true }]);
  expect(dead).not.toBe(items[0]?.operationId);
  const by = { id: 'user:bob', kind: 'person' as const };
  const resolution = { operationId: operation, as: 'completed' as const, note: 'it is there', by };
  expect(await world.nats.bus.call(toolGateway.resolveCall, resolution)).toMatchObject({
    parked: false,
    resolution: { as: 'completed', note: 'it is there', by: { id: 'user:bob' } },
  });
  await expect(world.nats.bus.call(toolGateway.resolveCall, resolution)).rejects.toMatchObject({ code: 'CALL_NOT_PARKED' });
  await expect(world.nats.bus.call(toolGateway.resolveCall, { ...resolution, operationId: 'e'.repeat(64) })).rejects.toMatchObject({
    code: 'CALL_UNKNOWN',
  });
  await expect(world.nats.bus.call(toolGateway.getCall, { operationId: 'e'.repeat(64) })).rejects.toMatchObject({ code: 'CALL_UNKNOWN' });
}, 30_000);

it('answers with the outcome that another gateway wrote, once it is there', async () => {
  const run = await world.run([mcpTool('say')]);
  const call = intend('mcp__echo__say');
  const operation = world.operation(run, 0, call.callId);
  world.store(run, 0, [call]);
  const gatewayId = await world.claimElsewhere(run, { step: 0, call });
  const asking = world.send(run, { calls: [call] });
  await world.writeOutcome({
    schemaVersion: 1,
    operationId: operation,
    originRunId: run.originRunId,
    status: 'completed',
    content: [{ type: 'text', text: 'from there' }],
    durationMs: 5,
    gatewayId,
    at: new Date().toISOString(),
  });
  expect(await asking).toMatchObject([{ status: 'completed', content: [{ text: 'from there' }] }]);
  expect(world.effects(operation)).toBe(0);
});
