import { createHash, randomUUID } from 'node:crypto';
import { resumeRunId } from '@ambit/capability';
import { RunEvent, skillStore, type CallRecord, type Interaction, type Run, type TapeEntry } from '@ambit/contracts';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import { factsOf } from '../system/facts.js';
import { Scene } from '../system/scene.js';
import { startWorker } from '../system/worker-process.js';
import { verifies } from '../verifies.js';

jest.setTimeout(180_000);
const SKILL = '---\nname: house-rules\ndescription: How we do it here.\n---\n\nCount twice.\n';

let scene: Scene;
beforeAll(async () => {
  scene = await Scene.start();
  for (const slug of ['one', 'two', 'asking']) await scene.server(slug);
});
afterAll(() => scene?.stop());

async function http<T>(at: `${'GET' | 'POST'} ${string}`, body?: unknown, more: Readonly<Record<string, string>> = {}): Promise<T> {
  const [method = 'GET', path = ''] = at.split(' ');
  const response = await fetch(`${scene.system.apiUrl}/v1/${path}`, {
    method,
    headers: { authorization: `Bearer ${scene.system.token}`, 'content-type': 'application/json', ...more },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${at}: ${response.status} ${text}`);
  return JSON.parse(text) as T;
}

interface Told {
  readonly id: number | undefined;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Reads a run's events: to the end, or until one that is wanted, whatever is behind it being lost with the connection. */
async function told(runId: string, options: { readonly after?: number; readonly until?: (event: Told) => boolean } = {}): Promise<Told[]> {
  const response = await fetch(`${scene.system.apiUrl}/v1/run/${runId}/events`, {
    headers: {
      authorization: `Bearer ${scene.system.token}`,
      ...(options.after === undefined ? {} : { 'last-event-id': String(options.after) }),
    },
  });
  const events: Told[] = [];
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const fields = new Map(
        text
          .slice(0, end)
          .split('\n')
          .map((line) => [line.split(': ')[0] ?? '', line.slice(line.indexOf(': ') + 2)]),
      );
      text = text.slice(end + 2);
      const type = fields.get('event');
      if (type === undefined) continue;
      const id = fields.get('id');
      const event = {
        id: id === undefined ? undefined : RunEvent.shape.id.parse(Number(id)),
        type,
        data: JSON.parse(fields.get('data') ?? '{}'),
      };
      events.push(event);
      if (options.until?.(event) === true) return events;
    }
  }
  return events;
}

async function giveSkill(agentId: string): Promise<void> {
  const bytes = Buffer.from(SKILL);
  const digest = createHash('sha256').update(bytes).digest('hex');
  await scene.bus.call(skillStore.putBlob, { digest, bytes: bytes.byteLength, offset: 0, data: bytes.toString('base64') });
  await scene.bus.call(skillStore.putSkill, { agentId, files: [{ path: 'SKILL.md', bytes: bytes.byteLength, digest }] });
}

verifies(
  ['R-EXEC-1#2', 'R-EXEC-5#3', 'R-SNAP-1#1', 'R-SNAP-1#2', 'R-EXEC-12#1'],
  'a message becomes a run with a closed snapshot, calls several servers, waits for a person, goes on, and answers',
  async () => {
    const agent = await scene.agent();
    await giveSkill(agent.id);
    const name = randomUUID();
    const values = JSON.stringify({ name });
    const content = [
      'use skill_view with {"name":"house-rules"}',
      `use mcp__one__look with ${values}\nuse mcp__asking__count with ${values}\nuse mcp__two__count with ${values}`,
      `use mcp__one__count with ${values}`,
    ].join('\n\n');
    const worker = await startWorker(scene.system, agent);
    const message = { principal: { id: 'user:alice', kind: 'person' }, agentId: agent.id, sceneId: name, content };
    const sent = await http<{ sessionId: string; runId: string }>('POST message', message, { 'idempotency-key': name });
    // The same key again is the same message.
    expect(await http('POST message', message, { 'idempotency-key': name })).toEqual(sent);

    const before = await told(sent.runId, { until: ({ type }) => type === 'interaction.requested' });
    const cut = before.at(-2)?.id;
    const inbox = await http<{ items: Interaction[] }>(`GET interaction?sessionId=${sent.sessionId}&status=pending`);
    expect(inbox.items).toMatchObject([{ kind: 'permission', tool: 'mcp__asking__count', principal: { id: 'user:alice' }, order: 0 }]);
    // The other calls of its batch did not wait for it.
    expect(await http(`POST interaction/${inbox.items[0]?.id}/decide`, { decision: 'allow' })).toMatchObject({ status: 'allowed' });
    const after = await told(sent.runId, { ...(cut === undefined ? {} : { after: cut }) });
    await worker.stop();

    // Whoever comes back with the last id it has misses nothing and gets nothing twice.
    const whole = await told(sent.runId);
    const ids = (events: readonly Told[]): number[] => events.flatMap(({ id }) => (id === undefined ? [] : [id]));
    expect([...ids(before.slice(0, -1)), ...ids(after)]).toEqual(ids(whole));
    expect(new Set(ids(whole)).size).toBe(ids(whole).length);
    const resumed = resumeRunId(sent.runId);
    const changes = whole
      .filter(({ type }) => type === 'run.changed')
      .map(({ data: { runId, status } }) => `${runId === resumed ? 'resumed' : 'first'} ${String(status)}`);
    expect(changes.filter((change, index) => change !== changes[index - 1])).toEqual([
      'first queued',
      'first running',
      'first suspended',
      'resumed queued',
      'resumed running',
      'resumed completed',
    ]);

    // The snapshot is what its fingerprint says.
    const run = await http<Run>(`GET run/${sent.runId}`);
    const { tools, skills } = await (await scene.worker(agent)).snapshot(run.fingerprint);
    expect(tools.find((tool) => tool.name === 'mcp__two__count')).toMatchObject({
      exposure: expect.any(String),
      effect: 'write',
      inputSchema: expect.anything(),
      target: { kind: 'mcp', bindingHash: expect.any(String) },
    });
    expect(skills).toMatchObject([
      { name: 'ambit-settings', digest: expect.any(String), owner: 'builtin' },
      { name: 'ambit-skill-drafting', digest: expect.any(String), owner: 'builtin' },
      { name: 'house-rules', digest: expect.any(String), owner: expect.any(String) },
    ]);

    // The tape tells the story in order, each result beside its call.
    const tape = (await http<{ items: TapeEntry[] }>(`GET session/${sent.sessionId}/tape?limit=200`)).items;
    const calls = tape
      .filter(({ kind }) => kind === 'tool_call')
      .map(({ step, content: call }) => ({ step, ...(call as { callId: string; name: string }) }));
    expect(calls.map(({ step, name: tool }) => `${step} ${tool}`)).toEqual([
      '0 skill_view',
      '1 mcp__one__look',
      '1 mcp__asking__count',
      '1 mcp__two__count',
      '2 mcp__one__count',
    ]);
    const results = new Map(
      tape.filter(({ kind }) => kind === 'tool_result').map(({ content: result }) => [(result as { callId: string }).callId, result]),
    );
    expect(results.size).toBe(5);
    for (const { callId } of calls) expect(results.get(callId)).toMatchObject({ status: 'completed' });
    expect(JSON.stringify(results.get(calls[0]?.callId ?? ''))).toContain('Count twice.');
    expect(tape.filter(({ role }) => role === 'assistant').at(-1)).toMatchObject({ runId: resumed });
    expect(JSON.stringify(tape.at(-1)?.content)).toContain('Done.');

    // The journal has two facts of each, whose claim names session, run and call.
    const { items } = await http<{ items: CallRecord[] }>(`GET call?originRunId=${sent.runId}`);
    expect(items).toHaveLength(5);
    for (const call of calls) {
      const facts = await factsOf(scene.system.connection, { originRunId: sent.runId }, { step: call.step ?? 0, callId: call.callId });
      expect(facts.claim).toMatchObject({
        sessionId: sent.sessionId,
        originRunId: sent.runId,
        callId: call.callId,
        fingerprint: run.fingerprint,
        principal: 'user:alice',
      });
      expect(facts.outcome).toMatchObject({ status: 'completed' });
    }
    expect(items.find(({ tool }) => tool === 'mcp__asking__count')).toMatchObject({
      interactionId: inbox.items[0]?.id,
      approvedBy: expect.any(String),
    });
    expect(await scene.counting.ran('count', name)).toBe(3);
    expect(await scene.counting.ran('look', name)).toBe(1);
    expect((await http<{ items: Run[] }>(`GET run?sessionId=${sent.sessionId}`)).items).toHaveLength(2);
  },
);
