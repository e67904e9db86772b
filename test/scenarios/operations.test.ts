// Long because one running system serves them all.
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { operationId } from '@ambit/capability';
import {
  adminApi,
  buckets,
  journalSubject,
  leaseKey,
  mcpBroker,
  pattern,
  pluginRegistry,
  services,
  sessionService,
  skillStore,
  streams,
  toolGateway,
  workerInboxPrefix,
  type ServiceUse,
} from '@ambit/contracts';
import { canariesIn, canary, collect, collectEndedCalls, until } from '@ambit/testing';
import { connect as connectSdk } from '@ambit/worker';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { headers, nkeys, type MsgHdrs } from '@nats-io/nats-core';
import { connect, credsAuthenticator } from '@nats-io/transport-node';
import { ownershipProblems } from '../../tools/ownership.mjs';
import { HandWorker, intend, type HandRun } from '../system/by-hand.js';
import { CutWire } from '../system/cut-wire.js';
import { enablePlugin, installPlugin, PLUGIN, PLUGIN_TOOL } from '../system/helper-plugin.js';
import { http } from '../system/http.js';
import { Scene } from '../system/scene.js';
import { startWorkerAt } from '../system/worker-process.js';
import { verifies } from '../verifies.js';

jest.setTimeout(120_000);
const DAY_MS = 86_400_000;
/** One every 5 s; a lease lives for 15. */
const RENEWALS = 4;
const failing = fileURLToPath(new URL('../fixtures/failing-server.mjs', import.meta.url));

let scene: Scene;
beforeAll(async () => {
  scene = await Scene.start({ replicas: { 'mcp-edge': 1 } });
  await scene.server('one');
  await scene.server('slow');
  await installPlugin(scene);
});
afterAll(() => scene?.stop());

/** A run of an agent of its own, its worker in the test's hands. */
async function begin(worker?: (agentId: string) => Promise<HandWorker>): Promise<{ readonly run: HandRun; readonly worker: HandWorker }> {
  const agent = await scene.agent();
  const hands = await (worker?.(agent.id) ?? scene.worker(agent));
  await scene.send(agent);
  return { worker: hands, run: await hands.begin() };
}

/** A run with one call in the middle. */
async function held(run: HandRun, tool = 'mcp__slow__hold') {
  const name = randomUUID();
  const stored = await run.step([intend(tool, { name })]);
  const answer = run.batch(stored);
  answer.catch(() => undefined);
  await scene.counting.held(name);
  return { name, answer, callId: stored.calls[0]?.callId ?? '', step: stored.step };
}
const ending = async (callId: string) => {
  const ended = await collectEndedCalls(scene.system.connection);
  return {
    within: async (ms: number) => {
      const { payload } = await ended.next(({ payload: one }) => one.callId === callId, ms);
      ended.stop();
      return payload;
    },
  };
};

verifies(
  'R-OWN-1#1',
  'imports, tables, subjects and stores of every app are its own, and every running service answers just that',
  async () => {
    expect((await ownershipProblems()).problems).toEqual([]);
    for (const [name, use] of Object.entries(services)) {
      const message = await scene.system.connection.request(`$SRV.INFO.${name}`, '', { timeout: 5_000 });
      const told = message.json<{ endpoints: { subject: string }[] }>().endpoints.map(({ subject }) => subject);
      const { answers }: ServiceUse = use;
      expect(told.filter((subject) => subject.startsWith('ambit.rpc.')).sort()).toEqual(
        expect.arrayContaining(answers.map((contract) => pattern(contract)).sort()),
      );
      // Nobody answers in another's place.
      for (const subject of told.filter((one) => one.startsWith('ambit.rpc.') && !one.includes('.mcp-broker.v1.')))
        expect(subject).toContain(`ambit.rpc.${name}.v1.`);
    }
  },
);

