import { journalSubject, mcpBroker, sessionService, skillStore, streams, toolGateway, type Session } from '@ambit/contracts';
import { collect, Stall, until, withClient } from '@ambit/testing';
import { jetstreamManager } from '@nats-io/jetstream';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { intend, type HandRun, type HandWorker } from '../system/by-hand.js';
import { claimsOf } from '../system/facts.js';
import { alice, bob, Scene } from '../system/scene.js';
import { putSkill } from '../system/skills.js';
import { verifies } from '../verifies.js';

// Long because all that can happen to a session is tried in one start of the system.

jest.setTimeout(180_000);

let scene: Scene;
beforeAll(async () => {
  scene = await Scene.start();
  await scene.server('asking');
  await scene.server('other');
});
afterAll(() => scene?.stop());

interface Begun {
  readonly agentId: string;
  readonly worker: HandWorker;
  readonly run: HandRun;
}
async function begun(policy: Parameters<Scene['agent']>[0] = {}, more: Parameters<Scene['send']>[1] = {}): Promise<Begun> {
  const agent = await scene.agent(policy);
  const worker = await scene.worker(agent);
  await scene.send(agent, more);
  return { agentId: agent.id, worker, run: await worker.begin() };
}

const count = (name = randomUUID(), server = 'other') => intend(`mcp__${server}__count`, { name });
const transfer = (id: string, agentId: string, whileBusy: 'refuse' | 'cancel' = 'refuse') =>
  scene.bus.call(sessionService.transferSession, { id, agentId, whileBusy });
const sessionOf = (id: string): Promise<Session> => scene.bus.call(sessionService.getSession, { id });
const allow = (id: string | undefined) => scene.bus.call(sessionService.decideInteraction, { id: id ?? '', decision: 'allow', by: bob });
const visible = async (sessionId: string, kind: 'tool' | 'skill', name: string) =>
  (await scene.bus.call(sessionService.explain, { sessionId, kind, name })).reasons.some(({ included }) => included);

async function rows(text: string, values: readonly unknown[] = []): Promise<Record<string, unknown>[]> {
  let found: Record<string, unknown>[] = [];
  await withClient(scene.system.databaseUrl, async (client) => void (found = (await client.query(text, [...values])).rows));
  return found;
}

/** What a call of a run is answered with, as code or status. */
async function answerOf(run: HandRun, call = count()): Promise<string> {
  const stored = await run.step([call]).catch((error: { code?: string }) => error.code ?? String(error));
  if (typeof stored === 'string') return stored;
  const reply = await run.worker.ask(toolGateway.executeBatch, { ...run.ref, ...stored });
  const body = reply.body as { code?: string; results?: { status: string; fault?: { code: string } }[] };
  return body.code ?? body.results?.[0]?.fault?.code ?? body.results?.[0]?.status ?? '';
}

/** Kills session-service while a request of its waits at a place, and starts it again. */
async function killedAt(stall: Stall, request: () => Promise<unknown>): Promise<void> {
  const service = scene.system.process('session-service');
  // Nobody answers it any more, so nobody waits for that.
  request().catch(() => undefined);
  await stall.reached();
  await service.kill();
  await stall.release();
  await service.start();
}

verifies(
  ['R-SESSION-1#1', 'R-SESSION-1#2', 'R-OWN-4#1'],
  'a choice of skills is held against the agent, and names are all that is kept of it',
  async () => {
    const agent = await scene.agent();
    await putSkill(scene.bus, agent.id, { name: 'sorting', body: 'Sort by the hour.' });
    const open = (skills: string[], more: object = {}) =>
      scene.bus.call(sessionService.createSession, { principal: alice, agentId: agent.id, skills, ...more });
    await expect(open(['sorting', 'baking', 'weaving'])).rejects.toMatchObject({
      code: 'SKILL_UNKNOWN',
      data: { names: ['baking', 'weaving'] },
    });
    const { id } = await open(['sorting']);
    await expect(scene.bus.call(sessionService.updateSession, { id, skills: ['baking'] })).rejects.toMatchObject({
      code: 'SKILL_UNKNOWN',
      data: { names: ['baking'] },
    });
    await expect(scene.send(agent, { skills: ['baking'] })).rejects.toMatchObject({ code: 'SKILL_UNKNOWN', data: { names: ['baking'] } });
    await expect(open(['sorting'], { agentId: undefined })).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    const [row] = await rows('SELECT * FROM "session_service"."session" WHERE "id" = $1', [id]);
    expect(row?.['skills']).toEqual(['sorting']);
    expect(JSON.stringify(row)).not.toMatch(/SKILL\.md|hour|digest|[0-9a-f]{64}/);
  },
);

