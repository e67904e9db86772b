// Long because everything about subagents is tried in one start of the system.
import {
  journalSubject,
  Outcome,
  sessionService,
  subject,
  toolGateway,
  worker as workerContracts,
  type CallResult,
  type Delegation,
  type Rpc,
} from '@ambit/contracts';
import { until, withClient } from '@ambit/testing';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import { randomBytes, randomUUID } from 'node:crypto';
import { HandRun, intend, type HandWorker } from '../system/by-hand.js';
import { claimsOf, factsOf } from '../system/facts.js';
import { http } from '../system/http.js';
import { bob, Scene } from '../system/scene.js';
import { putSkill } from '../system/skills.js';
import { verifies } from '../verifies.js';

jest.setTimeout(180_000);

let scene: Scene;
beforeAll(async () => {
  scene = await Scene.start();
  await scene.server('asking');
  await scene.server('other');
});
afterAll(() => scene?.stop());

type Policy = NonNullable<Parameters<Scene['agent']>[0]>;
const TOOL = 'subagent_orchestrator';
const FREE: NonNullable<Policy['rules']> = [
  { decision: 'allow', tool: TOOL },
  { decision: 'allow', tool: 'mcp__other__*' },
  { decision: 'ask', tool: 'mcp__asking__*' },
];

interface Parent {
  readonly agentId: string;
  readonly worker: HandWorker;
  readonly run: HandRun;
}
async function parentOf(policy: Policy = {}, more: Parameters<Scene['send']>[1] = {}): Promise<Parent> {
  const agent = await scene.agent({ subagents: { helper: { agent: 'self' } }, rules: FREE, ...policy });
  const worker = await scene.worker(agent);
  await scene.send(agent, more);
  return { agentId: agent.id, worker, run: await worker.begin() };
}

const task = (slotId = 'helper', prompt = 'Look into it.') => ({ slotId, title: prompt.slice(0, 40), prompt });
const runs = (more: object = {}) => intend(TOOL, { operation: 'run', tasks: [task()], ...more });
const look = (operation: string, more: object = {}) => intend(TOOL, { operation, ...more });
const codes = (results: readonly CallResult[]): string[] => results.map(({ fault, status }) => fault?.code ?? status);
const dataOf = (result: CallResult | undefined) =>
  result?.structuredContent as { runId: string; status: string; tasks: { status: string; summary: string | null }[] };
/** As the gateway asks for it, with the call already claimed. */
const start = ({ ref: { runId } }: HandRun) =>
  scene.bus.call(sessionService.startDelegation, { runId, operationId: randomBytes(32).toString('hex'), tasks: [task()] });
const childrenOf = async (sessionId: string) => (await scene.bus.call(sessionService.listSessions, { parentSessionId: sessionId })).items;
const delegationsOf = async (sessionId: string): Promise<Delegation[]> =>
  (await scene.bus.call(sessionService.listDelegations, { sessionId })).items;
const statusOf = async (runId: string) => (await scene.bus.call(sessionService.getRun, { id: runId })).status;
const allow = (id: string | undefined) => scene.bus.call(sessionService.decideInteraction, { id: id ?? '', decision: 'allow', by: bob });

async function ended(child: HandRun, text = 'Done.'): Promise<void> {
  const { step } = await child.tape();
  await child.worker.call(sessionService.stepRun, { ...child.ref, step, role: 'assistant', content: [{ type: 'text', text }], calls: [] });
  await child.finish('completed');
}

/** Resolves when nothing is owed any more for sessions that ended. */
async function settled(): Promise<void> {
  await until(async () => {
    let owed = 1;
    await withClient(scene.system.databaseUrl, async (client) => {
      owed = Number((await client.query('SELECT count(*)::int AS n FROM "session_service"."aftercare"')).rows[0]?.n);
    });
    return owed === 0;
  }, 30_000);
}

