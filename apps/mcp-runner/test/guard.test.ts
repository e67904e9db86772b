import { afterEach, describe, expect, it } from '@jest/globals';
import { McpInstance, type CallOutcome } from '@ambit/mcp';
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { childEnvironment } from '../src/child-environment.js';
import { GuardedChild, type ChildSpec } from '../src/guarded-child.js';

const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const server = path('fixtures/server.mjs');
const guard = path('../bin/guard.js');

function specOf(own: Record<string, string> = {}): ChildSpec {
  return {
    command: process.execPath,
    args: [server],
    env: childEnvironment(process.env, own, undefined),
    cwd: undefined,
    uid: undefined,
    gid: undefined,
    memoryBytes: undefined,
  };
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie that nobody has waited for yet is no survivor.
    return !existsSync(`/proc/${pid}/stat`) || !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

async function gone(pids: readonly number[], withinMs: number): Promise<number> {
  const started = performance.now();
  while (pids.some(isRunning)) {
    if (performance.now() - started > withinMs) throw new Error(`still running: ${pids.filter(isRunning).join(', ')}`);
    await wait(10);
  }
  return performance.now() - started;
}

const textOf = (outcome: CallOutcome): string =>
  outcome.status === 'completed'
    ? String((outcome.result['content'] as { text: string }[])[0]?.text)
    : `${outcome.status}: ${JSON.stringify(outcome)}`;

describe('a guarded server', () => {
  const open: McpInstance[] = [];
  let beating: NodeJS.Timeout[] = [];
  afterEach(async () => {
    for (const timer of beating) clearInterval(timer);
    beating = [];
    await Promise.all(open.splice(0).map((instance) => instance.stop()));
  });

  function instanceOf(
    spec: ChildSpec,
    connectTimeoutMs = 10_000,
  ): { readonly instance: McpInstance; readonly child: () => GuardedChild | undefined; readonly started: () => number } {
    let child: GuardedChild | undefined;
    let started = 0;
    const make = (): GuardedChild => {
      started++;
      child = new GuardedChild(spec);
      return child;
    };
    const instance = new McpInstance({ target: { kind: 'stdio', transports: [make] }, connectTimeoutMs, explain: () => child?.reason });
    open.push(instance);
    beating.push(setInterval(() => child?.beat(), 1_000));
    return { instance, child: () => child, started: () => started };
  }
  const call = (
    instance: McpInstance,
    name: string,
    { timeoutMs = 10_000, ...args }: { readonly timeoutMs?: number } & Record<string, unknown> = {},
  ) => instance.call({ request: { name, arguments: args }, timeoutMs, abort: new AbortController() });

  it('gets a small environment: its own words and none of ours', async () => {
    const canary = 'canary-a1b2c3';
    for (const name of ['NATS_URL', 'NATS_CREDS', 'DATABASE_URL', 'AMBIT_SEALING_KEY', 'AMBIT_BOOTSTRAP_TOKEN', 'AWS_SECRET_ACCESS_KEY'])
      process.env[name] = canary;
    try {
      const { instance } = instanceOf(specOf({ OWN: 'yes' }));
      const environment = JSON.parse(textOf(await call(instance, 'env'))) as Record<string, string>;
      expect(environment['OWN']).toBe('yes');
      expect(JSON.stringify(environment)).not.toContain(canary);
      expect(Object.keys(environment).filter((name) => /^(NATS|AMBIT|DATABASE)/.test(name))).toEqual([]);
    } finally {
      for (const name of ['NATS_URL', 'NATS_CREDS', 'DATABASE_URL', 'AMBIT_SEALING_KEY', 'AMBIT_BOOTSTRAP_TOKEN', 'AWS_SECRET_ACCESS_KEY'])
        delete process.env[name];
    }
  });

  it('is gone with all it started when it is stopped, also what made a group of its own', async () => {
    const { instance, child } = instanceOf(specOf());
    const pids = [Number(textOf(await call(instance, 'child'))), Number(textOf(await call(instance, 'stray')))];
    const own = child()?.pid ?? 0;
    expect([own, ...pids].every(isRunning)).toBe(true);
    await instance.stop();
    await gone([own, ...pids], 2_000);
  });

  it('that exits during a call leaves it uncertain, says its last words, and the next call starts it anew', async () => {
    const { instance, started } = instanceOf(specOf());
    expect(await call(instance, 'exit', { why: 'no disk' })).toMatchObject({ status: 'uncertain', cause: 'connection_lost' });
    expect(instance.problem).toBe('The server process ended with code 3; its last words: giving up: no disk');
    expect(await call(instance, 'count')).toMatchObject({ status: 'completed' });
    expect(started()).toBe(2);
  });

  it('that never answers is killed at the time limit of its start, and the reason says so', async () => {
    const { instance, child } = instanceOf(specOf({ SILENT: '1' }), 700);
    expect(await call(instance, 'count', { timeoutMs: 5_000 })).toMatchObject({ status: 'not_dispatched', cause: 'unreachable' });
    await gone([child()?.pid ?? 0], 2_000);
    expect(instance.problem).toContain('did not become ready within 700 ms');
  });

  it('whose answer is over 10 MiB fails that call alone, and one that floods is stopped', async () => {
    const { instance, child, started } = instanceOf(specOf());
    expect(await call(instance, 'big', { bytes: 11 * 1024 * 1024 })).toMatchObject({
      status: 'uncertain',
      cause: 'too_large',
      limitBytes: 10 * 1024 * 1024,
    });
    expect(textOf(await call(instance, 'big', { bytes: 5 * 1024 * 1024 }))).toHaveLength(5 * 1024 * 1024);
    expect(started()).toBe(1);
    const pid = child()?.pid ?? 0;
    expect(await call(instance, 'flood')).toMatchObject({ status: 'uncertain', cause: 'connection_lost' });
    expect(instance.problem).toContain('longer than');
    await gone([pid], 2_000);
  });

  it('whose program does not exist says so at once', async () => {
    const { instance } = instanceOf({ ...specOf(), command: '/no/such/program' });
    expect(await call(instance, 'count')).toMatchObject({ status: 'not_dispatched', message: expect.stringContaining('ENOENT') });
  });

  it('that uses more memory than it may is stopped', async () => {
    const { instance, child } = instanceOf({ ...specOf(), memoryBytes: 16 * 1024 * 1024 });
    await call(instance, 'count').catch(() => undefined);
    const pid = child()?.pid ?? 0;
    await gone([pid], 5_000);
    expect(child()?.reason).toContain('bytes of memory');
  });
});

describe('a runner that is killed', () => {
  async function hold(beats: boolean): Promise<{ readonly runner: ChildProcess; readonly pids: number[] }> {
    const runner = spawn(process.execPath, [path('fixtures/hold.mjs'), guard, JSON.stringify(specOf())], {
      env: { ...process.env, ...(beats ? { BEAT: '1' } : {}) },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const pids: number[] = [];
    const complete = new Promise<void>((resolve) => {
      if (runner.stdout === null) return;
      createInterface({ input: runner.stdout }).on('line', (line) => {
        const fact = JSON.parse(line) as { pid?: number; result?: { content: { text: string }[] } };
        if (fact.pid !== undefined) pids.push(fact.pid);
        if (fact.result !== undefined) pids.push(Number(fact.result.content[0]?.text));
        if (pids.length === 3) resolve();
      });
    });
    for (const [id, name] of ['child', 'stray'].entries())
      runner.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: {} } })}\n`);
    await complete;
    expect(pids.every(isRunning)).toBe(true);
    return { runner, pids };
  }

  it('leaves nothing: server, grandchild and the one with a group of its own are gone', async () => {
    const { runner, pids } = await hold(true);
    runner.kill('SIGKILL');
    await gone(pids, 2_000);
  });

  it('or stopped leaves nothing either, once no heartbeat came for four seconds', async () => {
    const { runner, pids } = await hold(true);
    runner.kill('SIGSTOP');
    const tookMs = await gone(pids, 6_000);
    expect(tookMs).toBeGreaterThan(2_500);
    expect(tookMs).toBeLessThan(5_000);
    runner.kill('SIGKILL');
  });
});
