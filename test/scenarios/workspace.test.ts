// Long because one started system shows all that is promised of the tools that act in a session's folder.
import {
  sessionService,
  toolGateway,
  worker as workerContract,
  type CallResult,
  type IntendedCall,
  type Interaction,
} from '@ambit/contracts';
import { operationId } from '@ambit/capability';
import { collect, collectEndedCalls, until } from '@ambit/testing';
import { connect, type WorkerTool } from '@ambit/worker';
import { testRun } from '@ambit/worker/testing';
import { workspace, type Volume, type WorkspaceOptions } from '@ambit/worker/workspace';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { randomBytes, randomUUID } from 'node:crypto';
import {
  lstat,
  mkdir,
  mkdtemp,
  open,
  opendir,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  symlink,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { intend } from '../system/by-hand.js';
import { factsOf } from '../system/facts.js';
import { bob, Scene } from '../system/scene.js';
import { Wire } from '../system/wire.js';
import { ScriptedRun, ScriptedWorker } from '../system/workspace-worker.js';
import { verifies } from '../verifies.js';

jest.setTimeout(120_000);

let scene: Scene;
let root: string;
const workers: ScriptedWorker[] = [];
beforeAll(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'ambit-workspace-')));
  scene = await Scene.start({
    services: ['session-service', 'tool-gateway', 'mcp-broker', 'mcp-runner', 'skill-store', 'plugin-registry'],
  });
  await scene.server('one');
});
afterAll(async () => {
  for (const worker of workers) await worker.stop();
  await scene?.stop();
  await rm(root, { recursive: true, force: true });
});

type Policy = Parameters<Scene['agent']>[0];
interface Desk {
  readonly agentId: string;
  readonly worker: ScriptedWorker;
  /** Below which sessions have their folders. */
  readonly folder: string;
}

/** An agent whose worker brings workspace tools; `change` puts something between the platform and the tools. */
async function desk(
  policy: Policy = {},
  more: {
    readonly options?: Partial<WorkspaceOptions>;
    readonly change?: (tools: WorkerTool[]) => WorkerTool[];
    readonly url?: string;
  } = {},
): Promise<Desk> {
  const agent = await scene.agent(policy);
  const folder = join(root, agent.id);
  const tools = workspace({ root: folder, ...more.options });
  const worker = await ScriptedWorker.start(scene, agent, { tools: more.change?.(tools) ?? tools, url: more.url });
  workers.push(worker);
  return { agentId: agent.id, worker, folder };
}

async function leave({ worker }: Desk): Promise<void> {
  workers.splice(workers.indexOf(worker), 1);
  await worker.stop();
}

/** A run of a session, begun, and the session's folder. */
async function begin({ agentId, worker, folder }: Desk, sceneId: string = randomUUID()): Promise<{ run: ScriptedRun; home: string }> {
  await scene.send({ id: agentId }, { sceneId });
  const run = await worker.begin();
  const home = join(folder, 'sessions', run.run.sessionId);
  await mkdir(home, { recursive: true });
  return { run, home };
}

const FULL: Policy = { mode: 'full_access' };
const text = (result: CallResult | undefined): string => String(result?.content?.[0]?.text ?? result?.fault?.code);
const outcomes = (results: readonly CallResult[]): string[] => results.map(({ status, fault }) => fault?.code ?? status);
const decide = (interaction: Interaction | undefined, decision: 'allow' | 'deny'): Promise<Interaction> =>
  scene.bus.call(sessionService.decideInteraction, { id: interaction?.id ?? '', decision, by: bob });
const exec = (command: string, cwd = '.') => intend('exec', { command, cwd });

verifies(
  ['R-PERM-3#1', 'R-PERM-3#2', 'R-PERM-3#7'],
  'nothing outside the session’s folder is read, written, listed or searched',
  async () => {
    const at = await desk(FULL);
    const { run, home } = await begin(at);
    await writeFile(join(root, 'secret.txt'), 'the secret');
    await mkdir(join(home, 'src/.agent-scopes'), { recursive: true });
    await writeFile(join(home, 'src/mine.txt'), 'no secret');
    await writeFile(join(home, 'src/.agent-scopes/theirs.txt'), 'their secret');
    await symlink(join(root, 'secret.txt'), join(home, 'src/link.txt'));
    await symlink('../../../..', join(home, 'src/up'));
    const calls = [
      intend('read', { path: 'src/link.txt' }),
      intend('write', { path: 'src/link.txt', content: 'x' }),
      intend('edit', { path: 'src/up/secret.txt', old: 'secret', new: 'x' }),
      intend('ls', { path: 'src/up' }),
      intend('grep', { pattern: 'secret', path: 'src/up' }),
      intend('read', { path: '../../secret.txt' }),
      intend('read', { path: join(root, 'secret.txt') }),
    ];
    const results = await run.use(...calls);
    expect(outcomes(results)).toEqual(calls.map(() => 'OUTSIDE_WORKSPACE'));
    for (const { callId } of calls)
      expect(await factsOf(scene.system.connection, run.run, { step: 0, callId })).toEqual({ claim: undefined, outcome: undefined });
    const dots = await run.use(
      intend('glob', { pattern: '../*' }),
      intend('glob', { pattern: 'src/../../*' }),
      intend('glob', { pattern: '{src,../..}/*' }),
    );
    expect(outcomes(dots)).toEqual(['BAD_ARGUMENTS', 'BAD_ARGUMENTS', 'BAD_ARGUMENTS']);
    const found = await run.use(intend('grep', { pattern: 'secret' }), intend('glob', { pattern: '**/*.txt' }));
    expect(found.map(text)).toEqual(['src/mine.txt:1: no secret', 'src/mine.txt']);
    expect(await readFile(join(root, 'secret.txt'), 'utf8')).toBe('the secret');
    run.done();
  },
);

