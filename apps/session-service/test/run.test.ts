import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { digestOf, operationId, readSnapshot } from '@ambit/capability';
import { journalSubject, sessionService, snapshotKey, toolGateway } from '@ambit/contracts';
import { collect } from '@ambit/testing';
import { ask, bob, call, codeOf, Fixture } from './fixture.js';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await Fixture.start();
}, 120_000);
afterAll(() => fixture.stop());

it('a message becomes a run that a worker takes, steps through and completes', async () => {
  const agent = await fixture.agent({ instructions: 'Be brief', model: 'some-model' });
  const posted = await collect(fixture.nats.connection, sessionService.messagePosted);
  const stored = await collect(fixture.nats.connection, toolGateway.stepStored);
  const received = await fixture.send(agent, 'What is new?');
  expect(received).toMatchObject({ agentId: agent.id, queued: false, position: 0 });

  const { job, message } = await fixture.take(agent.id);
  expect(job).toMatchObject({ runId: received.runId, sessionId: received.sessionId, model: 'some-model', instructions: 'Be brief' });
  const part = await fixture.value('ambit_snapshots', snapshotKey.part(agent.id, job.fingerprint, 0));
  const record = readSnapshot(gunzipSync(part).toString('utf8'), job.fingerprint);
  expect(record.tools.map(({ name }) => name)).toContain('question');

  const attempt = await fixture.attempt(agent.id, job);
  message.ack();
  expect(attempt.start).toMatchObject({
    attempt: 1,
    step: 0,
    openCalls: [],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'What is new?' }] }],
  });
  const authority = await fixture.bus.call(sessionService.getAuthority, { runId: job.runId });
  expect(authority).toMatchObject({ status: 'running', fingerprint: job.fingerprint, revokedOwners: [], step: null, stateVersion: 2 });
  expect(authority.stateSequence).toBe((await fixture.fact(journalSubject.runState(job.runId)))?.seq);

  await fixture.step(attempt, 0, [call('c1', 'question', '{"a":1}')]);
  const signal = await stored.next(({ payload }) => payload.runId === job.runId);
  expect(signal.payload).toMatchObject({
    step: 0,
    callsBefore: 0,
    calls: [{ callId: 'c1', digest: digestOf({ arguments: '{"a":1}', name: 'question' }) }],
  });
  expect(await codeOf(fixture.finish(attempt, 'completed'))).toBe('OPEN_CALLS');
  expect(await codeOf(fixture.step(attempt, 0))).toBe('STEP_TAKEN');

  const operation = operationId(job.originRunId, 0, 'c1');
  const outcome = {
    schemaVersion: 1,
    operationId: operation,
    originRunId: job.originRunId,
    status: 'completed',
    content: [{ type: 'text', text: 'fine' }],
    durationMs: 3,
    gatewayId: crypto.randomUUID(),
    at: new Date().toISOString(),
  };
  await fixture.write(journalSubject.outcome(job.originRunId, operation), outcome);
  const view = await fixture.read(attempt);
  expect(view).toMatchObject({
    step: 1,
    openCalls: [],
    messages: [
      { role: 'user' },
      { role: 'assistant' },
      { role: 'tool', results: [{ callId: 'c1', status: 'completed', content: [{ text: 'fine' }] }] },
    ],
  });

  await fixture.step(attempt, 1);
  expect(await fixture.finish(attempt, 'completed')).toEqual({ status: 'completed', resumeRunId: null });
  expect(await codeOf(fixture.finish(attempt, 'completed'))).toBe('TURN_ENDED');
  expect((await posted.next(({ payload }) => payload.runId === job.runId)).payload.content).toEqual([{ type: 'text', text: 'step 1' }]);
  expect(await fixture.bus.call(sessionService.getRun, { id: job.runId })).toMatchObject({ status: 'completed', attempt: 1 });
});

it('a redelivered run goes on where it stopped, and the older attempt is stale', async () => {
  const agent = await fixture.agent();
  await fixture.send(agent);
  const { job } = await fixture.take(agent.id);
  const first = await fixture.attempt(agent.id, job);
  await fixture.step(first, 0, [call('c1')]);
  const second = await fixture.attempt(agent.id, job);
  expect(second.start).toMatchObject({ attempt: 2, step: 0, openCalls: [{ callId: 'c1' }] });
  expect(await codeOf(fixture.step(first, 1))).toBe('STALE_INSTANCE');
  expect(await codeOf(fixture.read(first))).toBe('STALE_INSTANCE');
  await fixture.attempt(agent.id, job);
  expect(await codeOf(fixture.attempt(agent.id, job))).toBe('TURN_ENDED');
  expect(await fixture.bus.call(sessionService.getRun, { id: job.runId })).toMatchObject({
    status: 'failed',
    fault: { code: 'DELIVERIES_EXHAUSTED' },
  });
});