verifies(
  ['R-OWN-4#2', 'R-OWN-4#3', 'R-SESSION-1#3'],
  'a skill is reached by its own agent’s name for it alone, and by nothing that looks like a path',
  async () => {
    const { agentId, run } = await begun();
    const other = await scene.agent();
    await putSkill(scene.bus, other.id, { name: 'secret-craft', body: 'The other’s.' });
    const view = (name: string) => run.use(intend('skill_view', { name }));
    const [foreign] = await view('secret-craft');
    expect(foreign).toMatchObject({ status: 'failed' });
    for (const name of ['../' + other.id + '/secret-craft', '/etc/passwd', 'no-such-skill'])
      expect((await view(name))[0]?.content).toEqual(foreign?.content);

    await putSkill(scene.bus, agentId, { name: 'mending' });
    const { id } = await scene.bus.call(sessionService.createSession, { principal: alice, agentId, skills: ['mending'] });
    expect(await visible(id, 'skill', 'mending')).toBe(true);
    await scene.bus.call(skillStore.disableSkill, { agentId, name: 'mending' });
    expect((await sessionOf(id)).skills).toEqual(['mending']);
    expect(await visible(id, 'skill', 'mending')).toBe(false);
  },
);

verifies(
  ['R-SESSION-2#2', 'R-SESSION-2#3', 'R-PERM-11#1'],
  'a moved session has what its new agent has, and its old run executes nothing more',
  async () => {
    const asked = randomUUID();
    const { agentId, worker, run } = await begun({}, { mode: 'default' });
    await putSkill(scene.bus, agentId, { name: 'first-craft' });
    const { sessionId } = run.ref;
    await scene.bus.call(sessionService.updateSession, { id: sessionId, skills: ['first-craft'] });
    // Approved once under the first agent.
    const [waits] = await run.use(count(asked, 'asking'));
    expect(waits).toMatchObject({ status: 'waiting' });
    await run.finish('waiting');
    await allow((await scene.pending(sessionId))[0]?.id);
    const going = await worker.begin();
    expect(await scene.counting.ran('count', asked)).toBe(1);

    const target = await scene.agent();
    await expect(transfer(sessionId, target.id)).rejects.toMatchObject({ code: 'SESSION_BUSY' });
    expect(await sessionOf(sessionId)).toMatchObject({ agentId });
    const stored = await going.step([count(asked)]);
    const moved = await transfer(sessionId, target.id, 'cancel');
    expect(moved).toMatchObject({ id: sessionId, agentId: target.id, skills: ['first-craft'] });
    const reply = await going.worker.ask(toolGateway.executeBatch, { ...going.ref, ...stored });
    expect(reply.status).not.toBe('');
    expect(await scene.counting.ran('count', asked)).toBe(1);
    expect(await visible(sessionId, 'skill', 'first-craft')).toBe(false);

    // The same call asks again.
    const second = await scene.worker(target);
    await scene.bus.call(sessionService.receiveMessage, { principal: alice, sessionId, content: 'Again.', idempotencyKey: randomUUID() });
    const again = await second.begin();
    expect(again.opened.messages.length).toBeGreaterThan(2);
    expect(await again.use(count(asked, 'asking'))).toMatchObject([{ status: 'waiting' }]);
    await again.finish('waiting');
    await scene.bus.call(sessionService.clearSession, { id: sessionId });
    await transfer(sessionId, agentId);
    expect((await sessionOf(sessionId)).skills).toEqual(['first-craft']);
    expect(await visible(sessionId, 'skill', 'first-craft')).toBe(true);
  },
);

