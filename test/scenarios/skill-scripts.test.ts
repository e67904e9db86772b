// Skills as an agent's runs have them: chosen, run, lent by plugins, and gone. Long because one started system shows all of it.
import {
  Fault,
  pluginRegistry,
  sessionService,
  skillStore,
  toolGateway,
  type CallResult,
  type IntendedCall,
  type Skill,
} from '@ambit/contracts';
import { collect, Stall, until, withClient } from '@ambit/testing';
import { workspace } from '@ambit/worker/workspace';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { intend } from '../system/by-hand.js';
import { factsOf } from '../system/facts.js';
import { alice, bob, Scene } from '../system/scene.js';
import { enableSmall, installSmall } from '../system/small-plugin.js';
import { ScriptedRun, ScriptedWorker } from '../system/workspace-worker.js';
import { verifies } from '../verifies.js';

jest.setTimeout(120_000);

let scene: Scene;
let root: string;
const workers: ScriptedWorker[] = [];
beforeAll(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'ambit-scripts-')));
  scene = await Scene.start({
    services: ['session-service', 'tool-gateway', 'mcp-broker', 'mcp-runner', 'skill-store', 'plugin-registry'],
    environment: { SKILLS_ROOT: join(root, 'mirrored') },
  });
});
afterAll(async () => {
  for (const worker of workers) await worker.stop();
  await scene?.stop();
  await rm(root, { recursive: true, force: true });
});

interface Desk {
  readonly agentId: string;
  readonly worker: ScriptedWorker;
  readonly folder: string;
}
async function desk(policy: Parameters<Scene['agent']>[0]): Promise<Desk> {
  const agent = await scene.agent(policy);
  const folder = join(root, agent.id);
  const worker = await ScriptedWorker.start(scene, agent, { tools: workspace({ root: folder }) });
  workers.push(worker);
  return { agentId: agent.id, worker, folder };
}
async function begin({ agentId, worker }: Desk, sent: { sessionId?: string } = {}): Promise<ScriptedRun> {
  await scene.send({ id: agentId }, sent);
  return worker.begin();
}

async function put(agentId: string, files: Readonly<Record<string, string>>, name = 'report'): Promise<Skill> {
  const entries = [];
  for (const [path, content] of Object.entries({ 'SKILL.md': `---\nname: ${name}\ndescription: Reports.\n---\n\nRun it.\n`, ...files })) {
    const bytes = Buffer.from(content);
    const digest = createHash('sha256').update(bytes).digest('hex');
    await scene.bus.call(skillStore.putBlob, { digest, bytes: bytes.byteLength, offset: 0, data: bytes.toString('base64') });
    entries.push({ path, mode: 'file' as const, bytes: bytes.byteLength, digest });
  }
  return scene.bus.call(skillStore.putSkill, { agentId, files: entries });
}
const FILES = {
  'scripts/report.sh':
    'echo "arguments: $*"; cat "$SKILL_ROOT/data/words.txt"; echo made > made.txt; echo x >> "$SKILL_ROOT/data/words.txt" || :\n',
  'scripts/slow.sh': 'sleep 1000\n',
  'scripts/other.sh': 'echo other\n',
  'scripts/lib/count.mjs': 'console.log(process.argv.length);\n',
  'data/words.txt': 'from the skill\n',
};
const enable = ({ agentId, name, digest }: Skill, path: string) => scene.bus.call(skillStore.enableScript, { agentId, name, digest, path });
const script = (path: string, more: object = {}): IntendedCall => intend('skill_run', { name: 'report', script: path, ...more });
const view = (path = 'SKILL.md', name = 'report'): IntendedCall => intend('skill_view', { name, path });
const codes = (results: readonly CallResult[]): string[] => results.map(({ status, fault }) => fault?.code ?? status);
const text = (result: CallResult | undefined): string => String(result?.content?.[0]?.text ?? '');
const code = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'done',
    (error: unknown) => (error instanceof Fault ? error.code : String(error)),
  );

