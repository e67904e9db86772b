import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { argumentsHash, operationId, resumeRunId } from '@ambit/capability';
import { sessionService, toolGateway, type Interaction } from '@ambit/contracts';
import { collect, withClient } from '@ambit/testing';
import { alice, ask, bob, call, codeOf, Fixture, type Attempt } from './fixture.js';
import { verifies } from '../../../test/verifies.js';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await Fixture.start(2);
}, 120_000);
afterAll(() => fixture.stop());

type Asking = Parameters<typeof ask>[2];

/** A run whose first step asks once for each of these. */
async function asking(...asked: readonly Asking[]): Promise<{ attempt: Attempt; ids: string[] }> {
  const agent = await fixture.agent();
  await fixture.send(agent);
  const attempt = await fixture.begin(agent.id);
  const { runId, originRunId } = attempt.ref;
  await fixture.step(
    attempt,
    0,
    asked.map((_one, index) => call(`c${index}`)),
  );
  const requests = asked.map((more, order) => ask(originRunId, `c${order}`, { order, ...more }));
  const { interactions } = await fixture.bus.call(sessionService.requestInteractions, { runId, step: 0, requests: requests.toReversed() });
  const repeated = await fixture.bus.call(sessionService.requestInteractions, { runId, step: 0, requests });
  expect(new Set(repeated.interactions.map(({ interactionId }) => interactionId))).toEqual(
    new Set(interactions.map(({ interactionId }) => interactionId)),
  );
  return { attempt, ids: interactions.map(({ interactionId }) => interactionId) };
}

const decide = (
  id: string,
  decision: 'allow' | 'deny' | 'answer',
  more: { by?: typeof bob; groups?: string[]; answer?: { selected?: string[]; text?: string } } = {},
) => fixture.bus.call(sessionService.decideInteraction, { id, decision, by: bob, ...more });
const settle = (id: string, { ref }: Attempt, callId: string) =>
  fixture.bus.call(sessionService.settleInteraction, {
    interactionId: id,
    operationId: operationId(ref.originRunId, 0, callId),
    result: { callId, status: 'completed', content: [{ type: 'text', text: `did ${callId}` }] },
  });

const question: Interaction['question'] = {
  header: '',
  question: 'Which one?',
  options: [
    { label: 'left', description: '' },
    { label: 'right', description: '' },
  ],
  multiple: false,
  custom: false,
};

verifies(['R-EXEC-8#2', 'R-EXEC-8#3'], 'three decisions are answered in order, and one run goes on after the last', async () => {
  const changes = await collect(fixture.nats.connection, sessionService.runChanged);
  const { attempt, ids } = await asking({}, { kind: 'question', question }, {});
  const [first = '', second = '', third = ''] = ids;
  const { runId, sessionId, originRunId } = attempt.ref;
  expect(await fixture.finish(attempt, 'waiting')).toEqual({ status: 'suspended', resumeRunId: null });
  expect(await codeOf(decide(second, 'answer', { answer: { selected: ['left'] } }))).toBe('INTERACTION_ORDER');
  expect((await fixture.bus.call(sessionService.getInteraction, { id: second })).blockedBy).toBe(first);

  expect(await decide(first, 'allow')).toMatchObject({ status: 'allowed', decidedBy: bob });
  expect(await codeOf(decide(second, 'allow'))).toBe('INTERACTION_KIND');
  expect(await codeOf(decide(second, 'answer'))).toBe('ANSWER_EMPTY');
  expect(await codeOf(decide(second, 'answer', { answer: { selected: ['up'] } }))).toBe('INVALID_INPUT');
  expect(await decide(second, 'answer', { answer: { selected: ['right'] } })).toMatchObject({ status: 'answered' });
  expect(await decide(third, 'deny')).toMatchObject({ status: 'denied' });
  expect(changes.all.filter(({ payload }) => payload.resumes === runId)).toHaveLength(0);

  const settled = await Promise.all([settle(first, attempt, 'c0'), settle(first, attempt, 'c0')]);
  expect(settled.map((one) => one.resumeRunId)).toEqual([resumeRunId(runId), resumeRunId(runId)]);
  const { items } = await fixture.bus.call(sessionService.listRuns, { sessionId });
  expect(items.filter(({ resumes }) => resumes === runId)).toHaveLength(1);

  const resumed = await fixture.begin(attempt.agentId);
  expect(resumed.ref).toMatchObject({ runId: resumeRunId(runId), originRunId });
  expect(resumed.start).toMatchObject({ step: 1, openCalls: [] });
  expect(resumed.start.messages.at(-1)).toMatchObject({
    results: [
      { callId: 'c0', status: 'completed' },
      { callId: 'c1', content: [{ text: 'right' }] },
      { callId: 'c2', status: 'refused', fault: { code: 'DENIED' } },
    ],
  });
});

