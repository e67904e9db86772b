import { randomUUID } from 'node:crypto';
import { ensureStreams } from '@ambit/bus';
import { operationId } from '@ambit/capability';
import { buckets, journalSubject, mappingKey, objectStores, sessionService, snapshotKey, streams } from '@ambit/contracts';
import { withClient } from '@ambit/testing';
import { jetstreamManager } from '@nats-io/jetstream';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Rebuild } from '../src/rebuild.service.js';
import { Retention } from '../src/retention.service.js';
import { StorageSweeper } from '../src/storage.sweeper.js';
import { Sweeper } from '../src/sweeper.service.js';
import { ask, call, codeOf, Fixture } from './fixture.js';
import { registration } from './world.js';
import { verifies } from '../../../test/verifies.js';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await Fixture.start(1, { AMBIT_KEEP_MESSAGES_DAYS: '30', AMBIT_KEEP_SNAPSHOTS_DAYS: '90' });
}, 120_000);
afterAll(() => fixture.stop());

const HOUR_MS = 3_600_000;
const later = (hours: number) => new Date(Date.now() + hours * HOUR_MS);
const sweeper = () => fixture.replicas[0]?.app.get(StorageSweeper, { strict: false }) as StorageSweeper;
const headOf = (agentId: string, fingerprint: string) => fixture.value('ambit_snapshots', snapshotKey.head(agentId, fingerprint));

it('what nobody used for a day leaves the buckets, a run that is going keeps its own, and the next use puts it back', async () => {
  const agent = await fixture.agent();
  const live = await fixture.agent();
  await fixture.send(agent);
  const ended = await fixture.begin(agent.id);
  await fixture.step(ended, 0);
  await fixture.finish(ended, 'completed');
  await fixture.send(live);
  const going = await fixture.begin(live.id);
  const key = mappingKey(ended.ref.sessionId, ended.ref.fingerprint);

  expect(await sweeper().sweep(later(23))).toMatchObject({ snapshots: 0, mappings: 0, states: 1 });
  expect(await fixture.fact(journalSubject.runState(ended.ref.runId))).toBeNull();
  expect(await fixture.fact(journalSubject.runState(going.ref.runId))).not.toBeNull();
  expect(await fixture.value('ambit_mappings', key)).not.toHaveLength(0);
  // Whoever still asks for the ended run is told so, and no claim can be fenced on the answer.
  expect(await fixture.bus.call(sessionService.getAuthority, { runId: ended.ref.runId })).toMatchObject({
    status: 'completed',
    stateSequence: Number.MAX_SAFE_INTEGER,
  });

  expect(await sweeper().sweep(later(25))).toMatchObject({ snapshots: 1, mappings: 1, states: 0 });
  expect(await headOf(agent.id, ended.ref.fingerprint)).toHaveLength(0);
  expect(await fixture.value('ambit_mappings', key)).toHaveLength(0);
  expect(await headOf(live.id, going.ref.fingerprint)).not.toHaveLength(0);

  // Postgres has it still, and the next message of the same world reads it from the bucket again.
  expect(await fixture.bus.call(sessionService.readSnapshot, { fingerprint: ended.ref.fingerprint })).toMatchObject({ agentId: agent.id });
  await fixture.send(agent);
  const again = await fixture.begin(agent.id);
  expect(again.ref.fingerprint).toBe(ended.ref.fingerprint);
  expect(await headOf(agent.id, again.ref.fingerprint)).not.toHaveLength(0);
});

it('a snapshot that is given to a session while it is swept is in the bucket afterwards', async () => {
  const agent = await fixture.agent();
  for (let round = 0; round < 12; round++) {
    const [sent] = await Promise.all([
      fixture.send(agent, 'Hello', { sceneId: randomUUID() }),
      sweeper().sweep(later(25)),
      sweeper().sweep(later(25)),
    ]);
    expect(sent.runId).not.toBeNull();
    const attempt = await fixture.begin(agent.id);
    expect(await headOf(agent.id, attempt.ref.fingerprint)).not.toHaveLength(0);
    expect(await fixture.value('ambit_mappings', mappingKey(attempt.ref.sessionId, attempt.ref.fingerprint))).not.toHaveLength(0);
    await fixture.step(attempt, 0);
    await fixture.finish(attempt, 'completed');
  }
});

