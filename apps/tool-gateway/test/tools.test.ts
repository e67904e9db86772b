import { randomUUID } from 'node:crypto';
import { fault, sessionService, skillStore, toolGateway, worker, type Input } from '@ambit/contracts';
import { collect } from '@ambit/testing';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { silentLog } from '@ambit/bus';
import type { Builtin } from '../src/builtins/builtin.js';
import { BuiltinRegistry } from '../src/builtins/builtin.registry.js';
import { question } from '../src/builtins/question.builtin.js';
import { builtinTool, intend, mcpTool, World } from './world.js';
import { verifies } from '../../../test/verifies.js';

jest.setTimeout(60_000);
let world: World;
beforeAll(async () => {
  world = await World.start();
  await world.gateway();
}, 60_000);
afterAll(() => world.stop());

const list = (purpose: 'ingress' | 'configurable' | 'diagnostic', agentId?: string) =>
  world.nats.bus.call(toolGateway.listTools, { purpose, ...(agentId === undefined ? {} : { agentId }) });
const register = (agentId: string, input: Input<typeof toolGateway.registerWorker>) =>
  world.nats.bus.call(toolGateway.registerWorker, input, { keys: { agentId } });
const tool = (name: string, more: object = {}) => ({
  name,
  exposure: 'user-configurable' as const,
  description: name,
  inputSchema: { type: 'object' },
  effect: 'write' as const,
  ...more,
});

it('lists its tools by purpose, and hides what no model may call', async () => {
  expect((await list('ingress')).tools.map(({ name }) => name).sort()).toEqual([
    'artifact_read',
    'question',
    'settings_read',
    'settings_write',
    'skill_draft',
    'skill_list',
    'skill_manage',
    'skill_run',
    'skill_view',
    'subagent_orchestrator',
    'tape_context',
    'tape_search',
    'tool_discover',
    'tool_load',
    'update_plan',
  ]);
  expect((await list('configurable')).tools.map(({ name }) => name).sort()).toEqual([
    'question',
    'settings_read',
    'settings_write',
    'skill_draft',
    'skill_list',
    'skill_manage',
    'skill_run',
    'skill_view',
    'update_plan',
  ]);
  expect((await list('diagnostic')).tools.map(({ name }) => name).sort()).toEqual(['tape_anchors', 'tape_info']);
});

it('does not start with a built-in of another exposure than the table’s, or of a name that is not in it', () => {
  const { registration } = question;
  const registry = (...builtins: Builtin[]) => new BuiltinRegistry([{ name: 'one', load: () => builtins }], silentLog);
  expect(() => registry({ kind: 'intercepted', registration: { ...registration, exposure: 'system-model' } })).toThrow(/EXPOSURE_MISMATCH/);
  expect(() => registry({ kind: 'intercepted', registration: { ...registration, name: 'ask_me' } })).toThrow(/EXPOSURE_UNLISTED/);
  expect(() => registry(question, question)).toThrow(/twice/);
});

it('lists and reads the session’s skills by the digest that was pinned, and no other', async () => {
  const read: Input<typeof skillStore.readSkill>[] = [];
  world.responder.answer(skillStore.readSkill, (input) => {
    read.push(input);
    if (input.path === 'gone.md') throw fault(skillStore.readSkill, 'FILE_NOT_FOUND');
    return { text: '# Do this', bytes: 9, next: null, files: ['SKILL.md', 'more.md'] };
  });
  const digest = '1'.repeat(64);
  const run = await world.run([builtinTool('skill_list'), builtinTool('skill_view')], {
    skills: [{ name: 'brief', agentId: 'writer', digest }],
  });
  const results = await world.execute(run, 0, [
    intend('skill_list'),
    intend('skill_view', { name: 'brief' }),
    intend('skill_view', { name: 'brief', path: 'gone.md' }),
    intend('skill_view', { name: 'other' }),
  ]);
  expect(results.map((result) => result.status)).toEqual(['completed', 'completed', 'failed', 'failed']);
  expect(results[0]?.structuredContent).toEqual({ skills: [{ name: 'brief', description: 'about brief', origin: 'owned' }] });
  expect(results[1]?.content?.[0]?.['text']).toContain('# Do this');
  expect(read).toMatchObject([
    { agentId: 'writer', name: 'brief', digest, path: 'SKILL.md' },
    { path: 'gone.md', digest },
  ]);
});

