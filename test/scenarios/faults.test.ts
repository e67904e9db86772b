// Long because one running system serves them all.
// Declared faults that no other scenario comes across, each received once from the service that declares it.
import { fault, mcpBroker, pluginRegistry, sessionService, skillStore, toolGateway, worker as workers, type Skill } from '@ambit/contracts';
import { collect } from '@ambit/testing';
import { connect, type AmbitWorker, type WorkerTool } from '@ambit/worker';
import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { zipSync } from 'fflate';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { http } from '../system/http.js';
import { intend, type PlainWorker } from '../system/plain-worker.js';
import { startUpstream } from '../system/upstream.js';
import { verifies } from '../verifies.js';
import { alice, codes, faultOf, GateWorld } from './gate-world.js';

jest.setTimeout(240_000);
const hex = (): string => randomBytes(32).toString('hex');
const echo = (text = 'hello') => intend('mcp__echo__echo', { text });

let world: GateWorld;
beforeAll(async () => {
  // Without a signing key, as on a NATS that is somebody else's.
  world = await GateWorld.start(['session-service', 'tool-gateway', 'mcp-broker', 'skill-store', 'plugin-registry', 'admin-api'], {
    AMBIT_ADMIN_KEYS_DIR: '',
  });
  await world.server({ slug: 'echo', transport: { type: 'inmemory', name: 'echo' } });
});
afterAll(() => world?.stop());
const send = (agentId: string) => ({ principal: alice, agentId, content: 'Hello', idempotencyKey: randomUUID() });

it('a step names each of its calls once', async () => {
  const { worker, attempt } = await world.run();
  const call = echo();
  expect(await faultOf(worker.store(attempt, 0, [call, { ...call, arguments: '{"text":"other"}' }]))).toMatchObject({
    code: 'CALL_ID_REPEATED',
  });
  expect(codes(await worker.execute(attempt, 0, [call]))).toEqual(['completed']);
});

it('a busy session takes twenty messages more', async () => {
  const { worker } = await world.run();
  for (let count = 0; count < 20; count++)
    expect(await world.system.bus.call(sessionService.receiveMessage, send(worker.agentId))).toMatchObject({ queued: true });
  expect(await faultOf(world.system.bus.call(sessionService.receiveMessage, send(worker.agentId)))).toMatchObject({
    code: 'QUEUE_FULL',
    data: { limit: 20 },
  });
});

verifies('R-PERM-6#7', 'the 65th decision of a session is not asked for', async () => {
  const { worker, attempt } = await world.run({ mode: 'default' });
  const many = Array.from({ length: 64 }, () => echo());
  expect(new Set(codes(await worker.execute(attempt, 0, many)))).toEqual(new Set(['waiting']));
  const pending = await world.system.bus.call(sessionService.listInteractions, { runId: attempt.ref.runId, limit: 200 });
  expect(pending.items).toHaveLength(64);
  const one = echo();
  const [result] = await worker.execute(attempt, 1, [one]);
  expect(result).toMatchObject({ status: 'refused', fault: { code: 'APPROVAL_CAPACITY', data: { limit: 64 } } });
  expect(await world.isClaimed(attempt, 1, one)).toBe(false);
  const { originRunId, runId } = attempt.ref;
  const asked = pending.items[0];
  if (asked === undefined) throw new Error('nothing waits');
  const { kind, tool, argumentsPreview, argumentsHash, question, rule, approvers, notRequester } = asked;
  const request = {
    kind,
    tool,
    argumentsPreview,
    argumentsHash,
    question,
    rule,
    approvers,
    notRequester,
    order: 0,
    expiresMs: 60_000,
    target: null,
  };
  expect(
    await faultOf(
      world.system.bus.call(sessionService.requestInteractions, {
        runId,
        step: 1,
        requests: [{ ...request, callId: randomUUID(), operationId: hex() }],
      }),
    ),
  ).toMatchObject({ code: 'APPROVAL_CAPACITY' });
  expect(originRunId).toBe(runId);
});