verifies(
  ['R-SKILL-11#1', 'R-SKILL-11#3', 'R-SKILL-11#4', 'R-SKILL-10#1', 'R-SKILL-7#3'],
  'a script runs in the session’s folder once its skill was viewed in the run and an administrator enabled it, of this version alone',
  async () => {
    const at = await desk({ mode: 'full_access' });
    const skill = await put(at.agentId, FILES);
    const before = await begin(at);
    expect(codes(await before.use(script('scripts/report.sh')))).toEqual(['TOOL_NOT_IN_SNAPSHOT']);
    before.done();

    expect(await enable(skill, 'scripts/report.sh')).toEqual({ digest: skill.digest, scripts: ['scripts/report.sh'] });
    expect(await code(enable(skill, 'scripts/none.sh'))).toBe('SCRIPT_UNKNOWN');
    const run = await begin(at);
    const home = join(at.folder, 'sessions', run.run.sessionId);
    // Not viewed, or another file of it, or in the same step: not active.
    expect(codes(await run.use(script('scripts/report.sh')))).toEqual(['SKILL_NOT_ACTIVE']);
    expect(codes(await run.use(view('data/words.txt')))).toEqual(['completed']);
    const early = script('scripts/report.sh');
    expect(codes(await run.use(view(), early))).toEqual(['completed', 'SKILL_NOT_ACTIVE']);
    const [listed, ran] = await run.use(intend('skill_list'), script('scripts/report.sh', { arguments: ["it's", '$(id)', '*'] }));
    expect(text(listed)).toContain('skill_run may run scripts/report.sh');
    expect(text(ran)).toContain('exit code 0');
    expect(text(ran)).toContain("arguments: it's $(id) *\nfrom the skill");
    expect(await readFile(join(home, 'made.txt'), 'utf8')).toBe('made\n');
    // The folder of the skill was there for the call alone, whatever the script did to it.
    expect(await readdir(join(at.folder, 'skills'))).toEqual([]);

    const outside = [
      '../report.sh',
      'scripts/../../report.sh',
      '/etc/report.sh',
      'report.sh',
      'scripts/.hidden.sh',
      'data/words.txt',
      'scripts/a"b.sh',
    ];
    const calls = [...outside.map((path) => script(path)), script('scripts/other.sh'), script('scripts/none.sh')];
    const refused = await run.use(...calls);
    expect(codes(refused)).toEqual([...outside.map(() => 'BAD_ARGUMENTS'), 'SCRIPT_NOT_ENABLED', 'SCRIPT_NOT_ENABLED']);
    for (const [index, { callId }] of calls.entries())
      expect([index, await factsOf(scene.system.connection, run.run, { step: 4, callId })]).toEqual([
        index,
        { claim: undefined, outcome: undefined },
      ]);

    await scene.bus.call(skillStore.disableScript, { agentId: at.agentId, name: 'report', path: 'scripts/report.sh' });
    const { agentId, name, digest } = skill;
    expect(await code(scene.bus.call(skillStore.readScript, { agentId, name, digest, path: 'scripts/report.sh' }))).toBe(
      'SCRIPT_NOT_ENABLED',
    );
    expect(codes(await run.use(script('scripts/report.sh')))).toEqual(['SCRIPT_NOT_ENABLED']);
    await enable(skill, 'scripts/report.sh');
    expect(codes(await run.use(script('scripts/report.sh')))).toEqual(['completed']);
    await scene.bus.call(skillStore.disableSkill, { agentId: at.agentId, name: 'report' });
    expect(codes(await run.use(script('scripts/report.sh')))).toEqual(['SCRIPT_NOT_ENABLED']);
    await scene.bus.call(skillStore.enableSkill, { agentId: at.agentId, name: 'report' });
    expect(codes(await run.use(script('scripts/report.sh')))).toEqual(['completed']);

    // Another version has no script that anybody looked at, and what held for the first does not come back with it.
    const changed = await put(at.agentId, { ...FILES, 'data/words.txt': 'other words\n' });
    expect(changed.scripts).toEqual([]);
    expect(codes(await run.use(script('scripts/report.sh')))).toEqual(['SCRIPT_NOT_ENABLED']);
    expect(await code(enable(skill, 'scripts/report.sh'))).toBe('SKILL_CHANGED');
    await put(at.agentId, FILES);
    expect(codes(await run.use(script('scripts/report.sh')))).toEqual(['SCRIPT_NOT_ENABLED']);
    await enable(skill, 'scripts/report.sh');
    run.done();

    // The next run of the same session has viewed nothing.
    const next = await begin(at, { sessionId: run.run.sessionId });
    expect(codes(await next.use(script('scripts/report.sh')))).toEqual(['SKILL_NOT_ACTIVE']);
    next.done();
  },
);

