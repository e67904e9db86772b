import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { operationId } from '@ambit/capability';
import { journalSubject, leaseKey, sessionService, toolGateway } from '@ambit/contracts';
import { collect } from '@ambit/testing';
import { headers } from '@nats-io/nats-core';
import { call, codeOf, Fixture, type Attempt } from './fixture.js';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await Fixture.start(2);
}, 120_000);
afterAll(() => fixture.stop());

/** As if the worker had not renewed it for fifteen seconds. */
async function loseLease(runId: string): Promise<void> {
  const expired = headers();
  expired.set('Nats-Marker-Reason', 'MaxAge');
  fixture.nats.connection.publish(`$KV.ambit_leases_15s.${leaseKey.run(runId)}`, new Uint8Array(), { headers: expired });
  await fixture.nats.connection.flush();
}

it('a run whose worker is gone is closed by one replica, its calls are stopped, and its late worker is stale', async () => {
  const agent = await fixture.agent();
  await fixture.send(agent);
  const { job } = await fixture.take(agent.id);
  const attempt = await fixture.attempt(agent.id, job);
  await fixture.step(attempt, 0, [call('c1')]);
  const told = await collect(fixture.nats.connection, toolGateway.cancelRunCalls);
  const before = await fixture.fact(journalSubject.runState(job.runId));
  await loseLease(job.runId);
  await told.next(({ payload }) => payload.runId === job.runId && payload.abort, 20_000);
  expect((await fixture.fact(journalSubject.runState(job.runId)))?.seq).toBeGreaterThan(before?.seq ?? 0);
  expect(await codeOf(fixture.read(attempt))).toBe('STALE_INSTANCE');
  const authority = await fixture.bus.call(sessionService.getAuthority, { runId: job.runId });
  expect(authority.tokens).toMatchObject([{ attempt: 1 }, { attempt: 2, hash: '0'.repeat(64) }]);
  const next = await fixture.attempt(agent.id, job);
  expect(next.start).toMatchObject({ attempt: 2, step: 0, openCalls: [{ callId: 'c1' }] });
}, 60_000);

it('a cancel answers stopped on the executing gateway’s word, whichever replica was asked', async () => {
  const agent = await fixture.agent();
  await fixture.send(agent);
  const attempt = await fixture.begin(agent.id);
  const { runId, originRunId } = attempt.ref;
  await fixture.step(attempt, 0, [call('c1')]);
  await fixture.write(journalSubject.claim(originRunId, operationId(originRunId, 0, 'c1')), { claimed: true });
  const told = await collect(fixture.nats.connection, toolGateway.cancelRunCalls);
  const cancelled = fixture.bus.call(sessionService.cancelRun, { id: runId });
  await told.next(({ payload }) => payload.runId === runId);
  fixture.bus.signal(sessionService.runStopped, { runId, gatewayId: crypto.randomUUID(), stopped: 1 }, { keys: { runId } });
  expect(await cancelled).toEqual({ state: 'stopped' });
});

it('messages of one conversation that come to both replicas at once make one session and one run', async () => {
  const agent = await fixture.agent();
  const received = await Promise.all(Array.from({ length: 6 }, (_unused, index) => fixture.send(agent, `message ${index}`)));
  expect(new Set(received.map(({ sessionId }) => sessionId)).size).toBe(1);
  expect(received.filter(({ queued }) => !queued)).toHaveLength(1);
  expect(received.map(({ position }) => position).sort()).toEqual([0, 1, 2, 3, 4, 5]);
});

it('of runs that begin at once as many are begun as the agent may have; the others come when there is room', async () => {
  const agent = await fixture.agent({ policy: { servers: null, skills: null, plugins: null, limits: { runsAtOnce: 2 } } });
  const sent = await Promise.all([1, 2, 3, 4].map((scene) => fixture.send(agent, 'Hello', { sceneId: `scene ${scene}` })));
  const jobs = await Promise.all(sent.map(() => fixture.take(agent.id)));
  const begun = await Promise.all(
    jobs.map(async ({ job, message }) => {
      const attempt = await fixture.attempt(agent.id, job).catch((error: unknown) => error);
      message.ack();
      return attempt;
    }),
  );
  const running = begun.filter((one): one is Attempt => typeof one === 'object' && one !== null && 'token' in one);
  expect(running).toHaveLength(2);
  for (const refused of begun.filter((one) => !running.some((other) => other === one)))
    expect(refused).toMatchObject({ code: 'TURN_ENDED' });
  const statuses = async () =>
    (await Promise.all(sent.map(({ runId }) => fixture.bus.call(sessionService.getRun, { id: runId ?? '' })))).map(({ status }) => status);
  expect((await statuses()).sort()).toEqual(['queued', 'queued', 'running', 'running']);
  for (const attempt of running) await fixture.finish(attempt, 'completed');
  for (let count = 0; count < 2; count++) await fixture.finish(await fixture.begin(agent.id), 'completed');
  expect(await statuses()).toEqual(sent.map(() => 'completed'));
}, 30_000);

it('a run that no worker’s workspace fits is offered again, and that counts for nothing', async () => {
  const agent = await fixture.agent();
  await fixture.send(agent);
  const first = await fixture.begin(agent.id);
  expect(await fixture.finish(first, 'failed', { code: 'WORKSPACE_UNAVAILABLE' })).toEqual({ status: 'queued', resumeRunId: null });
  const again = await fixture.begin(agent.id);
  expect(again.ref.runId).toBe(first.ref.runId);
  expect(again.start.attempt).toBe(2);
}, 30_000);