it('the owner of an instance takes no call under another lease, and keeps no result it was not asked for', async () => {
  const server = await world.system.bus.call(mcpBroker.getServer, { projectId: 'default', slug: 'echo' });
  const { configGeneration, bindingHash } = server;
  const ensured = await world.system.bus.call(
    mcpBroker.ensureInstance,
    { configGeneration, bindingHash, agentId: 'somebody', sessionId: randomUUID() },
    { keys: { serverId: server.id } },
  );
  const { instanceId, leaseRevision } = ensured;
  const call = (more: { leaseRevision?: number; tool?: string }) =>
    world.system.bus.call(
      mcpBroker.executeCall,
      {
        serverId: server.id,
        configGeneration,
        bindingHash,
        leaseRevision,
        operationId: hex(),
        gatewayId: randomUUID(),
        tool: 'echo',
        arguments: { text: 'hello' },
        callTimeoutMs: 5_000,
        ...more,
      },
      { keys: { instanceId } },
    );
  expect(await call({})).toMatchObject({ result: { content: [{ text: 'hello' }] } });
  expect(await faultOf(call({ leaseRevision: leaseRevision + 1_000 }))).toMatchObject({ code: 'STALE_LEASE' });
  expect(
    await faultOf(world.system.bus.call(mcpBroker.resultPage, { operationId: hex(), offset: 0 }, { keys: { instanceId } })),
  ).toMatchObject({ code: 'RESULT_GONE' });
});

it('a package is installed from files that were uploaded whole', async () => {
  const digest = hex();
  const data = Buffer.from('{}').toString('base64');
  expect(await faultOf(world.system.bus.call(pluginRegistry.putBlob, { digest, bytes: 2, offset: 0, data }))).toMatchObject({
    code: 'BLOB_DIGEST',
  });
  const files = [{ path: 'plugin.json', mode: 'file' as const, bytes: 2, digest }];
  expect(await faultOf(world.system.bus.call(pluginRegistry.installPlugin, { files, unsigned: 'allow' }))).toMatchObject({
    code: 'BLOB_MISSING',
    data: { digests: [digest] },
  });
  expect(await faultOf(world.system.bus.call(pluginRegistry.putBlob, { digest, bytes: 2, offset: 1, data }))).toMatchObject({
    code: 'BLOB_OFFSET',
    data: { have: 0 },
  });
  const packed = Buffer.from(zipSync({ 'plugin.json': new Uint8Array(2), '../elsewhere.json': new Uint8Array(2) }));
  const archive = createHash('sha256').update(packed).digest('hex');
  const bytes = packed.byteLength;
  await world.system.bus.call(pluginRegistry.putBlob, { digest: archive, bytes, offset: 0, data: packed.toString('base64') });
  expect(await faultOf(world.system.bus.call(pluginRegistry.installPlugin, { archive, unsigned: 'allow' }))).toMatchObject({
    code: 'ARCHIVE_REFUSED',
    data: { reason: expect.any(String) },
  });
});

/** Gives an agent the skill `tidy`. */
async function putSkill(agentId: string): Promise<Skill> {
  const bytes = Buffer.from('---\nname: tidy\ndescription: How to tidy.\n---\n\nDo it.\n');
  const digest = createHash('sha256').update(bytes).digest('hex');
  await world.system.bus.call(skillStore.putBlob, { digest, bytes: bytes.byteLength, offset: 0, data: bytes.toString('base64') });
  return world.system.bus.call(skillStore.putSkill, {
    agentId,
    files: [{ path: 'SKILL.md', mode: 'file', bytes: bytes.byteLength, digest }],
  });
}

it('a skill has the files of its tree', async () => {
  const worker = await world.agent();
  const skill = await putSkill(worker.agentId);
  expect(
    await faultOf(
      world.system.bus.call(skillStore.readSkill, { agentId: worker.agentId, name: 'tidy', digest: skill.digest, path: 'nothing.md' }),
    ),
  ).toMatchObject({ code: 'FILE_NOT_FOUND' });
});