verifies('R-PERM-3#3', 'a path that becomes a link between the decision and the opening is refused, and so is another file', async () => {
  let between: () => Promise<void> = () => Promise.resolve();
  const at = await desk(FULL, {
    change: (tools) =>
      tools.map((tool) => ({
        ...tool,
        run: async (...call) => {
          await between();
          return tool.run(...call);
        },
      })),
  });
  const { run, home } = await begin(at);
  await mkdir(join(home, 'docs'));
  await mkdir(join(home, 'other'));
  await writeFile(join(root, 'note.txt'), 'outside');
  for (const name of ['docs', 'other']) await writeFile(join(home, name, 'note.txt'), name);
  const swapped = async (to: string, ...calls: IntendedCall[]): Promise<string[]> => {
    between = async () => {
      between = () => Promise.resolve();
      await rename(join(home, 'docs'), join(home, 'was'));
      await symlink(to, join(home, 'docs'));
    };
    const results = await run.use(...calls);
    await unlink(join(home, 'docs'));
    await rename(join(home, 'was'), join(home, 'docs'));
    return outcomes(results);
  };
  expect(await swapped(root, intend('read', { path: 'docs/note.txt' }))).toEqual(['OUTSIDE_WORKSPACE']);
  expect(await swapped(root, intend('write', { path: 'docs/note.txt', content: 'x' }))).toEqual(['OUTSIDE_WORKSPACE']);
  expect(await swapped('other', intend('read', { path: 'docs/note.txt' }))).toEqual(['TARGET_CHANGED']);
  expect(await swapped('other', exec('cat note.txt', 'docs'))).toEqual(['TARGET_CHANGED']);
  expect(await readFile(join(root, 'note.txt'), 'utf8')).toBe('outside');
  expect((await run.use(intend('read', { path: 'docs/note.txt' }))).map(text)).toEqual(['docs']);
  run.done();
});

verifies(
  ['R-PERM-3#4', 'R-PERM-3#5'],
  'another spelling on a volume without case leads nowhere else; closed folders are closed in full access',
  async () => {
    const at = await desk(FULL, { options: { volume: withoutCase() } });
    const { run, home } = await begin(at);
    await mkdir(join(home, '.agent-scopes/other'), { recursive: true });
    await writeFile(join(home, '.agent-scopes/other/SKILL.md'), 'private');
    await writeFile(join(home, 'Notes.md'), 'mine');
    const closed = [
      intend('read', { path: '.agent-scopes/other/SKILL.md' }),
      intend('read', { path: '.Agent-SCOPES/other/skill.md' }),
      intend('write', { path: '.AGENT-SCOPES/other/SKILL.md', content: 'x' }),
      intend('ls', { path: '.agent-scopeS' }),
      exec('cat .agent-scopes/other/SKILL.md'),
      exec('cat .AGENT*/other/SKILL.md'),
    ];
    expect(outcomes(await run.use(...closed))).toEqual(closed.map(() => 'POLICY_DENIED'));
    const spelled = await run.use(
      intend('read', { path: `${at.folder.toUpperCase()}/sessions` }),
      intend('write', { path: 'NOTES.MD', content: 'still mine' }),
      intend('grep', { pattern: 'private' }),
    );
    expect(spelled.map(text)).toEqual(['OUTSIDE_WORKSPACE', 'Replaced Notes.md: 10 bytes', '[nothing]']);
    expect(await readdir(home)).toEqual(expect.arrayContaining(['.agent-scopes', 'Notes.md']));
    expect(await readFile(join(home, '.agent-scopes/other/SKILL.md'), 'utf8')).toBe('private');
    run.done();
  },
);

