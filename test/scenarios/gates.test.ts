// Long because each gate has its case here, and all of them share one running world.
// Every gate through the served path: built services, and workers over plain NATS that say what they like. Each case is one that this gate alone
// refuses: `npm run mutants` leaves the gate out, runs the case by its name, and wants it red.
import { GATES, sha256Hex, type SnapshotRecord } from '@ambit/capability';
import { traceIdOf } from '@ambit/bus';
import { HEADER, sessionService, toolGateway } from '@ambit/contracts';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import { randomBytes, randomUUID } from 'node:crypto';
import { intend, operationOf } from '../system/plain-worker.js';
import { wiretap } from '../system/wiretap.js';
import { verifies } from '../verifies.js';
import { EXCLUSIVE, PAIRS, PLUGIN_PAIRS } from './gate-pairs.js';
import { alice, codes, faultOf, GateWorld } from './gate-world.js';

jest.setTimeout(240_000);
/** Cases that are tried beside each other. */
const AT_ONCE = 6;
const ECHO = 'mcp__echo__echo';
const LOOK = 'mcp__look__echo';
const echo = (text = 'hello') => intend(ECHO, { text });

let world: GateWorld;
beforeAll(async () => {
  // Whoever asks an owner that is not there waits a second for it, with each message: all that ingress asks are here.
  world = await GateWorld.start(['session-service', 'tool-gateway', 'mcp-broker', 'skill-store', 'plugin-registry']);
  await world.server({ slug: 'echo', transport: { type: 'inmemory', name: 'echo' } });
  await world.server({ slug: 'look', transport: { type: 'inmemory', name: 'echo' }, readOnly: ['echo'] });
});
afterAll(() => world?.stop());

/** What is answered for a run that there is not. */
const nothing = { code: 'TOOL_NOT_IN_SNAPSHOT', message: expect.any(String) };

verifies('R-NATS-1#1', 'gate run-known: a run that there is not', async () => {
  const { worker, attempt } = await world.run();
  const call = echo();
  await worker.store(attempt, 0, [call]);
  const runId = randomUUID();
  expect(await faultOf(worker.send(attempt, { step: 0, calls: [call], runId }))).toEqual(nothing);
  expect(await faultOf(worker.send(attempt, { step: 0, calls: [call], runId, originRunId: runId }))).toEqual(nothing);
  expect(codes(await worker.send(attempt, { step: 0, calls: [call] }))).toEqual(['completed']);
});

verifies('R-NATS-1#1', 'gate run-owner: another agent’s run, with the token it was given', async () => {
  const { worker, attempt } = await world.run();
  const thief = await world.agent();
  const call = echo();
  await worker.store(attempt, 0, [call]);
  expect(await faultOf(thief.send(attempt, { step: 0, calls: [call] }))).toEqual(nothing);
  expect(await faultOf(thief.store(attempt, 1, []))).toEqual(nothing);
  expect(await world.isClaimed(attempt, 0, call)).toBe(false);
});

verifies('R-NATS-1#1', 'gate run-session: a session of another agent’s, and another session of one’s own', async () => {
  const { worker, attempt } = await world.run();
  const other = await world.run();
  const own = await worker.start(await world.job(worker, { sceneId: 'elsewhere' }));
  const call = echo();
  await worker.store(attempt, 0, [call]);
  for (const { sessionId } of [other.attempt.ref, own.ref])
    expect(await faultOf(worker.send(attempt, { step: 0, calls: [call], sessionId }))).toEqual(nothing);
  expect(await world.isClaimed(attempt, 0, call)).toBe(false);
});

verifies('R-NATS-1#1', 'gate run-token: a token that this run never had', async () => {
  const { worker, attempt } = await world.run();
  const other = await world.run();
  const call = echo();
  await worker.store(attempt, 0, [call]);
  for (const token of [randomBytes(32).toString('base64url'), other.attempt.token])
    expect(await faultOf(worker.send(attempt, { step: 0, calls: [call], token }))).toEqual(nothing);
  expect(await world.isClaimed(attempt, 0, call)).toBe(false);
});

