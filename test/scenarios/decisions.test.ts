// Long because one running system, of two gateways, serves them all.
import { resumeRunId } from '@ambit/capability';
import {
  journalSubject,
  mcpBroker,
  pattern,
  sessionService,
  streams,
  toolGateway,
  type Agent,
  type CallResult,
  type DeferredCall,
  type Interaction,
} from '@ambit/contracts';
import { canary, collect, collectEndedCalls, until } from '@ambit/testing';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { intend, type HandRun, type HandWorker } from '../system/by-hand.js';
import { factsOf } from '../system/facts.js';
import { http, tokenFor, type HttpAnswer } from '../system/http.js';
import { expectedSignature, Receiver } from '../system/receiver.js';
import { alice, bob, RULES, Scene } from '../system/scene.js';
import type { ServiceProcess } from '../system/service-process.js';
import { verifies } from '../verifies.js';

jest.setTimeout(180_000);

const SIGN = { secret: 'hook-key' };
const hookKey = canary('hookkey');
const PUBLIC_URL = 'https://ambit.example';

let scene: Scene;
let receiver: Receiver;
beforeAll(async () => {
  scene = await Scene.start({
    replicas: { 'tool-gateway': 2, 'admin-api': 2 },
    environment: { AMBIT_PUBLIC_URL: PUBLIC_URL },
  });
  receiver = await Receiver.start();
  await http(scene.system, 'PUT /v1/secret/hook-key', { body: { from: 'store', value: hookKey } });
  await notify('decisions', [{ events: ['interaction.requested', 'call.parked'], webhook: { url: receiver.at('/all'), sign: SIGN } }]);
  await scene.server('asking');
  await scene.server('other');
});
afterAll(async () => {
  await scene?.stop();
  await receiver?.stop();
});

/** Applies a set that is nothing but these webhooks; gives the last answer, which may be a refusal. */
async function notify(set: string, entries: readonly unknown[], prune = false): Promise<HttpAnswer> {
  const desired = { apiVersion: 'ambit/v1', set, notify: entries };
  const plan = await http(scene.system, 'POST /v1/plan', { body: { desired, prune } });
  if (plan.status !== 200) return plan;
  return http(scene.system, 'POST /v1/apply', { body: { desired, prune, digest: plan.body['digest'] } });
}
const webhooks = async (set: string): Promise<HttpAnswer['body'][]> =>
  (await http(scene.system, `GET /v1/notify?set=${set}`)).body['items'];
/** How the telling of one interaction stands at the webhook of a set. */
async function delivery(set: string, interaction: Interaction | undefined): Promise<HttpAnswer['body'] | undefined> {
  const [sink] = await webhooks(set);
  const { body } = await http(scene.system, `GET /v1/notify/${sink?.['id']}/delivery?limit=200`);
  return body['items'].find(({ about }: { about: string }) => about === interaction?.id);
}
const requested = (interaction: Interaction | undefined): string => `${interaction?.id}.requested`;
const delivered = (set: string, interaction: Interaction | undefined, status: string): Promise<void> =>
  until(async () => (await delivery(set, interaction))?.['status'] === status, 60_000);

interface Waiting {
  readonly agentId: string;
  readonly worker: HandWorker;
  readonly run: HandRun;
  readonly stored: Awaited<ReturnType<HandRun['step']>>;
  readonly name: string;
  readonly interactions: readonly Interaction[];
}

/** A suspended run whose calls of these tools wait for a decision. */
async function waiting(tools: readonly string[] = ['mcp__asking__count'], policy: Parameters<Scene['agent']>[0] = {}): Promise<Waiting> {
  const agent = await scene.agent(policy);
  const worker = await scene.worker(agent);
  await scene.send(agent);
  const run = await worker.begin();
  const name = randomUUID();
  const stored = await run.step(tools.map((tool) => intend(tool, { name })));
  const results = await run.batch(stored);
  expect(results.some(({ status }) => status === 'waiting')).toBe(true);
  expect(await run.finish('waiting')).toMatchObject({ status: 'suspended' });
  return { agentId: agent.id, worker, run, stored, name, interactions: await scene.pending(run.ref.sessionId) };
}

const decide = (interaction: Interaction | undefined, decision: 'allow' | 'deny' = 'allow', by = bob): Promise<Interaction> =>
  scene.bus.call(sessionService.decideInteraction, { id: interaction?.id ?? '', decision, by });

