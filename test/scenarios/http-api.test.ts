// Long because one running system answers every route: starting it takes longer than asking for them all.
import { createHash, randomUUID } from 'node:crypto';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { adminApi } from '@ambit/contracts';
import { makeUserKey } from '@ambit/identity';
import { connect, credsAuthenticator } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { runCli } from '../system/cli.js';
import { http, tokenFor } from '../system/http.js';
import { startSystem, type System } from '../system/system.js';
import { z } from 'zod';
import { verifies } from '../verifies.js';

const PlanBody = z.object({ changes: z.array(z.object({ name: z.string(), action: z.string() })) });

let system: System;
beforeAll(async () => {
  system = await startSystem();
}, 180_000);
afterAll(() => system?.stop(), 60_000);

const AGENT = { policy: { servers: 'all' } };
const message = (agentId: string, principal: string) => ({ principal: { id: principal, kind: 'person' }, agentId, content: 'Hello' });
const key = () => ({ 'idempotency-key': randomUUID() });

describe('who may do what', () => {
  it('asks for a token, and tells nothing of a wrong one', async () => {
    const without = await http(system, 'GET /v1/agent', { headers: { authorization: '' } });
    const wrong = await http(system, 'GET /v1/agent', { token: 'x'.repeat(43) });
    expect([without.status, wrong.status]).toEqual([401, 401]);
    expect(without.headers.get('content-type')).toContain('application/problem+json');
    expect(wrong.body).toMatchObject({ type: 'urn:ambit:fault:UNAUTHENTICATED', status: 401, code: 'UNAUTHENTICATED', retry: 'never' });
  });

  it('a viewer reads and changes nothing; an auditor reads audit; both are told what they lack', async () => {
    await http(system, 'PUT /v1/agent/roles', { body: AGENT });
    const viewer = await tokenFor(system, { principal: 'user:viewer', role: 'viewer' });
    const auditor = await tokenFor(system, { principal: 'user:auditor', role: 'auditor' });
    expect((await http(system, 'GET /v1/agent/roles', { token: viewer })).status).toBe(200);
    expect((await http(system, 'PUT /v1/agent/roles', { token: viewer, body: AGENT })).body).toMatchObject({
      status: 403,
      code: 'FORBIDDEN',
      detail: expect.stringContaining('administer'),
    });
    expect((await http(system, 'GET /v1/audit', { token: viewer })).status).toBe(403);
    expect((await http(system, 'GET /v1/audit', { token: auditor })).status).toBe(200);
    expect((await http(system, 'DELETE /v1/agent/roles', { token: auditor })).status).toBe(403);
  });

  it('a grant for one agent reaches that agent alone', async () => {
    await http(system, 'PUT /v1/agent/mine', { body: AGENT });
    await http(system, 'PUT /v1/agent/theirs', { body: AGENT });
    const token = await tokenFor(system, { principal: 'user:narrow', role: 'viewer', grant: { agents: ['mine'] } });
    expect((await http(system, 'GET /v1/agent/mine', { token })).status).toBe(200);
    expect((await http(system, 'GET /v1/agent/theirs', { token })).status).toBe(403);
    expect((await http(system, 'GET /v1/agent', { token })).status).toBe(403);
  });

  it('an application sends for whom it may and sees only what is theirs', async () => {
    await http(system, 'PUT /v1/agent/desk', { body: AGENT });
    const token = await tokenFor(system, { principal: 'app:desk', role: 'client', grant: { agents: ['desk'], onBehalfOf: ['user:a*'] } });
    const sent = await http(system, 'POST /v1/message', { token, headers: key(), body: message('desk', 'user:anna') });
    expect(sent.status).toBe(202);
    expect((await http(system, `GET /v1/session/${sent.body['sessionId']}`, { token })).status).toBe(200);
    expect((await http(system, 'POST /v1/message', { token, headers: key(), body: message('desk', 'user:ben') })).status).toBe(403);
    expect((await http(system, 'POST /v1/message', { token, headers: key(), body: message('mine', 'user:anna') })).status).toBe(403);
    const other = await http(system, 'POST /v1/message', { headers: key(), body: message('desk', 'user:ben') });
    expect((await http(system, `GET /v1/session/${other.body['sessionId']}`, { token })).status).toBe(403);
    expect((await http(system, `GET /v1/run/${other.body['runId']}`, { token })).status).toBe(403);
  });

  it('a revoked token is refused from the next request on', async () => {
    const { body } = await http(system, 'POST /v1/token', { body: { name: 'short', principal: 'user:admin' } });
    expect((await http(system, 'GET /v1/whoami', { token: body['token'] })).body['principal'].id).toBe('user:admin');
    await http(system, `DELETE /v1/token/${body['id']}`);
    expect((await http(system, 'GET /v1/whoami', { token: body['token'] })).status).toBe(401);
    expect((await http(system, 'GET /v1/token')).text).not.toContain(body['token']);
  });

  it('a token or a grant that there is not cannot be taken away', async () => {
    for (const [noun, code] of [
      ['token', 'TOKEN_UNKNOWN'],
      ['access', 'GRANT_UNKNOWN'],
    ] as const)
      expect((await http(system, `DELETE /v1/${noun}/${randomUUID()}`)).body).toMatchObject({ status: 404, code });
  });
});