verifies(
  'R-INGRESS-6#4',
  'what an older generation was goes after its last run, and of replicas that sweep at once one takes it',
  async () => {
    const agent = await fixture.agent();
    const replica = await fixture.addReplica();
    const both = [sweeper(), replica.app.get(StorageSweeper, { strict: false })];
    const sweep = async (hours: number) => {
      const rounds = await Promise.all(both.map((one) => one.sweep(later(hours))));
      return {
        snapshots: rounds.reduce((sum, one) => sum + one.snapshots, 0),
        mappings: rounds.reduce((sum, one) => sum + one.mappings, 0),
      };
    };
    await fixture.send(agent);
    const older = await fixture.begin(agent.id);
    fixture.world.tools.push(registration('update_plan'));
    fixture.world.changed();
    await fixture.send(agent, 'Hello', { sceneId: randomUUID() });
    const newer = await fixture.begin(agent.id);
    expect(newer.ref.fingerprint).not.toBe(older.ref.fingerprint);
    // Whatever is swept of others, both of these are at work.
    await sweep(25);
    for (const { ref } of [older, newer]) expect(await headOf(agent.id, ref.fingerprint)).not.toHaveLength(0);
    await fixture.step(older, 0);
    await fixture.finish(older, 'completed');
    expect(await sweep(23)).toEqual({ snapshots: 0, mappings: 0 });
    expect(await sweep(25)).toEqual({ snapshots: 1, mappings: 1 });
    expect(await sweep(26)).toEqual({ snapshots: 0, mappings: 0 });
    expect(await headOf(agent.id, older.ref.fingerprint)).toHaveLength(0);
    expect(await headOf(agent.id, newer.ref.fingerprint)).not.toHaveLength(0);
    await fixture.step(newer, 0);
    await fixture.finish(newer, 'completed');
    fixture.world.tools.pop();
    fixture.world.changed();
    await replica.close();
    fixture.replicas.pop();
  },
);

it('a run’s state stays in the journal while operations of it stand there', async () => {
  const agent = await fixture.agent();
  await fixture.send(agent);
  const attempt = await fixture.begin(agent.id);
  const operation = operationId(attempt.ref.originRunId, 0, 'c1');
  await fixture.write(journalSubject.claim(attempt.ref.originRunId, operation), {});
  await fixture.step(attempt, 0);
  await fixture.finish(attempt, 'completed');
  await sweeper().sweep(later(2));
  expect(await fixture.fact(journalSubject.runState(attempt.ref.runId))).not.toBeNull();
  const manager = await jetstreamManager(fixture.nats.connection);
  await manager.streams.purge('AMBIT_JOURNAL', { filter: journalSubject.operationsOf(attempt.ref.originRunId) });
  await sweeper().sweep(later(2));
  expect(await fixture.fact(journalSubject.runState(attempt.ref.runId))).toBeNull();
});

it('what was said leaves after its days and its place stays; snapshots leave after theirs, and the same world is composed anew', async () => {
  const agent = await fixture.agent();
  const sent = await fixture.send(agent, 'What nobody may read for ever');
  const attempt = await fixture.begin(agent.id);
  const retention = fixture.replicas[0]?.app.get(Retention, { strict: false });
  const tape = async () => (await fixture.bus.call(sessionService.listTape, { sessionId: sent.sessionId })).items;
  await retention?.sweep(later(31 * 24));
  // Of a run that is going everything stays.
  expect(JSON.stringify(await tape())).toContain('nobody may read');
  await fixture.step(attempt, 0);
  await fixture.finish(attempt, 'completed');
  const before = await tape();
  await retention?.sweep(later(29 * 24));
  expect(await tape()).toEqual(before);
  await retention?.sweep(later(31 * 24));
  expect((await tape()).map(({ id, kind, role, content }) => ({ id, kind, role, content }))).toEqual(
    before.map(({ id, kind, role }) => ({ id, kind, role, content: { content: [{ type: 'text', text: '[erased]' }] } })),
  );
  const found = { sessionId: sent.sessionId, query: 'nobody' };
  expect((await fixture.bus.call(sessionService.searchTape, found)).entries).toEqual([]);

  const { fingerprint } = attempt.ref;
  await sweeper().sweep(later(25));
  await retention?.sweep(later(92 * 24));
  expect(await codeOf(fixture.bus.call(sessionService.readSnapshot, { fingerprint }))).toBe('SNAPSHOT_UNKNOWN');
  await fixture.send(agent, 'Again');
  const again = await fixture.begin(agent.id);
  expect(again.ref.fingerprint).toBe(fingerprint);
  expect(await headOf(agent.id, fingerprint)).not.toHaveLength(0);
  await fixture.step(again, 0);
  await fixture.finish(again, 'completed');
});