/** The one resume run of a suspended run, taken up; gives the results of the step that asked. */
async function resumed({ worker, run, agentId }: Waiting): Promise<{ readonly next: HandRun; readonly results: readonly CallResult[] }> {
  const next = await worker.begin();
  expect(next.ref).toMatchObject({ runId: resumeRunId(run.ref.runId), originRunId: run.ref.originRunId, sessionId: run.ref.sessionId });
  expect(next.opened.openCalls).toEqual([]);
  const last = next.opened.messages.at(-1);
  if (last?.role !== 'tool') throw new Error('the tape does not end with results');
  await next.step([]);
  expect(await next.finish('completed')).toMatchObject({ status: 'completed' });
  expect((await scene.runsOf(run.ref.sessionId)).map(({ id }) => id).sort()).toEqual([run.ref.runId, next.ref.runId].sort());
  expect(await jobsOf(agentId)).toBe(0);
  return { next, results: last.results };
}

async function jobsOf(agentId: string): Promise<number> {
  const manager = await jetstreamManager(scene.system.connection, { checkAPI: false });
  const { state } = await manager.streams.info(streams.runs.name, {
    subjects_filter: `ambit.job.session-service.v1.run.execute.${agentId}.>`,
  });
  return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
}

const gateways = (): ServiceProcess[] => [1, 2].map((replica) => scene.system.process('tool-gateway', replica));
const sessions = (): ServiceProcess => scene.system.process('session-service');
const all = <T>(processes: readonly ServiceProcess[], act: (one: ServiceProcess) => Promise<T>): Promise<T[]> =>
  Promise.all(processes.map(act));

/** Resolves when the outcome of a call of this run stands in the journal. */
async function outcomeStands({ run }: Waiting): Promise<() => Promise<void>> {
  const subscription = scene.system.connection.subscribe(journalSubject.operationsOf(run.ref.originRunId));
  await scene.system.connection.flush();
  return async () => {
    for await (const message of subscription) if (message.subject.endsWith('.outcome')) return;
  };
}

verifies(
  ['R-EXEC-8#5', 'R-EXEC-8#6', 'R-EXEC-11#2', 'R-NATS-8#1'],
  'of two deciders at once one decides; the call runs once and one run goes on',
  async () => {
    const asked = await waiting();
    const answers = await Promise.allSettled([decide(asked.interactions[0], 'allow', alice), decide(asked.interactions[0], 'allow', bob)]);
    expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(answers.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'NO_INTERACTION' } });
    const { results } = await resumed(asked);
    expect(results).toMatchObject([{ status: 'completed' }]);
    await expect(decide(asked.interactions[0])).rejects.toMatchObject({ code: 'NO_INTERACTION' });
    expect(await scene.counting.ran('count', asked.name)).toBe(1);
  },
);

verifies(['R-EXEC-8#7', 'R-EXEC-11#3'], 'session-service killed after the decision: one execution, one resume run', async () => {
  const asked = await waiting();
  await decide(asked.interactions[0]);
  await sessions().kill();
  await sessions().start();
  const { results } = await resumed(asked);
  expect(results).toMatchObject([{ status: 'completed' }]);
  expect(await scene.counting.ran('count', asked.name)).toBe(1);
});

verifies('R-EXEC-12#1', 'gateways killed before the approved call was claimed: it runs once when they are back', async () => {
  const asked = await waiting();
  await all(gateways(), (one) => one.kill());
  await decide(asked.interactions[0]);
  await all(gateways(), (one) => one.start());
  const { results } = await resumed(asked);
  expect(results).toMatchObject([{ status: 'completed' }]);
  expect(await scene.counting.ran('count', asked.name)).toBe(1);
});

verifies(
  'R-EXEC-20#2',
  'gateways killed after the claim of an approved call: it is indeterminate, and the resume run says so',
  async () => {
    const asked = await waiting(['mcp__asking__hold']);
    await decide(asked.interactions[0]);
    await scene.counting.held(asked.name);
    await all(gateways(), (one) => one.kill());
    await all(gateways(), (one) => one.start());
    const { results } = await resumed(asked);
    expect(results).toMatchObject([{ status: 'indeterminate', fault: { code: 'INDETERMINATE' } }]);
    // A person has to look, and is told so.
    const operationId = asked.interactions[0]?.operationId ?? '';
    const [told] = await receiver.times('/all', `${operationId}.parked`, 1);
    expect(told?.body).toMatchObject({ type: 'call.parked', data: { call: { operationId, tool: 'mcp__asking__hold', parked: true } } });
    scene.counting.release(asked.name);
    expect(await scene.counting.ran('hold', asked.name)).toBe(1);
  },
);