verifies('R-NATS-1#3', 'who a worker says it is, and for whom, is heard by nobody', async () => {
  const mallory = Buffer.from(JSON.stringify({ ...alice, id: 'user:mallory', display: 'Mallory' })).toString('base64url');
  const via = Buffer.from(JSON.stringify({ kind: 'token', id: 'mallory' })).toString('base64url');
  const worker = await world.agent({ rules: [{ decision: 'deny', tool: LOOK }] });
  worker.claims = { [HEADER.principal]: mallory, [HEADER.actor]: mallory, [HEADER.via]: via };
  const passing = await wiretap(world.system.connection);
  const attempt = await worker.start(await world.job(worker));
  const [call, denied, asked] = [echo(), intend(LOOK, { text: 'hello' }), intend('question', QUESTION)];
  const results = await worker.execute(attempt, 0, [call, denied, asked]);
  expect(codes(results)).toEqual(['completed', 'POLICY_DENIED', 'waiting']);
  await world.expectRefusal({ attempt, step: 0, call: denied, result: results[1] }, { code: 'POLICY_DENIED', gate: 'permission' });
  expect(await worker.finish(attempt, 'waiting')).toMatchObject({ status: 'suspended' });
  const seen = await passing.stop();
  // What it said itself passes by, and goes no further.
  const own = seen.filter(({ headers: sent }) => sent?.get(HEADER.actor) === mallory);
  expect(own.map(({ subject }) => subject.split('.').slice(4, 6).join('.'))).toEqual([
    'run.start',
    'run.step',
    'batch.execute',
    'run.finish',
  ]);
  const others = seen.filter((message) => !own.includes(message));
  const told = others.map((message) => `${message.string()} ${[...(message.headers ?? [])].flat(2).join(' ')}`);
  expect(told.filter((text) => /mallory/i.test(text) || text.includes(mallory) || text.includes(via))).toEqual([]);
  const dispatched = others.find(({ subject }) => subject.includes('.call.execute.'));
  expect(JSON.parse(Buffer.from(dispatched?.headers?.get(HEADER.principal) ?? '', 'base64url').toString())).toEqual(alice);
  expect(dispatched?.headers?.get(HEADER.actor)).toBe('');
  const { items } = await world.system.bus.call(sessionService.listInteractions, { runId: attempt.ref.runId });
  expect(items).toMatchObject([{ principal: { id: alice.id } }]);
  const calls = (await world.system.bus.call(toolGateway.listCalls, { runId: attempt.ref.runId })).items;
  expect(calls.map(({ principal }) => principal)).toEqual([alice.id, alice.id]);
});