verifies(['R-ACP-8#1', 'R-ACP-8#2'], 'a session does not move to an agent that would not have its history', async () => {
  const agent = await scene.agent();
  const { id } = await scene.bus.call(sessionService.createSession, { principal: alice, agentId: agent.id });
  const acp = await scene.bus.call(sessionService.putAgent, { id: `acp-${randomUUID().slice(0, 8)}`, kind: 'acp' });
  const before = await sessionOf(id);
  await expect(transfer(id, acp.id)).rejects.toMatchObject({ code: 'TRANSFER_UNSUPPORTED' });
  expect(await sessionOf(id)).toEqual(before);
  await expect(transfer(id, 'nobody')).rejects.toMatchObject({ code: 'AGENT_UNKNOWN' });
  const off = await scene.bus.call(sessionService.putAgent, { id: `off-${randomUUID().slice(0, 8)}`, enabled: false });
  await expect(transfer(id, off.id)).rejects.toMatchObject({ code: 'AGENT_DISABLED' });
  await expect(transfer(randomUUID(), agent.id)).rejects.toMatchObject({ code: 'SESSION_UNKNOWN' });
});

verifies('R-SESSION-2#1', 'a move that is killed at any step has happened whole or not at all', async () => {
  const { agentId, run } = await begun();
  const target = await scene.agent();
  const { sessionId } = run.ref;
  const whole = async (owner: string): Promise<void> => {
    expect(await sessionOf(sessionId)).toMatchObject({ agentId: owner });
    const open = (await scene.runsOf(sessionId)).filter(({ status }) => status === 'running' || status === 'queued');
    expect(open.map((one) => one.agentId)).toEqual(owner === agentId ? [agentId] : []);
    const [{ mapped } = {}] = await rows('SELECT count(*)::int AS mapped FROM "session_service"."mapping" WHERE "session_id" = $1', [
      sessionId,
    ]);
    expect(mapped).toBe(owner === agentId ? 1 : 0);
  };
  for (const table of ['run', 'tape_entry', 'outbox', 'audit']) {
    await killedAt(await Stall.table(scene.system.databaseUrl, `"session_service"."${table}"`), () =>
      transfer(sessionId, target.id, 'cancel'),
    );
    await whole(agentId);
  }
  expect(await answerOf(run)).toBe('completed');

  // Committed, and killed before anybody was told.
  const service = scene.system.process('session-service');
  await service.kill();
  const unpublished = await Stall.outbox(scene.system.databaseUrl, 'session_service');
  await service.start();
  transfer(sessionId, target.id, 'cancel').catch(() => undefined);
  const owner = () => rows('SELECT "agent_id" FROM "session_service"."session" WHERE "id" = $1', [sessionId]);
  await until(async () => (await owner())[0]?.['agent_id'] === target.id, 30_000);
  await service.kill();
  await unpublished.release();
  await service.start();
  await whole(target.id);
  const claims = await claimsOf(scene.system.connection, run.ref);
  expect(await answerOf(run)).not.toBe('completed');
  expect(await claimsOf(scene.system.connection, run.ref)).toBe(claims);
});

verifies(
  ['R-SESSION-3#1', 'R-SESSION-3#2'],
  'another policy of the same agent holds whole or not at all, and keeps the choice',
  async () => {
    const agent = await scene.agent();
    await putSkill(scene.bus, agent.id, { name: 'steady-craft' });
    const { id } = await scene.bus.call(sessionService.createSession, { principal: alice, agentId: agent.id, skills: ['steady-craft'] });
    const put = (skills: string[] | null) => scene.bus.call(sessionService.putAgent, { id: agent.id, policy: { servers: null, skills } });
    for (const table of ['agent', 'outbox', 'audit']) {
      await killedAt(await Stall.table(scene.system.databaseUrl, `"session_service"."${table}"`), () => put([]));
      expect(await scene.bus.call(sessionService.getAgent, { id: agent.id })).toMatchObject({ policyVersion: 1 });
      expect(await visible(id, 'skill', 'steady-craft')).toBe(true);
    }
    await put([]);
    expect(await visible(id, 'skill', 'steady-craft')).toBe(false);
    expect((await sessionOf(id)).skills).toEqual(['steady-craft']);
    await put(null);
    expect(await visible(id, 'skill', 'steady-craft')).toBe(true);
  },
);