verifies('R-PERM-3#6', 'sessions that work at once never get each other’s folder', async () => {
  const at = await desk(FULL);
  const sessions = await Promise.all([begin(at), begin(at), begin(at)]);
  const tag = new Map(sessions.map(({ run }) => [run, randomUUID()]));
  await Promise.all(
    sessions.map(async ({ run, home }) => {
      const mine = tag.get(run) ?? '';
      const results = await run.use(
        intend('write', { path: 'me.txt', content: mine }),
        exec(`pwd; echo ${mine} > there.txt; cat me.txt`),
        intend('grep', { pattern: '.' }),
        intend('ls', { path: '.' }),
      );
      expect(text(results[1])).toContain(`\n${home}\n${mine}`);
      expect(text(results[2])).toBe(`me.txt:1: ${mine}\nthere.txt:1: ${mine}`);
      const theirs = sessions.find((other) => other.run !== run);
      expect(
        outcomes(
          await run.use(intend('read', { path: join(theirs?.home ?? '', 'me.txt') }), exec('ls', `../${theirs?.run.run.sessionId}`)),
        ),
      ).toEqual(['OUTSIDE_WORKSPACE', 'OUTSIDE_WORKSPACE']);
      run.done();
    }),
  );
});

verifies(
  ['R-PERM-4#1', 'R-PERM-4#2', 'R-PERM-4#3', 'R-PERM-4#4', 'R-PERM-4#6'],
  'an approval is of one call: its command, its folder, its session, once',
  async () => {
    const at = await desk();
    const sceneId = randomUUID();
    const first = await begin(at, sceneId);
    await mkdir(join(first.home, 'sub'));
    const count = async (): Promise<number> => (await readFile(join(first.home, 'count'), 'utf8').catch(() => '')).length;
    const command = 'git status';
    const ask = 'printf x >> count';
    // Two parallel calls alike: what approves the one does not approve the other.
    const twins = [exec(ask), exec(ask)];
    expect(outcomes(await first.run.use(...twins))).toEqual(['waiting', 'waiting']);
    const [one, two] = await scene.pending(first.run.run.sessionId);
    const racing = await Promise.allSettled([decide(one, 'allow'), decide(one, 'allow')]);
    expect(racing.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThanOrEqual(1);
    await decide(two, 'deny');
    const second = await at.worker.begin();
    expect(outcomes(second.results)).toEqual(['completed', 'DENIED']);
    expect(await count()).toBe(1);

    // The same command was approved and has run; nothing else has been approved by that.
    const approved = exec(command);
    expect(outcomes(await second.use(approved))).toEqual(['waiting']);
    const [status] = await scene.pending(first.run.run.sessionId);
    await decide(status, 'allow');
    const third = await at.worker.begin();
    expect(outcomes(third.results)).toEqual(['completed']);
    const others = [exec(`${command}; rm -rf x`), exec('git push'), exec(command), exec(command, 'sub'), exec(ask)];
    expect(outcomes(await third.use(...others))).toEqual(others.map(() => 'waiting'));
    const pending = await scene.pending(first.run.run.sessionId);
    expect(pending).toHaveLength(others.length);
    for (const interaction of pending) await decide(interaction, 'deny');
    const fourth = await at.worker.begin();
    expect(outcomes(fourth.results)).toEqual(others.map(() => 'DENIED'));
    fourth.done();
    expect(await count()).toBe(1);

    // Nor in another session.
    const elsewhere = await begin(at);
    expect(outcomes(await elsewhere.run.use(exec(command), exec(ask)))).toEqual(['waiting', 'waiting']);
    for (const interaction of await scene.pending(elsewhere.run.run.sessionId)) await decide(interaction, 'deny');
    (await at.worker.begin()).done();
  },
);

verifies(
  ['R-PERM-4#5', 'R-PERM-4#1', 'R-PERM-4#2'],
  'what only looks runs at once; what could do more asks; a rule covers a command and nothing behind it',
  async () => {
    const at = await desk({
      rules: [
        { decision: 'allow', tool: 'exec', when: { command: { begins: ['git status', 'npm test'] } } },
        { decision: 'deny', tool: 'exec', when: { command: { begins: ['git push'] } } },
        { decision: 'ask', tool: 'write', when: { path: { under: ['config'] } } },
      ],
    });
    const { run, home } = await begin(at);
    await writeFile(join(home, 'notes.txt'), 'one\ntwo\n');
    await symlink(join(root, 'nothing.txt'), join(home, 'linked.txt'));
    const runs = [
      exec('cat notes.txt'),
      exec('grep -n two notes.txt'),
      exec('git status --help'),
      exec('git status && git status'),
      intend('write', { path: 'a', content: '' }),
    ];
    const refused = [exec('git push'), exec('env X=1 git push'), exec("git status; sh -c 'git push'"), exec('$GIT push')];
    const asks = [
      exec('find . -name x -exec rm {} +'),
      exec('find . -name x'),
      exec('env X=1 ls'),
      exec('X=1 ls'),
      exec("cat '/etc/passwd'"),
      exec('cat linked.txt'),
      exec('cat .env'),
      exec('git status; rm -rf x'),
      exec('git status $(rm x)'),
      intend('write', { path: 'config/x', content: '' }),
    ];
    expect(outcomes(await run.use(...runs, ...refused))).toEqual([...runs.map(() => 'completed'), ...refused.map(() => 'POLICY_DENIED')]);
    expect(outcomes(await run.use(...asks))).toEqual(asks.map(() => 'waiting'));
    for (const interaction of await scene.pending(run.run.sessionId)) await decide(interaction, 'deny');
    const next = await at.worker.begin();
    expect(outcomes(next.results)).toEqual(asks.map(() => 'DENIED'));
    next.done();
  },
);

verifies(
  ['R-TOOL-3#1', 'R-TOOL-3#2', 'R-TOOL-3#3', 'R-TOOL-3#4'],
  'disabling a tool takes it from the catalogue, the mapping and what was approved',
  async () => {
    const at = await desk();
    const before = await begin(at);
    expect(before.run.run.snapshot.tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['exec', 'tape_search']));
    expect(outcomes(await before.run.use(exec('touch x')))).toEqual(['waiting']);
    const [pending] = await scene.pending(before.run.run.sessionId);
    await scene.bus.call(sessionService.putAgent, {
      id: at.agentId,
      policy: { disabledTools: ['exec', 'tape_search', 'subagent_orchestrator'] },
    });
    const { run } = await begin(at);
    const names = run.run.snapshot.tools.map(({ name }) => name);
    expect(names).toContain('tape_search');
    expect(names).toContain('read');
    expect(names).not.toContain('exec');
    const results = await run.use(exec('touch y'), intend('tape_search', { query: 'anything' }));
    expect(outcomes(results)).toEqual(['TOOL_NOT_IN_SNAPSHOT', 'completed']);
    run.done();
    await decide(pending, 'allow');
    const resumed = await at.worker.begin();
    expect(outcomes(resumed.results)).toEqual(['TOOL_DISABLED']);
    expect(await readdir(before.home)).toEqual([]);
    resumed.done();
  },
);

