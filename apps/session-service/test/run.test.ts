import { randomBytes } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { digestOf, operationId, readSnapshot } from '@ambit/capability';
import { journalSubject, sessionService, snapshotKey, toolGateway } from '@ambit/contracts';
import { collect, withClient } from '@ambit/testing';
import { ask, bob, call, codeOf, Fixture, type Attempt } from './fixture.js';
import { verifies } from '../../../test/verifies.js';

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

verifies(
  ['R-EXEC-15#1', 'R-EXEC-15#3', 'R-EXEC-15#4', 'R-EXEC-15#5'],
  'output that was cut off: no call of it is made, the model is asked once more, and the next cut ends the run',
  async () => {
    const agent = await fixture.agent();
    const stored = await collect(fixture.nats.connection, toolGateway.stepStored);
    await fixture.send(agent);
    const attempt = await fixture.begin(agent.id);
    const { agentId, ref, token } = attempt;
    const server = { type: 'server_tool_use', id: 'provider-1', name: 'web_search', input: {} };
    const said = (step: number, stop: string) => ({
      ...ref,
      token,
      step,
      role: 'assistant' as const,
      content: [{ type: 'text', text: 'and' }, server],
      calls: [call(`a${step}`), call(`b${step}`)],
      stop,
    });
    await fixture.bus.call(sessionService.stepRun, said(0, 'max_tokens'), { keys: { agentId } });
    const truncated = { status: 'refused', fault: { code: 'OUTPUT_TRUNCATED' } };
    const view = await fixture.read(attempt);
    expect(view).toMatchObject({ step: 1, openCalls: [] });
    // What the provider did itself stands as it came, and has no result of ours.
    expect(view.messages.slice(1)).toMatchObject([
      { role: 'assistant', content: [{ type: 'text' }, server] },
      {
        role: 'tool',
        results: [
          { callId: 'a0', ...truncated },
          { callId: 'b0', ...truncated },
        ],
      },
    ]);
    const { step } = await fixture.bus.call(sessionService.getAuthority, { runId: ref.runId });
    expect(step).toMatchObject({ step: 0, cut: true });

    await fixture.bus.call(sessionService.stepRun, { ...said(1, 'tool_use'), calls: [] }, { keys: { agentId } });
    expect((await stored.next(({ payload }) => payload.runId === ref.runId && payload.step === 1)).payload).toMatchObject({
      callsBefore: 0,
    });
    await fixture.bus.call(sessionService.stepRun, said(2, 'length'), { keys: { agentId } });
    expect(await fixture.bus.call(sessionService.getRun, { id: ref.runId })).toMatchObject({
      status: 'failed',
      fault: { code: 'OUTPUT_TRUNCATED' },
    });
    expect(await codeOf(fixture.read(attempt))).toBe('TURN_ENDED');
  },
);

verifies('R-EXEC-16#2', 'the same round twice is told to the model, and four times ends its run', async () => {
  const agent = await fixture.agent();
  await fixture.send(agent);
  const attempt = await fixture.begin(agent.id);
  const { runId, originRunId, sessionId } = attempt.ref;
  const round = async (step: number) => {
    await fixture.step(attempt, step, [call(`c${step}`, 'question', '{"again":true}')]);
    const results = [{ callId: `c${step}`, status: 'completed' as const, content: [{ type: 'text', text: 'the same' }] }];
    await fixture.bus.call(sessionService.recordResults, { runId, originRunId, sessionId, step, results });
  };
  const corrections = async (): Promise<number> =>
    (await fixture.read(attempt)).messages.filter((one) => one.role === 'user' && JSON.stringify(one.content).includes('same calls'))
      .length;
  await round(0);
  expect(await corrections()).toBe(0);
  await round(1);
  expect(await corrections()).toBe(1);
  await round(2);
  expect(await corrections()).toBe(1);
  await round(3);
  expect(await codeOf(fixture.read(attempt))).toBe('TURN_ENDED');
  expect(await fixture.bus.call(sessionService.getRun, { id: runId })).toMatchObject({ status: 'failed', fault: { code: 'NO_PROGRESS' } });
});