verifies('R-EXEC-8#7', 'everything killed after the outcome and before it was settled: one execution, one resume run', async () => {
  const asked = await waiting(['mcp__asking__hold']);
  await decide(asked.interactions[0]);
  await scene.counting.held(asked.name);
  // From here on nobody can settle.
  await sessions().kill();
  const stands = await outcomeStands(asked);
  scene.counting.release(asked.name);
  await stands();
  await all(gateways(), (one) => one.kill());
  await all([...gateways(), sessions()], (one) => one.start());
  const { results } = await resumed(asked);
  expect(results).toMatchObject([{ status: 'completed' }]);
  expect(await scene.counting.ran('hold', asked.name)).toBe(1);
});

verifies(
  ['R-EXEC-6#1', 'R-EXEC-6#2', 'R-EXEC-6#3', 'R-EXEC-8#1', 'R-EXEC-11#1'],
  'ten decisions of a batch stand in call order, also after a restart, and lead to one run',
  async () => {
    const ten = Array.from({ length: 10 }, () => 'mcp__asking__count');
    const asked = await waiting(['mcp__other__count', ...ten]);
    await sessions().kill();
    await sessions().start();
    const pending = await scene.pending(asked.run.ref.sessionId);
    expect(pending).toEqual(asked.interactions);
    expect(pending.map(({ callId }) => callId)).toEqual(asked.stored.calls.slice(1).map(({ callId }) => callId));
    expect(pending.map(({ order }) => order)).toEqual(ten.map((_tool, order) => order));
    expect(new Set(pending.map(({ id }) => id)).size).toBe(10);
    await expect(decide(pending[1])).rejects.toMatchObject({ code: 'INTERACTION_ORDER', data: { first: pending[0]?.id } });
    for (const interaction of pending) {
      expect(await scene.runsOf(asked.run.ref.sessionId)).toHaveLength(1);
      await decide(interaction);
    }
    const { results } = await resumed(asked);
    expect(results.map(({ callId, status }) => ({ callId, status }))).toEqual(
      asked.stored.calls.map(({ callId }) => ({ callId, status: 'completed' })),
    );
    expect(await scene.counting.ran('count', asked.name)).toBe(11);
  },
);

verifies(['R-EXEC-9#1', 'R-EXEC-9#2'], 'a denied call is never executed, and the same call asks again', async () => {
  const asked = await waiting();
  await decide(asked.interactions[0], 'deny');
  const next = await asked.worker.begin();
  expect(next.opened.messages.at(-1)).toMatchObject({ role: 'tool', results: [{ status: 'refused', fault: { code: 'DENIED' } }] });
  expect(await next.use(intend('mcp__asking__count', { name: asked.name }))).toMatchObject([{ status: 'waiting' }]);
  await next.finish('waiting');
  expect(await scene.pending(next.ref.sessionId)).toHaveLength(1);
  expect(await scene.counting.ran('count', asked.name)).toBe(0);
});

it('a decision that nobody took in time is an expired one: nothing is executed and the run goes on', async () => {
  const settled = await collect(scene.system.connection, sessionService.interactionSettled);
  const asked = await waiting(['mcp__asking__count'], { rules: [{ decision: 'ask', tool: 'mcp__asking__*', expiresMs: 1_000 }] });
  const { payload } = await settled.next(({ payload: one }) => one.sessionId === asked.run.ref.sessionId, 20_000);
  expect(payload.status).toBe('expired');
  settled.stop();
  await expect(decide({ ...asked.interactions[0], id: payload.interactionId } as Interaction)).rejects.toMatchObject({
    code: 'APPROVAL_EXPIRED',
  });
  const { results } = await resumed(asked);
  expect(results).toMatchObject([{ fault: { code: 'APPROVAL_EXPIRED' } }]);
  expect(await scene.counting.ran('count', asked.name)).toBe(0);
});

verifies('R-PERM-6#2', 'an approval is for these arguments: with one byte changed the call asks again', async () => {
  const asked = await waiting();
  await decide(asked.interactions[0]);
  const next = await asked.worker.begin();
  expect(next.opened.messages.at(-1)).toMatchObject({ role: 'tool', results: [{ status: 'completed' }] });
  const other = `${asked.name.slice(0, -1)}${asked.name.endsWith('0') ? '1' : '0'}`;
  expect(await next.use(intend('mcp__asking__count', { name: other }))).toMatchObject([{ status: 'waiting' }]);
  await next.finish('waiting');
  const [again, ...more] = await scene.pending(next.ref.sessionId);
  expect(more).toEqual([]);
  expect(again?.argumentsHash).not.toBe(asked.interactions[0]?.argumentsHash);
  expect(await scene.counting.ran('count', asked.name)).toBe(1);
  expect(await scene.counting.ran('count', other)).toBe(0);
});

