import { fault, mcpBroker, sessionService, toolGateway, type CallResult } from '@ambit/contracts';
import { collect, until } from '@ambit/testing';
import { platformFault } from '@ambit/contracts';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { intend, mcpTool, World, type TestRun } from './world.js';
import { verifies } from '../../../test/verifies.js';

jest.setTimeout(60_000);
let world: World;
beforeAll(async () => {
  world = await World.start();
  await world.gateway();
}, 60_000);
afterAll(() => world.stop());

/** Begins a call whose server answers only when it is told to stop; resolves when the server has it. */
async function begin(run: TestRun, step: number): Promise<{ operation: string; results: Promise<CallResult[]> }> {
  const call = intend('mcp__echo__slow');
  const operation = world.operation(run, step, call.callId);
  let reached: () => void = () => undefined;
  const isReached = new Promise<void>((resolve) => (reached = resolve));
  world.serve = async () => {
    reached();
    await world.cancelled(operation);
    throw platformFault('CANCELLED');
  };
  const results = world.execute(run, step, [call]);
  await isReached;
  return { operation, results };
}

it('cancels one call: the fact first, then its owner is told, and the outcome is its word', async () => {
  const run = await world.run([mcpTool('slow')]);
  const { operation, results } = await begin(run, 0);
  expect(await world.nats.bus.call(toolGateway.cancelCall, { operationId: operation, reason: 'enough' })).toEqual({ state: 'stopped' });
  expect(await results).toMatchObject([{ status: 'cancelled', fault: { code: 'CANCELLED' } }]);
  expect(await world.fact(run, operation, 'abort')).toMatchObject({ reason: 'enough' });
  expect(await world.fact(run, operation, 'outcome')).toMatchObject({ status: 'cancelled' });
  expect(await world.nats.bus.call(toolGateway.cancelCall, { operationId: operation })).toEqual({ state: 'ended' });
  expect(await world.nats.bus.call(toolGateway.cancelCall, { operationId: 'f'.repeat(64) })).toEqual({ state: 'unknown' });
});

it('stops the calls of a cancelled run and says so when none is left', async () => {
  const stopped = await collect(world.nats.connection, sessionService.runStopped);
  const run = await world.run([mcpTool('slow')]);
  const { results } = await begin(run, 0);
  await world.move(run, { status: 'cancelled' });
  world.nats.bus.signal(
    toolGateway.cancelRunCalls,
    { runId: run.runId, abort: true, reason: 'the person left' },
    { keys: { runId: run.runId } },
  );
  expect((await stopped.next((one) => one.payload.runId === run.runId)).payload).toMatchObject({ stopped: 1 });
  expect(await results).toMatchObject([{ status: 'cancelled' }]);
});

verifies('R-NATS-3#3', 'notices within seconds a cancel whose signal was lost', async () => {
  const run = await world.run([mcpTool('slow')]);
  const { results } = await begin(run, 0);
  await world.move(run, { status: 'cancelled' });
  expect(await results).toMatchObject([{ status: 'cancelled' }]);
});

verifies('R-EXEC-19#1', 'a result that comes after the run was cancelled is in the journal', async () => {
  const run = await world.run([mcpTool('slow')]);
  const call = intend('mcp__echo__slow');
  const operation = world.operation(run, 0, call.callId);
  world.serve = async () => {
    await world.cancelled(operation);
    return { result: { content: [{ type: 'text', text: 'late' }] } };
  };
  const results = world.execute(run, 0, [call]);
  await world.claimed(run, operation);
  await world.move(run, { status: 'cancelled' });
  await results;
  expect(await world.fact(run, operation, 'outcome')).toMatchObject({ status: 'completed', content: [{ text: 'late' }] });
});

verifies(['R-EXEC-18#4', 'R-EXEC-17#1'], 'what only calls itself an abort is an error like any other, and the next call runs', async () => {
  const run = await world.run([mcpTool('say')]);
  const [first, second] = [intend('mcp__echo__say', { text: 'one' }), intend('mcp__echo__say', { text: 'two' })];
  world.serve = (asked) => {
    if (asked.arguments['text'] === 'one')
      throw fault(mcpBroker.executeCall, 'TOOL_FAILED', { reason: 'AbortError: This operation was aborted' });
    return { result: { content: [{ type: 'text', text: 'done' }] } };
  };
  expect(await world.execute(run, 0, [first, second])).toMatchObject([
    { status: 'failed', fault: { code: 'TOOL_FAILED' } },
    { status: 'completed', content: [{ text: 'done' }] },
  ]);
  expect(await world.fact(run, world.operation(run, 0, first.callId), 'abort')).toBeUndefined();
});

