import { pattern, Policy, streams, toolGateway, type DeferredCall, type IntendedCall } from '@ambit/contracts';
import { collect, collectEndedCalls, until } from '@ambit/testing';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { jetstreamManager } from '@nats-io/jetstream';
import { builtinTool, intend, mcpTool, World, type RunOptions, type TestRun } from './world.js';
import { verifies } from '../../../test/verifies.js';

jest.setTimeout(60_000);
let world: World;
beforeAll(async () => {
  world = await World.start();
  await Promise.all([world.gateway({ AMBIT_CALL_HOOKS: '1' }), world.gateway({ AMBIT_CALL_HOOKS: '1' })]);
}, 60_000);
afterAll(() => world.stop());

const ask: RunOptions['policy'] = { mode: 'full_access', rules: [{ decision: 'ask', tool: '*say' }] };

/** A suspended run whose one call waits for a decision. */
async function waiting(): Promise<{ run: TestRun; call: IntendedCall }> {
  const run = await world.run([mcpTool('say')], { policy: ask });
  const call = intend('mcp__echo__say', { text: 'approved' });
  expect(await world.execute(run, 0, [call])).toMatchObject([{ status: 'waiting' }]);
  await world.move(run, { status: 'suspended' });
  return { run, call };
}

verifies(['R-PERM-6#4', 'R-EXEC-21#1'], 'executes an approved call once, however often its job is delivered, and settles it', async () => {
  const [started, ended] = await Promise.all([
    collect(world.nats.connection, toolGateway.callStarted),
    collectEndedCalls(world.nats.connection),
  ]);
  const { run, call } = await waiting();
  const approved = world.approval(run, call);
  // Two messages: each gateway may take one at the same time.
  await Promise.all([world.approve(approved), world.approve(approved), world.approve(approved)]);
  for (let count = 1; count <= 3; count++) await world.settlement(approved.operationId, count);
  expect(world.effects(approved.operationId)).toBe(1);
  for (const settled of world.settled.filter((one) => one.operationId === approved.operationId))
    expect(settled).toMatchObject({
      interactionId: approved.interactionId,
      result: { status: 'completed', content: [{ text: 'echo {"text":"approved"}' }] },
    });
  expect(await world.fact(run, approved.operationId, 'claim')).toMatchObject({ interactionId: approved.interactionId, runId: run.runId });
  // Stored a moment after its outcome.
  const items = () => world.nats.bus.call(toolGateway.listCalls, { runId: run.runId });
  await until(async () => (await items()).items.some(({ approvedBy }) => approvedBy === 'user:bob'));
  // Hooks hear of the one real attempt, before it and after it.
  await ended.next(({ payload }) => payload.operationId === approved.operationId && payload.status === 'completed');
  const of = <T extends { readonly payload: { readonly operationId: string } }>(heard: readonly T[]): T[] =>
    heard.filter(({ payload }) => payload.operationId === approved.operationId);
  expect(of(started.all)).toHaveLength(1);
  expect(of(ended.all).filter(({ payload }) => payload.status === 'completed')).toHaveLength(1);
});

verifies('R-EXEC-21#2', 'hooks that nobody can be told of change nothing about the call', async () => {
  const manager = await jetstreamManager(world.nats.connection);
  const { name } = streams.events;
  const { max_msg_size } = (await manager.streams.info(name)).config;
  const started = await collect(world.nats.connection, toolGateway.callStarted);
  const run = await world.run([mcpTool('say')]);
  const [call, next] = [intend('mcp__echo__say', { text: 'unheard' }), intend('mcp__echo__say', { text: 'heard' })];
  const subject = pattern(toolGateway.callStarted, { runId: run.runId });
  const kept = async () => (await manager.streams.info(name, { subjects_filter: subject })).state.subjects?.[subject] ?? 0;
  // The stream refuses whatever hooks are told.
  await manager.streams.update(name, { max_msg_size: 1 });
  try {
    expect(await world.execute(run, 0, [call])).toMatchObject([{ status: 'completed', content: [{ text: 'echo {"text":"unheard"}' }] }]);
    expect(await world.fact(run, world.operation(run, 0, call.callId), 'outcome')).toMatchObject({ status: 'completed' });
    expect(await kept()).toBe(0);
  } finally {
    await manager.streams.update(name, { max_msg_size: max_msg_size ?? -1 });
  }
  expect(await world.execute(run, 1, [next])).toMatchObject([{ status: 'completed' }]);
  await started.next(({ payload }) => payload.callId === next.callId);
  await until(async () => (await kept()) === 1);
  expect(started.all.filter(({ payload }) => payload.runId === run.runId)).toHaveLength(2);
  for (const [step, { callId }] of [call, next].entries()) expect(world.effects(world.operation(run, step, callId))).toBe(1);
});

