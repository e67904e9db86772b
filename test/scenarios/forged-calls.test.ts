import {
  buckets,
  HEADER,
  runConsumer,
  sessionService,
  snapshotKey,
  streams,
  toolGateway,
  workerInboxPrefix,
  workerSubjectsOf,
  type Rpc,
} from '@ambit/contracts';
import { allContracts } from '@ambit/identity';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import type { Msg } from '@nats-io/nats-core';
import { randomUUID } from 'node:crypto';
import { intend, type HandRun, type Reply } from '../system/by-hand.js';
import { claimsOf } from '../system/facts.js';
import { contractSubjects, DEAF, isForWorkers, spelled, storedSubjects } from '../system/forged-subjects.js';
import { mayHear, mayPublish } from '../system/permission.js';
import { Scene } from '../system/scene.js';
import { wiretap } from '../system/wiretap.js';
import { verifies } from '../verifies.js';

jest.setTimeout(120_000);

let scene: Scene;
let mine: HandRun;
/** Another session's run of the same agent. */
let twin: HandRun;
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
  await scene.send({ id: mine.worker.agentId });
  twin = await mine.worker.begin();
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
  { what: 'session of one’s own', forged: { sessionId: twin.ref.sessionId }, nothing: { sessionId: randomUUID() } },
  { what: 'run token of one’s own', forged: { token: twin.ref.token }, nothing: { token: 'x'.repeat(twin.ref.token.length) } },
  {
    what: 'run of one’s own',
    forged: { runId: twin.ref.runId, originRunId: twin.ref.originRunId },
    nothing: { runId: randomUUID() },
  },
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

const keysOf = ({ worker, ref }: HandRun): Readonly<Record<string, string>> => ({ ...ref, agentId: worker.agentId });

verifies('R-NATS-1#2', 'a worker can say nothing in the name of another, by whatever id', async () => {
  const { connection, agentId } = mine.worker;
  // Its own words go through, and somebody answers.
  expect((await mine.tape()).openCalls).toEqual([]);
  const alike = [
    theirs.worker.agentId,
    '*',
    '>',
    `${agentId}.*`,
    `${agentId}*`,
    `${agentId}-2`,
    agentId.slice(0, -1),
    agentId.toUpperCase(),
  ];
  const subjects = new Set([
    ...contractSubjects(keysOf(theirs)),
    ...storedSubjects(theirs.worker.agentId, theirs.ref),
    ...allContracts()
      .filter(isForWorkers)
      .flatMap((contract) => alike.map((id) => spelled(contract, { ...keysOf(mine), agentId: id }))),
    // Other agents' ids that begin as its own does, and pools that it has not.
    ...[...alike, `${agentId}_shared`].map((id) => `$JS.API.CONSUMER.MSG.NEXT.${streams.runs.name}.${id}_shared`),
    `$JS.API.CONSUMER.MSG.NEXT.${streams.runs.name}.${runConsumer(agentId, 'other')}`,
    `$JS.ACK.${streams.runs.name}.${runConsumer(agentId, 'other')}.1.1.1.1.1`,
  ]);
  expect(subjects.size).toBeGreaterThan(250);
  for (const subject of subjects) expect({ subject, may: await mayPublish(connection, subject) }).toEqual({ subject, may: false });
  // Nor can one whose id begins as this one's, or is its beginning.
  for (const id of [`${agentId}-2`, agentId.slice(0, -1)]) {
    const other = await scene.system.connectWorker({ agentId: id });
    for (const contract of allContracts().filter(isForWorkers)) {
      const subject = spelled(contract, keysOf(mine));
      expect({ id, subject, may: await mayPublish(other, subject) }).toEqual({ id, subject, may: false });
    }
    await other.close();
  }
});