verifies(
  ['R-OWN-2#1', 'R-OWN-2#2', 'R-OWN-2#3', 'R-OWN-2#4'],
  'plugin-registry killed under a running call: it finishes, catalogues stay, no server restarts, and its return doubles nothing',
  async () => {
    await enablePlugin(scene);
    const agent = await scene.agent();
    const worker = await scene.worker(agent);
    await scene.send(agent);
    const run = await worker.begin();
    const call = await held(run, `${PLUGIN_TOOL}hold`);
    const started = await scene.counting.started();

    await scene.system.process('plugin-registry').kill();
    // Another run is composed meanwhile, and sees what the first saw.
    await scene.send(agent);
    const next = await worker.begin();
    expect(next.ref.fingerprint).toBe(run.ref.fingerprint);
    expect((await worker.snapshot(next.ref.fingerprint)).tools.map(({ name }) => name)).toContain(`${PLUGIN_TOOL}hold`);
    scene.counting.release(call.name);
    expect(await call.answer).toMatchObject([{ status: 'completed' }]);
    expect(await next.use(intend(`${PLUGIN_TOOL}count`, { name: call.name }))).toMatchObject([{ status: 'completed' }]);

    await scene.system.process('plugin-registry').start();
    const { items } = await scene.bus.call(mcpBroker.listServers, { owner: `plugin:${PLUGIN}` });
    expect(items.map(({ slug, state }) => ({ slug, state }))).toEqual([{ slug: 'helper-tools', state: 'connected' }]);
    const { skills } = await scene.bus.call(skillStore.effectiveSkills, { agentId: agent.id, plugins: null });
    expect(skills.filter(({ name }) => name === 'greeting')).toHaveLength(1);
    const { plugins } = await scene.bus.call(pluginRegistry.pluginSlots, { projectId: 'default' });
    expect(plugins.filter(({ id }) => id === PLUGIN)).toEqual([expect.objectContaining({ state: 'enabled', servers: ['helper-tools'] })]);
    expect(await run.use(intend(`${PLUGIN_TOOL}count`, { name: call.name }))).toMatchObject([{ status: 'completed' }]);
    expect(await scene.counting.started()).toBe(started);
    expect(await scene.counting.ran('hold', call.name)).toBe(1);
    for (const one of [run, next]) {
      await one.step([]);
      await one.finish('completed');
    }
  },
);

verifies('R-NATS-3#2', 'the network of a worker cut in the middle of a call: the call ends within the lease’s time', async () => {
  const wire = await CutWire.to(scene.system.natsUrl);
  const { run } = await begin(async (agentId) => {
    const credentials = await readFile(await scene.system.workerCredentials({ agentId }));
    const inboxPrefix = workerInboxPrefix({ agentId, credentialName: 'main' });
    const connection = await connect({ servers: wire.url, authenticator: credsAuthenticator(credentials), inboxPrefix, reconnect: false });
    return new HandWorker(connection, agentId);
  });
  const call = await held(run);
  const end = await ending(call.callId);
  wire.cut();
  // 15 s of the lease, and a look every two.
  expect((await end.within(40_000)).status).toMatch(/^(cancelled|indeterminate)$/);
  expect(await scene.bus.call(sessionService.getRun, { id: run.ref.runId })).toMatchObject({ status: 'running' });
  scene.counting.release(call.name);
  run.abandon();
  await run.worker.connection.close().catch(() => undefined);
  await wire.close();
});

verifies('R-NATS-3#3', 'a cancel whose signal is lost: whoever executes the call reads the fact, and the call ends', async () => {
  const { run } = await begin();
  const call = await held(run);
  const end = await ending(call.callId);
  const operation = operationId(run.ref.originRunId, call.step, call.callId);
  const { originRunId } = run.ref;
  const abort = {
    schemaVersion: 1,
    operationId: operation,
    originRunId,
    reason: 'a person',
    by: 'user:alice',
    at: new Date().toISOString(),
  };
  // The fact alone, as it stands when the signal behind it reached nobody.
  await jetstream(scene.system.connection).publish(journalSubject.abort(originRunId, operation), JSON.stringify(abort));
  expect((await end.within(15_000)).status).toMatch(/^(cancelled|indeterminate)$/);
  expect(await call.answer).toMatchObject([{ status: expect.stringMatching(/^(cancelled|indeterminate)$/) }]);
  scene.counting.release(call.name);
  await run.step([]);
  expect(await run.finish('completed')).toMatchObject({ status: 'completed' });
});

