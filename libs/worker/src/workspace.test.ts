import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { randomBytes, randomUUID } from 'node:crypto';
import { link, mkdir, mkdtemp, readFile, readdir, realpath, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { CLOSED_NAMES, targetScope } from '@ambit/capability';
import { Fault } from '@ambit/contracts';
import { until } from '@ambit/testing';
import fc from 'fast-check';
import type { WorkerTool } from './tools.js';
import { workspace, type WorkspaceOptions } from './workspace.js';
import { machine } from './workspace/volume.js';

const sessionId = randomUUID();
let root: string;
let home: string;
let tools: readonly WorkerTool[];
const opened: WorkerTool[] = [];

/** Two steps as the gateway takes them: prepared, decided as in full access, carried out; `between` happens after the decision. */
async function use(
  name: string,
  input: Record<string, unknown>,
  more: { between?: () => Promise<void>; session?: string; signal?: AbortSignal } = {},
) {
  const tool = tools.find(({ definition }) => definition.name === name);
  if (tool?.prepare === undefined) throw new Error(`no tool ${name}`);
  const place = { sessionId: more.session ?? sessionId, workspaceId: null };
  try {
    const prepared = await tool.prepare({ ...place, arguments: input });
    const scope = targetScope(prepared);
    if (scope === 'closed') return 'closed';
    await more.between?.();
    const { content } = await tool.run(
      {
        ...place,
        operationId: randomBytes(32).toString('hex'),
        runId: randomUUID(),
        toolsetDigest: '0'.repeat(64),
        tool: name,
        arguments: input,
        prepared,
        granted: false,
        bounds: { outside: scope === 'outside', closed: [...CLOSED_NAMES] },
      },
      more.signal ?? new AbortController().signal,
    );
    return String(content[0]?.text);
  } catch (error) {
    if (error instanceof Fault) return error.code;
    throw error;
  }
}

async function open(options: Partial<WorkspaceOptions> = {}): Promise<void> {
  tools = workspace({ root: join(root, 'work'), ...options });
  opened.push(...tools);
  await use('ls', {});
}

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'ambit-workspace-')));
  home = join(root, 'work', 'sessions', sessionId);
  await writeFile(join(root, 'secret'), 'secret');
  await open();
});
afterEach(async () => {
  for (const { stop } of opened.splice(0)) await stop?.(null);
  await rm(root, { recursive: true, force: true });
});