describe('requests', () => {
  it('says where a body is wrong, refuses what is too large, and names what it does not know', async () => {
    const wrong = await http(system, 'PUT /v1/agent/wrong', { body: { policy: { servers: '' }, kind: 'robot' } });
    expect(wrong.body).toMatchObject({ status: 400, code: 'INVALID_INPUT' });
    expect(wrong.body['detail']).toContain('kind');
    const blank = await http(system, 'PUT /v1/agent/wrong', { body: { policy: { servers: null } } });
    expect(blank.body['detail']).toContain('all, none or a list');
    expect((await http(system, 'PUT /v1/agent/wrong', { body: '{' })).body).toMatchObject({ code: 'INVALID_INPUT' });
    expect((await http(system, 'PUT /v1/agent/wrong', { body: `"${'x'.repeat(2 * 1024 * 1024)}"` })).body).toMatchObject({
      status: 413,
      code: 'TOO_LARGE',
      data: { limitBytes: 1_048_576 },
    });
    expect((await http(system, 'GET /v1/nothing')).body).toMatchObject({ status: 404, code: 'ROUTE_UNKNOWN' });
    const other = await http(system, 'DELETE /v1/whoami');
    expect(other.body).toMatchObject({ status: 405, code: 'METHOD_NOT_ALLOWED' });
    expect(other.headers.get('allow')).toBe('GET');
  });

  it('says of each thing that there is not what it is', async () => {
    const [id, hash] = [randomUUID(), '0'.repeat(64)];
    for (const [at, code] of [
      [`GET /v1/run/${id}`, 'RUN_UNKNOWN'],
      [`POST /v1/run/${id}/cancel`, 'RUN_UNKNOWN'],
      [`GET /v1/run?sessionId=${id}`, 'SESSION_UNKNOWN'],
      [`GET /v1/interaction?sessionId=${id}`, 'SESSION_UNKNOWN'],
      [`GET /v1/call?sessionId=${id}`, 'SESSION_UNKNOWN'],
      [`GET /v1/session/${id}/tape`, 'SESSION_UNKNOWN'],
      [`POST /v1/call/${hash}/cancel`, 'CALL_UNKNOWN'],
    ] as const) {
      const { body } = await http(system, at);
      expect({ at, status: body['status'], code: body['code'] }).toEqual({ at, status: 404, code });
    }
  });

  it('changes only the version that the caller saw', async () => {
    const created = await http(system, 'PUT /v1/agent/etag', { body: AGENT });
    const etag = created.headers.get('etag') ?? '';
    expect((await http(system, 'PUT /v1/agent/etag', { headers: { 'if-match': etag }, body: { ...AGENT, model: 'one' } })).status).toBe(
      200,
    );
    expect(
      (await http(system, 'PUT /v1/agent/etag', { headers: { 'if-match': etag }, body: { ...AGENT, model: 'two' } })).body,
    ).toMatchObject({ status: 409, code: 'VERSION_CONFLICT' });
  });

  it('says which agent a message would reach, however its rules were written', async () => {
    const rules = [[{ adapter: 'chat', sceneId: 4711 }], { adapter: 'chat', contentContains: 'Refund' }];
    const { body: matching } = await http(system, 'PUT /v1/agent/matching', { body: { ...AGENT, match: rules } });
    expect(matching['match']).toEqual([{ adapter: 'chat', sceneId: '4711' }, rules[1]]);
    const reached = async (body: object) =>
      (await http(system, 'POST /v1/agent/match', { body: { adapter: 'chat', content: 'hi', ...body } })).body;
    const { version } = matching;
    expect(await reached({ sceneId: 4711 })).toEqual({ agentId: 'matching', version, rule: 0 });
    expect(await reached({ content: 'my refund' })).toEqual({ agentId: 'matching', version, rule: 1 });
    expect((await http(system, 'PUT /v1/agent/tied', { body: { ...AGENT, match: [{ adapter: 'chat' }] } })).body).toMatchObject({
      status: 409,
      code: 'AGENT_AMBIGUOUS',
      data: { agents: ['matching'] },
    });
  });

  it('takes the same message once, and wants a key for that', async () => {
    const body = message('desk', 'user:once');
    const headers = key();
    const [first, second] = [
      await http(system, 'POST /v1/message', { headers, body }),
      await http(system, 'POST /v1/message', { headers, body }),
    ];
    expect(second.body['runId']).toBe(first.body['runId']);
    expect((await http(system, 'POST /v1/message', { body })).body).toMatchObject({
      code: 'INVALID_INPUT',
      detail: expect.stringContaining('Idempotency-Key'),
    });
  });

  it('describes itself: every route of the document answers', async () => {
    const { body } = await http(system, 'GET /v1/openapi.json');
    expect(body['openapi']).toBe('3.1.0');
    for (const [path, operations] of Object.entries<Record<string, unknown>>(body['paths'])) {
      for (const method of Object.keys(operations)) {
        const at = path.replace(/\{[^}]+\}/g, 'none');
        const { body: answer } = await http(system, `${method.toUpperCase() as 'GET'} ${at}`, { token: 'x'.repeat(43) });
        expect({ at, method, code: answer['code'] }).toEqual({ at, method, code: 'UNAUTHENTICATED' });
      }
    }
  });
});