verifies(
  ['R-NATS-7#2', 'R-NATS-7#3'],
  'a secret planted in configuration is in no reply and in no log, also where its server fails',
  async () => {
    const secret = canary('operations');
    await scene.bus.call(mcpBroker.putSecret, { name: 'planted', projectId: 'default', from: 'store', value: secret });
    const args = ['-e', 'console.error(JSON.stringify(process.env)); process.exit(3)'];
    const transport = { type: 'stdio' as const, command: process.execPath, args, env: { TOKEN: { secret: 'planted' } } };
    const { id } = await scene.bus.call(mcpBroker.putServer, { slug: 'leaking', transport });
    const replies: string[] = [];
    const keep = (value: unknown): void => void replies.push(JSON.stringify(value));
    keep(await scene.bus.call(mcpBroker.testServer, { id }).catch((error: unknown) => error));
    const working = { ...transport, args: [failing] };
    const server = await scene.bus.call(mcpBroker.putServer, { slug: 'leaking', transport: working });
    keep(server);
    keep(await scene.bus.call(mcpBroker.testServer, { id }));
    const { run } = await begin();
    keep(await run.use(intend('mcp__leaking__fail'), intend('mcp__leaking__absent')));
    keep(run.opened);
    for (const path of ['/v1/server', `/v1/server/${id}`, '/v1/secret', '/v1/audit?limit=200', '/v1/status', '/v1/call', '/v1/tool']) {
      const { status, text } = await http(scene.system, `GET ${path}`);
      expect(status).toBe(200);
      replies.push(text);
    }
    await run.step([]);
    await run.finish('completed');
    expect(replies.filter((text) => text.includes(secret) || canariesIn(text).length > 0)).toEqual([]);
    for (const name of Object.keys(services)) {
      const log = scene.system.process(name as keyof typeof services).log();
      expect(log).not.toBe('');
      expect(canariesIn(log)).toEqual([]);
    }
  },
);

it('arguments of calls are kept for people as the administrator of their server says', async () => {
  const kept = ['full', 'redacted', 'digest'] as const;
  for (const argumentsKept of kept) await scene.server(`keeps-${argumentsKept}`, { argumentsKept });
  const { run } = await begin();
  const name = randomUUID();
  const password = `not to be read ${name}`;
  await run.use(...kept.map((one) => intend(`mcp__keeps-${one}__count`, { name, password })));
  await run.step([]);
  await run.finish('completed');
  const listed = async () => (await scene.bus.call(toolGateway.listCalls, { runId: run.ref.runId })).items;
  let items: Awaited<ReturnType<typeof listed>> = [];
  const preview = (slug: string) => items.find(({ tool }) => tool === `mcp__${slug}__count`)?.argumentsPreview;
  await until(async () => {
    items = await listed();
    return items.length === 3 && preview('keeps-full') !== null;
  }, 30_000);
  expect(preview('keeps-full')).toContain(password);
  expect(preview('keeps-redacted')).toContain(name);
  expect(preview('keeps-redacted')).not.toContain(password);
  expect(preview('keeps-digest')).toBeNull();
  expect(items.map(({ argumentsHash }) => argumentsHash)).toEqual(Array(3).fill(items[0]?.argumentsHash));
});

verifies(
  'R-NATS-9#1',
  'a session that floods with messages and calls: another session’s call ends while all of the flood still waits',
  async () => {
    const agent = await scene.agent();
    const worker = await scene.worker(agent);
    const sceneId = randomUUID();
    await scene.send(agent, { sceneId });
    const flood = await worker.begin();
    const names = Array.from({ length: 24 }, () => randomUUID());
    const stored = await flood.step(names.map((name) => intend('mcp__slow__hold', { name })));
    const answer = flood.batch(stored);
    answer.catch(() => undefined);
    await scene.counting.held(names[0] ?? '');
    const sent = await Promise.allSettled(Array.from({ length: 25 }, () => scene.send(agent, { sceneId })));
    const refused = sent.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    expect(refused).toHaveLength(5);
    expect(refused[0]).toMatchObject({ code: 'QUEUE_FULL', data: { limit: 20 } });

    await scene.send(agent);
    const other = await worker.begin();
    const name = randomUUID();
    expect(await other.use(intend('mcp__one__count', { name }))).toMatchObject([{ status: 'completed' }]);
    await other.step([]);
    expect(await other.finish('completed')).toMatchObject({ status: 'completed' });
    const { items } = await scene.bus.call(toolGateway.listCalls, { runId: flood.ref.runId });
    expect(items.filter(({ status }) => status === 'completed')).toEqual([]);

    const cancelled = scene.bus.call(sessionService.cancelRun, { id: flood.ref.runId });
    await cancelled;
    flood.abandon();
    for (const one of names) scene.counting.release(one);
  },
);