verifies(
  ['R-EXEC-3#1', 'R-EXEC-3#2', 'R-EXEC-3#3'],
  'reads overlap; a read and a call of a server go one after the other; results come in call order',
  async () => {
    const going: string[] = [];
    const order: string[] = [];
    let most = 0;
    let reached: () => void = () => undefined;
    let both = new Promise<void>((resolve) => (reached = resolve));
    const at = await desk(FULL, {
      change: (tools) =>
        tools.map((tool) => ({
          ...tool,
          run: async (call, ...rest) => {
            const name = String(call.arguments.path);
            going.push(name);
            order.push(`begin ${name}`);
            most = Math.max(most, going.length);
            if (going.length === 2) reached();
            // The first waits until the second has begun: alone it would wait for ever.
            if (name.startsWith('both')) await both;
            const result = await tool.run(call, ...rest);
            going.splice(going.indexOf(name), 1);
            order.push(`end ${name}`);
            return result;
          },
        })),
    });
    const { run, home } = await begin(at);
    for (const name of ['both-a', 'both-b', 'x', 'y']) await writeFile(join(home, name), name);
    const together = await run.use(intend('read', { path: 'both-a' }), intend('read', { path: 'both-b' }));
    expect(together.map(text)).toEqual(['both-a', 'both-b']);
    expect(most).toBe(2);

    both = Promise.resolve();
    most = 0;
    const name = randomUUID();
    const calls = [intend('read', { path: 'x' }), intend('mcp__one__count', { name }), intend('read', { path: 'y' })];
    const results = await run.use(...calls);
    expect(outcomes(results)).toEqual(['completed', 'completed', 'completed']);
    expect(results.map(({ callId }) => callId)).toEqual(calls.map(({ callId }) => callId));
    expect(most).toBe(1);
    expect(order.slice(-4)).toEqual(['begin x', 'end x', 'begin y', 'end y']);
    const facts = await Promise.all(calls.map(({ callId }) => factsOf(scene.system.connection, run.run, { step: 1, callId })));
    const times = facts.flatMap(({ claim, outcome }) => [claim?.at ?? '', outcome?.at ?? '']);
    expect(times).toEqual([...times].sort());
    run.done();
  },
);

verifies('R-EXEC-13#2', 'a tool that asks when it was already called ends as an error', async () => {
  const late: WorkerTool = {
    definition: { name: 'late', description: 'asks too late', inputSchema: { type: 'object' }, effect: 'write', access: 'other' },
    run: () => Promise.resolve({ content: [], asks: { reason: 'may I?', nothingDone: false } }),
  };
  const at = await desk(FULL, { change: () => [late] });
  const { run } = await begin(at);
  const [result] = await run.use(intend('late'));
  expect(result).toMatchObject({ status: 'failed', fault: { code: 'TOOL_FAILED', data: { reason: expect.stringContaining('may I?') } } });
  expect(await scene.pending(run.run.sessionId)).toEqual([]);
  run.done();
});