async function sql(text: string, values: readonly unknown[]): Promise<void> {
  await withClient(scene.system.databaseUrl, async (client) => void (await client.query(text, [...values])));
}

/** Why the orchestrator is not there. */
async function reason(of: { readonly agentId?: string; readonly sessionId?: string }): Promise<string | undefined> {
  const { reasons } = await scene.bus.call(sessionService.explain, { ...of, kind: 'tool', name: TOOL });
  const found = reasons.find(({ name }) => name === TOOL);
  return found?.included === true ? 'included' : found?.code === 'SUBAGENT_UNAVAILABLE' ? found.detail : found?.code;
}

verifies(
  ['R-SUB-1#1', 'R-SUB-1#2', 'R-SUB-1#3', 'R-SUB-1#4', 'R-SUB-1#5', 'R-SUB-1#6', 'R-SUB-2#3'],
  'who may delegate, to whom, and why not',
  async () => {
    const slots = (subagents: Policy['subagents']) => scene.agent({ subagents: subagents ?? {} }).then(({ id }) => ({ agentId: id }));
    expect(await reason(await slots({}))).toBe('policy_disabled');
    expect(await reason(await slots({ gone: { agent: 'nobody-there' } }))).toBe('no_valid_slots');
    const acp = await scene.bus.call(sessionService.putAgent, {
      id: `acp-${randomUUID().slice(0, 8)}`,
      kind: 'acp',
      policy: { subagents: { me: { agent: 'self' } } },
    });
    expect(await reason({ agentId: acp.id })).toBe('unsupported_session');

    const target = await scene.agent();
    const only = await slots({ it: { agent: target.id } });
    expect(await reason(only)).toBe('included');
    await scene.bus.call(sessionService.deleteAgent, { id: target.id });
    expect(await reason(only)).toBe('no_valid_slots');

    const id = `listed-${randomUUID().slice(0, 8)}`;
    const list = ['a', 'b', ' b ', 'c', 'd', '', 'e', 'f'].map((name, index) => ({ name, agent: 'self', description: String(index) }));
    const { status } = await http(scene.system, `PUT /v1/agent/${id}`, { body: { policy: { subagents: list } } });
    expect(status).toBe(200);
    await scene.bus.call(sessionService.ensurePool, { agentId: id, pool: 'shared' });
    const worker = await scene.worker({ id });
    await scene.send({ id });
    const { ref } = await worker.take();
    const snapshot = (await worker.snapshot(ref.fingerprint)) as unknown as { subagents: { name: string; description: string }[] };
    expect(snapshot.subagents.map(({ name, description }) => `${name}${description}`)).toEqual(['a0', 'b1', 'c3', 'd4', 'e6']);

    // A child sees no orchestrator, and forging the call is no help to it; nor where its snapshot has one.
    const { worker: own, run } = await parentOf();
    const [started] = await run.use(runs({ background: true }));
    expect(dataOf(started).status).toBe('running');
    const child = await own.begin();
    expect(await reason({ sessionId: child.ref.sessionId })).toBe('unsupported_session');
    expect(codes(await child.use(runs()))).toEqual(['TOOL_NOT_IN_SNAPSHOT']);
    const grandchild = await parentOf();
    await sql('UPDATE "session_service"."session" SET "parent_session_id" = $2 WHERE "id" = $1', [
      grandchild.run.ref.sessionId,
      child.ref.sessionId,
    ]);
    const refused = await grandchild.run.use(runs());
    expect(refused).toMatchObject([
      { status: 'refused', fault: { code: 'SUBAGENT_UNAVAILABLE', data: { reason: 'unsupported_session' } } },
    ]);
    await expect(
      scene.bus.call(sessionService.receiveMessage, {
        principal: bob,
        sessionId: child.ref.sessionId,
        content: 'Hello.',
        idempotencyKey: randomUUID(),
      }),
    ).rejects.toMatchObject({ code: 'SESSION_READ_ONLY' });
  },
);