it('without a signing key nobody is given a credential, and the installation says so', async () => {
  const { agentId } = await world.agent();
  expect((await http(world.system, 'GET /v1/status')).body).toMatchObject({ workerIsolation: false });
  expect((await http(world.system, 'POST /v1/worker', { body: { name: 'one', agentId } })).body).toMatchObject({
    status: 409,
    code: 'ISOLATION_OFF',
  });
});

it('an agent that is switched off takes no message and no run', async () => {
  const worker = await world.agent();
  const job = await world.job(worker);
  await world.put(worker.agentId, {}, { enabled: false });
  expect(await faultOf(world.system.bus.call(sessionService.receiveMessage, send(worker.agentId)))).toMatchObject({
    code: 'AGENT_DISABLED',
  });
  expect(await faultOf(worker.start(job))).toMatchObject({ code: 'AGENT_DISABLED' });
  expect(await world.system.bus.call(sessionService.getRun, { id: job.runId })).toMatchObject({
    status: 'failed',
    fault: { code: 'AGENT_DISABLED' },
  });
});

it('a run that failed says why, and one that there is not is unknown', async () => {
  for (const [code, reason] of [
    ['LIMIT_REACHED', undefined],
    ['WORKER_FAILED', 'the model did not answer'],
  ] as const) {
    const { worker, attempt } = await world.run();
    const { ref, token } = attempt;
    await worker.ask(sessionService.finishRun, { ...ref, token, status: 'failed', code, ...(reason === undefined ? {} : { reason }) });
    const { status, fault: why } = await world.system.bus.call(sessionService.getRun, { id: ref.runId });
    expect({ status, code: why?.code }).toEqual({ status: 'failed', code });
    expect(why?.message).toEqual(reason ?? expect.stringContaining('limits'));
  }
  expect(await faultOf(world.system.bus.call(sessionService.getRun, { id: randomUUID() }))).toMatchObject({ code: 'RUN_UNKNOWN' });
});

/** Ends what a test began, also one that failed. */
const leaving: (() => unknown)[] = [];
afterEach(async () => {
  for (const leave of leaving.splice(0)) await leave();
});

it('a service that does not answer in time: whoever asked over HTTP is told that it may have happened, and it has', async () => {
  const { agentId } = await world.agent();
  await putSkill(agentId);
  const removed = await collect(world.system.connection, skillStore.skillChanged);
  world.system.process('skill-store').pause();
  const late = await http(world.system, `DELETE /v1/skill/${agentId}/tidy`).finally(() => world.system.process('skill-store').resume());
  expect(late.body).toMatchObject({
    status: 504,
    code: 'TIMEOUT',
    retry: 'never',
    detail: expect.stringContaining('may have taken effect'),
  });
  await removed.next(({ payload }) => payload.agentId === agentId && payload.reason === 'removed');
  removed.stop();
  expect((await http(world.system, `GET /v1/skill/${agentId}/tidy`)).body).toMatchObject({ status: 404, code: 'SKILL_NOT_FOUND' });
});

it('a server that says too much, and one that is gone: the call says which', async () => {
  const upstream = await startUpstream();
  leaving.push(upstream.stop);
  await world.server({ slug: 'upstream', transport: { type: 'http', url: upstream.url } });
  const { worker, attempt } = await world.run();
  const say = (letters: number) => intend('mcp__upstream__say', { letters });
  const [large, small] = await worker.execute(attempt, 0, [say(33 * 1024 * 1024), say(3)]);
  expect(large).toMatchObject({
    status: 'failed',
    fault: { code: 'RESULT_TOO_LARGE', data: { limitBytes: 32 * 1024 * 1024 + 64 * 1024 } },
  });
  expect(small).toMatchObject({ status: 'completed', content: [{ text: 'xxx' }] });
  upstream.stop();
  const [gone] = await worker.execute(attempt, 1, [say(3)]);
  expect(gone).toMatchObject({ status: 'failed', fault: { code: 'SERVER_UNAVAILABLE', data: { reason: expect.any(String) } } });
});