verifies(
  'R-PERM-6#3',
  'an approval is for this server as it is: reconfigured meanwhile, it is not called, and the call asks again',
  async () => {
    await scene.server('moving');
    const tool = 'mcp__moving__count';
    const asked = await waiting([tool], { rules: [{ decision: 'ask', tool: 'mcp__*' }] });
    await all(gateways(), (one) => one.kill());
    await decide(asked.interactions[0]);
    await scene.server('moving', scene.counting.offering('moving', []));
    await all(gateways(), (one) => one.start());
    const next = await asked.worker.begin();
    expect(next.opened.messages.at(-1)).toMatchObject({ role: 'tool', results: [{ fault: { code: 'TARGET_CHANGED' } }] });
    expect(await next.use(intend(tool, { name: asked.name }))).toMatchObject([{ status: 'waiting' }]);
    await next.finish('waiting');
    expect(await scene.pending(next.ref.sessionId)).toMatchObject([{ tool, status: 'pending' }]);
    expect(await scene.counting.ran('count', asked.name)).toBe(0);
    expect((await scene.counting.heard('moving')).filter((method) => method === 'tools/call')).toEqual([]);
  },
);

verifies('R-EXEC-12#3', 'a model that is asked again for a step that was executed: nothing of its new sample runs', async () => {
  const agent = await scene.agent();
  const worker = await scene.worker(agent);
  await scene.send(agent);
  const run = await worker.begin();
  const name = randomUUID();
  const stored = await run.step([intend('mcp__other__count', { name })]);
  const [before] = await run.batch(stored);
  expect(before).toMatchObject({ status: 'completed' });
  // The same wish under a new id, as a second sample has it.
  const sample = [intend('mcp__other__count', { name })];
  await expect(run.step(sample, stored.step)).rejects.toMatchObject({ code: 'STEP_TAKEN' });
  await expect(run.batch({ step: stored.step, calls: sample })).rejects.toMatchObject({ code: 'BAD_ARGUMENTS' });
  expect(await run.batch(stored)).toEqual([before]);
  // Another attempt is given the result, for its model to go on from.
  run.abandon();
  const again = await worker.start(run.ref);
  expect(again.opened).toMatchObject({ step: stored.step + 1, openCalls: [] });
  expect(again.opened.messages.at(-1)).toMatchObject({ role: 'tool', results: [{ callId: before?.callId, status: 'completed' }] });
  await again.step([]);
  await again.finish('completed');
  expect(await scene.counting.ran('count', name)).toBe(1);
});

verifies('R-EXEC-4#2', 'a run cancelled in the middle of a batch: its next call is asked nothing any more', async () => {
  // Asked after the first one, the second would be over the limit: that is not what it is told.
  const agent = await scene.agent({ limits: { callsPerMinute: 1 } });
  const worker = await scene.worker(agent);
  await scene.send(agent);
  const run = await worker.begin();
  const name = randomUUID();
  const stored = await run.step([intend('mcp__other__hold', { name }), intend('mcp__other__count', { name })]);
  const answer = run.batch(stored);
  await scene.counting.held(name);
  await scene.bus.call(sessionService.cancelRun, { id: run.ref.runId });
  expect(await answer).toMatchObject([{ status: 'cancelled' }, { status: 'refused', fault: { code: 'TURN_ENDED' } }]);
  run.abandon();
  scene.counting.release(name);
  const [, next] = stored.calls;
  expect(await factsOf(scene.system.connection, run.ref, { step: stored.step, callId: next?.callId ?? '' })).toEqual({
    claim: undefined,
    outcome: undefined,
  });
  expect(await scene.counting.ran('count', name)).toBe(0);
});

