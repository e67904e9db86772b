// Long because one started system shows all that is promised of agents of the Agent Client Protocol.
import { mcpBroker, sessionService, toolGateway, type Agent } from '@ambit/contracts';
import { collect, until } from '@ambit/testing';
import { connect, type AmbitWorker } from '@ambit/worker';
import { acpAgent, type AcpAgent, type AcpOptions } from '@ambit/worker/acp';
import { testRun } from '@ambit/worker/testing';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { intend } from '../system/by-hand.js';
import { bob, RULES, Scene } from '../system/scene.js';
import { verifies } from '../verifies.js';

jest.setTimeout(120_000);
const PROGRAM = fileURLToPath(new URL('../system/acp-agent.mjs', import.meta.url));

type Step = Readonly<Record<string, unknown>>;
interface Answer {
  readonly code?: number;
  readonly [name: string]: unknown;
}

let scene: Scene;
let root: string;
const workers: AmbitWorker[] = [];
const agents: AcpAgent[] = [];
/** What went wrong in workers without ending them. */
const errors: unknown[] = [];
beforeAll(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'ambit-acp-')));
  scene = await Scene.start({
    services: ['admin-api', 'session-service', 'tool-gateway', 'mcp-broker', 'mcp-runner', 'mcp-edge', 'skill-store', 'plugin-registry'],
  });
  await scene.server('one');
});
afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.close()));
  await Promise.all(agents.map((agent) => agent.close()));
  await scene?.stop();
  await rm(root, { recursive: true, force: true });
});

/** An ACP agent with a worker, its sessions' folders, and what its program was called with. */
class Desk {
  readonly notes = join(root, `${randomUUID()}.notes`);
  private constructor(
    readonly agent: Agent,
    readonly folder: string,
  ) {}

  static async of(how: Step = {}, options: Partial<AcpOptions> = {}, more: { mode?: 'full_access'; pool?: string } = {}): Promise<Desk> {
    const agent = await scene.bus.call(sessionService.putAgent, {
      id: `acp-${randomUUID().slice(0, 8)}`,
      kind: 'acp',
      policy: { servers: null, skills: null, plugins: null, ...(more.mode === undefined ? {} : { mode: more.mode }) },
    });
    const { pool = 'shared' } = more;
    await scene.bus.call(sessionService.ensurePool, { agentId: agent.id, pool });
    const desk = new Desk(agent, join(root, agent.id));
    const credentials = await scene.system.workerCredentials({ agentId: agent.id, pools: [pool] });
    const worker = await connect({ url: scene.system.natsUrl, credentials, onError: (error) => errors.push(error) });
    workers.push(worker);
    const own = acpAgent(desk.options(how, options));
    agents.push(own);
    void worker.work(agent.id, own.handler, { pool, holds: own.holds });
    return desk;
  }

  options(how: Step, options: Partial<AcpOptions> = {}): AcpOptions {
    return { command: process.execPath, args: [PROGRAM, JSON.stringify(how), this.notes], root: this.folder, ...options };
  }

  home(sessionId: string): string {
    return join(this.folder, 'sessions', sessionId);
  }

  async send(steps: readonly Step[], more: { sceneId?: string } = {}): Promise<{ runId: string; sessionId: string }> {
    const { runId, sessionId } = await scene.send(this.agent, { content: JSON.stringify(steps), ...more });
    return { runId: runId ?? '', sessionId };
  }

  /** Sends a script and waits for its run to end; gives what the agent said. */
  async run(steps: readonly Step[], more: { sceneId?: string } = {}): Promise<{ status: string; said: string; sessionId: string }> {
    const changes = await collect(scene.system.connection, sessionService.runChanged);
    const { runId, sessionId } = await this.send(steps, more);
    const { payload } = await changes.next((one) => one.payload.runId === runId && !['queued', 'running'].includes(one.payload.status));
    changes.stop();
    return { status: payload.status, said: await said(sessionId, runId), sessionId };
  }

  /** The same, and the answers that its client gave the agent. */
  async asks(steps: readonly Step[], more: { sceneId?: string } = {}): Promise<Answer[]> {
    const { said: text } = await this.run(steps, more);
    return JSON.parse(text) as Answer[];
  }