verifies('R-SKILL-11#2', 'a skill with a linked script is not taken, so that nothing of it can be enabled or run', async () => {
  const at = await desk({ mode: 'full_access' });
  const scope = join(root, 'mirrored', '.agent-scopes', at.agentId);
  const changed = await collect(scene.system.connection, skillStore.skillChanged);
  for (const name of ['linked', 'whole']) {
    await mkdir(join(scope, name, 'scripts'), { recursive: true });
    await writeFile(join(scope, name, 'SKILL.md'), `---\nname: ${name}\ndescription: d\n---\n\nRun it.\n`);
  }
  await writeFile(join(root, 'outside.sh'), 'echo outside\n');
  await symlink(join(root, 'outside.sh'), join(scope, 'linked/scripts/it.sh'));
  await writeFile(join(scope, 'whole/scripts/it.sh'), 'echo inside\n');
  await until(async () => (await code(scene.bus.call(skillStore.getSkill, { agentId: at.agentId, name: 'whole' }))) === 'done');
  changed.stop();
  const whole = await scene.bus.call(skillStore.getSkill, { agentId: at.agentId, name: 'whole' });
  await until(async () => (await code(enable(whole, 'scripts/it.sh'))) === 'done');
  expect(await code(enable({ ...whole, name: 'linked' }, 'scripts/it.sh'))).toBe('SKILL_NOT_FOUND');
  const run = await begin(at);
  expect(codes(await run.use(view('SKILL.md', 'linked'), view('SKILL.md', 'whole')))).toEqual(['TOOL_FAILED', 'completed']);
  const of = (name: string) => intend('skill_run', { name, script: 'scripts/it.sh' });
  const [linked, inside] = await run.use(of('linked'), of('whole'));
  expect(linked?.fault?.code).toBe('SKILL_NOT_ACTIVE');
  expect(text(inside)).toContain('inside');
  run.done();
});

it('a background command ends with its session, and no other session’s does', async () => {
  const at = await desk({ mode: 'full_access' });
  const started = async () => {
    const run = await begin(at);
    const [result] = await run.use(intend('exec', { command: 'echo $$ > pid; exec sleep 1000', background: true }));
    expect(result?.status).toBe('completed');
    const file = join(at.folder, 'sessions', run.run.sessionId, 'pid');
    await until(async () => (await readFile(file, 'utf8').catch(() => '')) !== '');
    run.done();
    await until(async () => (await scene.bus.call(sessionService.getRun, { id: run.run.runId })).status === 'completed');
    return { sessionId: run.run.sessionId, pid: Number(await readFile(file, 'utf8')) };
  };
  const [gone, stays] = [await started(), await started()];
  const isRunning = (pid: number): boolean => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };
  expect([isRunning(gone.pid), isRunning(stays.pid)]).toEqual([true, true]);
  await scene.bus.call(sessionService.deleteSession, { id: gone.sessionId });
  await until(() => !isRunning(gone.pid));
  expect(isRunning(stays.pid)).toBe(true);
});