verifies(['R-SUB-2#1', 'R-SUB-2#2', 'R-SUB-2#4'], 'a call decides by policy, slots and agent as they are then', async () => {
  const put = ({ agentId }: Parent, policy: Policy) =>
    scene.bus.call(sessionService.putAgent, { id: agentId, policy: { rules: FREE, ...policy } });
  const unavailable = (why: string) => [{ status: 'refused', fault: { code: 'SUBAGENT_UNAVAILABLE', data: { reason: why } } }];
  const off = await parentOf();
  await put(off, { subagents: {} });
  expect(await off.run.use(runs())).toMatchObject(unavailable('policy_disabled'));
  await expect(start(off.run)).rejects.toMatchObject({ code: 'SUBAGENT_UNAVAILABLE', data: { reason: 'policy_disabled' } });
  const slot = await parentOf();
  await put(slot, { subagents: { other: { agent: 'self' } } });
  expect(await slot.run.use(runs())).toMatchObject(unavailable('no_valid_slots'));
  const moved = await parentOf();
  const stored = await moved.run.step([runs()]);
  const target = await scene.agent();
  await scene.bus.call(sessionService.transferSession, { id: moved.run.ref.sessionId, agentId: target.id, whileBusy: 'cancel' });
  const reply = await moved.worker.ask(toolGateway.executeBatch, { ...moved.run.ref, ...stored });
  expect(reply.body).toMatchObject({ code: expect.stringMatching(/^(TOOL_NOT_IN_SNAPSHOT|TURN_ENDED)$/) });
  for (const { run } of [off, slot, moved]) {
    expect(await childrenOf(run.ref.sessionId)).toEqual([]);
    expect(await claimsOf(scene.system.connection, run.ref)).toBe(0);
  }
});

verifies(['R-SUB-3#1', 'R-SUB-3#2', 'R-SUB-3#3'], 'delegated work is bounded, and belongs to who started it', async () => {
  const { worker, run } = await parentOf();
  const five = Array.from({ length: 5 }, (_unused, index) => task('helper', `Part ${index}.`));
  const refused = await run.use(
    runs({ tasks: [...five, task()] }),
    runs({ tasks: [] }),
    runs({ timeoutMs: 30 * 60_000 + 1 }),
    runs({ timeoutMs: 999 }),
    look('wait', { runId: randomUUID(), timeoutMs: 5 * 60_000 + 1 }),
  );
  expect(codes(refused)).toEqual(['BAD_ARGUMENTS', 'BAD_ARGUMENTS', 'BAD_ARGUMENTS', 'TOOL_FAILED', 'TOOL_FAILED']);
  expect(await childrenOf(run.ref.sessionId)).toEqual([]);

  // A chain: one child at a time, each with the result before it; a summary is the first 2,000 characters.
  const chained = run.use(runs({ mode: 'chain', tasks: five.slice(0, 2), timeoutMs: 30 * 60_000 }));
  const first = await worker.begin();
  expect(JSON.stringify(first.opened.messages)).toContain('Part 0.');
  await ended(first, 'y'.repeat(3_000));
  const second = await worker.begin();
  expect(JSON.stringify(second.opened.messages)).toContain('y'.repeat(3_000));
  await ended(second, 'And that is all.');
  const [chain] = await chained;
  expect(dataOf(chain)).toMatchObject({ status: 'completed', tasks: [{ summary: 'y'.repeat(2_000) }, { summary: 'And that is all.' }] });

  // The shortest time is over before anybody works on it.
  const [late] = await run.use(runs({ timeoutMs: 1_000 }));
  expect(dataOf(late)).toMatchObject({ status: 'timed_out', tasks: [{ status: 'timed_out' }] });

  const started = await run.use(
    runs({ tasks: five, background: true }),
    runs({ background: true }),
    runs({ background: true }),
    runs({ background: true }),
  );
  expect(codes(started)).toEqual(['completed', 'completed', 'completed', 'DELEGATION_LIMIT']);
  const runId = dataOf(started[0]).runId;
  await expect(start(run)).rejects.toMatchObject({ code: 'DELEGATION_LIMIT', data: { limit: 3 } });
  const other = await parentOf();
  await expect(scene.bus.call(sessionService.getDelegation, { sessionId: other.run.ref.sessionId, id: runId })).rejects.toMatchObject({
    code: 'DELEGATION_UNKNOWN',
  });
  const foreign = await other.run.use(...['info', 'log', 'wait', 'kill'].map((operation) => look(operation, { runId })));
  for (const result of foreign) expect(JSON.stringify(result.content)).toContain('run not found');
  const [listed, info, killed] = await run.use(look('list'), look('info', { runId }), look('kill', { runId }));
  expect((listed?.structuredContent as { runs: { status: string }[] }).runs.map(({ status }) => status)).toEqual([
    'running',
    'running',
    'running',
    'timed_out',
    'completed',
  ]);
  expect(dataOf(info).tasks).toHaveLength(5);
  expect(dataOf(killed)).toMatchObject({ status: 'cancelled' });
  const [again, log] = await run.use(runs({ background: true }), look('log', { runId: dataOf(chain).runId, task: 1 }));
  expect(again?.status).toBe('completed');
  expect(JSON.stringify(log?.content)).toContain('And that is all.');
});