it('runs tape tools for models, and diagnostic ones for administrators alone', async () => {
  world.responder.answer(sessionService.searchTape, ({ query }) => ({
    entries: [{ sessionId: randomUUID(), id: 4, kind: 'message' as const, excerpt: `found ${query}`, at: new Date().toISOString() }],
  }));
  world.responder.answer(sessionService.tapeContext, ({ entryIds }) => ({
    entries: entryIds.map((id) => ({ id, kind: 'message' as const, text: 'all of it', truncated: false, at: new Date().toISOString() })),
  }));
  world.responder.answer(sessionService.listTape, ({ sessionId }) => ({
    items: [
      {
        id: 1,
        sessionId,
        runId: null,
        kind: 'anchor' as const,
        step: null,
        role: null,
        content: { name: 'here' },
        at: new Date().toISOString(),
      },
    ],
    next: null,
  }));
  const run = await world.run(
    [
      builtinTool('tape_search', { exposure: 'system-model' }),
      builtinTool('tape_context', { exposure: 'system-model' }),
      builtinTool('tape_handoff', { exposure: 'runtime-only' }),
    ],
    { policy: { disabledTools: ['tape_search'] } },
  );
  const results = await world.execute(run, 0, [
    intend('tape_search', { query: ' x ' }),
    intend('tape_context', { entryIds: [4] }),
    intend('tape_search', { query: '' }),
    intend('tape_handoff'),
  ]);
  expect(results.map((result) => result.fault?.code ?? result.status)).toEqual([
    'completed',
    'completed',
    'TOOL_FAILED',
    'NOT_MODEL_CALLABLE',
  ]);
  expect(results[0]?.content?.[0]?.['text']).toContain('found x');
  const { sessionId } = run;
  expect(await world.nats.bus.call(toolGateway.askTool, { sessionId, name: 'tape_anchors' })).toMatchObject({
    content: { anchors: [{ id: 1 }] },
  });
  expect(await world.nats.bus.call(toolGateway.askTool, { sessionId, name: 'tape_info' })).toMatchObject({
    content: { entries: 1, kinds: { anchor: 1 } },
  });
  for (const name of ['update_plan', 'tape_handoff', 'nothing'])
    await expect(world.nats.bus.call(toolGateway.askTool, { sessionId, name })).rejects.toMatchObject({ code: 'TOOL_NOT_IN_SNAPSHOT' });
});

verifies(
  ['R-EXEC-3#1', 'R-EXEC-3#2', 'R-EXEC-3#3'],
  'runs reading calls beside each other where all of a batch may, and in call order otherwise',
  async () => {
    let running = 0;
    let most = 0;
    const order: string[] = [];
    world.serve = async (call) => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 20));
      order.push(String(call.arguments['text']));
      running--;
      return { result: { content: [] } };
    };
    const run = await world.run([mcpTool('look', { effect: 'read', parallel: true }), mcpTool('change')]);
    const beside = ['a', 'b', 'c'].map((text) => intend('mcp__echo__look', { text }));
    const results = await world.execute(run, 0, beside);
    expect(results.map(({ callId }) => callId)).toEqual(beside.map(({ callId }) => callId));
    expect(most).toBe(3);
    most = 0;
    order.length = 0;
    const mixed = [
      intend('mcp__echo__look', { text: 'a' }),
      intend('mcp__echo__change', { text: 'b' }),
      intend('mcp__echo__look', { text: 'c' }),
    ];
    const inOrder = await world.execute(run, 1, mixed);
    expect(inOrder.map(({ callId }) => callId)).toEqual(mixed.map(({ callId }) => callId));
    expect([most, order]).toEqual([1, ['a', 'b', 'c']]);
  },
);