verifies(
  ['R-PERM-6#8', 'R-EXEC-19#2'],
  'refuses an approval that came too late, and one of a policy, target or arguments that are others now',
  {
    timeoutMs: 30_000,
    shows: async () => {
      const cases: { change: (run: TestRun) => Promise<void>; more: Partial<DeferredCall>; code: string }[] = [
        { change: async () => undefined, more: { decidedAt: new Date(Date.now() - 121_000).toISOString() }, code: 'APPROVAL_EXPIRED' },
        { change: (run) => world.move(run, { policyVersion: 2 }), more: {}, code: 'APPROVAL_EXPIRED' },
        { change: async () => undefined, more: { argumentsHash: 'a'.repeat(64) }, code: 'APPROVAL_EXPIRED' },
        { change: async () => undefined, more: { target: null }, code: 'APPROVAL_EXPIRED' },
        { change: (run) => world.move(run, { enabled: false }), more: {}, code: 'AGENT_DISABLED' },
        {
          change: (run) =>
            world.move(run, { policy: Policy.parse({ ...run.authority.policy, rules: [{ decision: 'deny', tool: '*say' }] }) }),
          more: {},
          code: 'POLICY_DENIED',
        },
        { change: (run) => world.move(run, { status: 'cancelled' }), more: {}, code: 'TURN_ENDED' },
      ];
      for (const { change, more, code } of cases) {
        const { run, call } = await waiting();
        await change(run);
        const approved = world.approval(run, call, more);
        await world.approve(approved);
        expect((await world.settlement(approved.operationId)).result).toMatchObject({
          callId: call.callId,
          status: 'refused',
          fault: { code },
        });
        expect(world.effects(approved.operationId)).toBe(0);
        expect(await world.fact(run, approved.operationId, 'claim')).toBeUndefined();
      }
    },
  },
);

it('does not execute a job whose operation is not the asking call’s', async () => {
  const { run, call } = await waiting();
  const approved = world.approval(run, { ...call, callId: 'another' }, { operationId: world.operation(run, 0, call.callId) });
  await world.approve(approved);
  expect((await world.settlement(approved.operationId)).result).toMatchObject({
    status: 'refused',
    fault: { code: 'TOOL_NOT_IN_SNAPSHOT' },
  });
  expect(world.effects(approved.operationId)).toBe(0);
});

verifies('R-PERM-5#1', 'an approval of a change of settings is used up by its call: the same change asks again', async () => {
  const run = await world.run([builtinTool('settings_write', { effect: 'write', access: 'settings', parallel: false })]);
  const change = (): IntendedCall => intend('settings_write', { model: 'another' });
  const call = change();
  expect(await world.execute(run, 0, [call])).toMatchObject([{ status: 'waiting' }]);
  const approved = world.approval(run, call);
  await world.approve(approved);
  await world.settlement(approved.operationId);
  expect(await world.fact(run, approved.operationId, 'claim')).toMatchObject({ interactionId: approved.interactionId });
  const next = change();
  expect(await world.execute(run, 1, [next])).toMatchObject([{ status: 'waiting' }]);
  expect(await world.fact(run, world.operation(run, 1, next.callId), 'claim')).toBeUndefined();
});
