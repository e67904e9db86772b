import { createHash, generateKeyPairSync, verify } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { run } from '../src/run.js';

let folder: string;
let api: Server;
let url: string;
/** Method and path → answer; what is not there is refused as the API refuses. */
const answers = new Map<string, { readonly status?: number; readonly body: unknown }>();
const seen: { readonly line: string; readonly body: string; readonly token: string | undefined }[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ambit-cli-'));
  api = createServer((request, response) => {
    let body = '';
    request.on('data', (part) => (body += String(part)));
    request.on('end', () => {
      const line = `${request.method} ${request.url}`;
      seen.push({ line, body, token: request.headers.authorization });
      const { status = 200, body: answer } = answers.get(line.split('?')[0] ?? '') ?? {
        status: 404,
        body: { title: 'x', status: 404, code: 'AGENT_UNKNOWN', detail: 'There is no such agent', retry: 'never', traceId: 't' },
      };
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
});
beforeEach(() => {
  answers.clear();
  seen.length = 0;
});
afterAll(async () => {
  api.closeAllConnections();
  await new Promise((resolve) => api.close(resolve));
  await rm(folder, { recursive: true, force: true });
});

async function ambit(
  args: readonly string[],
  more: { readonly env?: Record<string, string>; readonly cwd?: string; readonly input?: string } = {},
) {
  const out: string[] = [];
  const errors: string[] = [];
  const code = await run(args, {
    env: more.env ?? { AMBIT_URL: url, AMBIT_TOKEN: 'secret-token' },
    cwd: more.cwd ?? folder,
    isTerminal: false,
    signal: new AbortController().signal,
    write: (words) => void out.push(words),
    complain: (words) => void errors.push(words),
    readInput: () => Promise.resolve(more.input ?? ''),
    ask: () => Promise.resolve(undefined),
  });
  return { code, out: out.join(''), errors: errors.join('') };
}

describe('help', () => {
  it('shows every command', async () => {
    const { code, out } = await ambit(['--help']);
    expect(code).toBe(0);
    expect(out).toMatchSnapshot();
  });

  it.each(['apply', 'send', 'answer', 'explain', 'server add', 'worker create', 'call resolve', 'secret set'])('of %s', async (command) => {
    const { code, out } = await ambit([...command.split(' '), '--help']);
    expect(code).toBe(0);
    expect(out).toMatchSnapshot();
  });
});

describe('what cannot be done is told in a sentence, with what would be right', () => {
  it.each([
    [2, ['frobnicate']],
    [2, ['get', 'weather']],
    [2, ['send', 'guide']],
    [2, ['call', 'resolve', 'a'.repeat(64), '--as', 'fine', '--note', 'x']],
    [2, ['send', 'guide', 'hello', '--as', 'alice']],
    [2, ['server', 'add', 'wiki']],
    [2, ['server', 'add', 'wiki', 'https://wiki.example/mcp', '--env', 'A=b']],
    [2, ['server', 'add', 'wiki', 'https://wiki.example/mcp', '--header', 'authorization']],
    [2, ['token', 'create', 'ci', '--for', 'app:ci', '--expires', 'soon']],
    [2, ['secret', 'set', 'hook-key']],
    [2, ['answer', '019a0000-0000-7000-8000-000000000001']],
    [1, ['get', 'agent', 'nobody']],
    [1, ['validate', '-f', 'gone.yaml']],
  ] as const)('%d: %j', async (code, args) => {
    const answer = await ambit(args);
    expect(answer.code).toBe(code);
    expect(answer.out).toBe('');
    expect(answer.errors.replaceAll(folder, '<folder>')).toMatchSnapshot();
    expect(answer.errors).not.toContain('secret-token');
  });

  it('in JSON where JSON was asked for', async () => {
    const refused = await ambit(['--json', 'get', 'agent', 'nobody']);
    expect(JSON.parse(refused.errors)).toEqual({
      error: { code: 'AGENT_UNKNOWN', status: 404, message: 'There is no such agent', retry: 'never', data: null, traceId: 't' },
    });
    expect(
      JSON.parse((await ambit(['get', 'weather', '--json'])).errors.split('\n').filter((line) => line.startsWith('{'))[0] ?? ''),
    ).toMatchObject({
      error: { code: 'USAGE' },
    });
  });

  it('says where it looked when it knows no address', async () => {
    const { code, errors } = await ambit(['status'], { env: {} });
    expect([code, errors]).toEqual([
      2,
      'ambit: Which Ambit? Give --url or AMBIT_URL, or run this below a folder where `npm start` is running.\n',
    ]);
  });
});

it('finds the stack that runs in a folder above, and gives its token to no other address', async () => {
  const below = join(folder, 'project', 'deep');
  await mkdir(join(folder, 'project', '.ambit'), { recursive: true });
  await mkdir(below);
  await writeFile(join(folder, 'project', 'token'), 'stack-token\n');
  await writeFile(
    join(folder, 'project', '.ambit', 'stack.json'),
    JSON.stringify({ apiUrl: url, tokenFile: join(folder, 'project', 'token') }),
  );
  answers.set('GET /v1/project', { body: { items: [] } });
  expect(await ambit(['get', 'project'], { env: {}, cwd: below })).toMatchObject({ code: 0, out: 'there is no project\n' });
  expect(seen[0]?.token).toBe('Bearer stack-token');
  expect(await ambit(['get', 'project', '--url', 'http://127.0.0.1:9'], { env: {}, cwd: below })).toMatchObject({ code: 2 });
});

it('shows what applying would change, asks first, and sends the digest it showed', async () => {
  const plan = { digest: 'a'.repeat(64), set: 'support', changes: [{ kind: 'agent', name: 'helper', action: 'create', detail: 'new' }] };
  answers.set('POST /v1/plan', { body: plan });
  answers.set('POST /v1/apply', { body: plan });
  await writeFile(join(folder, 'ambit.yaml'), 'apiVersion: ambit/v1\nset: support\nagents: { helper: {} }\n');
  expect(await ambit(['apply'])).toMatchObject({
    code: 2,
    out: '  + agent helper: create (new)\n',
    errors: 'ambit: Nobody is there to confirm; say --yes to apply without a question.\n',
  });
  expect(seen.map(({ line }) => line)).toEqual(['POST /v1/plan']);
  expect(await ambit(['apply', '--yes'])).toMatchObject({
    code: 0,
    out: '  + agent helper: create (new)\nset support is as ambit.yaml says\n',
  });
  expect(JSON.parse(seen.at(-1)?.body ?? '{}')).toMatchObject({ digest: plan.digest, prune: false, desired: { set: 'support' } });
  const { out } = await ambit(['apply', '--yes', '--json']);
  expect(JSON.parse(out)).toEqual(plan);
});

it('takes a secret’s value from standard input, never from the command line', async () => {
  answers.set('PUT /v1/secret/hook-key', {
    body: {
      name: 'hook-key',
      projectId: 'default',
      from: 'store',
      key: null,
      keyId: 'k1',
      set: null,
      version: 1,
      updatedAt: '2026-01-01T00:00:00Z',
    },
  });
  expect(await ambit(['secret', 'set', 'hook-key'], { input: 'the value\n' })).toMatchObject({
    code: 0,
    out: 'secret hook-key is set, from store\n',
  });
  expect(JSON.parse(seen[0]?.body ?? '{}')).toMatchObject({ value: 'the value' });
});

it('says which agent a message would reach, and by which of its rules', async () => {
  answers.set('POST /v1/agent/match', { body: { agentId: 'support', version: 3, rule: 1 } });
  const place = ['agent', 'match', '--adapter', 'chat', '--scene', 'group', '--scene-id', '42', '--media', 'image'];
  expect(await ambit(place)).toMatchObject({ code: 0, out: 'support (version 3; rule 2 of its match rules)\n' });
  expect(JSON.parse(seen.at(-1)?.body ?? '')).toEqual({
    adapter: 'chat',
    endpoint: '',
    scene: 'group',
    sceneId: '42',
    content: 'hello',
    media: [{ kind: 'image' }],
  });
  answers.set('POST /v1/agent/match', { body: { agentId: 'default', version: 1, rule: null } });
  expect((await ambit(['agent', 'match'])).out).toBe('default (version 1; no rule matches)\n');
  expect(JSON.parse((await ambit(['agent', 'match', '--json'])).out)).toEqual({ agentId: 'default', version: 1, rule: null });
});

it('signs a package’s folder, and trusts the key that it is signed with', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  await mkdir(join(folder, 'pack'), { recursive: true });
  await writeFile(join(folder, 'pack', 'plugin.json'), '{}');
  await writeFile(join(folder, 'key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }));
  await writeFile(join(folder, 'key.pub'), publicKey.export({ type: 'spki', format: 'pem' }));
  const twice = [
    await ambit(['publisher', 'sign', 'pack', '--key', 'key.pem']),
    await ambit(['publisher', 'sign', 'pack', '--key', 'key.pem']),
  ];
  expect(twice.map(({ errors }) => errors)).toEqual(['', '']);
  const { key, signature } = JSON.parse(await readFile(join(folder, 'pack', 'signature.json'), 'utf8'));
  const statement = `{"files":{"plugin.json":"${createHash('sha256').update('{}').digest('hex')}"},"format":"ambit.plugin-signature.v1"}`;
  expect(verify(null, Buffer.from(statement), publicKey, Buffer.from(signature, 'base64'))).toBe(true);

  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64');
  answers.set('POST /v1/publisher', { body: { keyId: key, publisher: 'acme', publicKey: raw, addedAt: '2026-01-01T00:00:00Z' } });
  answers.set(`DELETE /v1/publisher/${key}`, { body: { removed: true } });
  expect(await ambit(['publisher', 'trust', 'acme', 'key.pub'])).toMatchObject({ code: 0, out: expect.stringContaining(key) });
  expect(JSON.parse(seen.at(-1)?.body ?? '')).toEqual({ publisher: 'acme', publicKey: raw });
  expect(await ambit(['publisher', 'distrust', key])).toMatchObject({ code: 0, out: expect.stringContaining('not trusted') });
});

it('what an agent or a server wrote cannot steer the terminal', async () => {
  answers.set('GET /v1/plugin', { body: { items: [] } });
  answers.set('GET /v1/tool', {
    body: {
      tools: [
        { name: 'exec', exposure: 'user-configurable', description: '\u001b]0;owned\u0007\u202etxt', inputSchema: {}, effect: 'write' },
      ],
    },
  });
  const { out } = await ambit(['get', 'tool']);
  expect(out).toContain('exec');
  // eslint-disable-next-line no-control-regex -- these are what must not be there
  expect(out).not.toMatch(/[\u0000-\u0009\u001b\u0007\u202e]/);
});

it('shows webhooks, and exports them as they are written', async () => {
  for (const noun of ['agent', 'server', 'secret', 'plugin', 'skill', 'access']) answers.set(`GET /v1/${noun}`, { body: { items: [] } });
  const webhook = { url: 'https://hooks.example/ambit', sign: { secret: 'hook-key' } };
  const at = '2026-01-01T00:00:00Z';
  const sink = {
    id: '019a0000-0000-7000-8000-000000000001',
    projectId: 'default',
    set: 'support',
    version: 1,
    createdAt: at,
    updatedAt: at,
  };
  answers.set('GET /v1/notify', { body: { items: [{ ...sink, events: ['call.parked'], webhook }] } });
  expect(await ambit(['get', 'notify'])).toMatchObject({
    code: 0,
    out: expect.stringMatching(/https:\/\/hooks\.example\/ambit +call\.parked +hook-key +support/),
  });
  const told = { id: 7, eventId: 'e', event: 'call.parked', about: 'f'.repeat(64), status: 'pending', attempts: 2, lastError: 'HTTP 500' };
  const deliveries = { body: { items: [{ ...told, createdAt: at, nextAt: at, endedAt: null }] } };
  answers.set(`GET /v1/notify/${sink.id}/delivery`, deliveries);
  for (const named of [webhook.url, sink.id])
    expect(await ambit(['notify', 'deliveries', named, '--status', 'pending'])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/call\.parked +f+ +pending +2 .*HTTP 500/),
    });
  expect(await ambit(['notify', 'deliveries', 'https://elsewhere.example'])).toMatchObject({
    code: 1,
    errors: expect.stringContaining('ambit get notify'),
  });
  const { out } = await ambit(['export', '--set', 'support', '--json']);
  expect(JSON.parse(out)).toMatchObject({ notify: [{ events: ['call.parked'], webhook }] });
});