describe('applying a desired state', () => {
  const desired = (over: object = {}) => ({
    apiVersion: 'ambit/v1',
    set: 'team',
    servers: { echo: { transport: { type: 'inmemory', name: 'echo' } } },
    agents: { applied: AGENT },
    access: [{ who: 'user:applied', role: 'viewer' }],
    ...over,
  });
  const plan = (state: object, prune = false) => http(system, 'POST /v1/plan', { body: { desired: state, prune } });
  const apply = async (state: object, prune = false) =>
    http(system, 'POST /v1/apply', { body: { desired: state, prune, digest: (await plan(state, prune)).body['digest'] } });
  const actions = (body: unknown) => Object.fromEntries(PlanBody.parse(body).changes.map(({ name, action }) => [name, action]));

  it('changes what differs, and nothing the second time', async () => {
    expect(actions((await plan(desired())).body)).toMatchObject({ echo: 'create', applied: 'create', 'user:applied viewer': 'create' });
    expect((await apply(desired())).status).toBe(200);
    expect(Object.values(actions((await plan(desired())).body)).filter((action) => action !== 'unchanged')).toEqual([]);
    expect((await http(system, 'GET /v1/agent/applied')).body).toMatchObject({ set: 'team' });
  });

  it('refuses a plan that the world has overtaken, and does nothing of it', async () => {
    const next = desired({ agents: { applied: { ...AGENT, model: 'new' } } });
    const { body } = await plan(next);
    await http(system, 'PUT /v1/agent/applied', { body: { ...AGENT, set: 'team', model: 'meanwhile' } });
    const refused = await http(system, 'POST /v1/apply', { body: { desired: next, prune: false, digest: body['digest'] } });
    expect(refused.body).toMatchObject({ status: 409, code: 'PLAN_STALE' });
    expect((await http(system, 'GET /v1/agent/applied')).body['model']).toBe('meanwhile');
  });

  it('refuses agents that one message would match before anything is changed, also where they are of another set', async () => {
    const match = [{ adapter: 'desk', scene: 'group' }];
    const tied = {
      set: 'tied',
      servers: {},
      access: [],
      agents: { first: { ...AGENT, match }, second: { ...AGENT, match: [{ adapter: 'desk' }] } },
    };
    const refused = { status: 409, code: 'AGENT_AMBIGUOUS', data: { agents: ['first', 'second'] } };
    expect((await plan(desired(tied))).body).toMatchObject(refused);
    const body = { desired: desired(tied), prune: false, digest: '0'.repeat(64) };
    expect((await http(system, 'POST /v1/apply', { body })).body).toMatchObject(refused);
    expect((await http(system, 'GET /v1/agent/first')).status).toBe(404);
    await http(system, 'PUT /v1/agent/second', { body: { ...AGENT, match: [{ adapter: 'desk' }] } });
    const { agents, ...rest } = tied;
    expect((await plan(desired({ ...rest, agents: { first: agents.first } }))).body).toMatchObject(refused);
    await http(system, 'DELETE /v1/agent/second');
    expect((await apply(desired({ ...rest, agents: { first: agents.first } }))).status).toBe(200);
    // Rules move to an agent whose turn is before that of the one which has them, or which goes.
    const early = { ...AGENT, match };
    expect((await apply(desired({ ...rest, agents: { early, first: AGENT } }))).status).toBe(200);
    expect((await apply(desired({ ...rest, agents: { beginning: early } }), true)).status).toBe(200);
    expect((await http(system, 'POST /v1/agent/match', { body: { adapter: 'desk', scene: 'group', content: 'hi' } })).body).toMatchObject({
      agentId: 'beginning',
    });
    // In a circle no one of them is the first; what was there stays.
    const ring = (one: string, other: string) => ({
      one: { ...AGENT, match: [{ adapter: one }] },
      other: { ...AGENT, match: [{ adapter: other }] },
    });
    expect((await apply(desired({ ...rest, agents: ring('r1', 'r2') }))).status).toBe(200);
    expect((await apply(desired({ ...rest, agents: ring('r2', 'r1') }))).body).toMatchObject({
      code: 'APPLY_FAILED',
      data: { code: 'AGENT_AMBIGUOUS', done: 0 },
    });
  });

  it('says which change failed, and what stands before it', async () => {
    const servers = { inside: { transport: { type: 'http', url: 'http://10.0.0.1/mcp' } } };
    expect((await apply({ apiVersion: 'ambit/v1', set: 'broken', servers })).body).toMatchObject({
      status: 409,
      code: 'APPLY_FAILED',
      data: { kind: 'server', name: 'inside', code: 'URL_REFUSED', done: 0 },
    });
  });

  it('prunes its own set only, and leaves alone what a person made', async () => {
    await http(system, 'PUT /v1/agent/by-hand', { body: AGENT });
    const shrunk = desired({ servers: {}, agents: { 'by-hand': { ...AGENT, model: 'taken over' } }, access: [] });
    const planned = actions((await plan(shrunk, true)).body);
    expect(planned).toMatchObject({ echo: 'delete', applied: 'delete', 'by-hand': 'keep', 'user:applied viewer': 'delete' });
    expect((await apply(shrunk, true)).status).toBe(200);
    expect((await http(system, 'GET /v1/agent/by-hand')).body['model']).toBe('');
    expect((await http(system, 'GET /v1/agent/applied')).status).toBe(404);
  });
});