verifies('R-NATS-1#2', 'a worker hears nothing that is not said to it', async () => {
  const { connection, agentId } = mine.worker;
  expect((await mine.tape()).openCalls).toEqual([]);
  const inboxes = [theirs.worker.agentId, `${agentId}-2`, agentId.slice(0, -1)].map((id) =>
    workerInboxPrefix({ agentId: id, credentialName: 'main' }),
  );
  const subjects = new Set([
    ...DEAF,
    ...contractSubjects(keysOf(theirs)),
    ...allContracts().map((contract) => contract.subject.replace(/\{[A-Za-z]+\}/g, '*')),
    ...storedSubjects(theirs.worker.agentId, theirs.ref),
    ...[theirs.worker.agentId, `${agentId}-2`, '*'].flatMap((id) =>
      workerSubjectsOf(id === '*' ? 'x' : id).map((one) => one.replace('.x.', `.${id}.`)),
    ),
    ...[...inboxes, '_INBOX.session-service', `_INBOX.${agentId}.other`, `_INBOX.${agentId}`].flatMap((prefix) => [
      `${prefix}.>`,
      `${prefix}.*`,
    ]),
  ]);
  expect(subjects.size).toBeGreaterThan(250);
  for (const subject of subjects) expect({ subject, may: await mayHear(connection, subject) }).toEqual({ subject, may: false });
});

verifies('R-NATS-1#2', 'an answer that a worker wants on somebody else’s subject is stored nowhere and received by nobody', async () => {
  const { connection, agentId } = mine.worker;
  const stepOf = async (run: HandRun): Promise<number> => (await run.tape()).step;
  const before = [await stepOf(mine), await stepOf(theirs), await claimsOf(scene.system.connection, theirs.ref)];
  // Its own attempt and steps go on as they are: what opens, stores or ends something is sent without what it would need.
  const changes = new Set(
    [sessionService.startRun, sessionService.stepRun, sessionService.finishRun].map((contract) => spelled(contract, keysOf(mine))),
  );
  const own = [
    ...allContracts()
      .filter(isForWorkers)
      .map((contract) => spelled(contract, keysOf(mine))),
    `$JS.API.CONSUMER.MSG.NEXT.${streams.runs.name}.${runConsumer(agentId, 'shared')}`,
    `$JS.ACK.${streams.runs.name}.${runConsumer(agentId, 'shared')}.1.1.1.1.1`,
    `$JS.API.DIRECT.GET.KV_${buckets.snapshots.name}.$KV.${buckets.snapshots.name}.${snapshotKey.head(agentId, mine.ref.fingerprint)}`,
  ];
  const foreign = new Set([
    ...contractSubjects({ ...keysOf(theirs), workerId: 'x' }),
    ...storedSubjects(theirs.worker.agentId, theirs.ref),
  ]);
  // The server hands an answer to whatever subject its asker names. What makes a question or a signal of the platform's, an answer never has.
  const isForWorker = ({ subject, reply = '', headers: sent }: Msg): boolean =>
    subject.startsWith('ambit.ctl.')
      ? reply === '' && sent?.has(HEADER.traceparent) === true && !sent.has(HEADER.errorCode)
      : /^(_INBOX|_R_)\./.test(reply);
  const heard: string[] = [];
  for (const subject of workerSubjectsOf(theirs.worker.agentId))
    theirs.worker.connection.subscribe(subject, {
      callback: (_error, message) => {
        if (isForWorker(message)) heard.push(`${message.subject} ${message.string()}`);
      },
    });
  await theirs.worker.connection.flush();
  const passing = await wiretap(scene.system.connection);
  for (const subject of own) {
    for (const reply of foreign) connection.publish(subject, changes.has(subject) ? '{}' : JSON.stringify(mine.ref), { reply });
    await connection.flush();
  }
  // Whoever answers has answered the last of them when an ordinary question is answered.
  expect([await stepOf(mine), await stepOf(theirs), await claimsOf(scene.system.connection, theirs.ref)]).toEqual(before);
  const seen = await passing.stop();
  const said = seen.filter(
    ({ subject, headers: sent, data }) => foreign.has(subject) && (sent?.has(HEADER.errorCode) === true || data.length === 0),
  );
  expect(said.map(({ subject }) => subject)).toEqual([]);
  expect(heard).toEqual([]);
});
