// The platform's own tools as a worker calls them: the tape, questions, skills, settings, deferred tools, and large results read by range.
// Long because one started system shows them all.
import { fitResults, type Fittable } from '@ambit/capability';
import {
  mcpBroker,
  objectStores,
  pluginRegistry,
  sessionService,
  skillStore,
  toolGateway,
  type CallResult,
  type Input,
} from '@ambit/contracts';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import { collect } from '@ambit/testing';
import { jetstreamManager } from '@nats-io/jetstream';
import fc from 'fast-check';
import { createHash, randomUUID } from 'node:crypto';
import { HandRun, intend, type HandWorker } from '../system/by-hand.js';
import { installFiles } from '../system/helper-plugin.js';
import { http } from '../system/http.js';
import { bob, Scene } from '../system/scene.js';
import { setSessionFacts } from '../system/stored-session.js';
import { verifies } from '../verifies.js';
import { z } from 'zod';

jest.setTimeout(240_000);
/** What the results of one answer may weigh together. */
const ANSWER_BYTES = 400 * 1024;

let scene: Scene;
beforeAll(async () => {
  scene = await Scene.start({
    services: ['session-service', 'tool-gateway', 'mcp-broker', 'mcp-runner', 'skill-store', 'plugin-registry', 'admin-api'],
  });
  await scene.server('one');
});
afterAll(() => scene?.stop());

type Sent = Parameters<Scene['send']>[1];
async function begun(
  policy: Input<typeof sessionService.putAgent>['policy'] = {},
  sent: Sent = {},
): Promise<{ readonly worker: HandWorker; readonly run: HandRun }> {
  const agent = await scene.agent(policy);
  const worker = await scene.worker(agent);
  await scene.send(agent, sent);
  return { worker, run: await worker.begin() };
}
const codes = (results: readonly CallResult[]): string[] => results.map(({ fault, status }) => fault?.code ?? status);
const textOf = (result: CallResult | undefined): string => String(result?.content?.[0]?.['text'] ?? '');
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

verifies(
  ['R-TOOL-4#1', 'R-TOOL-4#2'],
  'a model finds what was said by its words, and reads around it, within bounds at both edges',
  async () => {
    const { run } = await begun({}, { content: 'The zebra crossed where the river bends.' });
    const found = await run.use(
      intend('tape_search', { query: '  Zebra river ', limit: 1 }),
      intend('tape_search', { query: 'zebra', limit: 50, kinds: ['message'], start: '2000-01-01T00:00:00.000Z', end: Date.now() + 60_000 }),
      intend('tape_search', { query: 'zebra', kinds: ['anchor'] }),
      ...[{ limit: 0 }, { limit: 51 }, { query: ' \t' }, { query: '' }, { scope: 'all' }, { start: 'yesterday' }].map((wrong) =>
        intend('tape_search', { query: 'zebra', ...wrong }),
      ),
    );
    expect(codes(found)).toEqual([...Array<string>(3).fill('completed'), ...Array<string>(6).fill('BAD_ARGUMENTS')]);
    expect(found[0]?.structuredContent).toMatchObject({ entries: [{ sessionId: run.ref.sessionId, id: 1, kind: 'message' }] });
    expect(textOf(found[1])).toContain('zebra');
    expect(textOf(found[2])).toBe('Nothing found.');

    const ids = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);
    const least = { entryIds: [1], before: 0, after: 0, limit: 1, entryBytes: 1, totalBytes: 1 };
    const greatest = { entryIds: ids(20), before: 20, after: 20, limit: 100, entryBytes: 8_192, totalBytes: 65_536 };
    const beyond = [
      ...[{ entryIds: [] }, { entryIds: ids(21) }, { entryIds: [0] }, { before: -1 }, { before: 21 }, { after: -1 }, { after: 21 }],
      ...[{ limit: 0 }, { limit: 101 }, { entryBytes: 0 }, { entryBytes: 8_193 }, { totalBytes: 0 }, { totalBytes: 65_537 }],
    ];
    const read = await run.use(
      ...[least, greatest, { entryIds: [1] }, ...beyond.map((wrong) => ({ ...least, ...wrong }))].map((input) =>
        intend('tape_context', input),
      ),
    );
    expect(codes(read)).toEqual([...Array<string>(3).fill('completed'), ...Array<string>(beyond.length).fill('BAD_ARGUMENTS')]);
    expect(read[0]?.structuredContent).toMatchObject({ entries: [{ id: 1, text: 'T', truncated: true }] });
    expect(textOf(read[1])).toContain('where the river bends');
    run.abandon();
  },
);

