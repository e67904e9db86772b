import { randomBytes, randomUUID } from 'node:crypto';
import { sha256Hex } from '@ambit/capability';
import { Fault, Policy, toolGateway } from '@ambit/contracts';
import { collectEndedCalls, until } from '@ambit/testing';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { builtinTool, intend, mcpTool, World } from './world.js';
import { verifies } from '../../../test/verifies.js';

jest.setTimeout(60_000);
let world: World;
beforeAll(async () => {
  world = await World.start();
  await world.gateway();
}, 60_000);
afterAll(() => world.stop());

/** The whole body of the fault, as a caller sees it. */
async function refused(request: Promise<unknown>): Promise<unknown> {
  const error = await request.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return error instanceof Fault ? error.toBody() : error;
}

it('answers what is not the caller’s exactly as what does not exist', async () => {
  const mine = await world.run([mcpTool('say')]);
  const other = await world.run([mcpTool('say'), mcpTool('secret')], { agentId: 'reader' });
  const call = intend('mcp__echo__say');
  world.store(mine, 0, [call]);
  world.store(other, 0, [call]);
  const nothing = await refused(world.send(mine, { calls: [call], runId: randomUUID() }));
  expect(nothing).toMatchObject({ code: 'TOOL_NOT_IN_SNAPSHOT' });
  const forgeries = [
    world.send(mine, { calls: [call], sessionId: other.sessionId }),
    world.send(mine, { calls: [call], fingerprint: other.authority.fingerprint }),
    world.send(mine, { calls: [call], token: other.token }),
    world.send(mine, { calls: [call], token: randomBytes(24).toString('base64url') }),
    world.send(mine, { calls: [call], originRunId: other.runId }),
    world.send(mine, { calls: [call], runId: other.runId }),
    world.send(other, { calls: [call], agentId: 'writer' }),
    // Neither the step nor the end of another's run shows through.
    world.send(other, { calls: [call], agentId: 'writer', step: 7 }),
  ];
  for (const forgery of forgeries) expect(await refused(forgery)).toEqual(nothing);
  expect(world.executed).toHaveLength(0);
});

it('executes only what the stored step holds', async () => {
  const run = await world.run([mcpTool('say')]);
  const call = intend('mcp__echo__say', { text: 'stored' });
  world.store(run, 3, [call]);
  const wrong = [
    { step: 2, calls: [call] },
    { step: 3, calls: [{ ...call, arguments: '{"text":"another"}' }] },
    { step: 3, calls: [intend('mcp__echo__say')] },
    { step: 3, calls: [call, call] },
  ];
  for (const batch of wrong) expect(await refused(world.send(run, batch))).toMatchObject({ code: 'BAD_ARGUMENTS' });
  expect(world.effects(world.operation(run, 3, call.callId))).toBe(0);
  expect(await world.send(run, { step: 3, calls: [call] })).toMatchObject([{ status: 'completed' }]);
});

it('tells an older attempt and an ended run apart, to who once held the token', async () => {
  const run = await world.run([mcpTool('say')]);
  const call = intend('mcp__echo__say');
  await world.execute(run, 0, [call]);
  const newer = randomBytes(24).toString('base64url');
  await world.move(run, { tokens: [...run.authority.tokens, { attempt: 2, hash: sha256Hex(newer) }] });
  const next = intend('mcp__echo__say');
  world.store(run, 1, [next]);
  expect(await refused(world.send(run, { step: 1, calls: [next] }))).toMatchObject({ code: 'STALE_INSTANCE' });
  expect(await world.send(run, { step: 1, calls: [next], token: newer })).toMatchObject([{ status: 'completed' }]);
  await world.move(run, { status: 'completed' });
  const last = intend('mcp__echo__say');
  world.store(run, 2, [last]);
  expect(await refused(world.send(run, { step: 2, calls: [last], token: newer }))).toMatchObject({ code: 'TURN_ENDED' });
});

it('refuses each call for itself, records it on the tape and for people, and runs the others', async () => {
  const ended = await collectEndedCalls(world.nats.connection);
  const run = await world.run(
    [
      mcpTool('say'),
      mcpTool('typed', {
        inputSchema: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false },
      }),
      builtinTool('tape_info', { exposure: 'diagnostic' }),
      builtinTool('update_plan'),
    ],
    {
      policy: { rules: [{ decision: 'deny', tool: '*say', when: { text: 'no' } }], disabledTools: ['update_plan'] },
    },
  );
  const calls = [
    intend('mcp__echo__say', { text: 'no' }),
    intend('mcp__echo__elsewhere'),
    intend('mcp__echo__typed', { n: 'x' }),
    { ...intend('mcp__echo__typed'), arguments: '[1]' },
    { ...intend('mcp__echo__typed'), arguments: '{"n":1,"n":2}' },
    intend('tape_info'),
    intend('update_plan', { plan: [] }),
    intend('mcp__echo__typed', { n: 1 }),
  ];
  const results = await world.execute(run, 0, calls);
  expect(results.map((result) => result.fault?.code ?? result.status)).toEqual([
    'POLICY_DENIED',
    'TOOL_NOT_IN_SNAPSHOT',
    'BAD_ARGUMENTS',
    'BAD_ARGUMENTS',
    'BAD_ARGUMENTS',
    'NOT_MODEL_CALLABLE',
    'TOOL_DISABLED',
    'completed',
  ]);
  expect(results.slice(0, 7).every((result) => result.status === 'refused')).toBe(true);
  expect(
    world.recorded
      .flatMap((one) => (one.runId === run.runId ? one.results : []))
      .map((result) => result.callId)
      .sort(),
  ).toEqual(
    calls
      .slice(0, 7)
      .map((call) => call.callId)
      .sort(),
  );
  const denied = world.operation(run, 0, calls[0]?.callId ?? '');
  expect(await world.fact(run, denied, 'claim')).toBeUndefined();
  const recorded = () => world.nats.bus.call(toolGateway.getCall, { operationId: denied });
  // Kept beside the call's path.
  await until(async () => (await recorded()).argumentsPreview !== null);
  expect(await recorded()).toMatchObject({
    status: 'refused',
    fault: { code: 'POLICY_DENIED' },
    argumentsPreview: '{"text":"no"}',
    rule: expect.stringContaining('deny'),
  });
  expect((await ended.next((event) => event.payload.operationId === denied)).payload).toMatchObject({
    status: 'refused',
    tool: 'mcp__echo__say',
  });
});

