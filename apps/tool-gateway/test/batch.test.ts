import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { builtinTool, intend, mcpTool, World } from './world.js';

jest.setTimeout(60_000);
let world: World;
beforeAll(async () => {
  world = await World.start();
  await world.gateway();
}, 60_000);
afterAll(() => world.stop());

it('executes a built-in and a server’s tool through gates and journal', async () => {
  const run = await world.run([mcpTool('say'), builtinTool('update_plan', { effect: 'write', parallel: false })]);
  const plan = intend('update_plan', { plan: [{ step: 'first', status: 'in_progress' }] });
  const say = intend('mcp__echo__say', { text: 'hi' });
  const results = await world.execute(run, 0, [plan, say]);
  expect(results.map((result) => result.status)).toEqual(['completed', 'completed']);
  expect(results[1]?.content).toEqual([{ type: 'text', text: 'echo {"text":"hi"}' }]);
  const operation = world.operation(run, 0, say.callId);
  expect(await world.fact(run, operation, 'claim')).toMatchObject({ tool: 'mcp__echo__say', attempt: 1, rule: 'mode full_access' });
  expect(await world.fact(run, operation, 'outcome')).toMatchObject({ status: 'completed' });
  expect(world.effects(operation)).toBe(1);
});

it('dispatches a repeated batch once, while it runs and after it ended', async () => {
  const run = await world.run([mcpTool('say')]);
  const call = intend('mcp__echo__say', { text: 'once' });
  world.store(run, 0, [call]);
  const twice = await Promise.all([world.send(run, { calls: [call] }), world.send(run, { calls: [call] })]);
  const again = await world.send(run, { calls: [call] });
  expect(world.effects(world.operation(run, 0, call.callId))).toBe(1);
  for (const results of [...twice, again])
    expect(results).toMatchObject([{ callId: call.callId, status: 'completed', content: [{ text: 'echo {"text":"once"}' }] }]);
});
