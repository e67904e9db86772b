import { createHash, randomUUID } from 'node:crypto';
import { toolGateway, fault, mcpBroker } from '@ambit/contracts';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { ArtifactStore } from '../src/artifact.store.js';
import { builtinTool, intend, mcpTool, World, type TestRun } from './world.js';
import { verifies } from '../../../test/verifies.js';

jest.setTimeout(60_000);
let world: World;
beforeAll(async () => {
  world = await World.start();
  await world.gateway();
}, 60_000);
afterAll(() => world.stop());

const names = (run: TestRun) => ({
  runId: run.runId,
  originRunId: run.originRunId,
  sessionId: run.sessionId,
  fingerprint: run.authority.fingerprint,
  token: run.token,
});

it('stores a large result as an artifact of its session and shows its beginning', async () => {
  const run = await world.run([mcpTool('big'), builtinTool('artifact_read')]);
  const text = `begin${'x'.repeat(40_000)}end`;
  world.serve = () => ({ result: { content: [{ type: 'text', text }], structuredContent: { n: 1 } } });
  const call = intend('mcp__echo__big');
  const [first] = await world.execute(run, 0, [call]);
  expect(first).toMatchObject({ status: 'completed', content: [{ text }], structuredContent: { n: 1 } });
  const digest = first?.artifact?.digest ?? '';
  const outcome = await world.fact(run, world.operation(run, 0, call.callId), 'outcome');
  expect(JSON.stringify(outcome).length).toBeLessThan(4_096);
  expect(outcome).toMatchObject({ artifact: { digest }, content: [{ text: expect.stringContaining('beginxxx') }] });
  const stored: Buffer[] = [];
  for (let offset: number | null = 0; offset !== null;) {
    const page: { data: string; next: number | null } = await world.nats.bus.call(
      toolGateway.readArtifact,
      { ...names(run), digest, offset, length: 10_000 },
      { keys: { agentId: run.agentId } },
    );
    stored.push(Buffer.from(page.data, 'base64'));
    offset = page.next;
  }
  const bytes = Buffer.concat(stored);
  expect(JSON.parse(bytes.toString())).toEqual({ content: [{ type: 'text', text }], structuredContent: { n: 1 } });
  expect(createHash('sha256').update(bytes).digest('hex')).toBe(digest);
  const [range] = await world.execute(run, 1, [intend('artifact_read', { digest, offset: 0, length: 20 })]);
  expect(range?.content).toEqual([{ type: 'text', text: bytes.subarray(0, 20).toString() }]);
});

it('gives an artifact to its own session alone, until it expires', async () => {
  const run = await world.run([mcpTool('big')]);
  const other = await world.run([mcpTool('big')], { agentId: 'reader' });
  world.serve = () => ({ result: { content: [{ type: 'text', text: 'y'.repeat(20_000) }] } });
  const [result] = await world.execute(run, 0, [intend('mcp__echo__big')]);
  const digest = result?.artifact?.digest ?? '';
  await expect(
    world.nats.bus.call(toolGateway.readArtifact, { ...names(other), digest }, { keys: { agentId: 'reader' } }),
  ).rejects.toMatchObject({ code: 'ARTIFACT_UNKNOWN' });
  await expect(
    world.nats.bus.call(toolGateway.readArtifact, { ...names(run), digest }, { keys: { agentId: 'reader' } }),
  ).rejects.toMatchObject({ code: 'TOOL_NOT_IN_SNAPSHOT' });
  await expect(world.nats.bus.call(toolGateway.getArtifact, { sessionId: run.sessionId, digest: 'a'.repeat(64) })).rejects.toMatchObject({
    code: 'ARTIFACT_UNKNOWN',
  });
  expect(await world.nats.bus.call(toolGateway.getArtifact, { sessionId: run.sessionId, digest, length: 8 })).toMatchObject({ next: 8 });
  const store = world.gateways[0]?.app.get(ArtifactStore);
  expect(await store?.sweep(new Date(Date.now() + 8 * 86_400_000))).toBeGreaterThan(0);
  await expect(world.nats.bus.call(toolGateway.getArtifact, { sessionId: run.sessionId, digest })).rejects.toMatchObject({
    code: 'ARTIFACT_UNKNOWN',
  });
});