describe('worker credentials', () => {
  verifies('R-NATS-1#2', 'a worker issued over HTTP reaches its own agent alone, and is cut off when it is revoked', async () => {
    await http(system, 'PUT /v1/agent/walled', { body: AGENT });
    const { body } = await http(system, 'POST /v1/worker', { body: { name: 'one', agentId: 'walled' } });
    expect((await http(system, 'POST /v1/worker', { body: { name: 'one', agentId: 'walled' } })).body).toMatchObject({
      code: 'WORKER_EXISTS',
    });
    const open = () =>
      connect({
        servers: system.natsUrl,
        authenticator: credsAuthenticator(Buffer.from(body['credentials'])),
        inboxPrefix: '_INBOX.walled.one',
        reconnect: false,
      });
    const worker = await open();
    const ref = { runId: randomUUID(), originRunId: randomUUID(), sessionId: randomUUID(), fingerprint: 'a'.repeat(64) };
    const own = await worker.request('ambit.rpc.session-service.v1.run.start.walled', JSON.stringify(ref), { timeout: 5_000 });
    expect(own.json()).toMatchObject({ code: 'TOOL_NOT_IN_SNAPSHOT' });
    // A key that nobody issued a credential for is not renewed, whoever asks.
    const foreign = { publicKey: makeUserKey().getPublicKey(), proof: 'none', at: new Date().toISOString() };
    const renewal = system.bus.call(adminApi.renewCredential, foreign, { keys: { agentId: 'walled' } });
    await expect(renewal).rejects.toMatchObject({ code: 'CREDENTIAL_UNKNOWN' });
    await expect(worker.request('ambit.rpc.session-service.v1.run.start.desk', JSON.stringify(ref), { timeout: 5_000 })).rejects.toThrow(
      /permission/i,
    );
    const closed = worker.closed();
    expect((await http(system, `DELETE /v1/worker/${body['id']}`)).body).toEqual({ revoked: true });
    await closed;
    await expect(open()).rejects.toThrow(/authorization/i);
    expect((await http(system, 'GET /v1/worker?agentId=walled')).text).not.toContain('SEED');
  });
});