  async called(): Promise<{ method: string; params: Record<string, unknown>; env: string[] }[]> {
    const text = await readFile(this.notes, 'utf8').catch(() => '');
    return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
  }
}

async function said(sessionId: string, runId: string): Promise<string> {
  const { items } = await scene.bus.call(sessionService.listTape, { sessionId, limit: 200 });
  const messages = items.filter(({ role, runId: of }) => role === 'assistant' && of === runId);
  return messages
    .flatMap(({ content }) => (content as { content?: { text?: string }[] }).content ?? [])
    .map(({ text }) => text ?? '')
    .join('');
}

const read = (path: string, more: Step = {}): Step => ({ method: 'fs/read_text_file', params: { path, ...more } });
const write = (path: string, content = 'new'): Step => ({ method: 'fs/write_text_file', params: { path, content } });

verifies(
  ['R-ACP-2#1', 'R-ACP-2#2'],
  'updates that come before their session is known are kept, and only what was advertised is called; a session is resumed, else loaded, else made',
  async () => {
    const plain = await Desk.of({ early: true });
    const sceneId = randomUUID();
    expect(await plain.run([{ say: 'first ' }], { sceneId })).toMatchObject({ status: 'completed', said: 'early first []' });
    expect((await plain.run([{ say: 'second ' }], { sceneId })).said).toBe('early second []');
    expect((await plain.called()).map(({ method }) => method)).toEqual(
      Array.from({ length: 2 }, () => ['initialize', 'session/new', 'session/prompt']).flat(),
    );

    for (const [capabilities, method] of [
      [{ loadSession: true }, 'session/load'],
      [{ loadSession: true, sessionCapabilities: { resume: {} } }, 'session/resume'],
    ] as const) {
      const desk = await Desk.of({ capabilities });
      await desk.run([{ say: 'first ' }], { sceneId });
      // What it tells of former prompts while it is loaded is no answer to this one.
      expect((await desk.run([{ say: 'second ' }], { sceneId })).said).toBe('second []');
      const called = await desk.called();
      expect(called.map((one) => one.method)).toEqual([
        'initialize',
        'session/new',
        'session/prompt',
        'initialize',
        method,
        'session/prompt',
      ]);
      const prompts = called.filter((one) => one.method === 'session/prompt');
      expect(prompts[1]?.params['prompt']).toEqual([{ type: 'text', text: JSON.stringify([{ say: 'second ' }]) }]);
      expect(prompts[1]?.params['sessionId']).toBe(prompts[0]?.params['sessionId']);
    }
  },
);

verifies(
  ['R-ACP-3#1', 'R-ACP-3#2', 'R-ACP-3#4', 'R-ACP-3#5', 'R-ACP-3#6'],
  'files are read and written inside the workspace, whatever a path says',
  async () => {
    const desk = await Desk.of();
    const sceneId = randomUUID();
    const { sessionId } = await desk.run([], { sceneId });
    const home = desk.home(sessionId);
    const secret = join(root, 'secret');
    await writeFile(secret, 'secret');
    await writeFile(join(home, 'lines'), 'one\ntwo\nthree\n');
    await writeFile(join(home, 'big'), 'x'.repeat(10 * 1024 * 1024));
    await writeFile(join(home, 'bigger'), 'x'.repeat(10 * 1024 * 1024 + 1));
    await symlink(secret, join(home, 'out'));
    await symlink(root, join(home, 'away'));
    await symlink('lines', join(home, 'inside'));
    const answers = await desk.asks(
      [
        read(join(home, 'lines'), { line: 2, limit: 1 }),
        read(join(home, 'inside')),
        write(join(home, 'made/deep/file')),
        ...[join(home, 'out'), join(home, 'away/secret'), secret, `${home}/../../../secret`, 'lines'].map((path) => read(path)),
        ...[join(home, 'out'), join(home, 'away/made'), join(home, 'inside'), `${home}/../made`, secret].map((path) => write(path)),
        read(join(home, 'big'), { line: 2 }),
        read(join(home, 'lines'), { line: 0 }),
        read(join(home, 'lines'), { limit: 0 }),
        read(join(home, 'bigger')),
        read(join(home, 'nothing')),
      ],
      { sceneId },
    );
    expect(answers.slice(0, 3)).toEqual([{ content: 'two' }, { content: 'one\ntwo\nthree\n' }, {}]);
    expect(answers.slice(3, 13).map(({ code }) => code)).toEqual(Array.from({ length: 10 }, () => -32_602));
    expect(answers[13]).toEqual({ content: '' });
    expect(answers.slice(14).map(({ code }) => code)).toEqual([-32_602, -32_602, -32_602, -32_002]);
    expect(await readFile(secret, 'utf8')).toBe('secret');
    expect(await readFile(join(home, 'lines'), 'utf8')).toBe('one\ntwo\nthree\n');
    expect(await readFile(join(home, 'made/deep/file'), 'utf8')).toBe('new');
    expect((await readdir(root)).filter((name) => name === 'made')).toEqual([]);
  },
);