verifies(
  'R-EXEC-10#3',
  'a session that moved between ask and approval, or between approval and execution: nothing is dispatched',
  async () => {
    for (const isApproved of [false, true]) {
      const asked = randomUUID();
      const { run } = await begun();
      const target = await scene.agent();
      await run.use(count(asked, 'asking'));
      await run.finish('waiting');
      const [interaction] = await scene.pending(run.ref.sessionId);
      const gateway = scene.system.process('tool-gateway');
      if (isApproved) {
        await gateway.kill();
        await allow(interaction?.id);
        const answer = transfer(run.ref.sessionId, target.id, 'cancel');
        await gateway.start();
        await answer;
      } else {
        await transfer(run.ref.sessionId, target.id, 'cancel');
        await expect(allow(interaction?.id)).rejects.toMatchObject({ code: 'NO_INTERACTION' });
      }
      expect(await scene.pending(run.ref.sessionId)).toEqual([]);
      expect(await claimsOf(scene.system.connection, run.ref)).toBe(0);
      expect(await scene.counting.ran('count', asked)).toBe(0);
    }
  },
);

verifies(['R-SESSION-6#1', 'R-SESSION-6#2'], 'a fork has what was chosen and said, and nothing that was given or asked', async () => {
  const { agentId, run } = await begun({ mode: 'auto_approve' }, { mode: 'default' });
  await putSkill(scene.bus, agentId, { name: 'forked-craft' });
  const { sessionId } = run.ref;
  await scene.bus.call(sessionService.updateSession, { id: sessionId, skills: ['forked-craft'] });
  await run.use(count());
  await run.use(count(randomUUID(), 'asking'));
  await run.finish('waiting');
  const fork = await scene.bus.call(sessionService.forkSession, { id: sessionId });
  expect(fork).toMatchObject({ agentId, skills: ['forked-craft'], mode: 'default', kind: 'regular' });
  expect(await scene.pending(sessionId)).toHaveLength(1);
  expect(await scene.pending(fork.id)).toEqual([]);
  expect((await scene.bus.call(sessionService.listSnapshots, { sessionId: fork.id })).items).toEqual([]);
  const { items } = await scene.bus.call(sessionService.listTape, { sessionId: fork.id });
  expect(items.map(({ kind }) => kind)).toEqual(['message', 'message', 'tool_call', 'tool_result']);
  const worker = await scene.worker({ id: agentId });
  await scene.bus.call(sessionService.receiveMessage, {
    principal: alice,
    sessionId: fork.id,
    content: 'Go on.',
    idempotencyKey: randomUUID(),
  });
  const next = await worker.begin();
  expect(next.opened.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user']);
  expect(await next.use(count(randomUUID(), 'asking'))).toMatchObject([{ status: 'waiting' }]);
});

verifies(['R-TOOL-9#1', 'R-TOOL-9#3'], 'a session without a mapping, or whose mapping was cleared, has nothing of another’s', async () => {
  const { agentId, worker, run } = await begun();
  await scene.send({ id: agentId });
  const other = await worker.begin();
  const { id: bare } = await scene.bus.call(sessionService.createSession, { principal: alice, agentId });
  const stored = await run.step([count()]);
  const forged = await worker.ask(toolGateway.executeBatch, { ...run.ref, ...stored, sessionId: bare });
  expect(forged.body).toMatchObject({ code: 'TOOL_NOT_IN_SNAPSHOT' });
  expect(await run.batch(stored)).toMatchObject([{ status: 'completed' }]);
  const next = await run.step([count()]);
  await scene.bus.call(sessionService.clearSession, { id: run.ref.sessionId });
  const cleared = await worker.ask(toolGateway.executeBatch, { ...run.ref, ...next });
  expect(cleared.body).toMatchObject({ code: expect.stringMatching(/^(TOOL_NOT_IN_SNAPSHOT|TURN_ENDED)$/) });
  expect(await answerOf(other)).toBe('completed');
});

verifies('R-TOOL-9#4', 'a thousand publications and executions of two sessions, all mixed, make no call across', async () => {
  const limits = { callsPerRun: 10_000 };
  const left = await begun({ servers: ['other'], limits });
  const right = await begun({ servers: ['asking'], limits, rules: [{ decision: 'allow', tool: '*' }] });
  const sides = [
    { ...left, own: 'other', foreign: 'asking', name: randomUUID() },
    { ...right, own: 'asking', foreign: 'other', name: randomUUID() },
  ];
  const { step } = await left.run.tape();
  const executed = { own: 0, foreign: 0 };
  await Promise.all(
    sides.map(async ({ run, agentId, own, foreign, name }) => {
      for (let round = 0; round < 25; round++) {
        // Ten of each: the publications overlap with the other session's executions.
        const calls = [
          ...Array.from({ length: 10 }, () => count(`${name}-${round}`, own)),
          ...Array.from({ length: 10 }, () => count(`${name}-${round}`, foreign)),
        ];
        const published = scene.bus.call(sessionService.refreshRun, run.ref, { keys: { agentId } });
        const results = await run.batch(await run.step(calls, step + round));
        await published;
        executed.own += results.slice(0, 10).filter(({ status }) => status === 'completed').length;
        executed.foreign += results.slice(10).filter(({ fault }) => fault?.code !== 'TOOL_NOT_IN_SNAPSHOT').length;
      }
    }),
  );
  expect(executed).toEqual({ own: 500, foreign: 0 });
  for (const { name } of sides) for (const round of [0, 12, 24]) expect(await scene.counting.ran('count', `${name}-${round}`)).toBe(10);
});

verifies(
  ['R-TOOL-10#1', 'R-TOOL-10#2', 'R-TOOL-10#3', 'R-TOOL-10#4', 'R-TOOL-10#5'],
  'a draft’s snapshot is its client’s, for one first message',
  async () => {
    const agent = await scene.agent({ servers: ['other'] });
    const worker = await scene.worker(agent);
    const draft = (principal = alice) => scene.bus.call(sessionService.createDraft, { principal, agentId: agent.id });
    const message = (draftId: string, more: object = {}) =>
      scene.bus.call(sessionService.receiveMessage, {
        principal: alice,
        content: 'First.',
        idempotencyKey: randomUUID(),
        draftId,
        ...more,
      });
    const first = await draft();
    const expiresMs = Date.parse(first.expiresAt) - Date.now();
    expect(expiresMs).toBeGreaterThan(9 * 60_000);
    expect(expiresMs).toBeLessThanOrEqual(10 * 60_000);
    // The world moves on, and another draft is made of it.
    await scene.bus.call(sessionService.putAgent, { id: agent.id, policy: { servers: [], rules: [] } });
    const second = await draft();
    expect(second.fingerprint).not.toBe(first.fingerprint);
    await expect(message(first.draftId, { principal: bob })).rejects.toMatchObject({ code: 'DRAFT_UNKNOWN' });
    await expect(
      scene.bus.call(
        sessionService.receiveMessage,
        { principal: alice, content: 'First.', idempotencyKey: randomUUID(), draftId: first.draftId },
        { actor: { id: 'app:other', kind: 'application', issuer: 'local', display: '' } },
      ),
    ).rejects.toMatchObject({ code: 'DRAFT_UNKNOWN' });
    const persisted = await Promise.allSettled([message(first.draftId), message(first.draftId)]);
    expect(persisted.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(persisted.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'DRAFT_UNKNOWN' } });
    const run = await worker.begin();
    expect(run.ref.fingerprint).toBe(first.fingerprint);
    // Seen, not thereby allowed.
    expect(await answerOf(run)).toBe('SERVER_NOT_ALLOWED');
    await run.finish('completed');
    await expect(message(first.draftId)).rejects.toMatchObject({ code: 'DRAFT_UNKNOWN' });
    await scene.bus.call(sessionService.receiveMessage, {
      principal: alice,
      sessionId: run.ref.sessionId,
      content: 'More.',
      idempotencyKey: randomUUID(),
    });
    const next = await worker.begin();
    expect(next.ref.fingerprint).toBe(second.fingerprint);
    await next.finish('completed');

    // A persisted session has no use for a draft of the same client.
    const { id: bare } = await scene.bus.call(sessionService.createSession, { principal: alice, agentId: agent.id });
    const forged = await worker.ask(sessionService.startRun, { ...next.ref, sessionId: bare, fingerprint: second.fingerprint });
    expect(forged.body).toMatchObject({ code: 'TOOL_NOT_IN_SNAPSHOT' });
    await rows(`UPDATE "session_service"."draft" SET "expires_at" = now() - interval '1 second' WHERE "id" = $1`, [second.draftId]);
    await expect(message(second.draftId)).rejects.toMatchObject({ code: 'DRAFT_UNKNOWN' });
    expect(await rows('SELECT 1 FROM "session_service"."draft" WHERE "id" = $1', [first.draftId])).toEqual([]);
  },
);