verifies(
  'R-EXEC-1#1',
  'a batch goes from worker to gateway, is claimed, goes to the broker, is recorded and comes back, in this order',
  async () => {
    const { worker, attempt } = await world.run();
    const [first, next] = [echo('one'), echo('two')];
    await worker.store(attempt, 0, [first, next]);
    const trace = randomBytes(16).toString('hex');
    worker.claims = { [HEADER.traceparent]: `00-${trace}-${randomBytes(8).toString('hex')}-01` };
    const passing = await wiretap(world.system.connection);
    expect(codes(await worker.send(attempt, { step: 0, calls: [first, next] }))).toEqual(['completed', 'completed']);
    const seen = await passing.stop();
    const asked = seen.find(({ subject }) => subject.includes('.batch.execute.'));
    const operations = [first, next].map((call) => operationOf(attempt, 0, call));
    const hops = seen.flatMap((message) => {
      const { subject, headers: sent } = message;
      const operation = operations.findIndex((id) => subject.includes(id) || message.string().includes(id));
      if (message === asked) return ['worker to gateway'];
      if (subject === asked?.reply) return ['gateway to worker'];
      if (subject.startsWith('ambit.jrn.v1.op.')) return [`${subject.split('.').at(-1)} ${operation}`];
      if (!subject.includes('.call.execute.')) return [];
      expect(traceIdOf(sent?.get(HEADER.traceparent) ?? '')).toBe(trace);
      return [`gateway to broker ${operation}`];
    });
    expect(hops).toEqual([
      'worker to gateway',
      ...['claim 0', 'gateway to broker 0', 'outcome 0'],
      ...['claim 1', 'gateway to broker 1', 'outcome 1'],
      'gateway to worker',
    ]);
    // Each hop names the call it is about: by session, run and id in the claim, and by the operation, which is made of them, everywhere.
    const claims = seen.filter(({ subject }) => subject.endsWith('.claim')).map((message) => message.json());
    const { sessionId, runId } = attempt.ref;
    expect(claims).toEqual([first, next].map(({ callId }) => expect.objectContaining({ sessionId, runId, callId })));
    expect(asked?.json()).toMatchObject({ sessionId, runId, calls: [{ callId: first.callId }, { callId: next.callId }] });
  },
);

verifies('R-INGRESS-19#1', 'gate run-live: a run that has ended', async () => {
  const { worker, attempt } = await world.run();
  const [first, late] = [echo(), echo()];
  expect(codes(await worker.execute(attempt, 0, [first]))).toEqual(['completed']);
  await worker.store(attempt, 1, [late]);
  expect(await world.system.bus.call(sessionService.cancelRun, { id: attempt.ref.runId })).toEqual({ state: 'ended' });
  expect(await faultOf(worker.send(attempt, { step: 1, calls: [late] }))).toMatchObject({ code: 'TURN_ENDED' });
  expect(await world.isClaimed(attempt, 1, late)).toBe(false);
});

verifies('R-INGRESS-19#2', 'gate run-attempt: the token of an attempt before this one', async () => {
  const { worker, attempt } = await world.run();
  const call = echo();
  await worker.store(attempt, 0, [call]);
  const newer = await worker.start(attempt.ref);
  expect(await faultOf(worker.send(attempt, { step: 0, calls: [call] }))).toMatchObject({ code: 'STALE_INSTANCE' });
  expect(await world.isClaimed(attempt, 0, call)).toBe(false);
  expect(codes(await worker.send(newer, { step: 0, calls: [call] }))).toEqual(['completed']);
});

verifies('R-SNAP-1#3', 'gate fingerprint: another fingerprint than the run’s', async () => {
  const { worker, attempt } = await world.run();
  const other = await world.run({ servers: [] });
  const call = echo();
  await worker.store(attempt, 0, [call]);
  for (const fingerprint of [other.attempt.ref.fingerprint, sha256Hex('none')])
    expect(await faultOf(worker.send(attempt, { step: 0, calls: [call], fingerprint }))).toEqual(nothing);
  expect(await world.isClaimed(attempt, 0, call)).toBe(false);
});

verifies('R-EXEC-18#1', 'gate not-aborted: a cancel that came before the call', async () => {
  const { worker, attempt } = await world.run();
  const [call, other] = [echo(), echo()];
  const operationId = operationOf(attempt, 0, call);
  world.system.bus.signal(toolGateway.cancelOperation, { operationId, reason: 'changed my mind' }, { keys: { operationId } });
  await world.system.connection.flush();
  const [result, next] = await worker.execute(attempt, 0, [call, other]);
  await world.expectRefusal({ attempt, step: 0, call, result }, { code: 'CANCELLED', gate: 'not-aborted', status: 'cancelled' });
  expect(next).toMatchObject({ status: 'completed' });
});