it('of two people who decide at once, one has an effect', async () => {
  const { attempt, ids } = await asking({});
  const settledEvents = await collect(fixture.nats.connection, sessionService.interactionSettled);
  await fixture.finish(attempt, 'waiting');
  const codes = await Promise.all([codeOf(decide(ids[0] ?? '', 'deny')), codeOf(decide(ids[0] ?? '', 'allow', { by: alice }))]);
  expect(codes.sort()).toEqual(['NO_INTERACTION', 'none']);
  await settledEvents.next(({ payload }) => payload.interactionId === ids[0]);
  expect(settledEvents.all.filter(({ payload }) => payload.interactionId === ids[0])).toHaveLength(1);
});

it('decisions that were taken before the run waits resume it when it does', async () => {
  const { attempt, ids } = await asking({});
  await decide(ids[0] ?? '', 'deny');
  expect(await fixture.finish(attempt, 'waiting')).toEqual({ status: 'suspended', resumeRunId: resumeRunId(attempt.ref.runId) });
});

verifies(['R-PERM-6#5', 'R-EXEC-8#4'], 'only who the rule names may decide, and never the requester where it says so', async () => {
  const { ids } = await asking({ approvers: ['group:leads'], notRequester: true });
  const id = ids[0] ?? '';
  const other = await asking({});
  const elsewhere = { id, sessionId: other.attempt.ref.sessionId, decision: 'allow' as const, by: bob, groups: ['group:leads'] };
  expect(await codeOf(fixture.bus.call(sessionService.decideInteraction, elsewhere))).toBe('NO_INTERACTION');
  expect(await codeOf(decide(id, 'allow'))).toBe('APPROVER_NOT_ENTITLED');
  expect(await codeOf(decide(id, 'allow', { by: alice, groups: ['leads'] }))).toBe('APPROVER_NOT_ENTITLED');
  expect(await codeOf(decide(id, 'allow', { groups: ['group:leads'] }))).toBe('none');
});

verifies('R-PERM-6#6', 'an unanswered decision expires, and the run goes on with that', async () => {
  const { attempt, ids } = await asking({ expiresMs: 1_000 });
  const settled = await collect(fixture.nats.connection, sessionService.interactionSettled);
  await fixture.finish(attempt, 'waiting');
  expect((await settled.next(({ payload }) => payload.interactionId === ids[0])).payload.status).toBe('expired');
  const resumed = await fixture.begin(attempt.agentId);
  expect(resumed.start.messages.at(-1)).toMatchObject({ results: [{ fault: { code: 'APPROVAL_EXPIRED' } }] });
  expect(await codeOf(decide(ids[0] ?? '', 'allow'))).toBe('APPROVAL_EXPIRED');
});

it('an approved call goes to the gateways with what was asked', async () => {
  const { attempt, ids } = await asking({});
  await fixture.finish(attempt, 'waiting');
  await decide(ids[0] ?? '', 'allow');
  const job = toolGateway.executeDeferred.payload.parse(await fixture.deferred(attempt.ref.sessionId));
  expect(job).toMatchObject({
    runId: attempt.ref.runId,
    fingerprint: attempt.ref.fingerprint,
    call: call('c0'),
    policyVersion: 1,
    decidedBy: bob,
  });
});

it('an approval changes the settings that it was asked for, once, and never for more than there is', async () => {
  const target = { kind: 'builtin' as const, id: 'settings_write', version: 1 };
  const changes = [{ instructions: 'Be brief.' }, { mode: 'full_access' as const }, { model: 'other' }];
  const asked = changes.map((change) => ({ target, argumentsHash: argumentsHash(change) }));
  const { attempt, ids } = await asking(...asked.slice(0, 2), { argumentsHash: argumentsHash(changes[2] ?? {}) });
  const adjust = (index: number, change: (typeof changes)[number] | undefined) =>
    fixture.bus.call(sessionService.adjustAgent, {
      operationId: operationId(attempt.ref.originRunId, 0, `c${index}`),
      change: change ?? {},
    });
  const none = { code: 'NO_INTERACTION' };
  await expect(adjust(0, changes[0])).rejects.toMatchObject(none);
  await decide(ids[0] ?? '', 'allow');
  await expect(adjust(0, { instructions: 'Be long.' })).rejects.toMatchObject(none);
  const before = await fixture.bus.call(sessionService.getAgent, { id: attempt.agentId });
  expect(await adjust(0, changes[0])).toMatchObject({ instructions: 'Be brief.', version: before.version + 1 });
  expect(await adjust(0, changes[0])).toMatchObject({ version: before.version + 1 });
  await settle(ids[0] ?? '', attempt, 'c0');
  await expect(adjust(0, changes[0])).rejects.toMatchObject(none);
  await decide(ids[1] ?? '', 'allow');
  await expect(adjust(1, changes[1])).rejects.toMatchObject({ code: 'ADJUSTMENT_WIDENS', data: { reason: expect.any(String) } });
  // An approval of something else is none of this.
  await decide(ids[2] ?? '', 'allow');
  await expect(adjust(2, changes[2])).rejects.toMatchObject(none);
});