verifies(
  'R-EXEC-13#1',
  'a tool that asks before it did anything is called once more in full access, then a person is asked, once',
  async () => {
    const heard: string[] = [];
    /** Asks as often as it is called, but for one that was granted it, where that is enough for it. */
    const asking = (name: string, isEnough: boolean): WorkerTool => ({
      definition: { name, description: 'asks', inputSchema: { type: 'object' }, effect: 'write', access: 'other' },
      run: ({ granted }) => {
        heard.push(`${name} ${granted ? 'granted' : 'first'}`);
        return Promise.resolve(
          granted && isEnough
            ? { content: [{ type: 'text', text: 'done' }] }
            : { content: [], asks: { reason: 'may I?', nothingDone: true } },
        );
      },
    });
    const tools = [asking('once', true), asking('ever', false)];
    const at = await desk(FULL, { change: () => tools });
    const { run } = await begin(at);
    const [once, ever] = [intend('once'), intend('ever')];
    const results = await run.use(once, ever);
    expect(outcomes(results)).toEqual(['completed', 'waiting']);
    expect(text(results[0])).toBe('done');
    expect(heard.splice(0)).toEqual(['once first', 'once granted', 'ever first', 'ever granted']);
    const [asked, ...more] = await scene.pending(run.run.sessionId);
    expect(more).toEqual([]);
    expect(asked).toMatchObject({ kind: 'permission', tool: 'ever', callId: ever.callId, status: 'pending' });
    await decide(asked, 'allow');
    const resumed = await at.worker.begin();
    expect(outcomes(resumed.results)).toEqual(['completed', 'TOOL_FAILED']);
    expect(heard.splice(0)).toEqual(['ever granted']);
    expect(await scene.pending(run.run.sessionId)).toEqual([]);

    // By default nobody but a person says yes.
    const careful = await desk({ rules: [{ decision: 'allow', tool: 'once' }], mode: 'default' }, { change: () => tools });
    const other = await begin(careful);
    expect(outcomes(await other.run.use(intend('once')))).toEqual(['waiting']);
    expect(heard.splice(0)).toEqual(['once first']);
    const [wanted] = await scene.pending(other.run.run.sessionId);
    await decide(wanted, 'allow');
    const next = await careful.worker.begin();
    expect(next.results.map(text)).toEqual(['done']);
    expect(heard).toEqual(['once granted']);
    for (const one of [resumed, next]) one.done();
  },
);

verifies(
  ['R-EXEC-18#3', 'R-EXEC-18#4'],
  'a cancelled command leaves no process; a result that is there is kept; an AbortError proves nothing',
  async () => {
    let finish: () => void = () => undefined;
    const started = { late: () => {} };
    const tools: WorkerTool[] = [
      {
        definition: { name: 'aborting', description: '', inputSchema: { type: 'object' }, effect: 'write', access: 'other' },
        run: () => Promise.reject(new DOMException('aborted by itself', 'AbortError')),
      },
      {
        definition: { name: 'arriving', description: '', inputSchema: { type: 'object' }, effect: 'write', access: 'other' },
        run: async (_call, signal) => {
          await new Promise<void>((resolve) => {
            signal.addEventListener('abort', () => resolve(), { once: true });
            started.late();
          });
          finish();
          return { content: [{ type: 'text', text: 'arrived' }] };
        },
      },
    ];
    const at = await desk(FULL, { change: (own) => [...own, ...tools] });
    const { run } = await begin(at);
    expect(await run.use(intend('aborting'))).toMatchObject([{ status: 'failed', fault: { code: 'TOOL_FAILED' } }]);

    const ended = await collectEndedCalls(scene.system.connection);
    const sleeps = `6${randomBytes(3).readUIntBE(0, 3)}`;
    const sleeping = exec(`sleep ${sleeps} & setsid sleep ${sleeps} & sleep ${sleeps}`);
    const stopped = run.use(sleeping);
    await until(async () => (await running(`sleep ${sleeps}`)) === 3, 20_000);
    const beganAt = performance.now();
    const reply = await scene.bus.call(toolGateway.cancelCall, {
      operationId: operationId(run.run.originRunId, 1, sleeping.callId),
      reason: 'enough',
    });
    expect(reply.state).toBe('stopped');
    expect(performance.now() - beganAt).toBeLessThan(5_000);
    expect(outcomes(await stopped)).toEqual(['CANCELLED']);
    expect(await running(`sleep ${sleeps}`)).toBe(0);

    const begun = new Promise<void>((resolve) => (started.late = resolve));
    const over = new Promise<void>((resolve) => (finish = resolve));
    const arriving = intend('arriving');
    void run.use(arriving).catch(() => undefined);
    await begun;
    await scene.bus.call(sessionService.cancelRun, { id: run.run.runId, reason: 'enough' });
    await over;
    const { payload } = await ended.next(({ payload: one }) => one.callId === arriving.callId);
    expect(payload.status).toBe('completed');
    ended.stop();
  },
);