verifies('R-ACP-3#3', 'without its workspace nothing of the machine is reached: the run is left to workers that have it', async () => {
  const desk = await Desk.of({}, { workspaces: {} }, { pool: 'nowhere' });
  const changes = await collect(scene.system.connection, sessionService.runChanged);
  const { runId } = await scene.send(desk.agent, { content: '[]', workspaceId: 'nowhere' });
  await changes.next(({ payload }) => payload.runId === runId && payload.status === 'queued' && payload.attempt > 0);
  changes.stop();
  expect(await desk.called()).toEqual([]);
  await scene.bus.call(sessionService.cancelRun, { id: runId ?? '', reason: 'seen' });
});

verifies(
  ['R-ACP-4#1', 'R-ACP-4#2', 'R-ACP-4#3', 'R-ACP-4#4', 'R-ACP-4#5', 'R-ACP-4#6'],
  'a terminal runs one command by its arguments, for its session, in the workspace, and leaves nothing',
  async () => {
    const desk = await Desk.of({}, { terminalEnv: { LISTED: 'yes' }, env: { MODEL_KEY: 'secret' } });
    const sceneId = randomUUID();
    const { sessionId } = await desk.run([], { sceneId });
    const home = desk.home(sessionId);
    await mkdir(join(home, 'sub'));
    const create = (command: string, args: string[] = [], more: Step = {}): Step => ({
      method: 'terminal/create',
      params: { command, args, ...more },
      as: 'one',
    });
    const of = (method: string): Step => ({ method: `terminal/${method}`, params: { terminalId: { of: 'one' } } });
    const node = (script: string, more: Step = {}) => create(process.execPath, ['-e', script], more);
    const all = async (first: Step): Promise<{ output: string; truncated: boolean; exitStatus: unknown }> => {
      const answers = await desk.asks([first, of('wait_for_exit'), of('output'), of('release')], { sceneId });
      return answers[2] as unknown as { output: string; truncated: boolean; exitStatus: unknown };
    };

    expect(await all(create('/bin/echo', ['$HOME; touch made', '$(touch made)']))).toMatchObject({
      output: '$HOME; touch made $(touch made)\n',
      truncated: false,
      exitStatus: { exitCode: 0 },
    });
    expect((await readdir(home)).includes('made')).toBe(false);
    expect((await all(create('/bin/pwd', [], { cwd: join(home, 'sub') }))).output.trim()).toBe(join(home, 'sub'));
    const { output } = await all(create('/usr/bin/env', [], { env: [{ name: 'ASKED', value: 'for' }] }));
    expect(
      output
        .split('\n')
        .flatMap((line) => (line === '' ? [] : [line.split('=')[0]]))
        .sort(),
    ).toEqual(['AMBIT_CALL', 'ASKED', 'HOME', 'LANG', 'LISTED', 'PATH', 'PWD', 'TERM'].sort());
    const cut = await all(node("process.stdout.write('é'.repeat(1000))", { outputByteLimit: 101 }));
    expect(cut).toMatchObject({ truncated: true, output: 'é'.repeat(50) });

    const wrong = await desk.asks(
      [
        create('/bin/true', [], { cwd: '/' }),
        create('/bin/true', [], { cwd: root }),
        create('/bin/true', [], { env: [{ name: 'A=B', value: '' }] }),
        { method: 'terminal/output', params: { terminalId: 'not-one' } },
        create('/bin/sleep', ['31536000']),
        { method: 'terminal/output', params: { sessionId: 'another', terminalId: { of: 'one' } } },
      ],
      { sceneId },
    );
    expect(wrong.map(({ code }) => code)).toEqual([-32_602, -32_602, -32_602, -32_002, undefined, -32_002]);

    const forks =
      "require('child_process').spawn('sleep',['31536001'],{stdio:'ignore'}).unref();console.log(process.pid);setInterval(()=>0,1000)";
    const [made, , , released] = await desk.asks(
      [node(forks), { method: 'terminal/output', params: { terminalId: { of: 'one' } } }, of('kill'), of('release')],
      { sceneId },
    );
    expect([made?.['terminalId'], released]).toEqual([expect.any(String), {}]);
    // Nothing of the sessions' terminals is left, also of the one that was never released.
    await until(async () => (await running()).filter((line) => line.includes('sleep\0' + '3153600')).length === 0);
  },
);