verifies(
  ['R-SUB-3#4', 'R-SESSION-5#1', 'R-SESSION-5#2', 'R-SESSION-5#3'],
  'a parent that is cancelled or deleted takes its children and their calls along',
  async () => {
    for (const how of ['cancel', 'delete']) {
      const name = randomUUID();
      const { worker, run } = await parentOf();
      const delegated = run.use(runs()).catch(() => undefined);
      const child = await worker.begin();
      const stored = await child.step([intend('mcp__other__hold', { name })]);
      const batch = child.batch(stored).catch(() => undefined);
      await scene.counting.held(name);
      const outcomes = scene.system.connection.subscribe(journalSubject.operationsOf(child.ref.originRunId));
      await scene.system.connection.flush();
      const closed = (async () => {
        for await (const message of outcomes) if (message.subject.endsWith('.outcome')) return Outcome.parse(message.json()).status;
        return 'none';
      })();
      if (how === 'cancel') await scene.bus.call(sessionService.cancelRun, { id: run.ref.runId });
      else await scene.bus.call(sessionService.deleteSession, { id: run.ref.sessionId });
      expect(await closed).toMatch(/^(cancelled|indeterminate)$/);
      outcomes.unsubscribe();
      await Promise.all([delegated, batch]);
      scene.counting.release(name);
      if (how === 'cancel') {
        expect(await statusOf(child.ref.runId)).toBe('cancelled');
        expect(await delegationsOf(run.ref.sessionId)).toMatchObject([{ status: 'cancelled', tasks: [{ status: 'cancelled' }] }]);
        continue;
      }
      await expect(statusOf(child.ref.runId)).rejects.toMatchObject({ code: 'RUN_UNKNOWN' });
      expect(await childrenOf(run.ref.sessionId)).toEqual([]);
      expect((await scene.bus.call(sessionService.listSnapshots, { sessionId: child.ref.sessionId })).items).toEqual([]);
      expect((await worker.ask(sessionService.startRun, child.ref)).body).toMatchObject({ code: 'TOOL_NOT_IN_SNAPSHOT' });
      await settled();
    }
  },
);