verifies('R-NATS-3#3', 'a cancel that never arrives ends the call, and with the next renewal the command', async () => {
  const wire = await Wire.start(scene.system.natsUrl);
  const at = await desk(FULL, { url: wire.url });
  const { run } = await begin(at);
  const sleeps = `5${randomBytes(3).readUIntBE(0, 3)}`;
  wire.drop = /(?:MSG|HMSG) ambit\.ctl\.worker\.v1\.(?:call|run)\.cancel\S* \d+ (?:\d+ )?(\d+)\r\n/;
  const call = exec(`sleep ${sleeps}`);
  const ended = await collectEndedCalls(scene.system.connection);
  void run.use(call).catch(() => undefined);
  await until(async () => (await running(`sleep ${sleeps}`)) === 1, 20_000);
  await scene.bus.call(sessionService.cancelRun, { id: run.run.runId, reason: 'enough' });
  await ended.next(({ payload }) => payload.callId === call.callId, 20_000);
  await until(async () => (await running(`sleep ${sleeps}`)) === 0, 20_000);
  expect(wire.dropped).toBeGreaterThan(0);
  ended.stop();
  await leave(at);
  await wire.stop();
});

verifies(
  ['R-NATS-3#2', 'R-EXEC-18#5'],
  'a worker whose network is cut: its leases lapse, its call ends, and so does what it ran',
  async () => {
    const wire = await Wire.start(scene.system.natsUrl);
    const at = await desk(FULL, { url: wire.url });
    const { run } = await begin(at);
    const sleeps = `4${randomBytes(3).readUIntBE(0, 3)}`;
    const call = exec(`sleep ${sleeps}`);
    const ended = await collectEndedCalls(scene.system.connection);
    void run.use(call).catch(() => undefined);
    await until(async () => (await running(`sleep ${sleeps}`)) === 1, 20_000);
    wire.cut();
    const { payload } = await ended.next(({ payload: one }) => one.callId === call.callId, 45_000);
    expect(payload.status).toMatch(/^(cancelled|indeterminate)$/);
    await until(async () => (await running(`sleep ${sleeps}`)) === 0, 20_000);
    ended.stop();
    await wire.mend();
    await leave(at);
    await wire.stop();
  },
);

verifies('R-OWN-5#1', 'a handler that passes without a platform does the same on one', async () => {
  const said: string[] = [];
  const handler = async (run: ScriptedRun['run']): Promise<void> => {
    for await (const turn of run.turns()) {
      const last = turn.messages.at(-1);
      if (last?.role === 'tool') await turn.say({ content: [{ type: 'text', text: text(last.results[0]) }] });
      else said.push(...(await turn.say({ content: [], calls: [intend('read', { path: 'notes.txt' })] })).map(text));
    }
  };
  const without = await testRun(handler, { tools: [{ name: 'read', run: () => [{ type: 'text', text: 'noted' }] }] });
  expect(without).toMatchObject({ status: 'completed', executed: [{ name: 'read', arguments: { path: 'notes.txt' } }] });
  const crashed = await testRun(handler, {
    crashAfter: 'outcome',
    tools: [{ name: 'read', run: () => [{ type: 'text', text: 'noted' }] }],
  });
  expect(crashed).toMatchObject({ status: 'completed', executed: [{ name: 'read' }], attempts: 2 });
  // The one that crashed never heard its results in the first attempt, and read them off the tape in the second.
  expect(said.splice(0)).toEqual(['noted']);

  const agent = await scene.agent(FULL);
  const changes = await collect(scene.system.connection, toolGateway.toolsChanged);
  await scene.bus.call(sessionService.ensurePool, { agentId: agent.id, pool: 'desk' });
  const credentials = await scene.system.workerCredentials({ agentId: agent.id, pools: ['desk'] });
  const ambit = await connect({ url: scene.system.natsUrl, credentials, onError: () => undefined });
  const folder = join(root, agent.id);
  void ambit.work(agent.id, handler, { pool: 'desk', tools: workspace({ root: folder, workspaces: { desk: folder } }) });
  await changes.next(({ payload }) => payload.agentId === agent.id && payload.live);
  changes.stop();
  await mkdir(folder);
  await writeFile(join(folder, 'notes.txt'), 'noted');
  const { sessionId } = await scene.send(agent, { workspaceId: 'desk' });
  await until(async () => (await scene.runsOf(sessionId)).every(({ status }) => status === without.status), 20_000);
  await ambit.close();
  const { items } = await scene.bus.call(sessionService.listTape, { sessionId });
  const [last] = without.messages.slice(-1);
  expect(items.at(-1)).toMatchObject({
    kind: 'message',
    role: 'assistant',
    content: { content: last?.role === 'assistant' ? last.content : [] },
  });
  expect(said).toEqual(['noted']);
});

