import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';

jest.setTimeout(240_000);
const root = fileURLToPath(new URL('../../..', import.meta.url));

interface StackFile {
  readonly pid: number;
  readonly natsUrl: string;
  readonly servers: Readonly<Record<string, number>>;
  readonly services: readonly { readonly name: string; readonly label: string; readonly pid: number; readonly opsPort: number }[];
}

let home: string;

/** Starts the built supervisor; answers once it says where everything is. */
async function startStack(...options: string[]): Promise<{ readonly child: ChildProcess; readonly lines: string[] }> {
  const { NATS_URL: _nats, DATABASE_URL: _database, npm_lifecycle_event: _event, ...env } = process.env;
  const child = spawn(process.execPath, [join(root, 'apps/stack/dist/main.js'), '--bare', ...options], {
    env: { ...env, AMBIT_HOME: home, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line);
      if (line.includes('addresses and process ids')) resolve();
    });
    child.once('exit', (code) => reject(new Error(`the stack ended with ${code ?? 'a signal'}:\n${lines.join('\n')}`)));
  });
  return { child, lines };
}

async function stackFile(): Promise<StackFile> {
  return JSON.parse(await readFile(join(home, 'stack.json'), 'utf8')) as StackFile;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function until(holds: () => boolean | Promise<boolean>, withinMs: number): Promise<boolean> {
  const end = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > end) return false;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return true;
}

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'ambit-stack-'));
  // Fetching a nats-server is not what is tested here.
  await symlink(join(root, '.ambit', 'bin'), join(home, 'bin'));
});
afterAll(async () => {
  await rm(home, { recursive: true, force: true });
});

describe('the stack', () => {
  it('starts a crashed service again, refuses a second start, and leaves nothing behind after kill -9', async () => {
    const { child } = await startStack('--replicas', 'skill-store=2');
    const started = await stackFile();
    const [first, second] = started.services.filter(({ name }) => name === 'skill-store');
    expect(first?.pid).toBeGreaterThan(0);
    expect(second?.label).toBe('skill-store-2');

    process.kill(first?.pid ?? 0, 'SIGKILL');
    const isBack = async (): Promise<boolean> => {
      const now = (await stackFile()).services.find(({ label }) => label === first?.label);
      if (now === undefined || now.pid === first?.pid) return false;
      return fetch(`http://127.0.0.1:${now.opsPort}/readyz`).then(
        (response) => response.ok,
        () => false,
      );
    };
    expect(await until(isBack, 30_000)).toBe(true);

    await expect(startStack()).rejects.toThrow(/ended with 1/);

    const running = await stackFile();
    const pids = [...Object.values(running.servers), ...running.services.map(({ pid }) => pid)];
    expect(pids.every(isAlive)).toBe(true);
    child.kill('SIGKILL');
    expect(await until(() => !pids.some(isAlive), 30_000)).toBe(true);
  });

  it('starts again on the same data and ports after that, and stops in order when asked', async () => {
    const before = await stackFile();
    const { child, lines } = await startStack();
    const now = await stackFile();
    expect(now.natsUrl).toBe(before.natsUrl);
    expect(lines.join('\n')).toContain('schemas: up to date');
    const pids = [...Object.values(now.servers), ...now.services.map(({ pid }) => pid)];
    child.kill('SIGTERM');
    await once(child, 'exit');
    expect(pids.filter(isAlive)).toEqual([]);
  });
});