/** The command lines of all processes. */
async function running(): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  return Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
}

const permission = (options: readonly { kind: string; optionId: string }[]): Step => ({
  method: 'session/request_permission',
  params: {
    toolCall: { toolCallId: 'call-1', title: 'rm -rf build', kind: 'execute', rawInput: { command: 'rm' } },
    options: options.map((one) => ({ name: one.kind, ...one })),
  },
});
const BOTH = [
  { kind: 'allow_always', optionId: 'always' },
  { kind: 'allow_once', optionId: 'once' },
  { kind: 'reject_once', optionId: 'no' },
];

verifies('R-ACP-5#4', 'what an agent asks is put to a person, and one yes is never a yes for always where once is offered', async () => {
  const desk = await Desk.of();
  const sceneId = randomUUID();
  const decided = async (decision: 'allow' | 'deny'): Promise<Answer[]> => {
    const requested = await collect(scene.system.connection, sessionService.interactionRequested);
    const answers = desk.asks([permission(BOTH)], { sceneId });
    const { payload } = await requested.next((one) => one.payload.interaction.agentId === desk.agent.id);
    requested.stop();
    expect(payload.interaction).toMatchObject({ kind: 'permission', tool: 'acp__execute', isLive: true });
    expect(payload.interaction.argumentsPreview).toContain('rm -rf build');
    await scene.bus.call(sessionService.decideInteraction, { id: payload.interaction.id, decision, by: bob });
    return answers;
  };
  expect(await decided('allow')).toEqual([{ outcome: { outcome: 'selected', optionId: 'once' } }]);
  expect(await decided('deny')).toEqual([{ outcome: { outcome: 'selected', optionId: 'no' } }]);
  const open = await Desk.of({}, {}, { mode: 'full_access' });
  expect(await open.asks([permission(BOTH)])).toEqual([{ outcome: { outcome: 'selected', optionId: 'once' } }]);
});

verifies(
  ['R-ACP-9#1', 'R-ACP-9#2', 'R-ACP-9#3'],
  'a cancel reaches the agent, ends its prompt and what it asked, and nothing of it appears in the next',
  async () => {
    for (const how of [{}, { deaf: true }]) {
      const desk = await Desk.of(how, { cancelMs: 500 });
      const sceneId = randomUUID();
      const { runId, sessionId } = await desk.send([{ say: 'began ' }, { untilCancelled: true }], { sceneId });
      await until(async () => (await desk.called()).some(({ method }) => method === 'session/prompt'));
      const program = (await running()).filter((line) => line.includes(desk.notes)).length;
      expect(program).toBeGreaterThan(0);
      await scene.bus.call(sessionService.cancelRun, { id: runId, reason: 'enough' });
      await until(async () => (await running()).every((line) => !line.includes(desk.notes)));
      expect((await desk.called()).at(-1)?.method).toBe('session/cancel');
      const next = await desk.run([{ say: 'next ' }], { sceneId });
      expect(next).toMatchObject({ status: 'completed', said: 'next []', sessionId });
    }
  },
);