verifies(['R-TOOL-9#2', 'R-TOOL-9#5', 'R-EXEC-4#3'], 'gate mapping: a tool that this session was not given', async () => {
  // The mode would ask: an unknown tool never gets that far.
  const { worker, attempt } = await world.run({ mode: 'default', servers: [] });
  expect((await world.run()).attempt.ref.fingerprint).not.toBe(attempt.ref.fingerprint);
  for (const [step, name] of [ECHO, 'mcp__echo__nothing', 'nothing'].entries()) {
    const call = intend(name, { text: 'hello' });
    const [result] = await worker.execute(attempt, step, [call]);
    await world.expectRefusal({ attempt, step, call, result }, { code: 'TOOL_NOT_IN_SNAPSHOT', gate: 'mapping' });
  }
  expect((await world.system.bus.call(sessionService.listInteractions, { runId: attempt.ref.runId })).items).toEqual([]);
});

const builtin = (record: SnapshotRecord, more: Partial<SnapshotRecord['tools'][number]>): SnapshotRecord => {
  const model = record.tools.find(({ name }) => name === 'update_plan');
  if (model === undefined) throw new Error('there is no tool to make another of');
  return { ...record, tools: [...record.tools, { ...model, inputSchema: { type: 'object' }, ...more }] };
};

verifies(
  ['R-TOOL-2#3', 'R-TOOL-2#4', 'R-TOOL-4#3'],
  'gate exposure: a tool that is not for models, forged and in a record that lists it',
  async () => {
    const forger = await world.run();
    const listed = await world.system.bus.call(toolGateway.listTools, { purpose: 'ingress' });
    for (const [step, name] of ['tape_info', 'tape_anchors', 'tape_handoff'].entries()) {
      expect(listed.tools.map((tool) => tool.name)).not.toContain(name);
      const call = intend(name, { sessionId: forger.attempt.ref.sessionId });
      const [result] = await forger.worker.execute(forger.attempt, step, [call]);
      await world.expectRefusal({ attempt: forger.attempt, step, call, result }, { code: 'TOOL_NOT_IN_SNAPSHOT', gate: 'mapping' });
    }
    const worker = await world.agent();
    const job = await world.withSnapshot(await world.job(worker), (record) =>
      builtin(
        builtin(record, {
          name: 'tape_info',
          qualifiedName: 'tape_info',
          exposure: 'diagnostic',
          target: { kind: 'builtin', id: 'tape_info', version: 1 },
        }),
        {
          name: 'tape_handoff',
          qualifiedName: 'tape_handoff',
          exposure: 'runtime-only',
          target: { kind: 'builtin', id: 'tape_handoff', version: 1 },
        },
      ),
    );
    const attempt = await worker.start(job);
    for (const [step, name] of ['tape_info', 'tape_handoff'].entries()) {
      const call = intend(name);
      const [result] = await worker.execute(attempt, step, [call]);
      await world.expectRefusal({ attempt, step, call, result }, { code: 'NOT_MODEL_CALLABLE', gate: 'exposure' });
    }
    // Diagnostic tools answer an administrator, runtime-only ones nobody.
    const { sessionId } = attempt.ref;
    expect(await world.system.bus.call(toolGateway.askTool, { sessionId, name: 'tape_info' })).toMatchObject({
      content: expect.anything(),
    });
    expect(await faultOf(world.system.bus.call(toolGateway.askTool, { sessionId, name: 'tape_handoff' }))).toEqual(nothing);
  },
);

const BAD = {
  'no JSON': '{"text":',
  'an array': '[{"text":"hello"}]',
  'a text': '"hello"',
  null: 'null',
  '65 levels': `${'{"a":'.repeat(65)}1${'}'.repeat(65)}`,
  'doubled keys': '{"text":"one","text":"two"}',
  __proto__: '{"text":"hello","__proto__":{"admin":true}}',
};