describe('files', () => {
  it('are written, read in parts, changed and listed', async () => {
    expect(await use('write', { path: 'a/b/c.txt', content: 'one\ntwo\nthree\n' })).toBe('Made a/b/c.txt: 14 bytes');
    expect(await use('read', { path: 'a/b/c.txt' })).toBe('one\ntwo\nthree');
    expect(await use('read', { path: join(home, 'a/b/c.txt'), offset: 2, limit: 1 })).toBe('two\n[lines 2-2 of 3; go on with offset 3]');
    expect(await use('edit', { path: 'a/b/c.txt', old: 'two', new: '$&2' })).toBe('Replaced 1 place in a/b/c.txt');
    expect(await readFile(join(home, 'a/b/c.txt'), 'utf8')).toBe('one\n$&2\nthree\n');
    expect(await use('edit', { path: 'a/b/c.txt', old: 'e', new: 'E' })).toBe('TOOL_FAILED');
    expect(await use('edit', { path: 'a/b/c.txt', old: 'e', new: 'E', all: true })).toBe('Replaced 3 places in a/b/c.txt');
    expect(await use('ls', { path: 'a' })).toMatch(/^folder +b$/);
    expect(await use('read', { path: 'a' })).toBe('TOOL_FAILED');
    expect(await use('read', { path: 'nothing' })).toBe('TOOL_FAILED');
    await use('write', { path: 'long', content: 'x'.repeat(20_000) });
    expect((await use('read', { path: 'long' })).length).toBeLessThan(4_500);
    expect(await readdir(join(home, 'a/b'))).toEqual(['c.txt']);
  });

  it('outside are not reached, by dots, by absolute paths or by links', async () => {
    await symlink('../../../secret', join(home, 'out'));
    await symlink(root, join(home, 'up'));
    await symlink('out', join(home, 'twice'));
    await symlink('loop', join(home, 'loop'));
    await link(join(root, 'secret'), join(home, 'hard'));
    for (const path of [
      '../../../secret',
      join(root, 'secret'),
      'out',
      'up/secret',
      'twice',
      'up/work/sessions/../../secret',
      '/etc/passwd',
    ])
      expect([path, await use('read', { path })]).toEqual([path, 'OUTSIDE_WORKSPACE']);
    expect(await use('edit', { path: 'out', old: 's', new: 'x' })).toBe('OUTSIDE_WORKSPACE');
    expect(await use('write', { path: 'out', content: 'x' })).toBe('OUTSIDE_WORKSPACE');
    expect(await use('read', { path: 'loop' })).toBe('TOOL_FAILED');
    // What writes makes a new file: another name of the old one keeps what it held.
    expect(await use('write', { path: 'hard', content: 'mine' })).toBe('Replaced hard: 4 bytes');
    expect(await readFile(join(root, 'secret'), 'utf8')).toBe('secret');
  });

  it('behind links that stay inside are reached, under their own names', async () => {
    await use('write', { path: 'src/deep/x', content: 'x' });
    await symlink('src/deep', join(home, 'short'));
    await symlink(join(home, 'src'), join(home, 'absolute'));
    expect(await use('read', { path: 'short/../deep/x' })).toBe('x');
    expect(await use('write', { path: 'short/y', content: 'y' })).toBe('Made src/deep/y: 1 bytes');
    expect(await use('read', { path: 'absolute/deep/y' })).toBe('y');
  });

  it('that became another between decision and call are refused', async () => {
    await use('write', { path: 'a/x', content: 'x' });
    await use('write', { path: 'b/x', content: 'b' });
    const swap = (to: string) => async () => {
      await rename(join(home, 'a'), join(home, `was-${randomUUID()}`));
      await symlink(to, join(home, 'a'));
    };
    const restore = async () => {
      await rm(join(home, 'a'));
      await use('write', { path: 'a/x', content: 'x' });
    };
    expect(await use('read', { path: 'a/x' }, { between: swap('b') })).toBe('TARGET_CHANGED');
    await restore();
    expect(await use('write', { path: 'a/x', content: 'y' }, { between: swap(root) })).toBe('OUTSIDE_WORKSPACE');
    await restore();
    expect(await use('exec', { command: 'cat x', cwd: 'a' }, { between: swap('b') })).toBe('TARGET_CHANGED');
    expect(await readFile(join(home, 'b/x'), 'utf8')).toBe('b');
  });

  it('outside are reached where the worker may and only by their real names', async () => {
    await open({ outside: true });
    await symlink(join(root, 'secret'), join(home, 'out'));
    expect(await use('read', { path: join(root, 'secret') })).toBe('secret');
    expect(await use('read', { path: 'out' })).toBe('secret');
    await mkdir(join(root, '.agent-scopes'));
    await writeFile(join(root, '.agent-scopes', 'skill'), 'private');
    await symlink(join(root, '.agent-scopes'), join(home, 'skills'));
    expect(await use('read', { path: 'skills/skill' })).toBe('closed');
    expect(await use('exec', { command: 'cat skills/skill' })).toBe('closed');
  });

  it('of another session are not there', async () => {
    const other = randomUUID();
    await use('write', { path: 'mine', content: 'mine' });
    await use('ls', {}, { session: other });
    expect(await use('read', { path: 'mine' }, { session: other })).toBe('TOOL_FAILED');
    expect(await use('read', { path: `../${sessionId}/mine` }, { session: other })).toBe('OUTSIDE_WORKSPACE');
  });

  it('are written whole when the worker stops meanwhile', async () => {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    let reach: () => void = () => undefined;
    const reached = new Promise<void>((resolve) => (reach = resolve));
    await open({
      volume: {
        ...machine,
        rename: async (from, to) => {
          reach();
          await released;
          await machine.rename(from, to);
        },
      },
    });
    const written = use('write', { path: 'x', content: 'x' });
    await reached;
    for (const { stop } of tools) await stop?.(null);
    release();
    expect(await written).toBe('Made x: 1 bytes');
    expect(await readdir(home)).toEqual(['x']);
  });

  it('are reached again where the folder of all was removed, or could not be made at first', async () => {
    await rm(join(root, 'work'), { recursive: true });
    expect(await use('ls', {}, { session: randomUUID() })).toBe('[empty]');
    await rm(join(root, 'work'), { recursive: true });
    await writeFile(join(root, 'work'), 'in the way');
    expect(await use('ls', {}, { session: randomUUID() })).toBe('TOOL_FAILED');
    await rm(join(root, 'work'));
    expect(await use('ls', {})).toBe('[empty]');
  });

  it('are there where their worker says so, and nothing is made by asking', async () => {
    const asked = join(root, 'asked');
    const holds = (offered: WorkerTool[], workspaceId: string | null) => offered[0]?.holds?.({ sessionId, workspaceId });
    expect(await holds(workspace({ root: asked }), 'any')).toBe(true);
    expect(await holds(workspace({ root: asked }), null)).toBe(true);
    const named = workspace({ root: asked, workspaces: { here: root, gone: join(root, 'gone'), odd: join(root, 'odd') } });
    await writeFile(join(root, 'odd'), '');
    expect([await holds(named, 'here'), await holds(named, 'gone'), await holds(named, 'toString')]).toEqual([true, false, false]);
    await expect(holds(named, 'odd')).rejects.toMatchObject({ code: 'ENOTDIR' });
    await expect(stat(asked)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('lie below their folder, whatever links a tree holds', async () => {
    const name = fc.constantFrom('a', 'b', 'c');
    const target = fc.oneof(fc.constantFrom('..', '../..', '../../..', '/', root, join(root, 'work'), '.', 'a', 'b/c', '../a'), name);
    const path = fc
      .array(fc.constantFrom('a', 'b', 'c', '..', '.', 'secret'), { minLength: 1, maxLength: 6 })
      .map((parts) => parts.join('/'));
    const made = fc.array(fc.tuple(fc.array(name, { minLength: 1, maxLength: 3 }), fc.option(target)), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(made, path, async (entries, asked) => {
        await rm(home, { recursive: true, force: true });
        await mkdir(home, { recursive: true });
        for (const [names, to] of entries) {
          const at = join(home, ...names);
          // The tree is made without going through the links that it already has.
          for (let depth = 1; depth < names.length; depth++) {
            const folder = join(home, ...names.slice(0, depth));
            if ((await realpath(dirname(folder)).catch(() => '')) === dirname(folder)) await mkdir(folder).catch(() => undefined);
          }
          if ((await realpath(dirname(at)).catch(() => '')) !== dirname(at)) continue;
          if (to === null) await writeFile(at, 'inside', { flag: 'wx' }).catch(() => undefined);
          else await symlink(to, at).catch(() => undefined);
        }
        const read = await use('read', { path: asked });
        expect(['inside', 'OUTSIDE_WORKSPACE', 'TOOL_FAILED']).toContain(read);
        const real = await realpath(join(home, asked)).catch(() => '');
        if (read === 'inside') expect(`${real}/`).toContain(`${home}/`);
        await use('write', { path: asked, content: 'inside' });
        expect(await readFile(join(root, 'secret'), 'utf8')).toBe('secret');
        expect((await readdir(root)).sort()).toEqual(['secret', 'work']);
      }),
      { numRuns: 100 },
    );
  }, 60_000);

  it('on a volume without case are the ones that stand there, and closed ones stay closed', async () => {
    await open({ volume: withoutCase() });
    await use('write', { path: 'Docs/Read.me', content: 'x' });
    expect(await use('write', { path: 'docs/READ.ME', content: 'y' })).toBe('Replaced Docs/Read.me: 1 bytes');
    expect(await readdir(join(home, 'Docs'))).toEqual(['Read.me']);
    expect(await use('read', { path: join(root, 'WORK/sessions', sessionId, 'docs/read.me') })).toBe('OUTSIDE_WORKSPACE');
    await mkdir(join(home, '.agent-scopes'));
    await writeFile(join(home, '.agent-scopes', 'x'), 'private');
    expect(await use('read', { path: '.Agent-SCOPES/x' })).toBe('closed');
    expect(await use('grep', { pattern: 'private' })).toBe('[nothing]');
  });
});

describe('looking for files', () => {
  it('finds by pattern and by content, and follows no link', async () => {
    await use('write', { path: 'src/a.ts', content: 'const one = 1;\nconst two = 2;\n' });
    await use('write', { path: 'src/deep/b.ts', content: 'two\n' });
    await use('write', { path: 'node_modules/x/c.ts', content: 'two\n' });
    await symlink(root, join(home, 'src/up'));
    expect(await use('glob', { pattern: '**/*.ts' })).toBe('src/a.ts\nsrc/deep/b.ts');
    expect(await use('glob', { pattern: '*.ts', path: 'src' })).toBe('src/a.ts');
    expect(await use('glob', { pattern: '**/c.ts', path: 'node_modules' })).toBe('node_modules/x/c.ts');
    expect(await use('grep', { pattern: 'TWO', ignoreCase: true })).toBe('src/a.ts:2: const two = 2;\nsrc/deep/b.ts:1: two');
    expect(await use('grep', { pattern: 'two', glob: 'deep/**', path: 'src' })).toBe('src/deep/b.ts:1: two');
    expect(await use('grep', { pattern: 'secret' })).toBe('[nothing]');
    for (const pattern of ['../*', '**/../../secret', '{a,../secret}', '/etc/*', '*a*a*a*a*'])
      expect([pattern, await use('glob', { pattern })]).toEqual([pattern, 'BAD_ARGUMENTS']);
    expect(await use('grep', { pattern: '(' })).toBe('BAD_ARGUMENTS');
    // Time grows with the text alone.
    await use('write', { path: 'long', content: 'a'.repeat(50_000) });
    expect(await use('grep', { pattern: '(a+)+$b', path: 'long' })).toBe('[nothing]');
  });
});

describe('commands', () => {
  it('run in their folder, with little of the worker’s environment', async () => {
    process.env.AMBIT_TEST_SECRET = 'hidden';
    expect(await use('exec', { command: 'pwd; echo $HOME; echo $AMBIT_TEST_SECRET; echo oops >&2; exit 3' })).toMatch(
      new RegExp(`^exit code 3; \\d+ ms, \\d+ bytes of output\n${home}\n${home}\n\noops\n$`),
    );
    expect(await use('exec', { command: 'ls', cwd: '../..' })).toBe('OUTSIDE_WORKSPACE');
  });

  it('as another user read and change what was written for them, in folders that were made for it too', async () => {
    await rm(join(root, 'work'), { recursive: true });
    const nobody = { uid: 65_534, gid: 65_534 };
    // Only root may start a command as another; anybody may as himself.
    const runAs = process.getuid?.() === 0 ? nobody : { uid: process.getuid?.() ?? -1, gid: process.getgid?.() ?? -1 };
    await open({ runAs });
    await use('write', { path: 'made/deep/note', content: 'noted' });
    expect(await use('exec', { command: 'id -u; cat made/deep/note && echo more > made/deep/more' })).toMatch(
      new RegExp(`^exit code 0; .*\\n${runAs.uid}\\nnoted$`),
    );
    expect((await stat(join(root, 'work', 'sessions'))).mode & 0o777).toBe(0o700);
  });

  it('leave nothing behind: neither what they started, nor what left their group', async () => {
    const sleeps = `7${randomBytes(3).readUIntBE(0, 3)}`;
    await use('exec', { command: `sleep ${sleeps} & setsid sleep ${sleeps} & echo started` });
    expect(await running(`sleep ${sleeps}`)).toEqual([]);
    const cancel = new AbortController();
    const call = use(
      'exec',
      { command: `sleep ${sleeps} & setsid sh -c 'trap "" TERM; sleep ${sleeps}' & sleep ${sleeps}` },
      { signal: cancel.signal },
    );
    await until(async () => (await running(`sleep ${sleeps}`)).length >= 3);
    cancel.abort(new Error('enough'));
    expect(await call).toBe('CANCELLED');
    expect(await running(`sleep ${sleeps}`)).toEqual([]);
    expect(await use('exec', { command: `sleep ${sleeps}`, timeoutMs: 200 })).toMatch(/^ended after its time, 200 ms/);
    expect(await running(`sleep ${sleeps}`)).toEqual([]);
  });

  it('go on in the background, for their session alone, until they are ended', async () => {
    const id = /process ([0-9a-f]+);/.exec(await use('exec', { command: 'echo ready; sleep 600', background: true }))?.[1] ?? '';
    await until(async () => (await use('process', { action: 'log', id })).endsWith('ready\n'));
    expect(await use('process', { action: 'list' })).toContain('echo ready');
    expect(await use('process', { action: 'log', id }, { session: randomUUID() })).toBe('TOOL_FAILED');
    expect(await use('process', { action: 'kill', id })).toBe('ended by SIGTERM');
    expect(await use('process', { action: 'wait', id })).toBe('ended by SIGTERM');
  });

  it('do not go on in the background when they are cancelled while they start', async () => {
    const cancel = new AbortController();
    const command = `sleep 7${randomBytes(3).readUIntBE(0, 3)}`;
    await open({
      volume: {
        ...machine,
        // When its folder is closed for the last time, the command has started, and nobody looks after it yet.
        open: async (path, ...how) => {
          const handle = await machine.open(path, ...how);
          const close = handle.close.bind(handle);
          handle.close = async () => {
            await close();
            if (path.endsWith('/sub') && (await commandLines()).some((line) => line.includes(command))) cancel.abort(new Error('enough'));
          };
          return handle;
        },
      },
    });
    await mkdir(join(home, 'sub'));
    expect(await use('exec', { command, cwd: 'sub', background: true }, { signal: cancel.signal })).toBe('CANCELLED');
    expect(cancel.signal.aborted).toBe(true);
    expect(await running(command)).toEqual([]);
    expect(await use('process', { action: 'list' })).toBe('[none]');
  });

  it('keep what they wrote, up to a bound', async () => {
    await open({ outputBytes: 1_000 });
    const text = await use('exec', { command: 'head -c 5000 /dev/zero | tr "\\0" x' });
    expect(text).toContain('5000 bytes of output, of which the first 1000 were kept');
    expect(text.endsWith(`\n${'x'.repeat(1_000)}`)).toBe(true);
  });
});

async function running(command: string): Promise<string[]> {
  return (await commandLines()).filter((line) => line === command);
}

async function commandLines(): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return lines.map((line) => line.split('\0').join(' ').trim());
}

/** The machine's volume, where every name below a descriptor is found under any case. */
function withoutCase(): typeof machine {
  const find = async (path: string): Promise<string> => {
    const [, folder, name] = /^(\/proc\/self\/fd\/\d+)\/([^/]+)$/.exec(path) ?? [];
    if (folder === undefined || name === undefined) return path;
    const names = await readdir(folder);
    return `${folder}/${names.find((one) => one.toLowerCase() === name.toLowerCase()) ?? name}`;
  };
  return {
    ...machine,
    open: async (path, flags, mode) => machine.open(await find(path), flags, mode),
    lstat: async (path) => machine.lstat(await find(path)),
    readlink: async (path) => machine.readlink(await find(path)),
    mkdir: async (path) => machine.mkdir(await find(path)),
    rename: async (from, to) => machine.rename(await find(from), await find(to)),
    unlink: async (path) => machine.unlink(await find(path)),
  };
}