verifies('R-NATS-4#1', 'a result of 32 MiB arrives whole over messages of at most 1 MiB, and is read in ranges that are fetched once', {
  timeoutMs: 120_000,
  shows: async () => {
    const upstream = await startUpstream();
    leaving.push(upstream.stop);
    await world.server({ slug: 'vast', transport: { type: 'http', url: upstream.url } });
    const { worker, attempt } = await world.run();
    const bytes = 32 * 1024 * 1024;
    const letters = bytes - Buffer.byteLength(JSON.stringify({ content: [{ type: 'text', text: '' }] }));
    const { connection } = world.system;
    let largest = 0;
    let readings = 0;
    const passing = connection.subscribe('>', {
      callback: (_error, { subject, data }) => {
        largest = Math.max(largest, data.length);
        if (subject.startsWith('$JS.API.CONSUMER.CREATE.OBJ_')) readings += 1;
      },
    });
    const [result] = await worker.execute(attempt, 0, [intend('mcp__vast__say', { letters })]);
    expect(result).toMatchObject({ status: 'completed', artifact: { bytes } });
    const { digest } = result?.artifact ?? {};
    const hash = createHash('sha256');
    let length = 0;
    for (let offset: number | null = 0; offset !== null;) {
      const path = `GET /v1/session/${attempt.ref.sessionId}/artifact/${digest}?offset=${offset}&length=${256 * 1024}` as const;
      const { status, body } = await http(world.system, path);
      expect(status).toBe(200);
      const data = Buffer.from(String(body['data']), 'base64');
      hash.update(data);
      length += data.length;
      offset = body['next'] as number | null;
    }
    expect({ length, digest: hash.digest('hex') }).toEqual({ length: bytes, digest });
    await connection.flush();
    passing.unsubscribe();
    expect(connection.info?.max_payload).toBe(1024 * 1024);
    expect(largest).toBeLessThanOrEqual(512 * 1024);
    expect(readings).toBe(1);
  },
});

/** A worker on the SDK that takes no runs and brings tools: one that refuses, one that fails, and one that goes on when it is let. */
async function withTools(agent: PlainWorker): Promise<{ readonly sdk: AmbitWorker; held(): Promise<void>; release(): void }> {
  let began = (): void => undefined;
  let release = (): void => undefined;
  const isHeld = new Promise<void>((resolve) => (began = resolve));
  const released = new Promise<void>((resolve) => (release = resolve));
  const tool = (name: string, run: WorkerTool['run']): WorkerTool => ({
    definition: { name, description: name, inputSchema: { type: 'object' }, effect: 'write', access: 'other' },
    run,
  });
  const tools = [
    tool('do_nothing', async () => ({ content: [] })),
    tool('refuse', async () => {
      throw fault(workers.callTool, 'BAD_ARGUMENTS', { reason: 'there is no such page' });
    }),
    tool('fail', async () => {
      throw fault(workers.callTool, 'TOOL_FAILED', { reason: 'the printer is on fire' });
    }),
    tool('reach_out', async () => {
      throw fault(workers.callTool, 'OUTSIDE_WORKSPACE', { path: '../secrets' });
    }),
    tool('hold', async (_input, signal) => {
      began();
      await Promise.race([released, new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))]);
      return { content: [] };
    }),
  ];
  const came = await collect(world.system.connection, toolGateway.toolsChanged);
  const credentials = await world.system.workerCredentials({ agentId: agent.agentId, credentialName: 'tools' });
  const sdk = await connect({ url: world.system.natsUrl, credentials, onError: () => undefined });
  leaving.push(() => sdk.close());
  void sdk.work(agent.agentId, async () => undefined, { concurrency: 0, tools });
  await came.next(({ payload }) => payload.agentId === agent.agentId && payload.live);
  came.stop();
  return { sdk, held: () => isHeld, release };
}