verifies(['R-TOOL-13#1', 'R-TOOL-13#3'], 'gate arguments: what is not one unambiguous JSON object', async () => {
  const { worker, attempt } = await world.run();
  let step = 0;
  // `update_plan` and `question` beside a server's tool: the rule is one for tools of every kind.
  for (const name of [ECHO, 'tape_search', 'question'])
    for (const text of Object.values(BAD)) {
      const call = intend(name, text);
      const [result] = await worker.execute(attempt, step, [call]);
      await world.expectRefusal({ attempt, step, call, result }, { code: 'BAD_ARGUMENTS', gate: 'arguments' });
      step += 1;
    }
});

verifies('R-TOOL-13#1', 'gate schema: arguments that do not fit the tool', async () => {
  const { worker, attempt } = await world.run();
  for (const [step, given] of [{}, { text: 7 }, { txt: 'hello' }].entries()) {
    const call = intend(ECHO, given);
    const [result] = await worker.execute(attempt, step, [call]);
    await world.expectRefusal({ attempt, step, call, result }, { code: 'BAD_ARGUMENTS', gate: 'schema' });
  }
});

verifies('R-TOOL-13#2', 'what is nested or large beyond the bounds is refused before it is read', async () => {
  const { worker, attempt } = await world.run();
  const deep = intend(ECHO, BAD['65 levels']);
  expect(codes(await worker.execute(attempt, 0, [deep]))).toEqual(['BAD_ARGUMENTS']);
  const large = echo('x'.repeat(513 * 1024));
  expect(await faultOf(worker.store(attempt, 1, [large]))).toMatchObject({ code: 'TOO_LARGE' });
  expect(await faultOf(worker.send(attempt, { step: 1, calls: [large] }))).toMatchObject({ code: 'TOO_LARGE' });
  // What the server of the bus itself takes no more; the worker goes on.
  const huge = echo('x'.repeat(10 * 1024 * 1024));
  await expect(worker.send(attempt, { step: 1, calls: [huge] })).rejects.toThrow();
  expect(codes(await worker.execute(attempt, 1, [echo()]))).toEqual(['completed']);
});

verifies('R-TOOL-13#1', 'only what the stored step holds is executed', async () => {
  const { worker, attempt } = await world.run();
  const call = echo('stored');
  await worker.store(attempt, 0, [call]);
  const wrong = [
    { step: 1, calls: [call] },
    { step: 0, calls: [{ ...call, arguments: '{"text":"another"}' }] },
    { step: 0, calls: [{ ...call, name: LOOK }] },
    { step: 0, calls: [echo('stored')] },
    { step: 0, calls: [call, call] },
  ];
  for (const batch of wrong) expect(await faultOf(worker.send(attempt, batch))).toMatchObject({ code: 'BAD_ARGUMENTS' });
  expect(await world.isClaimed(attempt, 0, call)).toBe(false);
});

const QUESTION = { question: 'Which?', options: [{ label: 'One' }, { label: 'Two' }] };

verifies(
  ['R-EXEC-5#2', 'R-EXEC-7#2'],
  'gate question: asked of a person and never dispatched; a malformed one pauses nothing',
  async () => {
    const { worker, attempt } = await world.run();
    for (const [step, given] of [
      { ...QUESTION, surprise: true },
      { ...QUESTION, options: [] },
      { ...QUESTION, header: 'x'.repeat(31) },
    ].entries()) {
      const call = intend('question', given);
      const [result] = await worker.execute(attempt, step, [call]);
      await world.expectRefusal({ attempt, step, call, result }, { code: 'QUESTION_INVALID', gate: 'question' });
    }
    const call = intend('question', QUESTION);
    expect(codes(await worker.execute(attempt, 3, [call]))).toEqual(['waiting']);
    expect(await world.isClaimed(attempt, 3, call)).toBe(false);
    expect((await world.system.bus.call(sessionService.listInteractions, { runId: attempt.ref.runId })).items).toMatchObject([
      { kind: 'question', callId: call.callId, order: 0, status: 'pending' },
    ]);
  },
);