it('fetches a moved authority again before the claim, and refuses by what it says then', async () => {
  const run = await world.run([mcpTool('say'), mcpTool('other')]);
  await world.execute(run, 0, [intend('mcp__echo__say')]);
  const [gone, kept] = [intend('mcp__echo__say'), intend('mcp__echo__other')];
  world.store(run, 1, [gone, kept]);
  // Memory holds the step; the policy narrows between the gates and the claim, and no hint arrives.
  world.nats.bus.signal(
    toolGateway.stepStored,
    { runId: run.runId, step: 1, callsBefore: 1, calls: run.authority.step?.calls ?? [] },
    { keys: { runId: run.runId } },
  );
  await world.nats.connection.flush();
  await world.move(run, {
    policy: Policy.parse({ ...run.authority.policy, rules: [{ decision: 'deny', tool: '*say' }] }),
  });
  const before = world.authorityCalls;
  const results = await world.send(run, { step: 1, calls: [gone, kept] });
  expect(results.map((result) => result.fault?.code ?? result.status)).toEqual(['POLICY_DENIED', 'completed']);
  expect(world.authorityCalls).toBe(before + 1);
  expect(world.effects(world.operation(run, 1, gone.callId))).toBe(0);
});

it('asks nobody for the authority of a run whose steps it hears of', async () => {
  const run = await world.run([mcpTool('say')]);
  await world.execute(run, 0, [intend('mcp__echo__say')]);
  const before = world.authorityCalls;
  for (let step = 1; step < 4; step++) {
    const call = intend('mcp__echo__say');
    world.store(run, { step, callsBefore: step }, [call]);
    world.nats.bus.signal(
      toolGateway.stepStored,
      { runId: run.runId, step, callsBefore: step, calls: run.authority.step?.calls ?? [] },
      { keys: { runId: run.runId } },
    );
    expect(await world.send(run, { step, calls: [call] })).toMatchObject([{ status: 'completed' }]);
  }
  expect(world.authorityCalls).toBe(before);
});

it('counts the calls of a run exactly, and those of a minute', async () => {
  const run = await world.run([mcpTool('say')], { policy: { limits: { callsPerRun: 3 } } });
  const calls = [intend('mcp__echo__say'), intend('mcp__echo__say')];
  world.store(run, { step: 0, callsBefore: 2 }, calls);
  expect((await world.send(run, { calls })).map((result) => result.fault ?? result.status)).toEqual([
    'completed',
    expect.objectContaining({ code: 'CALL_LIMIT', data: { limit: 3 } }),
  ]);
  const busy = await world.run([mcpTool('say')], { agentId: 'busy', policy: { limits: { callsPerMinute: 2 } } });
  const three = [intend('mcp__echo__say'), intend('mcp__echo__say'), intend('mcp__echo__say')];
  expect((await world.execute(busy, 0, three)).map((result) => result.fault?.code ?? result.status)).toEqual([
    'completed',
    'completed',
    'RATE_LIMITED',
  ]);
});

verifies('R-EXEC-5#1', 'has people asked once for all calls of a batch, in call order, and runs the rest', async () => {
  const run = await world.run([mcpTool('say'), builtinTool('question')], {
    mode: 'default',
    policy: { mode: 'default', rules: [{ decision: 'allow', tool: '*say', when: { text: 'fine' } }] },
  });
  const calls = [
    intend('mcp__echo__say', { text: 'ask me', apiKey: 'hidden' }),
    intend('mcp__echo__say', { text: 'fine' }),
    intend('question', { question: 'Which?', options: [{ label: 'a' }, { label: 'b' }] }),
    intend('question', { question: 'Which?', options: [] }),
  ];
  const results = await world.execute(run, 0, calls);
  expect(results.map((result) => result.fault?.code ?? result.status)).toEqual(['waiting', 'completed', 'waiting', 'QUESTION_INVALID']);
  const [asked, ...more] = world.asked.filter((one) => one.runId === run.runId);
  expect(more).toEqual([]);
  expect(asked?.requests).toMatchObject([
    { kind: 'permission', order: 0, callId: calls[0]?.callId, target: { kind: 'mcp' }, expiresMs: 86_400_000 },
    { kind: 'question', order: 1, callId: calls[2]?.callId, question: { question: 'Which?' } },
  ]);
  expect(asked?.requests[0]?.argumentsPreview).not.toContain('hidden');
});