verifies('R-TOOL-4#4', 'the tapes of a session’s own subagents can be searched and read, and nobody else’s', async () => {
  const { worker, run } = await begun({}, { content: 'A walrus of the parent.' });
  const said = async (content: string): Promise<string> => (await scene.send({ id: worker.agentId }, { content })).sessionId;
  const [child, grandchild, stranger] = [
    await said('A walrus of the child.'),
    await said('A walrus of its child.'),
    await said('A walrus of a stranger.'),
  ];
  await setSessionFacts(scene.system, child, { kind: 'subagent', parentSessionId: run.ref.sessionId });
  await setSessionFacts(scene.system, grandchild, { kind: 'subagent', parentSessionId: child });
  const scopes = ['current', 'linked_subagents', 'current_and_linked'] as const;
  const results = await run.use(...scopes.map((scope) => intend('tape_search', { query: 'walrus', kinds: ['message'], scope })));
  const sessions = results.map(({ structuredContent }) =>
    (structuredContent as { entries: { sessionId: string }[] }).entries.map(({ sessionId }) => sessionId).sort(),
  );
  expect(sessions).toEqual([[run.ref.sessionId], [child, grandchild].sort(), [run.ref.sessionId, child, grandchild].sort()]);
  const around = await run.use(
    ...[child, grandchild, run.ref.sessionId, stranger, randomUUID()].map((sourceSessionId) =>
      intend('tape_context', { entryIds: [1], sourceSessionId }),
    ),
  );
  expect(around.map(({ status }) => status)).toEqual(['completed', 'completed', 'completed', 'failed', 'failed']);
  expect(textOf(around[0])).toContain('of the child');
  // What is not this session's own family looks like what does not exist.
  expect(around[3]?.fault).toEqual(around[4]?.fault);
  run.abandon();
});

verifies('R-EXEC-7#1', 'a question is taken at each of its limits and refused one beyond', async () => {
  const { run } = await begun();
  const label = (length: number) => ({ label: 'l'.repeat(length), description: 'd'.repeat(200) });
  const most = { header: 'h'.repeat(30), question: 'q'.repeat(500), options: Array.from({ length: 10 }, () => label(30)) };
  const least = { question: 'q', options: [{ header: 'l' }], multiple: true, custom: false };
  const beyond = [
    { ...most, header: 'h'.repeat(31) },
    { ...most, question: 'q'.repeat(501) },
    { ...most, question: '' },
    { ...most, options: [] },
    { ...most, options: Array.from({ length: 11 }, () => label(30)) },
    { ...most, options: [label(31)] },
    { ...most, options: [{ label: '' }] },
    { ...most, options: [{ label: 'l', description: 'd'.repeat(201) }] },
  ];
  const results = await run.use(...[most, least, ...beyond].map((input) => intend('question', input)));
  expect(codes(results)).toEqual(['waiting', 'waiting', ...Array<string>(beyond.length).fill('QUESTION_INVALID')]);
  expect((await scene.pending(run.ref.sessionId)).map(({ question }) => question)).toMatchObject([
    { ...most, multiple: false, custom: true },
    { header: '', question: 'q', options: [{ label: 'l', description: '' }], multiple: true, custom: false },
  ]);
  run.abandon();
});