verifies('R-OWN-5#2', 'the rule that holds a call back stands nowhere in the worker: without the gateway it runs', async () => {
  const at = await desk({ rules: [{ decision: 'deny', tool: 'exec' }] });
  const { run, home } = await begin(at);
  const { callId, arguments: input } = exec('touch made');
  expect(outcomes(await run.use({ callId, name: 'exec', arguments: input }))).toEqual(['POLICY_DENIED']);
  expect(await readdir(home)).toEqual([]);
  const { toolsets } = await scene.bus.call(toolGateway.listTools, { purpose: 'ingress', agentId: at.agentId });
  const keys = { agentId: at.agentId, workerId: at.worker.ambit.workerId };
  const place = { sessionId: run.run.sessionId, workspaceId: null, tool: 'exec', arguments: { command: 'touch made' } };
  const prepared = await scene.bus.call(workerContract.prepareTool, place, { keys });
  const called = { ...place, operationId: randomBytes(32).toString('hex'), runId: run.run.runId, toolsetDigest: toolsets[0]?.digest ?? '' };
  const undecided = scene.bus.call(workerContract.callTool, called, { keys });
  await expect(undecided).rejects.toMatchObject({ code: 'TARGET_CHANGED' });
  const decided = { ...called, operationId: randomBytes(32).toString('hex'), prepared, bounds: { outside: false, closed: [] } };
  await scene.bus.call(workerContract.callTool, decided, { keys });
  expect(await readdir(home)).toEqual(['made']);
  run.done();
});

verifies('R-NATS-4#2', 'an output of megabytes arrives whole, behind its digest', async () => {
  const at = await desk(FULL);
  const { run } = await begin(at);
  const [result] = await run.use(exec('yes 0123456789abcde | head -c 3000000'));
  expect(result).toMatchObject({ status: 'completed', artifact: { bytes: expect.any(Number) } });
  const { artifact } = result ?? {};
  let whole = '';
  for (let offset: number | null = 0; offset !== null;) {
    const page: { data: string; next: number | null } = await scene.bus.call(toolGateway.getArtifact, {
      sessionId: run.run.sessionId,
      digest: artifact?.digest ?? '',
      offset,
      length: 256 * 1024,
    });
    whole += Buffer.from(page.data, 'base64').toString('latin1');
    offset = page.next;
  }
  const output = String((JSON.parse(whole) as { content: { text: string }[] }).content[0]?.text);
  expect(output).toMatch(/^exit code 0; \d+ ms, 3000000 bytes of output\n/);
  expect(output.length - output.indexOf('\n') - 1).toBe(3_000_000);
  run.done();
});

it('a run whose workspace a worker does not have is left to one that has it', async () => {
  const agent = await scene.agent(FULL);
  await scene.bus.call(sessionService.ensurePool, { agentId: agent.id, pool: 'far' });
  const folder = join(root, agent.id);
  await mkdir(folder);
  await writeFile(join(folder, 'notes.txt'), 'noted');
  const at = (workspaces: Readonly<Record<string, string>>) => ({ pool: 'far', tools: workspace({ root: folder, workspaces }) });
  const without = await ScriptedWorker.start(scene, agent, at({ near: folder }));
  const changes = await collect(scene.system.connection, sessionService.runChanged);
  const { runId } = await scene.send(agent, { workspaceId: 'far' });
  // Begun there, and given back.
  for (const status of ['running', 'queued'])
    await changes.next(({ payload }) => payload.runId === runId && payload.status === status && payload.attempt > 0, 20_000);
  await without.stop();
  const credentials = await scene.system.workerCredentials({ agentId: agent.id, pools: ['far'] });
  const ambit = await connect({ url: scene.system.natsUrl, credentials, onError: () => undefined });
  const read: string[] = [];
  const handler = async (run: ScriptedRun['run']): Promise<void> => {
    for await (const turn of run.turns()) {
      if (turn.messages.at(-1)?.role === 'tool') await turn.say({ content: [{ type: 'text', text: 'Done.' }] });
      else read.push(...(await turn.say({ content: [], calls: [intend('read', { path: 'notes.txt' })] })).map(text));
    }
  };
  void ambit.work(agent.id, handler, at({ far: folder }));
  await changes.next(({ payload }) => payload.runId === runId && payload.status === 'completed', 20_000);
  changes.stop();
  await ambit.close();
  expect(read).toEqual(['noted']);
});

it('a run that waits for its subagents leaves its place to them', async () => {
  const agent = await scene.agent({ ...FULL, subagents: { helper: { agent: 'self' } } });
  const worker = await ScriptedWorker.start(scene, agent, { concurrency: 1, tools: workspace({ root: join(root, agent.id) }) });
  workers.push(worker);
  await scene.send(agent);
  const parent = await worker.begin();
  const task = { slotId: 'helper', title: 'Look', prompt: 'Look into it.' };
  const answer = parent.use(intend('subagent_orchestrator', { operation: 'run', tasks: [task] }));
  const child = await worker.begin();
  expect(child.run.sessionId).not.toBe(parent.run.sessionId);
  child.done();
  expect(outcomes(await answer)).toEqual(['completed']);
  parent.done();
});