verifies(
  'R-SKILL-11#5',
  'a script is judged as the command that it is: asked about, denied and allowed by the rules of commands, and approved once',
  async () => {
    const at = await desk({
      rules: [
        { decision: 'deny', tool: 'exec', when: { command: { begins: ['sh'] } } },
        { decision: 'allow', tool: 'skill_run', when: { script: 'scripts/lib/count.mjs' } },
      ],
    });
    const skill = await put(at.agentId, FILES);
    for (const path of Object.keys(FILES).filter((name) => name.startsWith('scripts/'))) await enable(skill, path);
    const run = await begin(at);
    await run.use(view());
    const [denied, allowed] = await run.use(script('scripts/report.sh'), script('scripts/lib/count.mjs', { arguments: ['a', 'b'] }));
    expect(denied?.fault?.code).toBe('POLICY_DENIED');
    expect(text(allowed)).toContain('\n4\n');
    run.done();

    const asking = await desk({ mode: 'auto_approve' });
    const asked = await put(asking.agentId, FILES);
    await enable(asked, 'scripts/report.sh');
    await enable(asked, 'scripts/slow.sh');
    const waiting = await begin(asking);
    await waiting.use(view());
    const wait = waiting.use(script('scripts/report.sh', { arguments: ['once'] }), script('scripts/slow.sh', { timeoutMs: 300 }));
    const { sessionId } = waiting.run;
    const ended = await collect(scene.system.connection, sessionService.interactionSettled);
    const decide = async (): Promise<void> => {
      await until(async () => (await scene.pending(sessionId)).length > 0);
      const [pending] = await scene.pending(sessionId);
      expect(pending).toMatchObject({ tool: 'skill_run', kind: 'permission' });
      await scene.bus.call(sessionService.decideInteraction, { id: pending?.id ?? '', decision: 'allow', by: bob });
      await ended.next(({ payload }) => payload.interactionId === pending?.id);
    };
    await decide();
    await decide();
    ended.stop();
    void wait;
    const resumed = await asking.worker.begin();
    expect(text(resumed.results[0])).toContain('arguments: once');
    expect(text(resumed.results[1])).toContain('ended after its time, 300 ms');
    const { items } = await scene.bus.call(toolGateway.listCalls, { sessionId, limit: 50 });
    expect(items.filter(({ tool }) => tool === 'skill_run').map(({ approvedBy }) => approvedBy)).toEqual([bob.id, bob.id]);
    resumed.done();
  },
);

/** The skills that a run was given, as its model is told. */
async function listed(run: ScriptedRun): Promise<string[]> {
  const [told] = await run.use(intend('skill_list'));
  return text(told)
    .split('\n')
    .flatMap((line) => /^(?:- )?([a-z0-9-]+): /.exec(line)?.[1] ?? []);
}
const tellSession = (sessionId: string) =>
  scene.bus.call(sessionService.receiveMessage, { principal: alice, sessionId, content: 'Go on.', idempotencyKey: randomUUID() });
const chosen = async (id: string) => (await scene.bus.call(sessionService.getSession, { id })).skills;
const putPolicy = (id: string, policy: Parameters<Scene['agent']>[0]) => scene.agent(policy, id);

verifies(
  ['R-SKILL-8#1', 'R-SKILL-8#2', 'R-SKILL-7#4'],
  'what is chosen stays chosen, and what of it there is is found out at each run, move, change of the agent and child',
  async () => {
    const free = { subagents: { self: { agent: 'self' } }, mode: 'full_access' as const };
    const [at, other] = [await desk(free), await desk({})];
    for (const name of ['craft', 'spare']) await put(at.agentId, {}, name);
    const { id } = await scene.bus.call(sessionService.createSession, { principal: alice, agentId: at.agentId, skills: ['craft'] });
    /** Of the next run, and of a child that it starts. */
    const given = async ({ worker }: Desk, meanwhile?: () => Promise<unknown>): Promise<string[][]> => {
      await tellSession(id);
      const run = await worker.begin();
      const all = [await listed(run)];
      if (meanwhile !== undefined) {
        await meanwhile();
        const tasks = [{ slotId: 'self', title: 'Look', prompt: 'Look.' }];
        const delegate = intend('subagent_orchestrator', { operation: 'run', background: true, tasks });
        expect(codes(await run.use(delegate))).toEqual(['completed']);
        const child = await worker.begin();
        all.push(await listed(child));
        child.done();
      }
      run.done();
      await until(async () => (await scene.bus.call(sessionService.getRun, { id: run.run.runId })).status === 'completed');
      return all;
    };
    const switched = (contract: typeof skillStore.enableSkill | typeof skillStore.disableSkill) =>
      scene.bus.call(contract, { agentId: at.agentId, name: 'craft' });

    expect(await given(at, () => switched(skillStore.disableSkill))).toEqual([['craft'], []]);
    expect(await chosen(id)).toEqual(['craft']);
    expect(await given(at, () => switched(skillStore.enableSkill))).toEqual([[], ['craft']]);
    await putPolicy(at.agentId, { ...free, skills: ['spare'] });
    expect(await given(at)).toEqual([[]]);
    await putPolicy(at.agentId, free);
    expect(await given(at)).toEqual([['craft']]);

    await scene.bus.call(sessionService.transferSession, { id, agentId: other.agentId, whileBusy: 'cancel' });
    expect(await given(other)).toEqual([[]]);
    await put(other.agentId, {}, 'craft');
    expect(await given(other)).toEqual([['craft']]);
    expect(await chosen(id)).toEqual(['craft']);
  },
);