verifies(
  ['R-TOOL-15#1', 'R-TOOL-15#2', 'R-PERM-5#1', 'R-SNAP-6#1', 'R-SNAP-6#2', 'R-SKILL-10#1', 'R-TOOL-2#4'],
  'settings tools are there from the step after their skill was viewed; each change is approved by itself and widens nothing',
  async () => {
    const { worker, run } = await begun({ mode: 'full_access' });
    const SETTINGS = ['settings_read', 'settings_write'];
    const names = async (fingerprint: string): Promise<string[]> => (await worker.snapshot(fingerprint)).tools.map(({ name }) => name);
    const change = { instructions: 'Be brief.', limits: { callsPerRun: 100 } };
    expect(await names(run.ref.fingerprint)).not.toEqual(expect.arrayContaining(['settings_read']));
    expect(codes(await run.use(intend('settings_read'), intend('settings_write', change)))).toEqual([
      'TOOL_NOT_IN_SNAPSHOT',
      'TOOL_NOT_IN_SNAPSHOT',
    ]);
    // Nothing was viewed: nothing changes.
    expect(await worker.call(sessionService.refreshRun, run.ref)).toMatchObject({ fingerprint: run.ref.fingerprint });

    const [viewed] = await run.use(intend('skill_view', { name: 'ambit-settings' }));
    expect(textOf(viewed)).toContain('settings_write');
    const { fingerprint } = await worker.call(sessionService.refreshRun, run.ref);
    expect(fingerprint).not.toBe(run.ref.fingerprint);
    expect((await names(fingerprint)).filter((name) => name.startsWith('settings_'))).toEqual(SETTINGS);
    expect(await scene.bus.call(sessionService.getRun, { id: run.ref.runId })).toMatchObject({
      fingerprints: [run.ref.fingerprint, fingerprint],
    });
    const tape = (await scene.bus.call(sessionService.listTape, { sessionId: run.ref.sessionId, limit: 200 })).items;
    expect(tape.find(({ kind }) => kind === 'event')?.content).toEqual({ name: 'refresh', from: run.ref.fingerprint, to: fingerprint });

    run.abandon();
    const again = new HandRun(worker, { ...run.ref, fingerprint }, run.opened);
    const [read, first, second, malformed] = await again.use(
      intend('settings_read'),
      intend('settings_write', change),
      intend('settings_write', { ...change, mode: 'auto_approve' }),
      intend('settings_write', { rules: [] }),
    );
    expect(read?.structuredContent).toMatchObject({ id: worker.agentId, policy: { mode: 'full_access', servers: 'all' } });
    expect(codes([first, second, malformed].flatMap((one) => one ?? []))).toEqual(['waiting', 'waiting', 'BAD_ARGUMENTS']);
    await again.finish('waiting');

    // One approval, one change: the second call still waits for its own.
    const decide = async (): Promise<void> => {
      const [pending] = await scene.pending(run.ref.sessionId);
      await scene.bus.call(sessionService.decideInteraction, { id: pending?.id ?? '', decision: 'allow', by: bob });
    };
    const version = async (): Promise<number> => (await scene.bus.call(sessionService.getAgent, { id: worker.agentId })).version;
    const before = await version();
    const changed = await collect(scene.system.connection, sessionService.agentChanged);
    await decide();
    await changed.next(({ payload }) => payload.agentId === worker.agentId && payload.version === before + 1);
    changed.stop();
    expect(await scene.bus.call(sessionService.getAgent, { id: worker.agentId })).toMatchObject({
      instructions: 'Be brief.',
      policy: { mode: 'full_access', limits: { callsPerRun: 100 } },
    });
    expect(await scene.pending(run.ref.sessionId)).toHaveLength(1);
    await decide();
    const resumed = await worker.begin();
    expect(await scene.bus.call(sessionService.getAgent, { id: worker.agentId })).toMatchObject({ policy: { mode: 'auto_approve' } });
    // The skill stays viewed for the run that goes on, and asking for more than there is fails although a person said yes.
    expect(await names(resumed.ref.fingerprint)).toEqual(expect.arrayContaining(SETTINGS));
    const [wider] = await resumed.use(intend('settings_write', { mode: 'full_access' }));
    expect(wider?.status).toBe('waiting');
    await resumed.finish('waiting');
    await decide();
    const last = await worker.begin();
    expect(last.opened.messages.at(-1)).toMatchObject({
      role: 'tool',
      results: [
        { status: 'failed', fault: { code: 'TOOL_FAILED' }, content: [{ text: expect.stringContaining('full_access allows more') }] },
      ],
    });
    expect(await version()).toBe(before + 2);
    // Nobody who did not ask a person can use what a person said.
    await expect(scene.bus.call(sessionService.adjustAgent, { operationId: 'f'.repeat(64), change })).rejects.toMatchObject({
      code: 'NO_INTERACTION',
    });

    // Each time another run took the tape over the platform left its mark; neither the model nor an administrator can.
    const anchors = await scene.bus.call(toolGateway.askTool, { sessionId: run.ref.sessionId, name: 'tape_anchors' });
    expect(anchors.content).toMatchObject({
      anchors: [
        { content: { name: 'handoff', from: run.ref.runId, to: resumed.ref.runId } },
        { content: { name: 'handoff', from: resumed.ref.runId, to: last.ref.runId } },
      ],
    });
    expect(codes(await last.use(intend('tape_handoff')))).toEqual(['TOOL_NOT_IN_SNAPSHOT']);
    await expect(scene.bus.call(toolGateway.askTool, { sessionId: run.ref.sessionId, name: 'tape_handoff' })).rejects.toMatchObject({
      code: 'TOOL_NOT_IN_SNAPSHOT',
    });
    await last.step([]);
    await last.finish('completed');

    // The next run of the same session has viewed nothing yet.
    await scene.send({ id: worker.agentId }, { sessionId: run.ref.sessionId });
    const next = await worker.begin();
    expect(await names(next.ref.fingerprint)).not.toContain('settings_write');
    expect(codes(await next.use(intend('settings_write', change)))).toEqual(['TOOL_NOT_IN_SNAPSHOT']);
    next.abandon();
  },
);