verifies('R-EXEC-18#2', 'a cancel reaches the server that works on the call within a second, and nothing follows it', async () => {
  await scene.server('told', scene.counting.offering('told', []));
  const agent = await scene.agent();
  const worker = await scene.worker(agent);
  await scene.send(agent);
  const run = await worker.begin();
  const name = randomUUID();
  const stored = await run.step([intend('mcp__told__hold', { name }), intend('mcp__told__count', { name })]);
  const answer = run.batch(stored);
  await scene.counting.held(name);
  const ended = await collectEndedCalls(scene.system.connection);
  const before = performance.now();
  const cancelling = scene.bus.call(sessionService.cancelRun, { id: run.ref.runId });
  await until(async () => (await scene.counting.heard('told')).at(-1) === 'notifications/cancelled');
  expect(performance.now() - before).toBeLessThan(1_000);
  expect(await cancelling).toEqual({ state: 'stopped' });
  expect((await answer).map(({ status }) => status)).toEqual(['cancelled', 'refused']);
  await ended.next(({ payload }) => payload.callId === stored.calls[0]?.callId && payload.status === 'cancelled');
  ended.stop();
  run.abandon();
  scene.counting.release(name);
  const { items } = await scene.bus.call(toolGateway.listCalls, { runId: run.ref.runId });
  expect(items.map(({ status }) => status)).toContain('cancelled');
  const heard = await scene.counting.heard('told');
  expect(heard.slice(heard.indexOf('tools/call'))).toEqual(['tools/call', 'notifications/cancelled']);
});

/** An agent's run that has called this server's tool once. */
async function usedOnce(slug: string): Promise<{ readonly worker: HandWorker; readonly run: HandRun; readonly agent: Agent }> {
  const agent = await scene.agent();
  const worker = await scene.worker(agent);
  await scene.send(agent);
  const run = await worker.begin();
  expect(await run.use(intend(`mcp__${slug}__count`, { name: slug }))).toMatchObject([{ status: 'completed' }]);
  return { worker, run, agent };
}
const named = (slug: string): Parameters<Scene['server']>[1] => scene.counting.offering(slug, []);

verifies('R-TOOL-11#1', 'a server reconfigured after it was listed is not called', async () => {
  await scene.server('pinned', named('pinned'));
  const { run } = await usedOnce('pinned');
  await scene.server('pinned', scene.counting.offering('pinned', ['more']));
  const name = randomUUID();
  expect(await run.use(intend('mcp__pinned__count', { name }))).toMatchObject([{ fault: { code: 'TARGET_CHANGED' } }]);
  expect(await scene.counting.ran('count', name)).toBe(0);
  run.abandon();
});

verifies('R-TOOL-11#2', 'a removed server is not called, nor is the one that has its name now', async () => {
  const { id } = await scene.server('named', named('named'));
  const { run } = await usedOnce('named');
  await scene.bus.call(mcpBroker.deleteServer, { id });
  const name = randomUUID();
  expect(await run.use(intend('mcp__named__count', { name }))).toMatchObject([{ fault: { code: 'TOOL_GONE' } }]);
  await scene.server('named', named('named'));
  expect(await run.use(intend('mcp__named__count', { name }))).toMatchObject([{ fault: { code: 'TOOL_GONE' } }]);
  expect(await scene.counting.ran('count', name)).toBe(0);
  run.abandon();
});

verifies('R-TOOL-11#3', 'a second server with the same tools changes no name and receives no call of the first', async () => {
  await scene.server('first', named('first'));
  const { run, agent, worker } = await usedOnce('first');
  const before = (await worker.snapshot(run.ref.fingerprint)).tools.map(({ name }) => name);
  await scene.server('second', named('second'));
  const name = randomUUID();
  expect(await run.use(intend('mcp__first__count', { name }))).toMatchObject([{ status: 'completed' }]);
  expect(await run.use(intend('mcp__second__count', { name }))).toMatchObject([{ fault: { code: 'TOOL_NOT_IN_SNAPSHOT' } }]);
  await scene.send(agent);
  const next = await worker.begin();
  const after = (await worker.snapshot(next.ref.fingerprint)).tools.map((tool) => tool.name);
  expect(after.filter((tool) => !tool.startsWith('mcp__second__'))).toEqual(before);
  expect(after).toContain('mcp__second__count');
  expect(await next.use(intend('mcp__first__count', { name }))).toMatchObject([{ status: 'completed' }]);
  expect(await scene.counting.ran('count', `${name} by first`)).toBe(2);
  expect(await scene.counting.ran('count', `${name} by second`)).toBe(0);
  for (const one of [run, next]) one.abandon();
});