it('takes an upload in parts, and only when they hash to what was said', async () => {
  const run = await world.run([mcpTool('say')]);
  const bytes = Buffer.from('part one, part two');
  const digest = createHash('sha256').update(bytes).digest('hex');
  const send = (uploadId: string, offset: number, { data, last }: { readonly data: Buffer; readonly last: boolean }) =>
    world.nats.bus.call(
      toolGateway.writeArtifact,
      { ...names(run), uploadId, offset, data: data.toString('base64'), last, digest },
      { keys: { agentId: run.agentId } },
    );
  const uploadId = randomUUID();
  expect(await send(uploadId, 0, { data: bytes.subarray(0, 9), last: false })).toEqual({ stored: false, bytes: 9 });
  expect(await send(uploadId, 9, { data: bytes.subarray(9), last: true })).toEqual({ stored: true, bytes: bytes.length });
  expect(await world.nats.bus.call(toolGateway.getArtifact, { sessionId: run.sessionId, digest })).toEqual({
    data: bytes.toString('base64'),
    bytes: bytes.length,
    next: null,
  });
  // A look at its session drops nothing.
  const clear = (look: boolean) =>
    world.nats.bus.call(toolGateway.clearSession, {
      ...{ sessionId: run.sessionId, whole: true, look, before: new Date().toISOString() },
      runs: [{ runId: run.runId, originRunId: run.originRunId }],
    });
  expect(await clear(true)).toEqual({ open: 0 });
  expect(await world.nats.bus.call(toolGateway.getArtifact, { sessionId: run.sessionId, digest })).toMatchObject({ bytes: bytes.length });
  expect(await clear(false)).toEqual({ open: 0 });
  await expect(world.nats.bus.call(toolGateway.getArtifact, { sessionId: run.sessionId, digest })).rejects.toMatchObject({
    code: 'ARTIFACT_UNKNOWN',
  });
  const gap = randomUUID();
  await send(gap, 0, { data: bytes.subarray(0, 3), last: false });
  await expect(send(gap, 9, { data: bytes.subarray(9), last: true })).rejects.toMatchObject({ code: 'ARTIFACT_DIGEST' });
});

verifies(
  ['R-EXEC-12#2', 'R-EXEC-14#1', 'R-EXEC-14#2'],
  'shortens the last results first when a batch’s answer would be too large, and runs nothing again',
  async () => {
    const run = await world.run([mcpTool('big')]);
    world.serve = (call) => ({ result: { content: [{ type: 'text', text: String(call.arguments['text']).repeat(150_000) }] } });
    const calls = ['a', 'b', 'c', 'd'].map((text) => intend('mcp__echo__big', { text }));
    const results = await world.execute(run, 0, calls);
    expect(Buffer.byteLength(JSON.stringify(results))).toBeLessThanOrEqual(400 * 1024);
    expect(results.map((result) => result.callId)).toEqual(calls.map((call) => call.callId));
    expect(results.map((result) => String(result.content?.[0]?.['text']).length > 100_000)).toEqual([true, true, false, false]);
    for (const call of calls) expect(world.effects(world.operation(run, 0, call.callId))).toBe(1);
  },
);

it('finds the owner of an instance once, and again when it moved, under the same claim', async () => {
  const run = await world.run([mcpTool('say')]);
  const before = world.ensured.length;
  let isMoved = false;
  world.serve = () => {
    if (isMoved) return { result: { content: [{ type: 'text', text: 'ok' }] } };
    isMoved = true;
    throw fault(mcpBroker.executeCall, 'STALE_LEASE');
  };
  expect(await world.execute(run, 0, [intend('mcp__echo__say')])).toMatchObject([{ status: 'completed' }]);
  expect(world.ensured.length).toBe(before + 2);
  expect(await world.execute(run, 1, [intend('mcp__echo__say')])).toMatchObject([{ status: 'completed' }]);
  expect(world.ensured.length).toBe(before + 2);
});

it('says of a failed call only what its owner says', async () => {
  const run = await world.run([mcpTool('say')]);
  const answers: { throws: () => never; expected: object }[] = [
    {
      throws: () => {
        throw fault(mcpBroker.executeCall, 'TARGET_CHANGED');
      },
      expected: { status: 'failed', fault: { code: 'TARGET_CHANGED' } },
    },
    {
      throws: () => {
        throw fault(mcpBroker.executeCall, 'CALL_TIMEOUT');
      },
      expected: { status: 'failed', fault: { code: 'CALL_TIMEOUT' } },
    },
    {
      throws: () => {
        throw fault(mcpBroker.executeCall, 'TOOL_FAILED', { reason: 'no' });
      },
      expected: { status: 'failed', fault: { code: 'TOOL_FAILED' } },
    },
    {
      throws: () => {
        throw fault(mcpBroker.executeCall, 'INDETERMINATE');
      },
      expected: { status: 'indeterminate', fault: { code: 'INDETERMINATE' } },
    },
    // Nobody foresaw this: whether it had its effect is not known.
    {
      throws: () => {
        throw new Error('boom');
      },
      expected: { status: 'indeterminate', fault: { code: 'INDETERMINATE' } },
    },
  ];
  for (const [step, { throws, expected }] of answers.entries()) {
    world.serve = throws;
    const call = intend('mcp__echo__say');
    expect(await world.execute(run, step, [call])).toMatchObject([expected]);
    expect(world.effects(world.operation(run, step, call.callId))).toBe(1);
  }
  world.serve = () => ({ result: { content: [{ type: 'text', text: 'not found' }], isError: true } });
  expect(await world.execute(run, 9, [intend('mcp__echo__say')])).toMatchObject([
    { status: 'failed', content: [{ text: 'not found' }], fault: { code: 'TOOL_FAILED', data: { reason: 'not found' } } },
  ]);
});