verifies(
  ['R-SUB-4#1', 'R-SUB-4#2', 'R-SUB-4#3'],
  'each delegation has a consent of its own, a lost one is not called undone, and a child’s decision can be taken',
  async () => {
    const asking: Policy = { rules: [{ decision: 'ask', tool: TOOL, when: { operation: 'run' } }, ...FREE.slice(1)], mode: 'full_access' };
    const { worker, run } = await parentOf(asking);
    expect(codes(await run.use(runs({ background: true }), runs({ background: true })))).toEqual(['waiting', 'waiting']);
    await run.finish('waiting');
    const [one, two] = await scene.pending(run.ref.sessionId);
    expect([one?.kind, two?.kind]).toEqual(['delegation', 'delegation']);
    await allow(one?.id);
    const child = await worker.begin();
    expect(await childrenOf(run.ref.sessionId)).toHaveLength(1);
    expect((await scene.pending(run.ref.sessionId)).map(({ id }) => id)).toEqual([two?.id]);
    expect(await claimsOf(scene.system.connection, run.ref)).toBe(1);
    await scene.bus.call(sessionService.decideInteraction, { id: two?.id ?? '', decision: 'deny', by: bob });
    expect(await childrenOf(run.ref.sessionId)).toHaveLength(1);

    // The child waits for a person, and goes on with the answer.
    expect(await child.use(intend('mcp__asking__count', { name: randomUUID() }))).toMatchObject([{ status: 'waiting' }]);
    await child.finish('waiting');
    expect(await delegationsOf(run.ref.sessionId)).toMatchObject([{ status: 'running', tasks: [{ status: 'waiting' }] }]);
    await allow((await scene.pending(child.ref.sessionId))[0]?.id);
    const taken = [await worker.begin(), await worker.begin()];
    const resumed = taken.find(({ ref }) => ref.sessionId === child.ref.sessionId);
    expect(resumed?.opened.messages.at(-1)).toMatchObject({ role: 'tool', results: [{ status: 'completed' }] });
    if (resumed !== undefined) await ended(resumed);
    expect(await delegationsOf(run.ref.sessionId)).toMatchObject([{ status: 'completed' }]);

    // The record of dispatch stands, and the gateway dies before it is delivered.
    const lost = await parentOf();
    const stored = await lost.run.step([runs()]);
    void lost.run.batch(stored).catch(() => undefined);
    await lost.worker.begin();
    const gateway = scene.system.process('tool-gateway');
    await gateway.kill();
    await gateway.start();
    expect(codes(await lost.run.batch(stored))).toEqual(['INDETERMINATE']);
    const facts = await factsOf(scene.system.connection, lost.run.ref, { step: stored.step, callId: stored.calls[0]?.callId ?? '' });
    expect(facts).toMatchObject({ claim: { tool: TOOL }, outcome: { status: 'indeterminate' } });
  },
);

/** A worker that brings a tool for commands and one for files, both answered by hand. */
async function withTools(worker: HandWorker): Promise<string> {
  const workerId = randomUUID();
  const answer = (contract: Rpc, of: (body: { tool: string; arguments: Record<string, string> }) => object): void => {
    const keys = { agentId: worker.agentId, workerId };
    worker.connection.subscribe(subject(contract as typeof workerContracts.callTool, keys), {
      callback: (_error, message) => void message.respond(JSON.stringify(of(message.json()))),
    });
  };
  answer(workerContracts.prepareTool, ({ tool, arguments: input }) =>
    tool === 'exec' ? { argv: (input['command'] ?? '').split(' ') } : { paths: [input['path'] ?? ''] },
  );
  answer(workerContracts.callTool, () => ({ content: [{ type: 'text', text: 'ok' }], isError: false }));
  const tool = (name: string, access: 'command' | 'file', field: string) => ({
    ...{ name, access, exposure: 'user-configurable', description: name, effect: 'write' },
    inputSchema: { type: 'object', properties: { [field]: { type: 'string' } }, required: [field] },
  });
  const tools = [tool('exec', 'command', 'command'), tool('write', 'file', 'path')];
  await worker.call(toolGateway.registerWorker, { workerId, tools });
  return workerId;
}