verifies('R-SKILL-9#1', 'whatever the agent default may use, another agent is given the same', async () => {
  const at = await desk({});
  await put(at.agentId, {}, 'own-craft');
  await scene.agent({}, 'default');
  await put('default', {}, 'standard-craft');
  await scene.send({ id: at.agentId }, { sceneId: 'the-same' });
  const first = await at.worker.begin();
  expect(await listed(first)).toEqual(expect.arrayContaining(['own-craft']));
  expect(await listed(first)).not.toContain('standard-craft');
  first.done();
  for (const policy of [{ skills: [] }, { mode: 'full_access' as const, servers: [], plugins: [], disabledTools: ['skill_list'] }, {}]) {
    await putPolicy('default', policy);
    await scene.send({ id: at.agentId }, { sceneId: randomUUID() });
    const next = await at.worker.begin();
    expect(next.run.fingerprint).toBe(first.run.fingerprint);
    next.done();
  }
});

verifies(
  ['R-SKILL-14#1', 'R-SKILL-14#2', 'R-SKILL-14#3', 'R-SKILL-14#4'],
  'with its plugin a skill leaves the catalogue in one move, with its text, its scripts and its place in what was chosen',
  async () => {
    const at = await desk({ mode: 'full_access' });
    const path = 'scripts/it.sh';
    await installSmall(scene, { id: 'lender', skills: ['lent'], files: { [`skills/lent/${path}`]: 'echo lent\n' } });
    await enableSmall(scene, 'lender');
    const catalogue = () => scene.bus.call(skillStore.effectiveSkills, { agentId: at.agentId, plugins: null });
    const before = await catalogue();
    const lent = before.skills.find(({ name }) => name === 'lent');
    expect(lent).toMatchObject({ owner: 'plugin:lender', origin: 'plugin' });
    const of = { agentId: at.agentId, name: 'lent', digest: lent?.digest ?? '' };
    await scene.bus.call(skillStore.enableScript, { ...of, path });
    const { id } = await scene.bus.call(sessionService.createSession, { principal: alice, agentId: at.agentId, skills: ['lent'] });
    await tellSession(id);
    const run = await at.worker.begin();
    const it = () => intend('skill_run', { name: 'lent', script: path });
    expect(text((await run.use(view('SKILL.md', 'lent')))[0])).toContain('Of lender.');
    expect(text((await run.use(it()))[0])).toContain('lent');

    const told = await collect(scene.system.connection, skillStore.skillChanged);
    await scene.bus.call(pluginRegistry.disablePlugin, { id: 'lender' });
    const after = await catalogue();
    expect(after.skills).toEqual(before.skills.filter(({ name }) => name !== 'lent'));
    expect(after.epoch).toBeGreaterThan(before.epoch);
    expect((await told.next(({ payload }) => payload.names.includes('lent'))).payload).toMatchObject({ reason: 'withdrawn' });
    await put(at.agentId, {}, 'later');
    await told.next(({ payload }) => payload.names.includes('later'));
    expect(told.all.filter(({ payload }) => payload.names.includes('lent'))).toHaveLength(1);
    told.stop();

    for (const digest of [of.digest, undefined])
      expect(await code(scene.bus.call(skillStore.readSkill, { agentId: at.agentId, name: 'lent', digest }))).toBe('SKILL_NOT_FOUND');
    expect(await code(scene.bus.call(skillStore.readScript, { ...of, path }))).toBe('SKILL_NOT_FOUND');
    const [viewed, ran] = await run.use(view('SKILL.md', 'lent'), it());
    expect(viewed?.status).toBe('failed');
    expect(ran?.fault?.code).toBe('SCRIPT_NOT_ENABLED');
    run.done();

    expect(await chosen(id)).toEqual(['lent']);
    const { visible } = await scene.bus.call(sessionService.explain, { sessionId: id, kind: 'skill', name: 'lent' });
    expect(visible).toBe(false);
    await tellSession(id);
    const next = await at.worker.begin();
    expect(await listed(next)).toEqual([]);
    next.done();
  },
);