/** Debts that a crash left to the sweeper, oldest first, each with so many ended runs; gives their sessions. */
async function owing(...counts: readonly number[]): Promise<{ readonly sessionId: string; readonly runIds: readonly string[] }[]> {
  const debts = counts.map((count) => ({ sessionId: randomUUID(), runIds: Array.from({ length: count }, () => randomUUID()) }));
  await withClient(fixture.postgres.url, async (client) => {
    for (const [index, { sessionId, runIds }] of debts.entries()) {
      const runs = runIds.map((runId) => ({ runId, originRunId: runId, agentId: 'gone', pool: 'shared', hasJob: false }));
      const values = [randomUUID(), sessionId, JSON.stringify(runs), new Date(Date.now() - HOUR_MS + index)];
      await client.query(
        `INSERT INTO "session_service"."aftercare" ("id", "session_id", "whole", "runs", "fingerprints", "at") VALUES ($1, $2, true, $3, '{}', $4)`,
        values,
      );
    }
  });
  return debts;
}
async function owed(): Promise<string[]> {
  let found: string[] = [];
  await withClient(fixture.postgres.url, async (client) => {
    found = (await client.query('SELECT "session_id" FROM "session_service"."aftercare"')).rows.map((row) => String(row['session_id']));
  });
  return found;
}

it('what cannot be removed of one session keeps nothing of another', async () => {
  const [stuck, free] = await owing(1, 1);
  fixture.world.broken.add(stuck?.sessionId ?? '');
  await fixture.replicas[0]?.app.get(Sweeper, { strict: false }).sweep();
  expect(await owed()).toEqual([stuck?.sessionId]);
  expect(fixture.world.cleared.map(({ sessionId }) => sessionId)).toContain(free?.sessionId);
  fixture.world.broken.clear();
  await fixture.replicas[0]?.app.get(Sweeper, { strict: false }).sweep();
  expect(await owed()).toEqual([]);
});

it('of a session with many runs nothing goes while one of them has an open call, and no request names more than 500', async () => {
  const [debt] = await owing(1_100);
  const sweep = () => fixture.replicas[0]?.app.get(Sweeper, { strict: false }).sweep();
  const asked = () =>
    fixture.world.cleared.filter(({ sessionId }) => sessionId === debt?.sessionId).map(({ look, runs }) => ({ look, count: runs.length }));
  fixture.world.open.add(debt?.runIds.at(-1) ?? '');
  await sweep();
  expect(asked().every(({ look }) => look)).toBe(true);
  expect(asked().length).toBeGreaterThanOrEqual(3);
  expect(await owed()).toEqual([debt?.sessionId]);
  fixture.world.open.clear();
  await sweep();
  expect(await owed()).toEqual([]);
  // The service's own sweep may have asked the same.
  const dropped = asked().flatMap(({ look, count }) => (look ? [] : [count]));
  expect(dropped.sort((left, right) => left - right).at(0)).toBe(100);
  expect(new Set(asked().map(({ count }) => count))).toEqual(new Set([500, 100]));
});