async function begin(worker: HandWorker, workerId: string): Promise<HandRun> {
  const { ref, job } = await worker.take();
  job.ack();
  const opened = await worker.call(sessionService.startRun, { ...ref, workerId });
  return new HandRun(worker, { ...ref, token: opened.token }, opened);
}

verifies(
  ['R-SESSION-4#1', 'R-SESSION-4#2', 'R-SESSION-4#3', 'R-SESSION-4#4', 'R-PERM-10#1', 'R-PERM-10#2'],
  'a child has at most what its parent and its own agent have, and nothing that its parent was allowed',
  async () => {
    const wide = await scene.agent({ servers: null, mode: 'full_access', rules: [], skills: null });
    const agent = await scene.agent({
      ...{ servers: ['other'], mode: 'default', rules: FREE.slice(0, 1) },
      subagents: { self: { agent: 'self' }, wide: { agent: wide.id }, bare: { agent: wide.id, servers: [] } },
    });
    const [worker, theirs] = [await scene.worker(agent), await scene.worker(wide)];
    const [workerId, theirId] = [await withTools(worker), await withTools(theirs)];
    const sceneId = randomUUID();
    await scene.send(agent, { sceneId });
    const asked = [intend('exec', { command: 'rm -r build' }), intend('write', { path: '/etc/motd' })];
    const run = await begin(worker, workerId);
    expect(codes(await run.use(...asked))).toEqual(['waiting', 'waiting']);
    await run.finish('waiting');
    for (const { id } of await scene.pending(run.ref.sessionId)) await allow(id);
    const parent = await begin(worker, workerId);
    expect(parent.opened.messages.at(-1)).toMatchObject({ role: 'tool', results: [{ status: 'completed' }, { status: 'completed' }] });

    const seen = await parent.use(...['self', 'wide', 'bare'].map((slotId) => runs({ background: true, tasks: [task(slotId)] })));
    expect(codes(seen)).toEqual(['completed', 'completed', 'completed']);
    const names = async (one: HandRun): Promise<string[]> => (await one.worker.snapshot(one.ref.fingerprint)).tools.map(({ name }) => name);
    const own = await begin(worker, workerId);
    const others = [await begin(theirs, theirId), await begin(theirs, theirId)];
    const isMcp = (name: string): boolean => name.startsWith('mcp__');
    const parents = await names(parent);
    expect((await names(own)).filter((name) => !parents.includes(name))).toEqual([]);
    const served = await Promise.all(others.map(async (one) => (await names(one)).filter(isMcp)));
    expect(served.map((list) => list.some((name) => !name.startsWith('mcp__other__')))).toEqual([false, false]);
    expect(served.map(({ length }) => length > 0).sort()).toEqual([false, true]);
    for (const child of [own, ...others]) {
      const { mode } = await scene.bus.call(sessionService.getSession, { id: child.ref.sessionId });
      expect(mode).toBe('default');
      // What the parent may do by an approval, a child asks for.
      expect(codes(await child.use(...asked.map(({ name, arguments: input }) => intend(name, JSON.parse(input)))))).toEqual([
        'waiting',
        'waiting',
      ]);
      expect(await child.finish('waiting')).toMatchObject({ status: 'suspended' });
    }

    // A change of one catalogue does not show in the other.
    await putSkill(scene.bus, wide.id, { name: 'their-craft' });
    const before = parent.ref.fingerprint;
    const { fingerprint } = await worker.call(sessionService.refreshRun, parent.ref);
    expect(fingerprint).toBe(before);
    const narrow = await scene.bus.call(sessionService.putAgent, { id: wide.id, policy: { servers: [], rules: [] } });
    expect(narrow.policyVersion).toBe(2);
    await parent.use(look('kill', { runId: dataOf(seen[1]).runId }), runs({ background: true, tasks: [task('wide')] }));
    const after = await begin(theirs, theirId);
    expect((await names(after)).filter(isMcp)).toEqual([]);
    expect((await names(parent)).filter(isMcp).length).toBeGreaterThan(0);
  },
);