verifies(
  ['R-SKILL-16#1', 'R-SKILL-16#2'],
  'no file tool reaches the scope of another agent, by whatever path and in whatever mode',
  async () => {
    const [at, other] = [await desk({ mode: 'full_access' }), await scene.agent({})];
    const run = await begin(at);
    const home = join(at.folder, 'sessions', run.run.sessionId);
    const theirs = join(root, 'mirrored', '.agent-scopes', other.id, 'private');
    const within = join(home, 'notes', '.agent-scopes', other.id);
    await mkdir(join(home, 'notes', 'other'), { recursive: true });
    for (const folder of [theirs, within]) {
      await mkdir(folder, { recursive: true });
      await writeFile(join(folder, 'SKILL.md'), 'their secret\n');
    }
    await symlink(join(root, 'mirrored'), join(home, 'all-skills'));
    await symlink(within, join(home, 'notes', 'their'));
    const scope = join('.agent-scopes', other.id);
    const reached = [
      join(theirs, 'SKILL.md'),
      join('all-skills', scope, 'private', 'SKILL.md'),
      join('notes', scope, 'SKILL.md'),
      `notes/other/../${scope}/SKILL.md`,
      `../../../mirrored/${scope}/private/SKILL.md`,
      'notes/their/SKILL.md',
    ];
    const calls = reached.flatMap((path) => [
      intend('read', { path }),
      intend('write', { path, content: 'mine' }),
      intend('edit', { path, old: 'secret', new: 'mine' }),
      intend('ls', { path: path.replace('/SKILL.md', '') }),
      intend('grep', { pattern: 'secret', path: path.replace('/SKILL.md', '') }),
    ]);
    const answers = codes(await run.use(...calls));
    // Out of the session's folder, or a private place within it.
    expect([...new Set(answers)].sort()).toEqual(['OUTSIDE_WORKSPACE', 'POLICY_DENIED']);
    const found = await run.use(intend('grep', { pattern: 'secret' }), intend('glob', { pattern: '**/*.md' }));
    expect(found.map((one) => text(one).includes('SKILL.md'))).toEqual([false, false]);
    for (const folder of [theirs, within]) expect(await readFile(join(folder, 'SKILL.md'), 'utf8')).toBe('their secret\n');
    run.done();
  },
);

verifies(['R-SKILL-12#1', 'R-SKILL-12#2'], 'the tools that a skill lists are neither given by it nor all that is left', async () => {
  const at = await desk({ mode: 'full_access', disabledTools: ['exec'] });
  const manifest = '---\nname: greedy\ndescription: Takes.\nallowed-tools: exec read mcp__none__any\n---\n\nTake.\n';
  await put(at.agentId, { 'SKILL.md': manifest }, 'greedy');
  const run = await begin(at);
  const calls = () => [intend('exec', { command: 'echo 1' }), intend('mcp__none__any'), intend('write', { path: 'a.txt', content: 'a' })];
  const expected = ['TOOL_NOT_IN_SNAPSHOT', 'TOOL_NOT_IN_SNAPSHOT', 'completed'];
  expect(codes(await run.use(...calls()))).toEqual(expected);
  expect(codes(await run.use(view('SKILL.md', 'greedy')))).toEqual(['completed']);
  expect(codes(await run.use(...calls()))).toEqual(expected);
  run.done();
  const next = await begin(at, { sessionId: run.run.sessionId });
  expect(codes(await next.use(...calls()))).toEqual(expected);
  next.done();
});

const remove = (id: string) => scene.bus.call(sessionService.deleteAgent, { id });
const namesOf = async (agentId: string) => (await scene.bus.call(skillStore.listSkills, { agentId })).items.map(({ name }) => name);