/** Everything in JetStream that holds one of these ids in a subject or a body, but for what is told of deletions and kept as audit. */
async function traces(ids: readonly string[]): Promise<string[]> {
  const manager = await jetstreamManager(scene.system.connection);
  const found: string[] = [];
  for await (const info of manager.streams.list()) {
    const { name } = info.config;
    if (info.state.messages === 0) continue;
    for await (const message of await manager.direct.getBatch(name, { seq: 1, batch: 100_000 })) {
      const text = `${message.subject} ${message.string()} ${Buffer.from(message.subject.split('.').at(-1) ?? '', 'base64').toString()}`;
      const isPurged = message.header.has('KV-Operation');
      if (ids.some((id) => text.includes(id)) && !message.subject.includes('.audit.') && !isPurged)
        found.push(`${name} ${message.subject}`);
    }
  }
  return found;
}

/** Tables with a row that holds one of these ids, but for the audit and the record of calls, which outlive what they are about. */
async function rowsWith(ids: readonly string[]): Promise<string[]> {
  const tables = await rows(
    `SELECT table_schema AS "schema", table_name AS "table" FROM information_schema.tables WHERE table_schema IN ('session_service', 'tool_gateway')`,
  );
  const kept = new Set(['audit', 'outbox', 'call', 'ended_run']);
  const found: string[] = [];
  for (const { schema, table } of tables) {
    if (kept.has(String(table))) continue;
    const [{ n } = {}] = await rows(`SELECT count(*)::int AS n FROM "${schema}"."${table}" t WHERE t::text LIKE ANY($1)`, [
      ids.map((id) => `%${id}%`),
    ]);
    if (Number(n) > 0) found.push(`${schema}.${table}`);
  }
  return found;
}