verifies('R-TOOL-11#5', 'gate target: a built-in whose version moved since the record', async () => {
  const worker = await world.agent();
  const job = await world.withSnapshot(await world.job(worker), (record) => ({
    ...record,
    tools: record.tools.map((tool) =>
      tool.name === 'update_plan' ? { ...tool, target: { kind: 'builtin', id: 'update_plan', version: 99 } } : tool,
    ),
  }));
  const attempt = await worker.start(job);
  const call = intend('update_plan', { plan: [{ step: 'go', status: 'pending' }] });
  const [result] = await worker.execute(attempt, 0, [call]);
  await world.expectRefusal({ attempt, step: 0, call, result }, { code: 'TARGET_CHANGED', gate: 'target' });
});

verifies('R-TOOL-11#6', 'gate target-there: a built-in that this release has no more', async () => {
  const worker = await world.agent();
  const job = await world.withSnapshot(await world.job(worker), (record) =>
    builtin(record, { name: 'forgotten', qualifiedName: 'forgotten', target: { kind: 'builtin', id: 'forgotten', version: 1 } }),
  );
  const attempt = await worker.start(job);
  const call = intend('forgotten');
  const [result] = await worker.execute(attempt, 0, [call]);
  await world.expectRefusal({ attempt, step: 0, call, result }, { code: 'TOOL_GONE', gate: 'target-there' });
});

verifies(
  ['R-PERM-12#2', 'R-PERM-12#3'],
  'gate policy-known: a policy that cannot be read allows nothing, and says so as what may pass',
  async () => {
    const worker = await world.agent();
    const job = await world.job(worker);
    await world.sql('UPDATE "session_service"."agent" SET "policy" = $2 WHERE "id" = $1', [worker.agentId, '{"mode":"anything goes"}']);
    const attempt = await worker.start(job);
    const call = echo();
    const [result] = await worker.execute(attempt, 0, [call]);
    await world.expectRefusal({ attempt, step: 0, call, result }, { code: 'UNAVAILABLE', gate: 'policy-known' });
  },
);

verifies('R-PERM-12#1', 'of an agent whose policy cannot be read no server’s tool is listed', async () => {
  const worker = await world.agent();
  const before = await world.job(worker);
  await worker.finish(await worker.start(before), 'cancelled');
  await world.sql('UPDATE "session_service"."agent" SET "policy" = $2 WHERE "id" = $1', [worker.agentId, '{"mode":"anything goes"}']);
  const job = await world.job(worker);
  const toolsOf = async (fingerprint: string): Promise<string[]> => {
    const { text } = await world.system.bus.call(sessionService.readSnapshot, { fingerprint });
    return (JSON.parse(text) as SnapshotRecord).tools.map(({ name }) => name);
  };
  expect(await toolsOf(before.fingerprint)).toEqual(expect.arrayContaining([ECHO, LOOK]));
  expect((await toolsOf(job.fingerprint)).filter((name) => name.startsWith('mcp__'))).toEqual([]);
});

verifies('R-EXEC-4#1', 'of a gate and its neighbour that would both refuse, the earlier one answers', {
  timeoutMs: 240_000,
  shows: async () => {
    // Every neighbour has its case: here, beside the plugin that it takes, or with the next that can refuse too.
    const cases = new Set([...PAIRS.map(({ gates }) => gates), ...PLUGIN_PAIRS].map((gates) => gates.join()));
    const neighbours = GATES.slice(1).map(({ name }, index) => {
      const first = GATES[index]?.name ?? '';
      return [first, EXCLUSIVE[first]?.next ?? name].join();
    });
    expect([...cases].sort()).toEqual(neighbours.sort());
    const runGates = new Set(GATES.filter(({ name, step }) => step === 1 && name !== 'not-aborted').map(({ name }) => name));
    const said: object[] = [];
    for (let at = 0; at < PAIRS.length; at += AT_ONCE)
      said.push(...(await Promise.all(PAIRS.slice(at, at + AT_ONCE).map(async ({ gates, ask }) => ({ gates, ...(await ask(world)) })))));
    expect(said).toEqual(PAIRS.map(({ gates, code }) => ({ gates, code, ...(runGates.has(gates[0]) ? {} : { gate: gates[0] }) })));
  },
});