it('a worker’s tool that refuses or fails says why, to the model and to whoever asks it', async () => {
  const worker = await world.agent();
  const { sdk } = await withTools(worker);
  const attempt = await worker.start(await world.job(worker), sdk.workerId);
  const results = await worker.execute(attempt, 0, [intend('refuse'), intend('fail'), intend('reach_out'), intend('do_nothing')]);
  expect(results).toMatchObject([
    { status: 'failed', fault: { code: 'BAD_ARGUMENTS', data: { reason: 'there is no such page' } } },
    { status: 'failed', fault: { code: 'TOOL_FAILED', data: { reason: 'the printer is on fire' } } },
    { status: 'failed', fault: { code: 'OUTSIDE_WORKSPACE', data: { path: '../secrets' } } },
    { status: 'completed' },
  ]);
  const { agentId } = worker;
  const listed = await world.system.bus.call(toolGateway.listTools, { purpose: 'ingress', agentId });
  const { runId, sessionId } = attempt.ref;
  const call = (tool: string, toolsetDigest = listed.toolsets[0]?.digest ?? '') =>
    faultOf(
      world.system.bus.call(
        workers.callTool,
        { operationId: hex(), runId, sessionId, workspaceId: null, toolsetDigest, tool, arguments: {} },
        { keys: { agentId, workerId: sdk.workerId } },
      ),
    );
  expect(await call('do_nothing')).toMatchObject({ answered: { isError: false } });
  expect(await call('refuse')).toMatchObject({ code: 'BAD_ARGUMENTS' });
  expect(await call('fail')).toMatchObject({ code: 'TOOL_FAILED' });
  expect(await call('forgotten')).toMatchObject({ code: 'TOOL_GONE' });
  expect(await call('do_nothing', hex())).toMatchObject({ code: 'TARGET_CHANGED' });
  expect(await call('reach_out')).toMatchObject({ code: 'OUTSIDE_WORKSPACE', data: { path: '../secrets' } });
  const page = { operationId: hex(), offset: 0 };
  const keys = { agentId, workerId: sdk.workerId };
  expect(await faultOf(world.system.bus.call(workers.resultPage, page, { keys }))).toMatchObject({ code: 'RESULT_GONE' });
});

it('a run that ends in the middle of a batch: what was not begun is refused as ended', async () => {
  const worker = await world.agent();
  const { sdk, held } = await withTools(worker);
  const attempt = await worker.start(await world.job(worker), sdk.workerId);
  const executing = worker.execute(attempt, 0, [intend('hold'), intend('do_nothing')]);
  await held();
  await world.system.bus.call(sessionService.cancelRun, { id: attempt.ref.runId });
  const [, late] = await executing;
  expect(late).toMatchObject({ status: 'refused', fault: { code: 'TURN_ENDED' } });
});

it('an attempt that is overtaken in the middle of a batch: what was not begun is refused, and the newer one gets it done once', async () => {
  const worker = await world.agent();
  const { sdk, held, release } = await withTools(worker);
  const attempt = await worker.start(await world.job(worker), sdk.workerId);
  const calls = [intend('hold'), intend('do_nothing')];
  const executing = worker.execute(attempt, 0, calls);
  await held();
  const newer = await worker.start(attempt.ref, sdk.workerId);
  release();
  const [first, late] = await executing;
  expect(first).toMatchObject({ status: 'completed' });
  expect(late).toMatchObject({ status: 'refused', fault: { code: 'STALE_INSTANCE' } });
  expect(codes(await worker.send(newer, { step: 0, calls }))).toEqual(['completed', 'completed']);
});

it('an unknown call and one that is not parked take no resolution', async () => {
  const { worker, attempt } = await world.run();
  await worker.execute(attempt, 0, [echo()]);
  expect(
    await faultOf(world.system.bus.call(toolGateway.resolveCall, { operationId: hex(), as: 'failed', note: 'none', by: alice })),
  ).toMatchObject({ code: 'CALL_UNKNOWN' });
});