verifies(
  ['R-SESSION-7#1', 'R-TOOL-12#1', 'R-TOOL-12#2', 'R-TOOL-12#3', 'R-TOOL-12#4', 'R-EXEC-10#4'],
  'of a deleted session nothing is left: no row, no bucket, no stream, no decision, no parked call',
  async () => {
    const asked = randomUUID();
    const { agentId, worker, run } = await begun();
    const { sessionId, runId } = run.ref;
    const stored = { runId, sessionId };
    // A plan, a large result, a parked call and an open decision.
    await run.use(intend('update_plan', { plan: [{ step: 'go', status: 'pending' }] }));
    const large = Buffer.from('x'.repeat(20_000));
    const artifact = { ...run.ref, uploadId: randomUUID(), offset: 0, data: large.toString('base64'), last: true };
    const digest = Buffer.from(await crypto.subtle.digest('SHA-256', large)).toString('hex');
    await worker.call(toolGateway.writeArtifact, { ...artifact, digest });
    const parked = await run.step([intend('mcp__other__hold', { name: asked })]);
    void worker.ask(toolGateway.executeBatch, { ...run.ref, ...parked }).catch(() => undefined);
    await scene.counting.held(asked);
    const gateway = scene.system.process('tool-gateway');
    await gateway.kill();
    await gateway.start();
    expect(await run.batch(parked)).toMatchObject([{ status: 'indeterminate' }]);
    scene.counting.release(asked);
    const [waits] = await run.use(count(asked, 'asking'));
    expect(waits).toMatchObject({ status: 'waiting' });
    await run.finish('waiting');
    const [interaction] = await scene.pending(sessionId);
    const calls = () => scene.bus.call(toolGateway.listCalls, { sessionId, parked: true });
    await until(async () => (await calls()).items.length > 0, 30_000);

    const settled = await collect(scene.system.connection, sessionService.interactionSettled);
    await gateway.kill();
    await allow(interaction?.id);
    const deletion = scene.bus.call(sessionService.deleteSession, { id: sessionId });
    await settled.next(({ payload }) => payload.sessionId === sessionId && payload.status === 'cancelled');
    settled.stop();
    await gateway.start();
    expect(await deletion).toEqual({ deleted: true });
    const owed = () => rows('SELECT 1 FROM "session_service"."aftercare" WHERE "session_id" = $1', [sessionId]);
    await until(async () => (await owed()).length === 0, 30_000);

    await expect(sessionOf(sessionId)).rejects.toMatchObject({ code: 'SESSION_UNKNOWN' });
    await expect(allow(interaction?.id)).rejects.toMatchObject({ code: 'NO_INTERACTION' });
    expect((await calls()).items).toEqual([]);
    const ids = [stored.sessionId, stored.runId];
    expect(await traces(ids)).toEqual([]);
    expect(await rowsWith(ids)).toEqual([]);
    expect((await worker.ask(toolGateway.executeBatch, { ...run.ref, ...parked })).body).toMatchObject({ code: 'TOOL_NOT_IN_SNAPSHOT' });
    expect((await worker.ask(sessionService.startRun, run.ref)).body).toMatchObject({ code: 'TOOL_NOT_IN_SNAPSHOT' });
    expect(await scene.counting.ran('count', asked)).toBe(0);
    await expect(scene.bus.call(sessionService.deleteSession, { id: sessionId })).rejects.toMatchObject({ code: 'SESSION_UNKNOWN' });
    expect(await scene.bus.call(sessionService.deleteAgent, { id: agentId })).toEqual({ deleted: true });
  },
);