verifies('R-SKILL-15#1', 'an import that an agent’s deletion overtakes arrives nowhere', async () => {
  const [from, to] = [await scene.agent({}), await scene.agent({})];
  const skills: { name: string; digest: string }[] = [];
  for (const name of ['first', 'second']) skills.push({ name, digest: (await put(from.id, FILES, name)).digest });
  const bring = () =>
    scene.bus.call(skillStore.executeImport, { agentId: to.id, source: { kind: 'agent' as const, agentId: from.id }, skills });
  // What is brought is being read when the agent goes.
  const stall = await Stall.table(scene.system.databaseUrl, '"skill_store"."version"', 'ACCESS EXCLUSIVE');
  const overtaken = code(bring());
  await stall.reached();
  expect(await remove(to.id)).toEqual({ deleted: true });
  await stall.release();
  expect(await overtaken).toBe('AGENT_UNKNOWN');
  expect(await namesOf(to.id)).toEqual([]);
  for (const { name, digest } of skills)
    expect(await code(scene.bus.call(skillStore.readSkill, { agentId: to.id, name, digest }))).toBe('SKILL_NOT_FOUND');
  // Whichever comes first, nothing is left.
  for (let round = 0; round < 5; round++) {
    await scene.agent({}, to.id);
    const imported = code(bring());
    await remove(to.id);
    expect(['done', 'AGENT_UNKNOWN']).toContain(await imported);
    expect(await namesOf(to.id)).toEqual([]);
  }
});

verifies(
  'R-SKILL-15#2',
  'a session that moves to an agent which is deleted meanwhile is that agent’s, and keeps it, or stays',
  async () => {
    const from = await scene.agent({});
    const session = async () => (await scene.bus.call(sessionService.createSession, { principal: alice, agentId: from.id })).id;
    const move = (id: string, agentId: string) =>
      code(scene.bus.call(sessionService.transferSession, { id, agentId, whileBusy: 'refuse' }));
    const missing = async (): Promise<number> => {
      let count = -1;
      await withClient(scene.system.databaseUrl, async (client) => {
        const orphans = `SELECT 1 FROM "session_service"."session" s WHERE NOT EXISTS (SELECT 1 FROM "session_service"."agent" a WHERE a."id" = s."agent_id")`;
        count = (await client.query(orphans)).rowCount ?? -1;
      });
      return count;
    };
    const atOnce = async (first: 'move' | 'delete' | 'neither') => {
      const [id, to] = [await session(), await scene.agent({})];
      const acts = { move: () => move(id, to.id), delete: () => code(remove(to.id)) };
      if (first === 'neither') return Promise.all([acts.move(), acts.delete()]);
      // The first has done all but its last step when the other comes.
      const stall = await Stall.table(scene.system.databaseUrl, '"session_service"."audit"');
      const before = acts[first]();
      await stall.reached();
      const after = acts[first === 'move' ? 'delete' : 'move']();
      await stall.release();
      const [one, two] = [await before, await after];
      return first === 'move' ? [one, two] : [two, one];
    };
    expect(await atOnce('move')).toEqual(['done', 'AGENT_IN_USE']);
    expect(await atOnce('delete')).toEqual(['AGENT_UNKNOWN', 'done']);
    for (let round = 0; round < 5; round++)
      expect([
        ['done', 'AGENT_IN_USE'],
        ['AGENT_UNKNOWN', 'done'],
      ]).toContainEqual(await atOnce('neither'));
    expect(await missing()).toBe(0);
  },
);

verifies('R-SKILL-15#3', 'an agent that is created under the id of a deleted one has none of its skills, scripts or folders', async () => {
  const at = await desk({ mode: 'full_access' });
  const scope = join(root, 'mirrored', '.agent-scopes', at.agentId);
  const folder = async (name: string): Promise<void> => {
    await mkdir(join(scope, name), { recursive: true });
    await writeFile(join(scope, name, 'SKILL.md'), `---\nname: ${name}\ndescription: d\n---\n\n${name}.\n`);
    await until(async () => (await namesOf(at.agentId)).includes(name), 20_000);
  };
  const old = await put(at.agentId, FILES);
  await enable(old, 'scripts/other.sh');
  await folder('of-the-folder');
  await remove(at.agentId);
  expect(await namesOf(at.agentId)).toEqual([]);
  await scene.agent({ mode: 'full_access' }, at.agentId);
  // By then the folder was looked at again.
  await folder('fresh');
  expect(await namesOf(at.agentId)).toEqual(['fresh']);
  expect(await code(scene.bus.call(skillStore.readSkill, { agentId: at.agentId, name: 'report', digest: old.digest }))).toBe(
    'SKILL_NOT_FOUND',
  );
  // The same skill again is another's: nobody has looked at its scripts.
  expect((await put(at.agentId, FILES)).scripts).toEqual([]);
});