verifies('R-TOOL-11#4', 'a server that was started again as it was is called', async () => {
  const { transport } = await scene.server('again', named('again'));
  const { run } = await usedOnce('again');
  const started = await scene.counting.started();
  await scene.bus.call(mcpBroker.putServer, { slug: 'again', transport, enabled: false });
  await scene.server('again', { transport, enabled: true });
  expect(await scene.counting.started()).toBeGreaterThan(started);
  const name = randomUUID();
  expect(await run.use(intend('mcp__again__count', { name }))).toMatchObject([{ status: 'completed' }]);
  expect(await scene.counting.ran('count', `${name} by again`)).toBe(1);
  run.abandon();
});

/** The job that a decision made, taken out of the queue while no gateway runs. */
async function takenJob(sessionId: string): Promise<{ readonly subject: string; readonly job: DeferredCall }> {
  const manager = await jetstreamManager(scene.system.connection, { checkAPI: false });
  const subject = `ambit.job.tool-gateway.v1.call.execute-deferred.${sessionId}`;
  const message = await manager.streams.getMessage(streams.deferred.name, { last_by_subj: subject });
  if (message === null) throw new Error('the decision made no job');
  await manager.streams.deleteMessage(streams.deferred.name, message.seq, true);
  return { subject, job: toolGateway.executeDeferred.payload.parse(message.json()) };
}

verifies(['R-EXEC-10#6', 'R-PERM-6#2'], 'what was approved and what would run differ by one byte: it does not run', async () => {
  const asked = await waiting();
  await all(gateways(), (one) => one.kill());
  const queued = scene.system.connection.subscribe(`ambit.job.tool-gateway.v1.call.execute-deferred.${asked.run.ref.sessionId}`, {
    max: 1,
  });
  await scene.system.connection.flush();
  await decide(asked.interactions[0]);
  for await (const _message of queued) break;
  const { subject, job } = await takenJob(asked.run.ref.sessionId);
  const other = `${asked.name.slice(0, -1)}${asked.name.endsWith('0') ? '1' : '0'}`;
  const forged = { ...job, call: { ...job.call, arguments: job.call.arguments.replace(asked.name, other) } };
  await jetstream(scene.system.connection).publish(subject, JSON.stringify(forged));
  await all(gateways(), (one) => one.start());
  const { results } = await resumed(asked);
  expect(results).toMatchObject([{ status: 'refused', fault: { code: expect.any(String) } }]);
  expect(await scene.counting.ran('count', asked.name)).toBe(0);
  expect(await scene.counting.ran('count', other)).toBe(0);
});

verifies(['R-EXEC-10#1', 'R-EXEC-2#2'], 'a policy that changed while a call waited decides against now', async () => {
  const asked = await waiting();
  const policy = {
    servers: null,
    skills: null,
    plugins: null,
    rules: [...RULES, { decision: 'deny' as const, tool: 'mcp__asking__count' }],
  };
  await scene.bus.call(sessionService.putAgent, { id: asked.agentId, policy });
  await decide(asked.interactions[0]);
  const { results } = await resumed(asked);
  expect(results).toMatchObject([{ status: 'refused', fault: { code: 'POLICY_DENIED' } }]);
  expect(await scene.counting.ran('count', asked.name)).toBe(0);
});

verifies(
  ['R-EXEC-10#2', 'R-EXEC-10#6'],
  'a server removed while a call waited: it is refused, and the next decision can be taken',
  async () => {
    const removed = await scene.server('asking-removed');
    const asked = await waiting(['mcp__asking-removed__count', 'mcp__asking__count'], { rules: [{ decision: 'ask', tool: 'mcp__*' }] });
    await scene.bus.call(mcpBroker.deleteServer, { id: removed.id });
    for (const interaction of asked.interactions) await decide(interaction);
    const { results } = await resumed(asked);
    // Whether a server is there its owner says, who is asked last and before anything is sent.
    expect(results).toMatchObject([
      { status: expect.stringMatching(/^(refused|failed)$/), fault: { code: 'TOOL_GONE' } },
      { status: 'completed' },
    ]);
    expect(await scene.counting.ran('count', asked.name)).toBe(1);
  },
);