verifies(
  ['R-ACP-7#1', 'R-ACP-7#2', 'R-ACP-7#3', 'R-ACP-7#4', 'R-ACP-7#5'],
  'an agent is signed in on a terminal where there is one, by its arguments, and then opens the session that was blocked',
  async () => {
    const authMethods = [
      { id: 'web', name: 'On the web' },
      { id: 'first', name: 'First', type: 'terminal', args: ['sign-in', '--fail'] },
      { id: 'second', name: 'Second', type: 'terminal', args: ['sign-in', '$(touch made)'] },
    ];
    const how = { needsSignIn: true, authMethods };
    const without = await Desk.of(how);
    const { runId } = await without.send([]);
    await until(async () => (await without.called()).filter(({ method }) => method === 'session/new').length > 0);
    expect((await without.called())[0]?.params['clientCapabilities']).not.toMatchObject({ auth: { terminal: true } });
    await scene.bus.call(sessionService.cancelRun, { id: runId, reason: 'seen' });

    const tried: string[] = [];
    const desk = await Desk.of(how, {
      signIn: async ({ id, ...method }) => {
        tried.push(id);
        if (id === 'first') return false;
        const { execFile } = await import('node:child_process');
        const given = 'args' in method ? (method.args ?? []) : [];
        return new Promise((resolve) =>
          execFile(process.execPath, [PROGRAM, JSON.stringify(how), desk.notes, ...given], (error) => resolve(error === null)),
        );
      },
    });
    expect(await desk.run([{ say: 'in ' }])).toMatchObject({ status: 'completed', said: 'in []' });
    expect(tried).toEqual(['first', 'second']);
    expect(JSON.parse(await readFile(`${desk.notes}.signed-in`, 'utf8'))).toEqual(['$(touch made)']);
    expect((await desk.called()).map(({ method }) => method)).toEqual([
      'initialize',
      'session/new',
      'authenticate',
      'session/new',
      'session/prompt',
    ]);
    expect((await desk.called())[2]?.params).toMatchObject({ methodId: 'second' });
  },
);

verifies(
  ['R-ACP-1#1', 'R-ACP-1#2'],
  'its session has tools of MCP servers alone, and its worker has none of them executed by the gateway',
  async () => {
    const { id: agentId } = await scene.bus.call(sessionService.putAgent, {
      id: `acp-${randomUUID().slice(0, 8)}`,
      kind: 'acp',
      policy: { servers: null, skills: null, plugins: null, rules: RULES },
    });
    await scene.bus.call(sessionService.ensurePool, { agentId, pool: 'shared' });
    const hand = await scene.worker({ id: agentId });
    await scene.send({ id: agentId });
    const run = await hand.begin();
    const { tools, skills } = await hand.snapshot(run.ref.fingerprint);
    expect(tools.map(({ name }) => name.split('__')[0])).toEqual(tools.map(() => 'mcp'));
    expect(tools.length).toBeGreaterThan(0);
    expect(skills).toEqual([]);
    const name = randomUUID();
    await expect(run.use(intend('mcp__one__count', { name }))).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      data: { issues: [{ path: 'calls' }] },
    });
    const calls = [intend('mcp__one__count', { name }), intend('tape_info')];
    const answer = await hand.ask(toolGateway.executeBatch, { ...run.ref, step: run.opened.step, calls });
    expect(answer.body).toMatchObject({ code: 'BAD_ARGUMENTS' });
    expect(await scene.counting.ran('count', name)).toBe(0);
    await run.finish('completed');

    // Nor does a worker of another kind get what an ACP agent comes to the edge with.
    const other = await scene.agent();
    const worker = await scene.worker(other);
    await scene.send(other);
    const begun = await worker.begin();
    await expect(worker.call(sessionService.openRunEdge, begun.ref)).rejects.toMatchObject({ code: 'AGENT_KIND' });
    await begun.finish('completed');
  },
);