verifies(
  ['R-SKILL-13#1', 'R-SKILL-13#2'],
  'a draft is its session’s alone, and a person’s yes makes it a skill of the agent that the session has then',
  async () => {
    const { worker, run } = await begun({ mode: 'full_access' });
    const { sessionId } = run.ref;
    const drafting = async (by: HandWorker, before: HandRun): Promise<HandRun> => {
      expect(codes(await before.use(intend('skill_draft', { name: 'a', description: 'b', body: 'c' })))).toEqual(['TOOL_NOT_IN_SNAPSHOT']);
      await before.use(intend('skill_view', { name: 'ambit-skill-drafting' }));
      const { fingerprint } = await by.call(sessionService.refreshRun, before.ref);
      before.abandon();
      return new HandRun(by, { ...before.ref, fingerprint }, before.opened);
    };
    const first = await drafting(worker, run);
    const tea = { name: 'tea', description: 'How to make tea: always green.', body: 'Boil water.' };
    const [drafted, broken, outside] = await first.use(
      intend('skill_draft', { ...tea, files: [{ path: 'references/leaves.md', text: 'Green.' }] }),
      intend('skill_draft', { ...tea, name: 'Not a name' }),
      intend('skill_draft', { ...tea, files: [{ path: '../leaves.md', text: 'Green.' }] }),
    );
    expect(codes([drafted, broken, outside].flatMap((one) => one ?? []))).toEqual(['completed', 'TOOL_FAILED', 'TOOL_FAILED']);
    const { digest } = z.object({ digest: z.string() }).parse(drafted?.structuredContent);

    // Whoever decides reads it; from another session nobody does.
    const shown = (id: string, more = '') => http(scene.system, `GET /v1/session/${id}/skill-draft${more}`);
    expect((await shown(sessionId)).body).toMatchObject({ items: [{ name: 'tea', digest, description: tea.description }] });
    const { texts } = (await shown(sessionId, '/tea')).body;
    expect(JSON.stringify(texts)).toContain('Boil water.');
    const other = (await scene.send({ id: worker.agentId })).sessionId;
    expect((await shown(other)).body).toEqual({ items: [] });
    expect(await shown(other, '/tea')).toMatchObject({ status: 404, body: { code: 'DRAFT_UNKNOWN' } });

    // What a person was asked before the session moved is asked no more: the draft is nobody's skill.
    const install = intend('skill_manage', { action: 'install', name: 'tea', digest });
    expect(codes(await first.use(install))).toEqual(['waiting']);
    await first.finish('waiting');
    const [asked] = await scene.pending(sessionId);
    expect(asked).toBeDefined();
    const next = await scene.agent({ mode: 'full_access' });
    await scene.bus.call(sessionService.transferSession, { id: sessionId, agentId: next.id, whileBusy: 'cancel' });
    await expect(
      scene.bus.call(sessionService.decideInteraction, { id: asked?.id ?? '', decision: 'allow', by: bob }),
    ).rejects.toMatchObject({ code: 'NO_INTERACTION' });
    const has = async (agentId: string): Promise<string[]> =>
      (await scene.bus.call(skillStore.listSkills, { agentId })).items.map(({ name }) => name);
    expect([await has(worker.agentId), await has(next.id)]).toEqual([[], []]);

    // The draft moved with its session: the agent that it has now gets the skill.
    const nextWorker = await scene.worker(next);
    await scene.send(next, { sessionId });
    const second = await drafting(nextWorker, await nextWorker.begin());
    expect(codes(await second.use(intend('skill_manage', { action: 'install', name: 'tea', digest })))).toEqual(['waiting']);
    await second.finish('waiting');
    const [again] = await scene.pending(sessionId);
    await scene.bus.call(sessionService.decideInteraction, { id: again?.id ?? '', decision: 'allow', by: bob });
    const resumed = await nextWorker.begin();
    expect(resumed.opened.messages.at(-1)).toMatchObject({ role: 'tool', results: [{ status: 'completed' }] });
    expect([await has(worker.agentId), await has(next.id)]).toEqual([[], ['tea']]);
    expect((await shown(sessionId)).body).toEqual({ items: [] });
    resumed.abandon();
  },
);