it('JetStream lost: runs that were going are parked with what may have happened, pools and fences come back, the next message is like any other', async () => {
  const agent = await fixture.agent();
  const other = await fixture.agent();
  await fixture.bus.call(sessionService.revokeOwner, { owner: 'plugin:com.acme', service: 'plugin-registry', fence: 4_711 });
  await fixture.send(agent);
  const running = await fixture.begin(agent.id);
  await fixture.step(running, 0, [call('sent', 'mcp__one__count'), call('asked')]);
  await fixture.bus.call(sessionService.requestInteractions, {
    runId: running.ref.runId,
    step: 0,
    requests: [ask(running.ref.originRunId, 'asked')],
  });
  const queued = await fixture.send(other);

  const manager = await jetstreamManager(fixture.nats.connection);
  for await (const { config } of manager.streams.list()) await manager.streams.delete(config.name);
  await ensureStreams(fixture.nats.connection, [...Object.values(streams), ...Object.values(buckets), ...Object.values(objectStores)]);
  const [one] = fixture.replicas;
  await Promise.all([one?.app.get(Rebuild, { strict: false }).look(), fixture.addReplica()]);

  for (const runId of [running.ref.runId, queued.runId ?? '']) {
    const run = await fixture.bus.call(sessionService.getRun, { id: runId });
    expect(run).toMatchObject({ status: 'parked', fault: { code: 'PARKED' } });
  }
  expect(await codeOf(fixture.attempt(agent.id, running.ref))).toBe('TURN_ENDED');
  const { items } = await fixture.bus.call(sessionService.listTape, { sessionId: running.ref.sessionId });
  expect(items.filter(({ kind }) => kind === 'tool_result').map(({ content }) => content)).toMatchObject([
    { callId: 'sent', status: 'indeterminate' },
    { callId: 'asked', status: 'cancelled' },
  ]);
  expect(Buffer.from(await fixture.value('ambit_epochs', 'session-service.plugin=3Acom=2Eacme._fence')).toString()).toBe('4711');
  expect((await manager.consumers.info('AMBIT_RUNS', `${agent.id}_shared`)).num_pending).toBe(0);

  await fixture.send(agent, 'And now?');
  const next = await fixture.begin(agent.id);
  expect(next.ref.sessionId).toBe(running.ref.sessionId);
  expect(await headOf(agent.id, next.ref.fingerprint)).not.toHaveLength(0);
  await fixture.step(next, 0);
  expect(await fixture.finish(next, 'completed')).toMatchObject({ status: 'completed' });
});

it('a job that was handed out as often as it may be ends its run though nobody heard of it; one that is gone is made again, one that waits is left', async () => {
  const [handed, gone, waiting] = [await fixture.agent(), await fixture.agent(), await fixture.agent()];
  const runOf = async (agent: { readonly id: string }): Promise<string> => (await fixture.send(agent)).runId ?? '';
  const runs = [await runOf(handed), await runOf(gone), await runOf(waiting)] as const;
  await fixture.take(handed.id);
  const { job, message } = await fixture.take(gone.id);
  await message.ackAck();
  const rounds = fixture.replicas[0]?.app.get(Sweeper, { strict: false }) as Sweeper;
  const status = (id: string) => fixture.bus.call(sessionService.getRun, { id }).then((run) => run.status);

  await rounds.sweep(later(1));
  expect(await Promise.all(runs.map(status))).toEqual(['queued', 'queued', 'queued']);
  await rounds.sweep(new Date(later(1).getTime() + 2 * 60_000));
  expect(await Promise.all(runs.map(status))).toEqual(['failed', 'queued', 'queued']);
  expect(await fixture.bus.call(sessionService.getRun, { id: runs[0] })).toMatchObject({ fault: { code: 'DELIVERIES_EXHAUSTED' } });
  expect((await fixture.take(gone.id)).job.runId).toBe(job.runId);
  expect((await fixture.take(waiting.id)).job.runId).toBe(runs[2]);
});

it('the id of a deleted agent is nobody’s until its skills are gone', async () => {
  const { id } = await fixture.agent();
  const rounds = fixture.replicas[0]?.app.get(Sweeper, { strict: false }) as Sweeper;
  await fixture.world.loseSkills();
  expect(await fixture.bus.call(sessionService.deleteAgent, { id })).toEqual({ deleted: true });
  expect(await codeOf(fixture.agent({ id }))).toBe('AGENT_LEAVING');
  await rounds.sweep(later(1));
  expect(await codeOf(fixture.agent({ id }))).toBe('AGENT_LEAVING');
  fixture.world.findSkills();
  await rounds.sweep(later(1));
  expect(await fixture.agent({ id })).toMatchObject({ id, version: 1 });
});