verifies(
  ['R-ACP-6#1', 'R-ACP-6#2', 'R-ACP-6#3', 'R-ACP-6#4'],
  'the tools of its run come to it through the edge: those of its own servers, without their secrets, and as they were when the run began',
  async () => {
    const secret = { transport: { ...stdio('chosen'), env: { ...scene.counting.environment, HIDDEN: 'a secret of the server' } } };
    const chosen = await scene.server('chosen', secret);
    await scene.server('other');
    const later = await scene.server('later');
    const broken = await scene.bus.call(mcpBroker.putServer, {
      ...scene.counting.server('broken'),
      transport: { type: 'stdio', command: process.execPath, args: ['--eval', 'process.exit(3)'] },
    });
    const policy = (...servers: readonly { readonly id: string }[]) => ({
      servers: servers.map(({ id }) => id),
      skills: null,
      plugins: null,
      rules: RULES,
    });
    const [edgeUrl = ''] = scene.system.edgeUrls;
    const desk = await Desk.of({ capabilities: { mcpCapabilities: { http: true } } }, { edgeUrl });
    await scene.bus.call(sessionService.putAgent, { id: desk.agent.id, kind: 'acp', policy: policy(chosen, broken) });
    const sceneId = randomUUID();
    const gate = join(root, randomUUID());
    const name = randomUUID();
    const open = desk.asks(
      [
        { list: true },
        { call: { name: 'mcp__chosen__count', arguments: { name } } },
        { call: { name: 'mcp__other__count', arguments: { name } } },
        { until: gate },
        { list: true },
      ],
      { sceneId },
    );
    await until(async () => (await scene.counting.ran('count', name)) === 1);
    await scene.bus.call(sessionService.putAgent, { id: desk.agent.id, kind: 'acp', policy: policy(chosen, broken, later) });
    await writeFile(gate, '');
    const [before, called, foreign, still] = await open;
    expect(before).toEqual(still);
    expect(JSON.stringify(before)).toContain('mcp__chosen__count');
    expect(JSON.stringify(before)).not.toMatch(/mcp__(other|later|broken)__/);
    expect(called).toMatchObject({ content: [{ type: 'text' }] });
    expect(called).not.toMatchObject({ isError: true });
    expect(foreign?.code ?? foreign?.['isError']).toBeTruthy();
    expect(await scene.counting.ran('count', name)).toBe(1);
    const [next] = await desk.asks([{ list: true }], { sceneId });
    expect(JSON.stringify(next)).toContain('mcp__later__count');
    const told = await desk.called();
    expect(JSON.stringify(told)).not.toContain('a secret of the server');
    const servers = told.find(({ method }) => method === 'session/new')?.params['mcpServers'];
    expect(servers).toMatchObject([{ type: 'http', name: 'ambit', url: edgeUrl }]);
    // What opens a run opens nothing once it has ended.
    const [{ headers }] = servers as [{ headers: [{ value: string }] }];
    const late = new Client({ name: 'late', version: '1' });
    const requestInit = { headers: { authorization: headers[0].value } };
    await late.connect(new StreamableHTTPClientTransport(new URL(edgeUrl), { requestInit }));
    const refused = await late.callTool({ name: 'mcp__chosen__count', arguments: { name } }).catch(({ message }: Error) => ({ message }));
    expect(refused).toMatchObject('message' in refused ? {} : { isError: true });
    await late.close();
    expect(await scene.counting.ran('count', name)).toBe(1);
  },
);

function stdio(slug: string) {
  const { transport } = scene.counting.server(slug);
  if (transport.type !== 'stdio') throw new Error('counting servers are programs');
  return transport;
}

it('an agent that ends by itself fails its run with its last words', async () => {
  const desk = await Desk.of();
  expect(await desk.run([{ die: true }])).toMatchObject({ status: 'failed' });
});

it('an agent that was interrupted is not asked the same again', async () => {
  const desk = await Desk.of();
  await rm(desk.notes, { force: true });
  const own = acpAgent(desk.options({}));
  agents.push(own);
  const { status, messages, attempts } = await testRun(own.handler, { message: JSON.stringify([{ say: 'hello' }]), crashAfter: 'step' });
  expect({ status, attempts }).toEqual({ status: 'failed', attempts: 2 });
  expect(JSON.stringify(messages.at(-1))).toContain('was not asked again');
  expect((await desk.called()).filter(({ method }) => method === 'session/prompt')).toEqual([]);
});

it('the variables of an agent are those it was given', async () => {
  const desk = await Desk.of({}, { env: { MODEL_KEY: 'of the agent' } });
  await desk.run([]);
  const [first] = await desk.called();
  expect(first?.env.toSorted()).toEqual(['AMBIT_CALL', 'HOME', 'LANG', 'MODEL_KEY', 'PATH', 'PWD', 'TERM']);
});