verifies('R-SKILL-10#2', 'a skill’s files are read by the digest that the run was given, a range after another', async () => {
  const agent = await scene.agent();
  const worker = await scene.worker(agent);
  const body = `---\nname: long-read\ndescription: Long.\n---\n\n${'Žluťoučký kůň 🐎. '.repeat(9_000)}\n`;
  const bytes = Buffer.from(body);
  const digest = sha256(bytes);
  await scene.bus.call(skillStore.putBlob, {
    digest,
    bytes: bytes.length,
    offset: 0,
    data: bytes.subarray(0, 256 * 1024).toString('base64'),
  });
  if (bytes.length > 256 * 1024)
    await scene.bus.call(skillStore.putBlob, {
      digest,
      bytes: bytes.length,
      offset: 256 * 1024,
      data: bytes.subarray(256 * 1024).toString('base64'),
    });
  const files = [{ path: 'SKILL.md', bytes: bytes.length, digest }];
  await scene.bus.call(skillStore.putSkill, { agentId: worker.agentId, files });
  await scene.send(agent);
  const run = await worker.begin();
  let whole = '';
  for (let offset: number | null = 0; offset !== null;) {
    const [part] = await run.use(intend('skill_view', { name: 'long-read', offset }));
    expect(part?.status).toBe('completed');
    const { next } = part?.structuredContent as { next: number | null };
    whole += textOf(part).replace(/\n\n\(The file goes on: call again with offset \d+\.\)$/, '');
    offset = next;
  }
  expect(sha256(Buffer.from(whole))).toBe(digest);
  // Another agent's skill, a path that leads out, and a skill that nobody has are alike: there is nothing of that name here.
  const outside = ['ghost', '../long-read', 'Long-Read', '/etc/passwd'].map((name) => intend('skill_view', { name }));
  const paths = ['../SKILL.md', '/etc/passwd', 'none.md'].map((path) => intend('skill_view', { name: 'long-read', path }));
  expect(new Set((await run.use(...outside, ...paths)).map(({ status }) => status))).toEqual(new Set(['failed']));
  run.abandon();
  const other = (await begun()).run;
  expect((await other.use(intend('skill_view', { name: 'long-read' })))[0]).toMatchObject({ status: 'failed' });
  other.abandon();
});