verifies(
  ['R-ACP-5#1', 'R-ACP-5#2', 'R-ACP-5#3'],
  'what a worker’s agent asks is settled once: by a person, its time, its run’s cancel, or the end of its session',
  async () => {
    const settled = await collect(fixture.nats.connection, sessionService.interactionSettled);
    const agent = await fixture.agent();
    await fixture.send(agent);
    const attempt = await fixture.begin(agent.id);
    const { agentId, ref, token } = attempt;
    const asks = (key: string, more: { expiresMs?: number; withdrawn?: boolean } = {}, of = { ref, token, agentId }) =>
      fixture.bus.call(
        sessionService.askPermission,
        { ...of.ref, token: of.token, key, action: 'execute', title: 'npm test', ...more },
        { keys: { agentId: of.agentId } },
      );
    const [one, twice] = await Promise.all([asks('one'), asks('one')]);
    expect(one).toMatchObject({ status: 'pending', interactionId: twice.interactionId });
    const id = one.interactionId ?? '';
    expect(await fixture.bus.call(sessionService.getInteraction, { id })).toMatchObject({
      isLive: true,
      tool: 'acp__execute',
      kind: 'permission',
    });
    expect((await decide(id, 'allow')).status).toBe('allowed');
    expect(await asks('one')).toEqual({ interactionId: id, status: 'allowed' });
    // No run waits for it.
    expect(await codeOf(fixture.finish(attempt, 'waiting'))).toBe('INVALID_INPUT');

    const late = await asks('late', { expiresMs: 1_000 });
    await settled.next(({ payload }) => payload.interactionId === late.interactionId);
    expect(await asks('late')).toMatchObject({ status: 'expired' });
    expect(await codeOf(decide(late.interactionId ?? '', 'allow'))).toBe('APPROVAL_EXPIRED');

    const dropped = await asks('dropped');
    expect(await asks('dropped', { withdrawn: true })).toMatchObject({ status: 'cancelled' });
    expect(await codeOf(decide(dropped.interactionId ?? '', 'allow'))).toBe('NO_INTERACTION');

    const open = await asks('open');
    const closing = await asks('closing');
    await fixture.bus.call(sessionService.cancelRun, { id: ref.runId, reason: 'enough' });
    expect(await codeOf(asks('open'))).toBe('TURN_ENDED');
    for (const { interactionId } of [open, closing])
      expect(await fixture.bus.call(sessionService.getInteraction, { id: interactionId ?? '' })).toMatchObject({ status: 'cancelled' });

    const tape = await fixture.bus.call(sessionService.listTape, { sessionId: ref.sessionId });
    expect(tape.items.filter(({ kind }) => kind === 'tool_result')).toEqual([]);

    const { sessionId } = await fixture.send(agent);
    const other = await fixture.begin(agent.id);
    const kept = await asks('kept', {}, other);
    await fixture.bus.call(sessionService.deleteSession, { id: sessionId });
    await settled.next(({ payload }) => payload.interactionId === kept.interactionId);
    const times = (interaction: string | null) => settled.all.filter(({ payload }) => payload.interactionId === interaction).length;
    expect([one, late, dropped, open, closing, kept].map(({ interactionId }) => times(interactionId))).toEqual([1, 1, 1, 1, 1, 1]);
  },
);

it('in full access nobody is asked, and the audit says so', async () => {
  const agent = await fixture.agent({ policy: { mode: 'full_access' } });
  await fixture.send(agent);
  const { agentId, ref, token } = await fixture.begin(agent.id);
  const asked = { ...ref, token, key: 'one', action: 'edit', title: 'a file' };
  expect(await fixture.bus.call(sessionService.askPermission, asked, { keys: { agentId } })).toEqual({
    interactionId: null,
    status: 'allowed',
  });
  const { items } = await fixture.bus.call(sessionService.listAudit, { after: 0 });
  expect(items.find(({ action }) => action === 'permission.allowed')).toMatchObject({
    target: `run:${ref.runId}`,
    reason: 'acp__edit in full access',
  });
});

it('full access of a subagent’s session is no more than its parent’s, and the kill switch holds for what is asked too', async () => {
  const [above, below] = [await fixture.agent(), await fixture.agent({ policy: { mode: 'full_access' } })];
  const parent = await fixture.send(above);
  const { sessionId } = await fixture.send(below);
  await withClient(fixture.postgres.url, async (client) => {
    const subagent = `UPDATE "session_service"."session" SET "kind" = 'subagent', "parent_session_id" = $1 WHERE "id" = $2`;
    await client.query(subagent, [parent.sessionId, sessionId]);
  });
  const { agentId, ref, token } = await fixture.begin(below.id);
  const asks = (key: string) =>
    fixture.bus.call(sessionService.askPermission, { ...ref, token, key, action: 'edit', title: 'a file' }, { keys: { agentId } });
  expect(await asks('narrow')).toMatchObject({ status: 'pending', interactionId: expect.any(String) });
  await fixture.bus.call(sessionService.putAgent, { id: above.id, enabled: false });
  expect(await codeOf(asks('off'))).toBe('AGENT_DISABLED');
});