it('commands that run as another user read what was written, in folders that were made for it too', async () => {
  const own = { uid: process.getuid?.() ?? -1, gid: process.getgid?.() ?? -1 };
  // Only root may start a command as another; anybody may as himself.
  const at = await desk(FULL, { options: { runAs: own.uid === 0 ? { uid: 65_534, gid: 65_534 } : own } });
  const { run } = await begin(at);
  const results = await run.use(intend('write', { path: 'made/deep/note', content: 'noted' }), exec('cat made/deep/note'));
  expect(text(results[1])).toMatch(/^exit code 0; .*\nnoted$/);
  run.done();
});

it('a background command whose run is cancelled while it starts is ended', async () => {
  const command = `sleep 3${randomBytes(3).readUIntBE(0, 3)}`;
  let runId = '';
  let heard: Promise<unknown> | undefined;
  const volume: Volume = {
    ...withoutCase(),
    // When its folder is closed for the last time, the command has started, and nobody looks after it yet.
    open: async (path, ...how) => {
      const handle = await open(path, ...how);
      const close = handle.close.bind(handle);
      handle.close = async () => {
        await close();
        if (!path.endsWith('/sub') || !(await commandLines()).some((line) => line.includes(command))) return;
        void scene.bus.call(sessionService.cancelRun, { id: runId, reason: 'enough' });
        await heard;
      };
      return handle;
    },
  };
  const change = (tools: WorkerTool[]): WorkerTool[] =>
    tools.map((tool) => ({
      ...tool,
      run: (call, signal) => {
        heard = new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        return tool.run(call, signal);
      },
    }));
  const at = await desk(FULL, { options: { volume }, change });
  const { run, home } = await begin(at);
  runId = run.run.runId;
  await mkdir(join(home, 'sub'));
  const call = intend('exec', { command, cwd: 'sub', background: true });
  const ended = await collectEndedCalls(scene.system.connection);
  void run.use(call).catch(() => undefined);
  const { payload } = await ended.next(({ payload: one }) => one.callId === call.callId, 20_000);
  ended.stop();
  expect(payload.status).toBe('cancelled');
  await until(async () => (await running(command)) === 0);
});

it('a file that is being written when its worker stops is written whole; a removed folder of all sessions is made again', async () => {
  let release: () => void = () => undefined;
  let reach: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const reached = new Promise<void>((resolve) => (reach = resolve));
  const volume: Volume = {
    ...withoutCase(),
    rename: async (from, to) => {
      reach();
      await released;
      await rename(from, to);
    },
  };
  const slow = await desk(FULL, { options: { volume } });
  const first = await begin(slow);
  void first.run.use(intend('write', { path: 'x', content: 'x' })).catch(() => undefined);
  await reached;
  await leave(slow);
  release();
  await until(async () => (await readdir(first.home)).join() === 'x');

  const at = await desk(FULL);
  const before = await begin(at);
  expect(outcomes(await before.run.use(intend('ls', {})))).toEqual(['completed']);
  before.run.done();
  await rm(at.folder, { recursive: true });
  const { run, home } = await begin(at);
  expect(outcomes(await run.use(intend('write', { path: 'x', content: 'x' })))).toEqual(['completed']);
  expect(await readdir(home)).toEqual(['x']);
  run.done();
});

async function running(command: string): Promise<number> {
  return (await commandLines()).filter((line) => line === command).length;
}

async function commandLines(): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return lines.map((line) => line.split('\0').join(' ').trim());
}

/** The machine's file system, where every name below a descriptor is found under any case. */
function withoutCase(): Volume {
  const find = async (path: string): Promise<string> => {
    const [, folder, name] = /^(\/proc\/self\/fd\/\d+)\/([^/]+)$/.exec(path) ?? [];
    if (folder === undefined || name === undefined) return path;
    const names = await readdir(folder);
    return `${folder}/${names.find((one) => one.toLowerCase() === name.toLowerCase()) ?? name}`;
  };
  return {
    open: async (path, flags, mode) => open(await find(path), flags, mode),
    lstat: async (path) => lstat(await find(path), { bigint: true }),
    readlink: async (path) => readlink(await find(path)),
    realpath,
    mkdir: async (path) => {
      await mkdir(await find(path));
    },
    rename: async (from, to) => rename(await find(from), await find(to)),
    unlink: async (path) => unlink(await find(path)),
    list: async (path, maximum) => {
      const entries: Awaited<ReturnType<Volume['list']>> = [];
      for await (const entry of await opendir(path)) {
        const kind = entry.isFile() ? 'file' : entry.isDirectory() ? 'folder' : entry.isSymbolicLink() ? 'link' : 'other';
        if (entries.length < maximum) entries.push({ name: entry.name, kind });
      }
      return entries;
    },
  };
}