verifies('R-SESSION-3#3', 'gate agent-enabled: an agent that was switched off', async () => {
  const { worker, attempt } = await world.run();
  expect(codes(await worker.execute(attempt, 0, [echo()]))).toEqual(['completed']);
  const call = echo();
  await worker.store(attempt, 1, [call]);
  await world.put(worker.agentId, {}, { enabled: false });
  const [result] = await worker.send(attempt, { step: 1, calls: [call] });
  await world.expectRefusal({ attempt, step: 1, call, result }, { code: 'AGENT_DISABLED', gate: 'agent-enabled' });
});

verifies('R-SESSION-3#3', 'gate tool-enabled: a built-in that the policy disables now', async () => {
  const { worker, attempt } = await world.run();
  const plan = () => intend('update_plan', { plan: [{ step: 'go', status: 'pending' }] });
  expect(codes(await worker.execute(attempt, 0, [plan()]))).toEqual(['completed']);
  await world.put(worker.agentId, { disabledTools: ['update_plan', 'tape_search'] });
  const call = plan();
  const [result, search] = await worker.execute(attempt, 1, [call, intend('tape_search', { query: 'hello' })]);
  await world.expectRefusal({ attempt, step: 1, call, result }, { code: 'TOOL_DISABLED', gate: 'tool-enabled' });
  expect(search).toMatchObject({ status: 'completed' });
});

verifies(['R-SESSION-3#3', 'R-EXEC-2#2'], 'gate server-allowed: a server that the policy names no more', async () => {
  const { worker, attempt } = await world.run();
  expect(codes(await worker.execute(attempt, 0, [echo()]))).toEqual(['completed']);
  await world.put(worker.agentId, { servers: ['look'] });
  const call = echo();
  const [result, look] = await worker.execute(attempt, 1, [call, intend(LOOK, { text: 'hello' })]);
  await world.expectRefusal({ attempt, step: 1, call, result }, { code: 'SERVER_NOT_ALLOWED', gate: 'server-allowed' });
  expect(look).toMatchObject({ status: 'completed' });
});

verifies('R-SUB-2#1', 'gate delegation: a record that lists delegation in an agent whose policy has none', async () => {
  const worker = await world.agent();
  const job = await world.withSnapshot(await world.job(worker), (record) =>
    builtin(record, { name: 'delegate', qualifiedName: 'delegate', access: 'delegation' }),
  );
  const attempt = await worker.start(job);
  const call = intend('delegate', { plan: [{ step: 'go', status: 'pending' }] });
  const [result] = await worker.execute(attempt, 0, [call]);
  await world.expectRefusal({ attempt, step: 0, call, result }, { code: 'SUBAGENT_UNAVAILABLE', gate: 'delegation' });
});

verifies('R-PERM-1#5', 'gate permission: deny beats ask beats allow, and a rule looks at the arguments', async () => {
  const { worker, attempt } = await world.run({
    mode: 'default',
    rules: [
      { decision: 'allow', tool: 'mcp__echo__*', when: { text: ['fine', 'asked', 'denied'] } },
      { decision: 'ask', tool: '*echo', when: { text: ['asked', 'denied'] } },
      { decision: 'deny', tool: ECHO, when: { text: 'denied' } },
    ],
  });
  const [fine, asked, denied, other] = [echo('fine'), echo('asked'), echo('denied'), echo('no rule')];
  const results = await worker.execute(attempt, 0, [fine, asked, denied, other]);
  expect(codes(results)).toEqual(['completed', 'waiting', 'POLICY_DENIED', 'waiting']);
  await world.expectRefusal({ attempt, step: 0, call: denied, result: results[2] }, { code: 'POLICY_DENIED', gate: 'permission' });
  for (const call of [asked, other]) expect(await world.isClaimed(attempt, 0, call)).toBe(false);
});