verifies(
  ['R-INGRESS-12#2', 'R-INGRESS-15#3'],
  'takes a worker’s tools, refuses names and permits that nobody can have, and calls them where the run’s worker is',
  async () => {
    const agentId = 'maker';
    const workerId = randomUUID();
    const changed = await collect(world.nats.connection, toolGateway.toolsChanged);
    for (const name of ['tape_info', 'Question', 'mcp__x__y'])
      await expect(register(agentId, { workerId, tools: [tool(name)] })).rejects.toMatchObject({ code: 'NAME_RESERVED', data: { name } });
    await expect(register(agentId, { workerId, tools: [tool('paint', { exposure: 'system-model' })] })).rejects.toMatchObject({
      code: 'EXPOSURE_MISMATCH',
    });
    await expect(register(agentId, { workerId, tools: [tool('paint', { access: 'session' })] })).rejects.toMatchObject({
      code: 'EXPOSURE_MISMATCH',
    });
    for (const permit of ['user()', 'role()', 'role( )', 'everybody'])
      await expect(register(agentId, { workerId, tools: [tool('paint', { permissions: ['group()', permit] })] })).rejects.toMatchObject({
        code: 'INVALID_INPUT',
        data: { issues: [{ path: 'tools.0.permissions.1' }] },
      });
    const named = '7'.repeat(64);
    expect(await register(agentId, { workerId, toolsetDigest: named })).toEqual({ toolsetDigest: named, wantTools: true });
    expect(
      await register(agentId, {
        workerId,
        toolsetDigest: named,
        tools: [tool('paint', { source: 'builtin', owner: 'builtin' }), tool('write', { access: 'file' })],
      }),
    ).toEqual({
      toolsetDigest: named,
      wantTools: false,
    });
    await expect(register(agentId, { workerId, toolsetDigest: named, tools: [tool('other')] })).rejects.toMatchObject({
      code: 'INVALID_INPUT',
    });
    expect((await changed.next((one) => one.payload.agentId === agentId)).payload).toMatchObject({ digest: named, live: true });
    expect((await list('ingress', agentId)).toolsets).toMatchObject([
      { agentId, digest: named, pool: 'shared', live: true, tools: [{ name: 'paint' }, { name: 'write' }] },
    ]);

    const prepared = { paths: ['notes/a.md'], cwd: null, argv: [], command: null };
    world.responder.answer(worker.prepareTool, () => prepared, { keys: { agentId, workerId } });
    world.responder.answer(
      worker.callTool,
      (input) => ({ content: [{ type: 'text', text: `${input.tool} ${JSON.stringify(input.prepared)}` }] }),
      { keys: { agentId, workerId } },
    );
    const pinned = (name: string) =>
      builtinTool(name, {
        owner: `worker:${agentId}`,
        effect: 'write',
        parallel: false,
        access: name === 'write' ? 'file' : 'other',
        target: { kind: 'worker', agentId, toolsetDigest: named, tool: name },
      });
    const run = await world.run([pinned('write'), pinned('paint')], { agentId, workerId, policy: { mode: 'default' } });
    const results = await world.execute(run, 0, [intend('write', { path: 'notes/a.md' }), intend('paint')]);
    // A file inside the workspace needs nobody; what may change something asks.
    expect(results).toMatchObject([
      { status: 'completed', content: [{ text: `write ${JSON.stringify(prepared)}` }] },
      { status: 'waiting' },
    ]);
    const gone = await world.run([pinned('write')], { agentId, workerId: randomUUID(), policy: { mode: 'full_access' } });
    expect(await world.execute(gone, 0, [intend('write')])).toMatchObject([{ status: 'refused', fault: { code: 'TOOL_GONE' } }]);
  },
);

verifies(
  'R-INGRESS-6#1',
  'a worker’s tools whose code alone changed: a run goes on with the code that it began with, the next has the new',
  async () => {
    const agentId = 'renewer';
    const [older, newer] = [randomUUID(), randomUUID()];
    const digests: (string | null)[] = [];
    for (const [code, workerId] of Object.entries({ older, newer })) {
      world.responder.answer(worker.callTool, () => ({ content: [{ type: 'text', text: code }] }), { keys: { agentId, workerId } });
      world.responder.answer(worker.prepareTool, () => ({ paths: [], cwd: null, argv: [], command: null }), {
        keys: { agentId, workerId },
      });
    }
    const begin = async (workerId: string) => {
      digests.push((await register(agentId, { workerId, tools: [tool('brew')] })).toolsetDigest);
      const target = { kind: 'worker' as const, agentId, toolsetDigest: digests.at(-1) ?? '', tool: 'brew' };
      const pinned = builtinTool('brew', { owner: `worker:${agentId}`, effect: 'write', parallel: false, access: 'other', target });
      return world.run([pinned], { agentId, workerId, policy: { mode: 'full_access' } });
    };
    const said = async (run: Awaited<ReturnType<typeof begin>>, step: number) =>
      (await world.execute(run, step, [intend('brew')])).map(({ content }) => content?.[0]?.['text']);
    const going = await begin(older);
    expect(await said(going, 0)).toEqual(['older']);
    const next = await begin(newer);
    expect(new Set(digests).size).toBe(1);
    expect(await said(next, 0)).toEqual(['newer']);
    expect(await said(going, 1)).toEqual(['older']);
    expect(await said(next, 1)).toEqual(['newer']);
  },
);

it('tells the run’s worker every two seconds what goes on', async () => {
  const beats = await collect(world.nats.connection, worker.batchProgress);
  const run = await world.run([mcpTool('slow')]);
  const call = intend('mcp__echo__slow');
  world.serve = async ({ operationId, gatewayId }) => {
    world.nats.bus.signal(toolGateway.callProgress, { operationId, progress: 1, total: 2, message: 'half' }, { keys: { gatewayId } });
    await beats.next((one) => one.payload.runId === run.runId && one.payload.progress.length > 0);
    return { result: { content: [] } };
  };
  expect(await world.execute(run, 0, [call])).toMatchObject([{ status: 'completed' }]);
  expect(beats.all.at(-1)?.payload).toMatchObject({
    step: 0,
    running: [call.callId],
    progress: [{ callId: call.callId, progress: 1, total: 2, message: 'half' }],
  });
});
