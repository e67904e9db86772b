import { resumeRunId } from '@ambit/capability';
import {
  journalSubject,
  mcpBroker,
  sessionService,
  streams,
  toolGateway,
  type CallResult,
  type DeferredCall,
  type Interaction,
} from '@ambit/contracts';
import { collect } from '@ambit/testing';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { intend, type HandRun, type HandWorker } from '../system/by-hand.js';
import { alice, bob, RULES, Scene } from '../system/scene.js';
import type { ServiceProcess } from '../system/service-process.js';
import { verifies } from '../verifies.js';

jest.setTimeout(180_000);

let scene: Scene;
beforeAll(async () => {
  scene = await Scene.start({ replicas: { 'tool-gateway': 2 } });
  await scene.server('asking');
  await scene.server('other');
});
afterAll(() => scene?.stop());

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

/** The job that a decision made, taken out of the queue while no gateway runs. */
async function takenJob(sessionId: string): Promise<{ readonly subject: string; readonly job: DeferredCall }> {
  const manager = await jetstreamManager(scene.system.connection, { checkAPI: false });
  const subject = `ambit.job.tool-gateway.v1.call.execute-deferred.${sessionId}`;
  const message = await manager.streams.getMessage(streams.deferred.name, { last_by_subj: subject });
  if (message === null) throw new Error('the decision made no job');
  await manager.streams.deleteMessage(streams.deferred.name, message.seq, true);
  return { subject, job: toolGateway.executeDeferred.payload.parse(message.json()) };
}

verifies('R-EXEC-10#6', 'what was approved and what would run differ by one byte: it does not run', async () => {
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
