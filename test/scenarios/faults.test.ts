// Declared faults that no other scenario comes across, each received once from the service that declares it.
import { adminApi, mcpBroker, pluginRegistry, sessionService, skillStore, toolGateway } from '@ambit/contracts';
import { makeUserKey } from '@ambit/identity';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { intend } from '../system/plain-worker.js';
import { verifies } from '../verifies.js';
import { alice, codes, faultOf, GateWorld } from './gate-world.js';

jest.setTimeout(240_000);
const hex = (): string => randomBytes(32).toString('hex');
const echo = (text = 'hello') => intend('mcp__echo__echo', { text });

let world: GateWorld;
beforeAll(async () => {
  world = await GateWorld.start(['session-service', 'tool-gateway', 'mcp-broker', 'skill-store', 'plugin-registry', 'admin-api']);
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
});

it('a skill has the files of its tree', async () => {
  const worker = await world.agent();
  const bytes = Buffer.from('---\nname: tidy\ndescription: How to tidy.\n---\n\nDo it.\n');
  const digest = createHash('sha256').update(bytes).digest('hex');
  await world.system.bus.call(skillStore.putBlob, { digest, bytes: bytes.byteLength, offset: 0, data: bytes.toString('base64') });
  const skill = await world.system.bus.call(skillStore.putSkill, {
    agentId: worker.agentId,
    files: [{ path: 'SKILL.md', mode: 'file', bytes: bytes.byteLength, digest }],
  });
  expect(
    await faultOf(
      world.system.bus.call(skillStore.readSkill, { agentId: worker.agentId, name: 'tidy', digest: skill.digest, path: 'nothing.md' }),
    ),
  ).toMatchObject({ code: 'FILE_NOT_FOUND' });
});

it('a key that nobody issued a credential for is not renewed', async () => {
  const worker = await world.agent();
  const request = { publicKey: makeUserKey().getPublicKey(), proof: 'none', at: new Date().toISOString() };
  expect(await faultOf(worker.ask(adminApi.renewCredential, request))).toMatchObject({ code: 'CREDENTIAL_UNKNOWN' });
});

it('an unknown call and one that is not parked take no resolution', async () => {
  const { worker, attempt } = await world.run();
  await worker.execute(attempt, 0, [echo()]);
  expect(
    await faultOf(world.system.bus.call(toolGateway.resolveCall, { operationId: hex(), as: 'failed', note: 'none', by: alice })),
  ).toMatchObject({ code: 'CALL_UNKNOWN' });
});