it('a webhook is told of each decision once, by two replicas, with a signature that its receiver can verify', async () => {
  const asked = await waiting(Array.from({ length: 10 }, () => 'mcp__asking__count'));
  for (const interaction of asked.interactions) {
    const [told] = await receiver.times('/all', requested(interaction), 1);
    if (told === undefined) throw new Error('nothing came');
    expect(told.headers['webhook-signature']).toBe(expectedSignature(told, hookKey));
    expect(Math.abs(Number(told.headers['webhook-timestamp']) * 1_000 - Date.now())).toBeLessThan(60_000);
    const url = `${PUBLIC_URL}/v1/interaction/${interaction.id}`;
    expect(told.body).toEqual({ type: 'interaction.requested', timestamp: interaction.createdAt, data: { interaction, url } });
  }
  for (const interaction of asked.interactions) await delivered('decisions', interaction, 'delivered');
  expect(asked.interactions.map((interaction) => receiver.of('/all', requested(interaction)).length)).toEqual(Array(10).fill(1));
  expect(await delivery('decisions', asked.interactions[0])).toMatchObject({
    event: 'interaction.requested',
    attempts: 1,
    lastError: null,
    nextAt: null,
  });
  for (const interaction of asked.interactions) await decide(interaction, 'deny');
  await asked.worker.begin().then((next) => next.abandon());
});

/** Removes the event of a run's decision, once it stands in the stream. */
async function loseRequested(runId: string): Promise<void> {
  const manager = await jetstreamManager(scene.system.connection, { checkAPI: false });
  const about = pattern(sessionService.interactionRequested, { runId });
  await until(async () => (await manager.streams.getMessage(streams.events.name, { last_by_subj: about })) !== null);
  await manager.streams.purge(streams.events.name, { filter: about });
}

it('what a receiver refuses comes again, also when admin-api was killed meanwhile; what was decided meanwhile does not', async () => {
  const key = Buffer.from(canary('encoded'));
  await http(scene.system, 'PUT /v1/secret/encoded', { body: { from: 'store', value: `whsec_${key.toString('base64')}` } });
  const entry = (path: string, ...answers: number[]) => ({
    events: ['interaction.requested'],
    webhook: { url: receiver.at(path, ...answers), sign: { secret: 'encoded' } },
  });
  expect(await notify('busy', [entry('/busy', 500, 503)])).toMatchObject({ status: 200 });
  expect(await notify('decided', [entry('/decided', 302, 302, 302)])).toMatchObject({ status: 200 });
  const [kept, settled] = [await waiting(), await waiting()];
  const [one, other] = [kept.interactions[0], settled.interactions[0]];
  await receiver.times('/busy', requested(one), 1);
  await receiver.times('/decided', requested(other), 1);
  await until(
    async () => (await delivery('busy', one))?.['lastError'] !== null && (await delivery('decided', other))?.['lastError'] !== null,
  );
  const apis = [1, 2].map((replica) => scene.system.process('admin-api', replica));
  await all(apis, (api) => api.kill());
  await decide(other, 'deny');
  // What is asked now, and whose event is lost before anybody heard it, is found where it stands.
  const lost = await waiting();
  await loseRequested(lost.run.ref.runId);
  await all(apis, (api) => api.start());
  const [found] = await receiver.times('/all', requested(lost.interactions[0]), 1);
  expect(found?.body).toMatchObject({ data: { url: `${PUBLIC_URL}/v1/interaction/${lost.interactions[0]?.id}` } });
  const told = await receiver.times('/busy', requested(one), 3);
  await delivered('busy', one, 'delivered');
  expect(told).toHaveLength(3);
  for (const request of told) expect(request.headers['webhook-signature']).toBe(expectedSignature(request, key));
  expect(await delivery('busy', one)).toMatchObject({ attempts: 3, lastError: 'it answered 503' });
  await delivered('decided', other, 'obsolete');
  expect(receiver.of('/decided', requested(other))).toHaveLength(1);
  expect(await delivery('decided', other)).toMatchObject({ attempts: 2, nextAt: null, lastError: expect.stringContaining('decided') });
  for (const set of ['busy', 'decided']) {
    await notify(set, [], true);
    expect(await webhooks(set)).toEqual([]);
  }
  await decide(one, 'deny');
  await decide(lost.interactions[0], 'deny');
  for (const { worker } of [kept, settled, lost]) await worker.begin().then((next) => next.abandon());
});