verifies(
  ['R-SNAP-4#1', 'R-SNAP-4#2'],
  'each change of the world gives the next run another snapshot, and no change gives the same without composing',
  async () => {
    const agent = await scene.agent({ servers: null });
    const worker = await scene.worker(agent);
    const sceneId = randomUUID();
    const metric = async (): Promise<number> => {
      const text = await (await fetch(`${scene.system.process('session-service').opsUrl}/metrics`)).text();
      return Number(/^ambit_compositions_total\{[^}]*\} (\d+)/m.exec(text)?.[1] ?? Number.NaN);
    };
    const next = async (): Promise<string> => {
      await scene.send(agent, { sceneId });
      const run = await worker.begin();
      await run.finish('completed');
      return run.ref.fingerprint;
    };
    const put = (more: object) =>
      scene.bus.call(sessionService.putAgent, { id: agent.id, policy: { servers: null, skills: null, plugins: null }, ...more });
    const seen = new Set<string>();
    const isNew = async (what: string): Promise<void> => {
      const fingerprint = await next();
      expect({ what, isNew: !seen.has(fingerprint) }).toEqual({ what, isNew: true });
      seen.add(fingerprint);
      const before = await metric();
      expect(await next()).toBe(fingerprint);
      expect(await metric()).toBe(before);
    };
    await isNew('the first');
    await put({ model: 'another' });
    await isNew('model');
    await put({ model: 'another', policy: { servers: null, skills: null, plugins: null, disabledTools: ['update_plan'] } });
    await isNew('policy');
    await putSkill(scene.bus, agent.id, { name: 'new-craft' });
    await isNew('skill');
    const server = await scene.server(`late-${randomUUID().slice(0, 8)}`);
    await isNew('server');
    await scene.bus.call(mcpBroker.deleteServer, { id: server.id });
    expect(seen.has(await next())).toBe(true);
    const { id } = (await scene.bus.call(sessionService.listSessions, { agentId: agent.id })).items[0] ?? { id: '' };
    await scene.bus.call(sessionService.ensurePool, { agentId: agent.id, pool: 'desk' });
    await scene.bus.call(sessionService.updateSession, { id, workspaceId: 'desk' });
    await scene.send(agent, { sceneId });
    const [run] = await scene.runsOf(id);
    expect(seen.has(run?.fingerprint ?? '')).toBe(false);
    expect(run?.pool).toBe('desk');
  },
);