it('somebody else’s run and one that does not exist are refused alike', async () => {
  const [agent, other] = [await fixture.agent(), await fixture.agent()];
  await fixture.send(agent);
  const attempt = await fixture.begin(agent.id);
  const bodies = await Promise.all(
    [
      { ...attempt, agentId: other.id },
      { ...attempt, ref: { ...attempt.ref, runId: crypto.randomUUID() } },
      { ...attempt, token: 'a-token-that-it-never-had' },
    ].map((forged) => fixture.read(forged).catch((error: unknown) => (error as { toBody(): unknown }).toBody())),
  );
  expect(bodies[0]).toMatchObject({ code: 'TOOL_NOT_IN_SNAPSHOT' });
  expect(bodies[1]).toEqual(bodies[0]);
  expect(bodies[2]).toEqual(bodies[0]);
});

it('a key is answered once, and what comes while a run is open waits its turn', async () => {
  const agent = await fixture.agent();
  const [one, two] = await Promise.all([
    fixture.send(agent, 'first', { idempotencyKey: 'k1' }),
    fixture.send(agent, 'first', { idempotencyKey: 'k1' }),
  ]);
  expect(two).toEqual(one);
  const later = await fixture.send(agent, 'second');
  expect(later).toMatchObject({ runId: null, queued: true, position: 1, sessionId: one.sessionId });
  const attempt = await fixture.begin(agent.id);
  await fixture.step(attempt, 0);
  await fixture.finish(attempt, 'completed');
  const next = await fixture.begin(agent.id);
  expect(next.start.messages.map((message) => ('content' in message ? message.content[0] : null))).toMatchObject([
    { text: 'first' },
    { text: 'step 0' },
    { text: 'second' },
  ]);
});

it('a policy refuses or steers instead', async () => {
  const refusing = await fixture.agent({ policy: { whileBusy: 'refuse' } });
  await fixture.send(refusing);
  expect(await codeOf(fixture.send(refusing))).toBe('SESSION_BUSY');
  const steering = await fixture.agent({ policy: { whileBusy: 'steer' } });
  await fixture.send(steering, 'first');
  const attempt = await fixture.begin(steering.id);
  expect(await fixture.send(steering, 'mind the gap')).toMatchObject({ runId: attempt.ref.runId, queued: false });
  expect((await fixture.read(attempt)).messages).toHaveLength(2);
});

it('a policy that changes moves the state of live runs before it answers', async () => {
  const agent = await fixture.agent();
  await fixture.send(agent);
  const attempt = await fixture.begin(agent.id);
  const before = await fixture.bus.call(sessionService.getAuthority, { runId: attempt.ref.runId });
  const same = await fixture.bus.call(sessionService.putAgent, { ...agent, instructions: 'others' });
  expect(same).toMatchObject({ version: 2, policyVersion: 1 });
  const changed = await fixture.bus.call(sessionService.putAgent, {
    ...agent,
    policy: { ...agent.policy, rules: [{ decision: 'deny', tool: '*' }] },
  });
  expect(changed).toMatchObject({ version: 3, policyVersion: 2 });
  expect((await fixture.fact(journalSubject.runState(attempt.ref.runId)))?.seq).toBeGreaterThan(before.stateSequence);
  const after = await fixture.bus.call(sessionService.getAuthority, { runId: attempt.ref.runId });
  expect(after).toMatchObject({ policyVersion: 2, stateVersion: before.stateVersion + 1 });
});

it('a cancel moves the state, withdraws what was asked, and lets the next message go', async () => {
  const agent = await fixture.agent();
  await fixture.send(agent);
  const attempt = await fixture.begin(agent.id);
  const { ref } = attempt;
  await fixture.step(attempt, 0, [call('c1')]);
  await fixture.bus.call(sessionService.requestInteractions, {
    runId: ref.runId,
    step: 0,
    requests: [ask(ref.originRunId, 'c1')],
  });
  await fixture.send(agent, 'waits');
  const told = await collect(fixture.nats.connection, toolGateway.cancelRunCalls);
  expect(await fixture.bus.call(sessionService.cancelRun, { id: ref.runId })).toEqual({ state: 'ended' });
  expect((await told.next(({ payload }) => payload.runId === ref.runId)).payload.abort).toBe(true);
  expect(await fixture.bus.call(sessionService.renewRun, { ...ref, token: attempt.token }, { keys: { agentId: agent.id } })).toEqual({
    cancelled: true,
  });
  expect(await codeOf(fixture.step(attempt, 1))).toBe('TURN_ENDED');
  expect(await fixture.bus.call(sessionService.cancelRun, { id: ref.runId })).toEqual({ state: 'ended' });
  const next = await fixture.begin(agent.id);
  expect(next.start.messages.at(-1)).toMatchObject({ content: [{ text: 'waits' }] });
  expect(next.start.messages.find((message) => 'results' in message)).toMatchObject({ results: [{ callId: 'c1', status: 'cancelled' }] });
});

it('another person’s private session is nobody’s to write to', async () => {
  const agent = await fixture.agent();
  const mine = await fixture.send(agent);
  expect((await fixture.send(agent, 'hi', { principal: bob })).sessionId).not.toBe(mine.sessionId);
  expect(await codeOf(fixture.send(agent, 'hi', { principal: bob, sessionId: mine.sessionId }))).toBe('SESSION_UNKNOWN');
});