it('parks a call whose owner does not say how it ended after the stop', async () => {
  const run = await world.run([mcpTool('slow')]);
  const { operation, results } = await begin(run, 0);
  world.forget(operation);
  await world.nats.bus.call(toolGateway.cancelCall, { operationId: operation });
  expect(await results).toMatchObject([{ status: 'indeterminate', fault: { code: 'INDETERMINATE' } }]);
}, 15_000);

verifies('R-EXEC-18#3', 'keeps a result that arrived although the call was told to stop', async () => {
  const run = await world.run([mcpTool('slow')]);
  const call = intend('mcp__echo__slow');
  const operation = world.operation(run, 0, call.callId);
  world.serve = async () => {
    await world.cancelled(operation);
    return { result: { content: [{ type: 'text', text: 'done anyway' }] } };
  };
  const results = world.execute(run, 0, [call]);
  await world.claimed(run, operation);
  world.nats.bus.signal(toolGateway.cancelOperation, { operationId: operation, reason: 'too late' }, { keys: { operationId: operation } });
  expect(await results).toMatchObject([{ status: 'completed', content: [{ text: 'done anyway' }] }]);
});

it('answers `running` when the caller’s time is up, and attaches when it asks again', async () => {
  const run = await world.run([mcpTool('slow')]);
  const call = intend('mcp__echo__slow');
  let finish: () => void = () => undefined;
  const finished = new Promise<void>((resolve) => (finish = resolve));
  world.serve = async () => {
    await finished;
    return { result: { content: [{ type: 'text', text: 'at last' }] } };
  };
  world.store(run, 0, [call]);
  expect(await world.send(run, { calls: [call], timeoutMs: 3_000 })).toEqual([{ callId: call.callId, status: 'running' }]);
  const again = world.send(run, { calls: [call] });
  finish();
  expect(await again).toMatchObject([{ status: 'completed', content: [{ text: 'at last' }] }]);
  expect(world.effects(world.operation(run, 0, call.callId))).toBe(1);
});

it('waits for a call that runs by its approval when its batch is sent again, and parks nothing', async () => {
  const run = await world.run([mcpTool('say')], { policy: { rules: [{ decision: 'ask', tool: '*say' }] } });
  const call = intend('mcp__echo__say');
  const operation = world.operation(run, 0, call.callId);
  expect(await world.execute(run, 0, [call])).toMatchObject([{ status: 'waiting' }]);
  let reached: () => void = () => undefined;
  const isReached = new Promise<void>((resolve) => (reached = resolve));
  let finish: () => void = () => undefined;
  const finished = new Promise<void>((resolve) => (finish = resolve));
  world.serve = async () => {
    reached();
    await finished;
    return { result: { content: [{ type: 'text', text: 'at last' }] } };
  };
  await world.approve(world.approval(run, call));
  await isReached;
  expect(await world.send(run, { calls: [call], timeoutMs: 3_000 })).toEqual([{ callId: call.callId, status: 'running' }]);
  expect(await world.fact(run, operation, 'outcome')).toBeUndefined();
  const again = world.send(run, { calls: [call] });
  finish();
  expect(await again).toMatchObject([{ status: 'completed', content: [{ text: 'at last' }] }]);
  expect((await world.settlement(operation)).result).toMatchObject({ status: 'completed' });
  expect(world.effects(operation)).toBe(1);
});

it('keeps the record of calls whose server answers what Postgres does not take, and of those beside them', async () => {
  const run = await world.run([mcpTool('say')]);
  const [odd, failed, plain] = [intend('mcp__echo__say', { n: 1 }), intend('mcp__echo__say', { n: 2 }), intend('mcp__echo__say', { n: 3 })];
  const half = '\ud83d';
  world.serve = ({ operationId }) => {
    const text = operationId === world.operation(run, 0, plain.callId) ? 'fine' : `half ${half} a character, and \u0000`;
    return { result: { content: [{ type: 'text', text }], isError: operationId === world.operation(run, 0, failed.callId) } };
  };
  await world.execute(run, 0, [odd, failed, plain]);
  const items = async () => (await world.nats.bus.call(toolGateway.listCalls, { runId: run.runId })).items;
  await until(async () => (await items()).length === 3);
  expect((await items()).map(({ callId, status }) => `${callId} ${status}`).sort()).toEqual(
    [`${odd.callId} completed`, `${failed.callId} failed`, `${plain.callId} completed`].sort(),
  );
});