describe('what is recorded', () => {
  it('keeps a chain for every owner, exports it, and walks it', async () => {
    const { body } = await http(system, 'GET /v1/audit/verify');
    expect(body).toMatchObject({ intact: true });
    const exported = await http(system, 'GET /v1/audit?owner=admin-api', { headers: { accept: 'application/x-ndjson' } });
    const records = exported.text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(records[0]).toMatchObject({ owner: 'admin-api', sequence: 1, action: 'token.created' });
    expect(exported.text).not.toContain(system.token);
  });

  it('a token is kept as its hash', async () => {
    const hash = createHash('sha256').update(system.token).digest('hex');
    expect(system.process('admin-api').log()).not.toContain(system.token);
    expect(hash).toHaveLength(64);
  });
});

describe('imports of skills', () => {
  const corpus = fileURLToPath(new URL('../../apps/skill-store/test/corpus', import.meta.url));
  const Preview = z.object({ skills: z.array(z.looseObject({ name: z.string(), digest: z.string(), replaces: z.string().nullable() })) });
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'ambit-import-'));
    await cp(join(corpus, 'claude-code'), join(folder, 'home'), { recursive: true });
    for (const id of ['importer', 'shelf', 'secret-shelf']) await http(system, `PUT /v1/agent/${id}`, { body: AGENT });
    await http(system, 'PUT /v1/agent/of-others', { body: { ...AGENT, kind: 'acp' } });
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  verifies(
    ['R-IMPORT-1#1', 'R-IMPORT-1#2', 'R-IMPORT-1#3', 'R-IMPORT-2#2'],
    'the command previews what a tool keeps and imports exactly that; another agent gets a copy of it, with its progress told',
    async () => {
      const args = ['skill', 'import', 'home', '--from', 'claude-code', '--agent', 'importer'];
      const without = await runCli(system, args.slice(0, 5), folder);
      expect([without.code, without.errors]).toEqual([2, expect.stringContaining('--agent')]);
      const previewed = await runCli(system, [...args, '--preview', '--json'], folder);
      expect(previewed).toMatchObject({ code: 0, errors: '' });
      const { skills } = Preview.parse(JSON.parse(previewed.out));
      expect(skills).toMatchObject([
        { name: 'explain-code', status: 'ready' },
        { name: 'review-changes', status: 'ready', files: 3 },
      ]);
      expect((await http(system, 'GET /v1/skill?agentId=importer')).body['items']).toEqual([]);
      const imported = await runCli(system, args, folder);
      expect(imported).toMatchObject({ code: 0, out: expect.stringContaining('review-changes: installed') });
      const { body: stored } = await http(system, 'GET /v1/skill/importer/review-changes');
      expect(stored['digest']).toBe(skills[1]?.digest);

      const source = { kind: 'agent', agentId: 'importer' };
      const seen = await http(system, 'POST /v1/import/preview', { body: { agentId: 'shelf', source } });
      const chosen = Preview.parse(seen.body).skills.map(({ name, digest }) => ({ name, digest }));
      const headers = { accept: 'text/event-stream' };
      const { text } = await http(system, 'POST /v1/import', { headers, body: { agentId: 'shelf', source, skills: chosen } });
      expect(text.match(/^event: .*$/gm)).toEqual(['event: import.progressed', 'event: import.progressed', 'event: import.finished']);
      await http(system, 'DELETE /v1/skill/importer/review-changes');
      expect((await http(system, 'GET /v1/skill/shelf/review-changes')).body).toMatchObject({
        digest: stored['digest'],
        source: 'agent:importer/review-changes',
      });

      for (const [body, code] of [
        [{ source }, 'INVALID_INPUT'],
        [{ agentId: 'nobody', source }, 'AGENT_UNKNOWN'],
        [{ agentId: 'of-others', source }, 'IMPORT_TARGET'],
        [{ agentId: 'importer', source }, 'IMPORT_SAME_AGENT'],
      ] as const)
        expect((await http(system, 'POST /v1/import/preview', { body })).body['code']).toBe(code);
      const failed = await http(system, 'POST /v1/import', { headers, body: { agentId: 'importer', source, skills: chosen } });
      expect(failed.text).toMatch(/^event: import.failed\ndata: .*IMPORT_SAME_AGENT/m);
    },
  );

  verifies(
    ['R-IMPORT-2#1', 'R-IMPORT-3#5'],
    'a taken name is skipped, renamed or overwritten as said; a link in the folder ends the command',
    async () => {
      const tidy = join(folder, 'home/.claude/skills/explain-code/SKILL.md');
      const args = ['skill', 'import', 'home', '--from', 'claude-code', '--agent', 'shelf', '--only', 'explain-code'];
      await writeFile(tidy, '---\ndescription: Explains it anew.\n---\n\nAnew.\n');
      const before = (await http(system, 'GET /v1/skill/shelf/explain-code')).body;
      expect(await runCli(system, args, folder)).toMatchObject({ code: 0, out: expect.stringContaining('skipped') });
      expect((await http(system, 'GET /v1/skill/shelf/explain-code')).body).toEqual(before);
      const renamed = await runCli(system, [...args, '--on-conflict', 'rename', '--json'], folder);
      expect(JSON.parse(renamed.out)).toMatchObject({ failed: 0, results: [{ outcome: 'renamed', as: 'explain-code-copy' }] });
      const replaced = await runCli(system, [...args, '--on-conflict', 'overwrite'], folder);
      expect(replaced).toMatchObject({ code: 0, out: expect.stringContaining('overwritten') });
      expect((await http(system, 'GET /v1/skill/shelf/explain-code')).body).toMatchObject({ version: 2, description: 'Explains it anew.' });
      await symlink('/etc/hostname', join(folder, 'home/.claude/skills/explain-code/host'));
      expect(await runCli(system, args, folder)).toMatchObject({ code: 1, errors: expect.stringContaining('links are not followed') });
    },
  );

  it('whoever imports may change the target and read the source', async () => {
    const token = await tokenFor(system, { principal: 'user:importer', role: 'operator', grant: { agents: ['importer'] } });
    const ask = (agentId: string, from: string) =>
      http(system, 'POST /v1/import/preview', { token, body: { agentId, source: { kind: 'agent', agentId: from } } });
    expect((await ask('importer', 'secret-shelf')).status).toBe(403);
    expect((await ask('shelf', 'importer')).status).toBe(403);
  });
});

it('the published document is the one that is served', async () => {
  const { resolve } = createRequire(import.meta.url);
  const path = resolve('../../docs/generated/openapi.json');
  expect((await http(system, 'GET /v1/openapi.json')).body['paths']).toEqual(
    (JSON.parse(await readFile(path, 'utf8')) as { paths: unknown }).paths,
  );
});