/** What people do in a day, and how all of it stands afterwards, without ids and times. */
async function aDay(): Promise<unknown> {
  await enablePlugin(scene);
  const agent = await scene.agent();
  const worker = await scene.worker(agent);
  const sceneId = randomUUID();
  const { sessionId } = await scene.send(agent, { sceneId });
  const run = await worker.begin();
  const name = randomUUID();
  const before = await run.use(intend(`${PLUGIN_TOOL}count`, { name }));
  await scene.bus.call(pluginRegistry.disablePlugin, { id: PLUGIN });
  const after = await run.use(intend(`${PLUGIN_TOOL}count`, { name }), intend('mcp__asking__count', { name }));
  await run.finish('waiting');
  const [asked] = await scene.pending(sessionId);
  await http(scene.system, `POST /v1/interaction/${asked?.id}/decide`, { body: { decision: 'allow' } });
  const resumed = await worker.begin();
  await resumed.step([]);
  await resumed.finish('completed');
  const { items: tape } = await scene.bus.call(sessionService.listTape, { sessionId });
  const sees = await worker.snapshot(resumed.ref.fingerprint);
  return {
    results: [...before, ...after].map(({ status, fault }) => [status, fault?.code]),
    tape: tape.map(({ kind, step, content }) => [
      kind,
      step,
      kind === 'tool_result' && typeof content === 'object' ? Object(content)['status'] : null,
    ]),
    runs: (await scene.runsOf(sessionId)).map(({ status }) => status),
    tools: sees.tools.map((tool) => tool.name).filter((tool) => tool.startsWith(PLUGIN_TOOL)),
    counted: await scene.counting.ran('count', name),
    plugin: (await scene.bus.call(pluginRegistry.getPlugin, { id: PLUGIN })).state,
    audit: (await http(scene.system, 'GET /v1/audit/verify')).body['intact'],
    approved: (await http(scene.system, `GET /v1/audit?target=interaction:${asked?.id}`)).body['items'].map(
      ({ action }: { action: string }) => action,
    ),
    created: (await http(scene.system, `GET /v1/audit?action=session.create&target=session:${sessionId}`)).body['items'].length,
  };
}

/** Every listener is deaf while this goes on; gives what it would have heard. */
async function unheard<T>(
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly told: readonly { subject: string; data: Uint8Array; header: MsgHdrs }[] }> {
  const manager = await jetstreamManager(scene.system.connection);
  const { name } = streams.events;
  const from = (await manager.streams.info(name)).state.last_seq + 1;
  const names: string[] = [];
  for await (const info of manager.consumers.list(name)) names.push(info.name);
  expect(names.length).toBeGreaterThan(0);
  for (const one of names) await manager.consumers.pause(name, one, new Date(Date.now() + DAY_MS));
  const result = await work();
  const told: { subject: string; data: Uint8Array; header: MsgHdrs }[] = [];
  for (let seq = from; seq <= (await manager.streams.info(name)).state.last_seq; seq++) {
    const message = await manager.streams.getMessage(name, { seq });
    if (message !== null) told.push({ subject: message.subject, data: message.data, header: message.header });
  }
  await manager.streams.purge(name);
  for (const one of names) await manager.consumers.resume(name, one);
  return { result, told };
}

verifies(
  ['R-NATS-5#1', 'R-NATS-5#2'],
  'with every event lost, and with every event doubled in the wrong order, all stands as when they are heard',
  async () => {
    await scene.server('asking');
    const heard = await aDay();
    expect(heard).toMatchObject({ audit: true, counted: 2, plugin: 'disabled', tools: [], approved: ['interaction.allowed'] });
    const { result, told } = await unheard(aDay);
    expect(result).toEqual(heard);
    expect(told.length).toBeGreaterThan(10);

    // Now what was lost comes after all: twice, the last first, and the next day's events among it.
    const doubled = async (): Promise<void> => {
      for (const { subject, data, header } of [...told].reverse().flatMap((one) => [one, one])) {
        const again = headers();
        for (const [key, values] of header) if (!key.startsWith('Nats-')) for (const value of values) again.append(key, value);
        await jetstream(scene.system.connection).publish(subject, data, { headers: again });
      }
    };
    const [next] = await Promise.all([aDay(), doubled()]);
    expect(next).toEqual(heard);
    expect((await http(scene.system, 'GET /v1/audit/verify')).body).toMatchObject({ intact: true });
  },
);

