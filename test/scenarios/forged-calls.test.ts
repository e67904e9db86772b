import { sessionService, toolGateway, type Rpc } from '@ambit/contracts';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { intend, type HandRun, type Reply } from '../system/by-hand.js';
import { claimsOf } from '../system/facts.js';
import { Scene } from '../system/scene.js';
import { verifies } from '../verifies.js';

jest.setTimeout(120_000);

let scene: Scene;
let mine: HandRun;
let theirs: HandRun;
let name: string;

/** A run of an agent of its own, that has only this one server. */
async function runWith(slug: string): Promise<HandRun> {
  await scene.server(slug);
  const agent = await scene.agent({ servers: [slug] });
  const worker = await scene.worker(agent);
  await scene.send(agent);
  return worker.begin();
}

beforeAll(async () => {
  scene = await Scene.start();
  mine = await runWith('mine');
  theirs = await runWith('theirs');
  name = randomUUID();
});
afterAll(() => scene?.stop());

const unused = '0'.repeat(64);
/** Each way to name what is another's, and beside it the same with what nobody has. */
const forgeries = (): readonly { readonly what: string; readonly forged: object; readonly nothing: object }[] => [
  { what: 'session', forged: { sessionId: theirs.ref.sessionId }, nothing: { sessionId: randomUUID() } },
  { what: 'fingerprint', forged: { fingerprint: theirs.ref.fingerprint }, nothing: { fingerprint: unused } },
  { what: 'run token', forged: { token: theirs.ref.token }, nothing: { token: 'x'.repeat(theirs.ref.token.length) } },
  { what: 'run', forged: { runId: theirs.ref.runId, originRunId: theirs.ref.originRunId }, nothing: { runId: randomUUID() } },
  { what: 'everything', forged: theirs.ref, nothing: { ...theirs.ref, runId: randomUUID() } },
];

async function isRefusedAlike(contract: Rpc, body: object): Promise<Reply> {
  const replies: Reply[] = [];
  for (const { what, forged, nothing } of forgeries()) {
    const [one, other] = await Promise.all([
      mine.worker.ask(contract, { ...mine.ref, ...body, ...forged }),
      mine.worker.ask(contract, { ...mine.ref, ...body, ...nothing }),
    ]);
    expect({ what, reply: one }).toEqual({ what, reply: other });
    expect({ what, code: (one.body as { code?: unknown }).code }).toEqual({ what, code: 'TOOL_NOT_IN_SNAPSHOT' });
    replies.push(one);
  }
  const [first] = replies;
  if (first === undefined) throw new Error('nothing was forged');
  for (const reply of replies) expect(reply).toEqual(first);
  return first;
}

verifies(
  ['R-NATS-1#1', 'R-SNAP-1#3'],
  "a call with another agent's session, fingerprint, token or run is refused like one with what does not exist",
  async () => {
    const stored = await mine.step([intend('mcp__mine__count', { name })]);
    const whole = await isRefusedAlike(toolGateway.executeBatch, stored);
    expect(whole).toEqual({
      status: '404',
      error: expect.any(String),
      body: { code: 'TOOL_NOT_IN_SNAPSHOT', message: expect.any(String) },
    });
    expect(await scene.counting.ran('count', name)).toBe(0);
    expect(await claimsOf(scene.system.connection, theirs.ref)).toBe(0);
    // What was asked for by its rightful owner still runs.
    expect(await mine.batch(stored)).toMatchObject([{ status: 'completed' }]);
    expect(await scene.counting.ran('count', name)).toBe(1);
  },
);

verifies('R-NATS-1#1', 'so is every other call that a worker makes about a run', async () => {
  const step = (await mine.tape()).step;
  const calls: [Rpc, object][] = [
    [sessionService.readTape, {}],
    [sessionService.renewRun, {}],
    [sessionService.refreshRun, {}],
    [sessionService.stepRun, { step, role: 'assistant', content: [], calls: [] }],
    [sessionService.finishRun, { status: 'failed' }],
    [toolGateway.readArtifact, { digest: unused }],
    [toolGateway.writeArtifact, { uploadId: randomUUID(), offset: 0, data: '', last: true, digest: unused }],
  ];
  for (const [contract, body] of calls) await isRefusedAlike(contract, body);
  // Nothing of it touched either run.
  expect((await mine.tape()).step).toBe(step);
  expect((await theirs.tape()).step).toBe(0);
});

verifies('R-EXEC-4#3', "a tool of another agent's is refused like one that nobody has", async () => {
  const untouched = randomUUID();
  const [forged, nothing] = [intend('mcp__theirs__count', { name: untouched }), intend('mcp__theirs__countless', { name: untouched })];
  const results = await mine.use(forged, nothing);
  const [one, other] = results.map(({ callId: _id, ...rest }) => rest);
  expect(one).toEqual(other);
  expect(one).toEqual({ status: 'refused', fault: { code: 'TOOL_NOT_IN_SNAPSHOT', message: expect.any(String) } });
  // In the same words as a whole reply that names what is not the caller's.
  const whole = await mine.worker.ask(toolGateway.executeBatch, { ...mine.ref, sessionId: randomUUID(), step: 0, calls: [nothing] });
  expect(one?.fault).toEqual(whole.body);
  expect(await scene.counting.ran('count', untouched)).toBe(0);
  expect((await scene.bus.call(sessionService.listInteractions, { sessionId: mine.ref.sessionId })).items).toEqual([]);
  expect((await mine.tape()).openCalls).toEqual([]);
});