verifies(
  'R-INGRESS-6#1',
  'a skill whose text alone changed: the run that is going reads what it was given, the next one the new text',
  async () => {
    const agent = await scene.agent();
    const worker = await scene.worker(agent);
    const put = async (body: string): Promise<void> => {
      const bytes = Buffer.from(`---\nname: renewed\ndescription: Always the same.\n---\n\n${body}\n`);
      const file = { bytes: bytes.length, digest: sha256(bytes) };
      await scene.bus.call(skillStore.putBlob, { ...file, offset: 0, data: bytes.toString('base64') });
      await scene.bus.call(skillStore.putSkill, { agentId: agent.id, files: [{ path: 'SKILL.md', ...file }] });
    };
    const read = async (run: HandRun) => textOf((await run.use(intend('skill_view', { name: 'renewed' })))[0]);
    await put('The first way.');
    await scene.send(agent);
    const going = await worker.begin();
    expect(await read(going)).toContain('The first way.');
    await put('The second way.');
    await scene.send(agent, { sceneId: randomUUID() });
    const next = await worker.begin();
    expect(await read(next)).toContain('The second way.');
    expect(await read(going)).toContain('The first way.');
    for (const run of [going, next]) run.abandon();
  },
);

verifies(
  ['R-EXEC-14#1', 'R-EXEC-14#2', 'R-EXEC-14#5'],
  'of results that do not fit together the last is shortened, none is called again, and each stays whole for its session alone',
  async () => {
    const { run } = await begun();
    const large = (name: string) => intend('mcp__one__count', { name, bytes: 180 * 1024 });
    const stored = await run.step([large('a'), large('b'), large('c')]);
    const results = await run.batch(stored);
    expect(codes(results)).toEqual(['completed', 'completed', 'completed']);
    expect(results.map((result) => textOf(result).length > 180 * 1024)).toEqual([true, true, false]);
    expect(textOf(results[2])).toMatch(/^The result has \d+ bytes\. It begins:\ncount c x/);
    expect(Buffer.byteLength(JSON.stringify(results))).toBeLessThanOrEqual(ANSWER_BYTES);
    await run.batch(stored);
    for (const name of ['a', 'b', 'c']) expect(await scene.counting.ran('count', name)).toBe(1);

    const digest = results[2]?.artifact?.digest ?? '';
    let json = '';
    for (let offset: number | null = 0; offset !== null;) {
      const [part] = await run.use(intend('artifact_read', { digest, offset, length: 32_768 }));
      json += textOf(part);
      offset = (part?.structuredContent as { next: number | null }).next;
    }
    expect(sha256(Buffer.from(json))).toBe(digest);
    expect(JSON.parse(json)).toMatchObject({ content: [{ text: `count c ${'x'.repeat(180 * 1024)}` }] });
    const own = await run.worker.call(toolGateway.readArtifact, { ...run.ref, digest });
    expect(Buffer.from(own.data, 'base64').toString()).toBe(json.slice(0, 64 * 1024));

    // Neither another session of the agent's own nor another agent's has it, whatever it says.
    await scene.send({ id: run.worker.agentId });
    const others = [await run.worker.begin(), (await begun()).run];
    for (const other of others) {
      expect((await other.use(intend('artifact_read', { digest }))).map(({ status }) => status)).toEqual(['failed']);
      expect(await other.worker.ask(toolGateway.readArtifact, { ...other.ref, digest })).toMatchObject({
        body: { code: 'ARTIFACT_UNKNOWN' },
      });
      expect(await other.worker.ask(toolGateway.readArtifact, { ...other.ref, sessionId: run.ref.sessionId, digest })).toMatchObject({
        body: { code: 'TOOL_NOT_IN_SNAPSHOT' },
      });
      other.abandon();
    }
    const outOfBounds = await run.use(
      ...[{ length: 32_769 }, { length: 0 }, { offset: -1 }].map((wrong) => intend('artifact_read', { digest, ...wrong })),
    );
    expect(codes(outOfBounds)).toEqual(['BAD_ARGUMENTS', 'BAD_ARGUMENTS', 'BAD_ARGUMENTS']);
    run.abandon();
  },
);