verifies('R-SNAP-5#1', 'an agent that changes while its catalogue is built: what was built is neither kept nor published', async () => {
  const agent = await scene.agent();
  await putSkill(scene.bus, agent.id, { name: 'late-craft' });
  // The catalogue waits for the skills.
  const stall = await Stall.table(scene.system.databaseUrl, '"skill_store"."entry"', 'ACCESS EXCLUSIVE');
  const sent = scene.send(agent);
  await stall.reached();
  await scene.bus.call(sessionService.putAgent, { id: agent.id, policy: { servers: [] } });
  await stall.release();
  const { sessionId } = await sent;
  const { items } = await scene.bus.call(sessionService.listSnapshots, { agentId: agent.id });
  expect(items).toMatchObject([{ sessionId }]);
  const stored = await rows('SELECT "fingerprint", "text" FROM "session_service"."snapshot" WHERE "agent_id" = $1', [agent.id]);
  expect(stored.map(({ fingerprint }) => fingerprint)).toEqual([items[0]?.fingerprint]);
  expect(stored[0]?.['text']).not.toContain('mcp__');
});

verifies(['R-SNAP-5#2'], 'a source that is away is told with the run, and what it offers is missing in no silence', async () => {
  const agent = await scene.agent();
  const worker = await scene.worker(agent);
  const store = scene.system.process('skill-store');
  await store.kill();
  const { runId } = await scene.send(agent);
  const { job } = await worker.take();
  await store.start();
  expect(sessionService.runExecute.payload.parse(job.json()).degraded).toEqual(['skills']);
  expect(await scene.bus.call(sessionService.getRun, { id: runId ?? '' })).toMatchObject({ degraded: ['skills'] });
  job.ack();
});

verifies('R-SNAP-7#1', 'a tool that the prompt names is among the definitions', async () => {
  const instructions =
    'You have:\n{{tools}}\n{{#tool mcp__other__count}}Count with mcp__other__count.{{/tool}}{{#tool mcp__gone__count}}Never mcp__gone__count.{{/tool}}';
  const { id } = await scene.agent({ servers: ['other'] });
  await scene.bus.call(sessionService.putAgent, { id, instructions, policy: { servers: ['other'] } });
  const worker = await scene.worker({ id });
  await scene.send({ id });
  const { ref, job } = await worker.take();
  const prompt = sessionService.runExecute.payload.parse(job.json()).instructions;
  job.ack();
  const { tools } = await worker.snapshot(ref.fingerprint);
  const named = [...prompt.matchAll(/\b(mcp__\w+|[a-z]+_[a-z]+|question)\b(?=[:.]|$)/gm)].map(([name]) => name);
  expect(named.length).toBeGreaterThan(5);
  for (const name of named.filter((one) => one.startsWith('mcp__'))) expect(tools.map((tool) => tool.name)).toContain(name);
  expect([...prompt.matchAll(/^- ([^:\n]+)/gm)].map(([, name]) => name)).toEqual(tools.map((tool) => tool.name));
  expect(prompt).toContain('Count with');
  expect(prompt).not.toContain('gone');
});

verifies(
  ['R-SNAP-6#1', 'R-SNAP-6#2'],
  'a refresh gives the same run another snapshot from its next step on, and the run’s record has both',
  async () => {
    const { agentId, run, worker } = await begun();
    const first = run.ref.fingerprint;
    await putSkill(scene.bus, agentId, { name: 'opened-craft' });
    const { fingerprint } = await worker.call(sessionService.refreshRun, run.ref);
    expect(fingerprint).not.toBe(first);
    const stored = await run.step([intend('skill_view', { name: 'opened-craft' })]);
    expect((await worker.ask(toolGateway.executeBatch, { ...run.ref, ...stored })).body).toMatchObject({ code: 'TOOL_NOT_IN_SNAPSHOT' });
    const reply = await worker.call(toolGateway.executeBatch, { ...run.ref, ...stored, fingerprint });
    expect(reply.results).toMatchObject([{ status: 'completed' }]);
    expect(await scene.bus.call(sessionService.getRun, { id: run.ref.runId })).toMatchObject({
      id: run.ref.runId,
      fingerprint,
      fingerprints: [first, fingerprint],
    });
    const manager = await jetstreamManager(scene.system.connection);
    const state = await manager.streams.getMessage(streams.journal.name, { last_by_subj: journalSubject.runState(run.ref.runId) });
    expect(state?.json()).toMatchObject({ runId: run.ref.runId, reason: 'refreshed' });
  },
);
