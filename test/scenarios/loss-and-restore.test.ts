import { httpApi, mcpBroker, pluginRegistry, sessionService, skillStore, toolGateway, type ServiceName } from '@ambit/contracts';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { connect, credsAuthenticator } from '@nats-io/transport-node';
import { randomUUID } from 'node:crypto';
import { intend } from '../system/by-hand.js';
import { enablePlugin, installPlugin, PLUGIN, PLUGIN_TOOL } from '../system/helper-plugin.js';
import { http, tokenFor } from '../system/http.js';
import { alice, bob, Scene } from '../system/scene.js';
import { putSkill } from '../system/skills.js';

jest.setTimeout(240_000);
const WITHIN_MS = 60_000;
const services: readonly ServiceName[] = [
  'session-service',
  'tool-gateway',
  'mcp-broker',
  'mcp-runner',
  'skill-store',
  'plugin-registry',
  'admin-api',
];

let scene: Scene;
beforeAll(async () => {
  scene = await Scene.start();
  await scene.server('one');
  await scene.server('asking');
  await installPlugin(scene);
});
afterAll(() => scene?.stop());

/** Asks until the answer is as it has to become. */
async function becomes<T>(ask: () => Promise<T>, isIt: (answer: T) => boolean): Promise<T> {
  for (const end = performance.now() + WITHIN_MS; ;) {
    const answer = await ask().catch((error: unknown) => error);
    if (!(answer instanceof Error) && isIt(answer as T)) return answer as T;
    if (performance.now() > end) throw new Error(`not so within ${WITHIN_MS / 1_000} s; the last answer: ${JSON.stringify(answer)}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
const parked = (runId: string) =>
  becomes(
    () => scene.bus.call(sessionService.getRun, { id: runId }),
    ({ status }) => status === 'parked',
  );

/** A credential as a person makes it, and its file. */
async function credential(agentId: string): Promise<{ readonly id: string; readonly file: string }> {
  const { status, body } = await http(scene.system, 'POST /v1/worker', { body: { name: `w-${randomUUID().slice(0, 8)}`, agentId } });
  expect(status).toBe(201);
  return { id: String(body['id']), file: String(body['credentials']) };
}
async function connects(file: string): Promise<boolean> {
  try {
    const connection = await connect({
      servers: scene.system.natsUrl,
      authenticator: credsAuthenticator(Buffer.from(file)),
      reconnect: false,
    });
    await connection.close();
    return true;
  } catch {
    return false;
  }
}

/** Makes these the roles of a set, and takes away those that it had besides. */
async function applied(access: readonly object[]): Promise<void> {
  const body = { desired: { apiVersion: 'ambit/v1', set: 'roles', access }, prune: true };
  const { body: plan } = await http(scene.system, 'POST /v1/plan', { body });
  expect(await http(scene.system, 'POST /v1/apply', { body: { ...body, digest: plan['digest'] } })).toMatchObject({ status: 200 });
}

/** A run with one call done, one held in the middle and one that waits for a person. */
async function going() {
  const agent = await scene.agent();
  const worker = await scene.worker(agent);
  const sceneId = randomUUID();
  const { sessionId, runId } = await scene.send(agent, { sceneId });
  const run = await worker.begin();
  const name = randomUUID();
  expect(await run.use(intend('mcp__one__count', { name }))).toMatchObject([{ status: 'completed' }]);
  const stored = await run.step([intend('mcp__one__hold', { name }), intend('mcp__asking__count', { name })]);
  run.batch(stored).catch(() => undefined);
  await scene.counting.held(name);
  await becomes(
    () => scene.pending(sessionId),
    (pending) => pending.length === 1,
  );
  return { agent, worker, run, name, stored, sessionId, sceneId, runId: runId ?? '' };
}

/** The same conversation goes on like any other. */
async function goesOn({
  agent,
  sceneId,
  sessionId,
}: Pick<Awaited<ReturnType<typeof going>>, 'agent' | 'sceneId' | 'sessionId'>): Promise<void> {
  const again = await becomes(
    () => scene.send(agent, { sceneId }),
    ({ runId }) => runId !== null,
  );
  expect(again.sessionId).toBe(sessionId);
  const next = await (await scene.worker(agent)).begin();
  expect(next.ref.runId).toBe(again.runId);
  const name = randomUUID();
  expect(await next.use(intend('mcp__one__count', { name }))).toMatchObject([{ status: 'completed' }]);
  await next.step([]);
  expect(await next.finish('completed')).toMatchObject({ status: 'completed' });
  expect(await scene.counting.ran('count', name)).toBe(1);
}

it('JetStream lost: what was going is parked and never repeated, nothing revoked comes back, streams and buckets are made again', async () => {
  const was = await going();
  const waiting = await going();
  scene.counting.release(waiting.name);
  // Of an agent of its own: with its last credential an agent loses its pools.
  const revoked = await credential((await scene.agent()).id);
  expect(await connects(revoked.file)).toBe(true);
  await http(scene.system, `DELETE /v1/worker/${revoked.id}`);
  await enablePlugin(scene);
  await scene.bus.call(pluginRegistry.disablePlugin, { id: PLUGIN });

  await scene.system.nats.lose();
  await scene.system.init();
  for (const { runId } of [was, waiting]) expect(await parked(runId)).toMatchObject({ fault: { code: 'PARKED' } });
  scene.counting.release(was.name);

  const back = await scene.worker(was.agent);
  await expect(back.start(was.run.ref)).rejects.toMatchObject({ code: 'TURN_ENDED' });
  expect(await scene.pending(was.sessionId)).toEqual([]);
  const { items } = await scene.bus.call(sessionService.listTape, { sessionId: was.sessionId });
  const ofHeld = items.flatMap(({ kind, content }) => (kind === 'tool_result' ? [content] : [])).slice(1);
  expect(ofHeld).toMatchObject([{ status: 'indeterminate' }, { status: 'cancelled' }]);
  // The gateway that had sent the call still lives, so a person can see how it ended.
  await becomes(
    () => scene.bus.call(toolGateway.listCalls, { runId: was.runId }),
    (calls) => calls.items.length === 2 && calls.items.every(({ status }) => status !== 'running'),
  );
  expect(await scene.counting.ran('count', was.name)).toBe(1);
  expect(await scene.counting.ran('hold', was.name)).toBe(1);
  expect(await connects(revoked.file)).toBe(false);
  await goesOn(was);
});

it('a backup restored: what was taken away since stays away, runs that were going are parked, and what is kept says so', async () => {
  const was = await going();
  const { agent } = was;
  const switched = await scene.agent();
  const token = await tokenFor(scene.system, { principal: 'user:carol', role: 'viewer' });
  const { body: tokens } = await http(scene.system, 'GET /v1/token?limit=200');
  const carols = (tokens['items'] as { id: string; principal: string }[]).find(({ principal }) => principal === 'user:carol');
  const worker = await credential((await scene.agent()).id);
  await enablePlugin(scene);
  const server = await scene.server('two');
  await applied([{ who: 'user:erin', role: 'viewer' }]);
  const secret = `of bob ${randomUUID()}`;
  const bobs = await scene.send(agent, { principal: bob, content: secret, sceneId: randomUUID() });
  await becomes(
    () => scene.bus.call(toolGateway.listCalls, { runId: was.runId }),
    ({ items }) => items.length === 2,
  );
  await scene.system.database.backUp();
  await becomes(
    () => http(scene.system, 'GET /v1/status'),
    ({ status }) => status === 200,
  );

  expect(await http(scene.system, `DELETE /v1/token/${carols?.id}`)).toMatchObject({ status: 200 });
  expect(await http(scene.system, `DELETE /v1/worker/${worker.id}`)).toMatchObject({ status: 200 });
  await scene.bus.call(pluginRegistry.disablePlugin, { id: PLUGIN });
  await scene.bus.call(sessionService.putAgent, { id: switched.id, enabled: false });
  await scene.bus.call(mcpBroker.deleteServer, { id: server.id });
  // Of this the backup knows nothing at all.
  await putSkill(scene.bus, switched.id, { name: 'short-lived' });
  await scene.bus.call(skillStore.deleteSkill, { agentId: switched.id, name: 'short-lived' });
  await becomes(
    () => http(scene.system, 'GET /v1/audit?action=skill.removed'),
    ({ body }) => (body['items'] as unknown[]).length === 1,
  );
  await applied([]);
  expect(await http(scene.system, 'DELETE /v1/principal/user:bob')).toMatchObject({ status: 200, body: { sessions: 1 } });
  const later = await going();
  scene.counting.release(later.name);
  scene.counting.release(was.name);
  await becomes(
    () => http(scene.system, 'GET /v1/audit?action=principal.erase'),
    ({ body }) => (body['items'] as unknown[]).length === 2,
  );

  await Promise.all(services.map((name) => scene.system.process(name).stop()));
  await scene.system.database.restore();
  expect(await scene.system.init('--after-restore')).toContain('are younger than the backup');
  await Promise.all(services.map((name) => scene.system.process(name).start()));

  expect(await http(scene.system, 'GET /v1/agent', { token })).toMatchObject({ status: 401 });
  expect((await http(scene.system, 'GET /v1/access?set=roles')).body).toMatchObject({ items: [] });
  expect(await connects(worker.file)).toBe(false);
  expect(await scene.bus.call(pluginRegistry.getPlugin, { id: PLUGIN })).toMatchObject({ state: 'disabled' });
  expect(await scene.bus.call(sessionService.getAgent, { id: switched.id })).toMatchObject({ enabled: false });
  expect(await scene.bus.call(mcpBroker.getServer, { id: server.id })).toMatchObject({ enabled: false });
  const said = scene.system.process('admin-api').log();
  expect(said).toContain('"code":"SKILL_NOT_FOUND"');
  expect(said).not.toContain('do it by hand');
  const { items: tape } = await scene.bus.call(sessionService.listTape, { sessionId: bobs.sessionId });
  expect(JSON.stringify(tape)).not.toContain(secret);
  await parked(was.runId);
  await expect((await scene.worker(agent)).start(was.run.ref)).rejects.toMatchObject({ code: 'TURN_ENDED' });
  // Of the run that the backup has never seen nothing goes on either.
  await expect((await scene.worker(later.agent)).start(later.run.ref)).rejects.toMatchObject({ code: 'TOOL_NOT_IN_SNAPSHOT' });
  expect(await http(scene.system, 'GET /v1/audit/verify')).toMatchObject({ body: { intact: true } });
  await goesOn(was);
  const run = await (async () => {
    await scene.send(agent, { sceneId: randomUUID() });
    return (await scene.worker(agent)).begin();
  })();
  expect(await run.use(intend(`${PLUGIN_TOOL}count`, { name: randomUUID() }))).toMatchObject([{ status: 'refused' }]);
  await run.step([]);
  await run.finish('completed');
});

it('a principal erased: its words, arguments and names are gone, its token too, and every audit chain is unbroken', async () => {
  const agent = await scene.agent();
  const worker = await scene.worker(agent);
  const word = `word-${randomUUID()}`;
  const dave = { ...alice, id: 'user:dave', display: `Dave ${word}` };
  const token = await tokenFor(scene.system, { principal: dave.id, role: 'viewer' });
  const { sessionId, runId } = await scene.send(agent, { principal: dave, content: `Count ${word}`, sceneId: randomUUID() });
  const run = await worker.begin();
  await run.use(intend('mcp__one__count', { name: word }));
  await run.use(intend('mcp__asking__count', { name: word }));
  await run.finish('waiting');
  const shown = async (): Promise<string> => {
    const { items: calls } = await scene.bus.call(toolGateway.listCalls, { sessionId });
    const [tape, session, asked] = await Promise.all([
      http(scene.system, `GET /v1/session/${sessionId}/tape`),
      http(scene.system, `GET /v1/session/${sessionId}`),
      scene.bus.call(sessionService.listInteractions, { sessionId }),
    ]);
    return JSON.stringify([calls, tape.body, session.body, asked.items]);
  };
  await becomes(shown, (text) => text.split(word).length > 6);
  const { body } = await http(scene.system, `DELETE /v1/principal/${dave.id}`);
  expect(httpApi.erasePrincipal.output.parse(body)).toMatchObject({ runs: 1, sessions: 1, tokens: 1, grants: 1 });
  expect(await shown()).not.toContain(word);
  expect(await scene.bus.call(sessionService.getRun, { id: runId ?? '' })).toMatchObject({
    status: 'cancelled',
    principal: { id: dave.id, display: '' },
  });
  expect(await http(scene.system, 'GET /v1/agent', { token })).toMatchObject({ status: 401 });
  const records = await becomes(
    () => http(scene.system, `GET /v1/audit?principal=${encodeURIComponent(dave.id)}`, { headers: { accept: 'application/x-ndjson' } }),
    ({ text }) => text.includes('call.completed'),
  );
  expect(records.text).not.toContain(word);
  expect(await http(scene.system, 'GET /v1/audit/verify')).toMatchObject({ body: { intact: true } });
});