verifies('R-EXEC-14#4', 'whatever the sizes, an answer fits or says why not, in order, with one result for each call', async () => {
  const { run } = await begun();
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 250 * 1024 }), { minLength: 1, maxLength: 6 }), async (sizes) => {
      const calls = sizes.map((bytes) => intend('mcp__one__count', { name: randomUUID(), bytes }));
      const results = await run.use(...calls);
      expect(results.map(({ callId }) => callId)).toEqual(calls.map(({ callId }) => callId));
      expect(Buffer.byteLength(JSON.stringify(results))).toBeLessThanOrEqual(ANSWER_BYTES + calls.length);
      expect(new Set(codes(results))).toEqual(new Set(['completed']));
    }),
    { numRuns: 6 },
  );
  run.abandon();
  const form = fc.record({ whole: fc.nat(5_000), excerpt: fc.option(fc.nat(1_200), { nil: undefined }), line: fc.nat(60) });
  fc.assert(
    fc.property(fc.array(form, { maxLength: 130 }), fc.nat(200_000), (forms, budget) => {
      const given = forms.map(({ whole, excerpt, line }, index): Fittable => ({
        callId: String(index),
        whole,
        line,
        ...(excerpt === undefined ? {} : { excerpt }),
      }));
      const fit = fitResults(given, { budget });
      if (!fit.fits) return expect(fit.smallest).toBeGreaterThan(budget);
      expect(fit.total).toBeLessThanOrEqual(budget);
      expect(fit.results.map(({ callId }) => callId)).toEqual(given.map(({ callId }) => callId));
      expect(fit.results.reduce((sum, { size }) => sum + size, 0)).toBe(fit.total);
    }),
    { numRuns: 1_000 },
  );
});

verifies('R-EXEC-14#3', 'a result that cannot be stored away is an error of a call that was made, once', async () => {
  const { run } = await begun();
  const manager = await jetstreamManager(scene.system.connection);
  const name = `OBJ_${objectStores.artifacts.name}`;
  const { config } = await manager.streams.info(name);
  await manager.streams.delete(name);
  const stored = await run.step([
    intend('mcp__one__count', { name: 'homeless', bytes: 20_000 }),
    intend('mcp__one__count', { name: 'small' }),
  ]);
  expect(codes(await run.batch(stored))).toEqual(['RESULT_TOO_LARGE', 'completed']);
  await manager.streams.add(config);
  expect(codes(await run.batch(stored))).toEqual(['RESULT_TOO_LARGE', 'completed']);
  expect(await scene.counting.ran('count', 'homeless')).toBe(1);
  expect(codes(await run.use(intend('mcp__one__count', { name: 'housed', bytes: 20_000 })))).toEqual(['completed']);
  run.abandon();
});