it('refuses a webhook that nothing could be told, before anything is changed', async () => {
  const entry = (url: string, more: { readonly event?: string; readonly secret?: string } = {}) => ({
    events: [more.event ?? 'call.parked'],
    webhook: { url, sign: { secret: more.secret ?? 'hook-key' } },
  });
  const refused = async (...entries: readonly unknown[]) => {
    const { status, body } = await notify('refused', entries);
    expect(status).toBe(400);
    return body;
  };
  expect(await refused(entry('http://169.254.169.254/'))).toMatchObject({
    code: 'URL_REFUSED',
    detail: expect.stringContaining('AMBIT_EGRESS_ALLOW'),
  });
  expect(await refused(entry('https://user:word@hooks.example/'))).toMatchObject({ code: 'URL_REFUSED' });
  expect(await refused(entry('https://hooks.example/', { secret: 'nobodys' }))).toMatchObject({
    code: 'SECRET_UNKNOWN',
    data: { name: 'nobodys' },
  });
  expect(await refused(entry('ftp://hooks.example/'))).toMatchObject({ code: 'INVALID_INPUT', detail: expect.stringContaining('http://') });
  expect(await refused(entry('https://hooks.example/', { event: 'server.needs-auth' }))).toMatchObject({
    code: 'INVALID_INPUT',
    detail: expect.stringContaining('interaction.requested or call.parked'),
  });
  expect(await refused(entry('https://hooks.example/'), entry('https://hooks.example/'))).toMatchObject({
    code: 'INVALID_INPUT',
    detail: expect.stringContaining('twice'),
  });
  expect(await webhooks('refused')).toEqual([]);
});

it('webhooks are for administrators, are changed in place, and hold on to their secret', async () => {
  const [sink] = await webhooks('decisions');
  expect(sink).toMatchObject({
    projectId: 'default',
    events: ['call.parked', 'interaction.requested'],
    webhook: { sign: SIGN },
    version: 1,
  });
  const token = await tokenFor(scene.system, { principal: 'user:viewer', role: 'viewer' });
  for (const path of ['/v1/notify', `/v1/notify/${sink?.['id']}/delivery`] as const)
    expect(await http(scene.system, `GET ${path}`, { token })).toMatchObject({ status: 403 });
  const url: string = sink?.['webhook'].url;
  // Nor does a plan, which readers may make, or a record, which auditors may read, say where they are.
  const nothing = { desired: { apiVersion: 'ambit/v1', set: 'decisions' }, prune: true };
  expect(JSON.stringify((await http(scene.system, 'POST /v1/plan', { body: nothing })).body)).toContain(url);
  const plan = await http(scene.system, 'POST /v1/plan', { token, body: nothing });
  expect(plan.status).toBe(200);
  expect(JSON.stringify(plan.body)).not.toContain(new URL(url).host);
  // Whoever knows one sees that it is there.
  const known = { desired: { ...nothing.desired, notify: [{ events: sink?.['events'], webhook: sink?.['webhook'] }] } };
  expect((await http(scene.system, 'POST /v1/plan', { token, body: known })).body['changes']).toContainEqual(
    expect.objectContaining({ kind: 'notify', name: url, action: 'unchanged' }),
  );
  const records = async () => (await http(scene.system, `GET /v1/audit?target=notify:${sink?.['id']}`)).body['items'];
  await until(async () => (await records()).length > 0);
  expect(await records()).toMatchObject([{ action: 'notify.put', reason: new URL(url).origin }]);
  expect(await http(scene.system, `GET /v1/notify/${randomUUID()}/delivery`)).toMatchObject({
    status: 404,
    body: { code: 'NOTIFY_UNKNOWN' },
  });
  const deleting = await http(scene.system, 'DELETE /v1/secret/hook-key');
  expect(deleting).toMatchObject({ status: 409, body: { code: 'SECRET_IN_USE', data: { webhooks: [sink?.['webhook'].url] } } });
  const { body } = await notify('decisions', [{ events: ['interaction.requested'], webhook: sink?.['webhook'] }]);
  expect(body['changes']).toEqual(
    expect.arrayContaining([expect.objectContaining({ kind: 'notify', action: 'update', detail: 'events' })]),
  );
  expect(await webhooks('decisions')).toMatchObject([{ id: sink?.['id'], events: ['interaction.requested'], version: 2 }]);

  const { bus } = scene;
  await bus.call(mcpBroker.putSecret, { name: 'unset', from: 'env', key: 'SURELY_NOT_SET' });
  const sign = (name: string) => bus.call(mcpBroker.signWithSecret, { projectId: 'default', name, text: 'text' });
  await expect(sign('unset')).rejects.toMatchObject({
    code: 'SECRET_UNREADABLE',
    data: { reason: expect.stringContaining('SURELY_NOT_SET') },
  });
  await expect(sign('nobodys')).rejects.toMatchObject({ code: 'SECRET_UNKNOWN' });
  expect(await sign('hook-key')).toEqual({ signature: expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/) });
});