verifies(
  'R-NATS-10#1',
  'a worker whose clock is a day off, either way: its run, its lease and its credential live as long as any other’s',
  async () => {
    const survives = async (off: number): Promise<void> => {
      const agent = await scene.agent();
      const changes = await collect(scene.system.connection, sessionService.runChanged);
      const worker = await startWorkerAt(scene.system, agent, off);
      const name = randomUUID();
      const before = Date.now();
      const { runId } = await scene.send(agent, { content: `use mcp__slow__hold with ${JSON.stringify({ name })}` });
      await scene.counting.held(name);
      // Longer than a lease lives: it is renewed, and nobody takes the run away.
      const lease = `$KV.${buckets.leases15s.name}.${leaseKey.run(runId ?? '')}`;
      const renewals = scene.system.connection.subscribe(lease, { max: RENEWALS });
      for await (const renewal of renewals) expect(renewal.data.length).toBeGreaterThan(0);
      scene.counting.release(name);
      const { payload } = await changes.next(({ payload: one }) => one.runId === runId && one.status === 'completed', 30_000);
      expect(payload.attempt).toBe(1);
      const run = await scene.bus.call(sessionService.getRun, { id: runId ?? '' });
      expect(Math.abs(Date.parse(run.startedAt ?? '') - before)).toBeLessThan(DAY_MS / 24);
      changes.stop();
      await worker.stop();
    };
    await Promise.all([survives(DAY_MS), survives(-DAY_MS)]);
    const agent = await scene.agent();
    const { body } = await http(scene.system, 'POST /v1/worker', { body: { name: 'off', agentId: agent.id } });
    const file = String(body['credentials']);
    const pair = nkeys.fromSeed(Buffer.from(/SU[A-Z0-9]{40,}/.exec(file)?.[0] ?? ''));
    const connection = await connect({
      servers: scene.system.natsUrl,
      authenticator: credsAuthenticator(Buffer.from(file)),
      inboxPrefix: workerInboxPrefix({ agentId: agent.id, credentialName: 'off' }),
    });
    for (const off of [DAY_MS, -DAY_MS]) {
      const at = new Date(Date.now() + off).toISOString();
      const publicKey = pair.getPublicKey();
      const proof = Buffer.from(pair.sign(Buffer.from(`${publicKey}.${at}`))).toString('base64url');
      const { expiresAt } = await new HandWorker(connection, agent.id).call(adminApi.renewCredential, { publicKey, proof, at });
      expect(Math.abs(Date.parse(expiresAt) - Date.now() - 3_600_000)).toBeLessThan(60_000);
    }
    await connection.close();
  },
);

it('a worker renews what is old as it starts and keeps it in its file; one that is let in no more ends, and says so', async () => {
  const agent = await scene.agent();
  const { body } = await http(scene.system, 'POST /v1/worker', { body: { name: 'kept', agentId: agent.id } });
  const old = { agentId: agent.id, credentialName: 'kept', keyOf: String(body['credentials']), issuedIn: -2_400, expiresIn: 1_200 };
  const path = await scene.system.workerCredentials(old);
  const before = await readFile(path, 'utf8');
  const worker = await connectSdk({ url: scene.system.natsUrl, credentials: path });
  const working = worker.work(agent.id, () => Promise.resolve());
  await until(async () => (await readFile(path, 'utf8')) !== before);
  await worker.close();
  await working;
  const kept = await readFile(path, 'utf8');
  expect(kept.replace(/[\w.-]{200,}/, '')).toBe(before.replace(/[\w.-]{200,}/, ''));
  const [, claims = ''] = kept.split('.');
  const { exp } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { exp: number };
  expect(exp - Date.now() / 1_000).toBeGreaterThan(3_500);
  const again = await connect({ servers: scene.system.natsUrl, authenticator: credsAuthenticator(Buffer.from(kept)) });
  await again.close();

  const short = await scene.system.workerCredentials({ agentId: agent.id, credentialName: 'short', expiresIn: 3 });
  const lost = await connectSdk({ url: scene.system.natsUrl, credentials: short, onError: () => undefined });
  await expect(lost.work(agent.id, () => Promise.resolve())).rejects.toThrow('lets this worker in no more');
});