verifies(['R-PERM-7#1', 'R-PERM-1#4'], 'gate none: what changes something asks by default, and the narrower mode holds', async () => {
  const table = [
    { mode: 'default', writes: 'waiting', reads: 'completed' },
    { mode: 'auto_approve', writes: 'completed', reads: 'completed' },
    { mode: 'full_access', writes: 'completed', reads: 'completed' },
    { mode: undefined, writes: 'waiting', reads: 'completed' },
  ] as const;
  for (const { mode, writes, reads } of table) {
    const worker = await world.agent({ mode });
    const attempt = await worker.start(await world.job(worker));
    const plan = intend('update_plan', { plan: [{ step: 'go', status: 'pending' }] });
    expect({ mode, is: codes(await worker.execute(attempt, 0, [echo(), intend(LOOK, { text: 'hello' }), plan])) }).toEqual({
      mode,
      is: [writes, reads, 'completed'],
    });
  }
  const careful = await world.agent({ mode: 'full_access' });
  const attempt = await careful.start(await world.job(careful, { mode: 'default' }));
  expect(codes(await careful.execute(attempt, 0, [echo()]))).toEqual(['waiting']);
});

verifies('R-EXEC-16#1', 'gate call-limit: the first call beyond a run’s number, also when it is an approved one', async () => {
  const { worker, attempt } = await world.run({
    rules: [{ decision: 'ask', tool: ECHO, when: { text: 'ask' } }],
    limits: { callsPerRun: 3 },
  });
  const [one, two, three, approved, five] = [echo(), echo(), echo(), echo('ask'), echo()];
  expect(codes(await worker.execute(attempt, 0, [one, two]))).toEqual(['completed', 'completed']);
  const results = await worker.execute(attempt, 1, [three, approved, five]);
  expect(codes(results)).toEqual(['completed', 'waiting', 'CALL_LIMIT']);
  await world.expectRefusal({ attempt, step: 1, call: five, result: results[2] }, { code: 'CALL_LIMIT', gate: 'call-limit' });
  expect(await worker.finish(attempt, 'waiting')).toMatchObject({ status: 'suspended' });
  const { items } = await world.system.bus.call(sessionService.listInteractions, { runId: attempt.ref.runId });
  await world.system.bus.call(sessionService.decideInteraction, { id: items[0]?.id ?? '', decision: 'allow', by: alice });
  expect(await world.gateOf(attempt, 1, approved)).toBe('call-limit');
  expect(await world.isClaimed(attempt, 1, approved)).toBe(false);
  // The resumed run is told, and its model goes on.
  const resumed = await worker.begin();
  expect(resumed.started.messages.at(-1)).toMatchObject({ role: 'tool' });
  expect(JSON.stringify(resumed.started.messages)).toContain('CALL_LIMIT');
});

verifies('R-NATS-9#2', 'gate rate-limit: too many calls in a minute, which says when to come back', async () => {
  const { worker, attempt } = await world.run({ limits: { callsPerMinute: 2 } });
  const calls = [echo(), echo(), echo()];
  const results = await worker.execute(attempt, 0, calls);
  expect(codes(results)).toEqual(['completed', 'completed', 'RATE_LIMITED']);
  expect(results[2]?.fault?.data).toMatchObject({ limit: 2, retryAfterMs: expect.any(Number) });
  const call = calls[2];
  if (call !== undefined)
    await world.expectRefusal({ attempt, step: 0, call, result: results[2] }, { code: 'RATE_LIMITED', gate: 'rate-limit' });
});