it('a principal erased with a message that waits: nothing of it begins any more, and its open run ends', async () => {
  const erin = { ...bob, id: 'user:erin' };
  const agent = await fixture.agent();
  const sent = await fixture.send(agent, 'First', { principal: erin });
  const attempt = await fixture.begin(agent.id);
  expect(await fixture.send(agent, 'Second', { principal: erin })).toMatchObject({ sessionId: sent.sessionId, queued: true });
  expect(await fixture.bus.call(sessionService.erasePrincipal, { principal: erin.id })).toMatchObject({ runs: 1 });
  const { items } = await fixture.bus.call(sessionService.listRuns, { sessionId: sent.sessionId });
  expect(items).toMatchObject([{ id: attempt.ref.runId, status: 'cancelled' }]);
});

/** A run that handed work to two subagents in the background, as a chain, and one to a third that it waits for. */
async function delegating() {
  const agent = await fixture.agent({
    policy: { servers: null, skills: null, plugins: null, subagents: { helper: { agent: 'self' } } },
  });
  await fixture.send(agent);
  const parent = await fixture.begin(agent.id);
  const task = { slotId: 'helper', title: 'Look', prompt: 'Look into it.' };
  const start = (of: { background: boolean; mode: 'parallel' | 'chain' }) =>
    fixture.bus.call(sessionService.startDelegation, {
      ...of,
      runId: parent.ref.runId,
      operationId: randomBytes(32).toString('hex'),
      tasks: of.mode === 'chain' ? [task, task] : [task],
    });
  const chain = await start({ background: true, mode: 'chain' });
  const behind = await fixture.begin(agent.id);
  const waited = await start({ background: false, mode: 'parallel' });
  const before = await fixture.begin(agent.id);
  const { sessionId } = parent.ref;
  const standing = async () => {
    const { items } = await fixture.bus.call(sessionService.listDelegations, { sessionId });
    return [chain, waited].map(({ id }) => items.find((one) => one.id === id)?.status);
  };
  const statusOf = async ({ ref }: Attempt) => (await fixture.bus.call(sessionService.getRun, { id: ref.runId })).status;
  const complete = async (one: Attempt) => {
    await fixture.step(one, 0);
    return fixture.finish(one, 'completed');
  };
  return { agent, parent, sessionId, behind, before, standing, statusOf, complete };
}

it('what a run delegated ends with it, but what is in the background not where the run completed', async () => {
  const done = await delegating();
  await done.complete(done.parent);
  expect(await done.standing()).toEqual(['running', 'cancelled']);
  expect([await done.statusOf(done.behind), await done.statusOf(done.before)]).toEqual(['running', 'cancelled']);
  const failed = await delegating();
  await fixture.finish(failed.parent, 'failed');
  expect(await failed.standing()).toEqual(['cancelled', 'cancelled']);
});

it('a session that is moved or cleared ends what a completed run of it delegated', async () => {
  for (const how of ['move', 'clear']) {
    const { parent, sessionId, behind, standing, statusOf, complete } = await delegating();
    await complete(parent);
    if (how === 'clear') await fixture.bus.call(sessionService.clearSession, { id: sessionId });
    else await fixture.bus.call(sessionService.transferSession, { id: sessionId, agentId: (await fixture.agent()).id });
    expect(await statusOf(behind)).toBe('cancelled');
    expect(await standing()).toEqual(['cancelled', 'cancelled']);
  }
});

it('a chain of a session that has another agent by now ends with the task at work', async () => {
  const { agent, parent, sessionId, behind, standing, complete } = await delegating();
  await complete(parent);
  const other = await fixture.agent();
  // As a move left it that did not end what was delegated.
  await withClient(fixture.postgres.url, async (client) => {
    await client.query('UPDATE "session_service"."session" SET "agent_id" = $2, "version" = "version" + 1 WHERE "id" = $1', [
      sessionId,
      other.id,
    ]);
  });
  await complete(behind);
  expect(await standing()).toEqual(['cancelled', 'cancelled']);
  expect((await fixture.bus.call(sessionService.listRuns, { agentId: agent.id })).items.filter(({ endedAt }) => endedAt === null)).toEqual(
    [],
  );
});