verifies(
  ['R-INGRESS-20#1', 'R-INGRESS-20#2'],
  'a model finds deferred tools by their words, loads them, and calls them from its next step on',
  async () => {
    const offered = Array.from({ length: 12 }, (_, index) => `more_${index}`);
    const { id } = await scene.bus.call(mcpBroker.putServer, scene.counting.offering('deferring', offered));
    await scene.bus.call(mcpBroker.testServer, { id });
    const { worker, run } = await begun({ servers: ['one', 'deferring'], deferredTools: ['mcp__deferring__*'] });
    const listed = async (ref: { readonly fingerprint: string }) =>
      (await worker.snapshot(ref.fingerprint)).tools.flatMap(({ name }) => (name.startsWith('mcp__deferring__') ? [name] : []));
    expect(await listed(run.ref)).toEqual([]);
    const name = randomUUID();
    const [found, none, unseen] = await run.use(
      intend('tool_discover', { query: 'COUNT name', limit: 50 }),
      intend('tool_discover', { query: 'nothing like it' }),
      intend('mcp__deferring__count', { name }),
    );
    const tools = (found?.structuredContent as { tools: { name: string }[] }).tools.map((tool) => tool.name);
    expect(tools).toHaveLength(offered.length + 3);
    expect([textOf(none), codes(unseen === undefined ? [] : [unseen])]).toEqual(['No tool has these words.', ['TOOL_NOT_IN_SNAPSHOT']]);
    const loads = await run.use(...[...tools.slice(0, 13), 'mcp__one__count', 'exec'].map((tool) => intend('tool_load', { name: tool })));
    expect(codes(loads)).toEqual([...Array<string>(12).fill('completed'), ...Array<string>(3).fill('TOOL_FAILED')]);
    expect(loads.slice(12).map(textOf)).toEqual([
      expect.stringContaining('as many tools as it may'),
      expect.stringContaining('no tool mcp__one__count to load'),
      expect.stringContaining('no tool exec to load'),
    ]);
    const { fingerprint } = await worker.call(sessionService.refreshRun, run.ref);
    expect(await listed({ fingerprint })).toEqual(tools.slice(0, 12));
    const next = new HandRun(worker, { ...run.ref, fingerprint }, run.opened);
    const results = await next.use(...[tools[0], tools[14]].map((tool) => intend(tool ?? '', { name })));
    expect(codes(results)).toEqual(['completed', 'TOOL_NOT_IN_SNAPSHOT']);
    for (const one of [run, next]) one.abandon();
    await scene.bus.call(mcpBroker.deleteServer, { id });
  },
);

verifies(
  ['R-INGRESS-18#1', 'R-INGRESS-18#2'],
  'a plugin’s preset works for whoever the policy lets start it, with its own instructions and tools, until its plugin is gone',
  async () => {
    const file = (name: string, more = '') =>
      Buffer.from(`---\nname: ${name}\ndescription: Does ${name}\n${more}---\n\nYou are the ${name}.\n`);
    await installFiles(scene, {
      'plugin.json': Buffer.from(
        JSON.stringify({ $schema: 'https://agent-plugins.org/schemas/1.0.0/plugin.schema.json', name: 'staff', version: '1.0.0' }),
      ),
      'agents/counter.md': file('counter', 'tools: mcp__one__count\n'),
      'agents/painter.md': file('painter'),
    });
    await scene.bus.call(pluginRegistry.enablePlugin, { id: 'staff' });
    const TOOL = 'subagent_orchestrator';
    const { worker, run } = await begun({
      presets: { '*': 'allow', painter: 'deny' },
      rules: [
        { decision: 'allow', tool: TOOL },
        { decision: 'allow', tool: 'mcp__one__*' },
      ],
    });
    const { text } = await scene.bus.call(sessionService.readSnapshot, { fingerprint: run.ref.fingerprint });
    expect((JSON.parse(text) as { subagents: { name: string }[] }).subagents.map(({ name }) => name)).toEqual(['counter']);
    const start = (slotId: string) =>
      intend(TOOL, { operation: 'run', background: true, tasks: [{ slotId, title: 'Count', prompt: 'Count one.' }] });
    const [started, denied, unknown] = await run.use(start('counter'), start('painter'), start('nobody'));
    expect(codes([started, denied, unknown].flatMap((one) => one ?? []))).toEqual([
      'completed',
      'SUBAGENT_UNAVAILABLE',
      'SUBAGENT_UNAVAILABLE',
    ]);
    const child = await worker.begin();
    expect(JSON.stringify(child.opened.messages)).toContain('You are the counter.');
    const names = (await worker.snapshot(child.ref.fingerprint)).tools.map(({ name }) => name);
    expect(names.filter((name) => name.startsWith('mcp__'))).toEqual(['mcp__one__count']);
    expect(codes(await child.use(intend('mcp__one__count', { name: randomUUID() }), intend('mcp__one__look', { name: 'x' })))).toEqual([
      'completed',
      'TOOL_NOT_IN_SNAPSHOT',
    ]);
    await scene.bus.call(pluginRegistry.disablePlugin, { id: 'staff' });
    expect(codes(await run.use(start('counter')))).not.toEqual(['completed']);
    for (const one of [child, run]) one.abandon();
    await scene.bus.call(pluginRegistry.uninstallPlugin, { id: 'staff' });
  },
);
