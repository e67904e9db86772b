// The stack that is measured: the one that runs from `.ambit` (or AMBIT_HOME), else one of the bench's own in a scratch folder.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as pause } from 'node:timers/promises';
import { build } from '../tools/build.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const READY_MS = 120_000;

/** Finds or starts the stack; `stop` ends only what was started here. */
export async function openStack(say, use = 'bench') {
  const running = stackIn(process.env.AMBIT_HOME ?? join(root, '.ambit'));
  if (running !== undefined) {
    say(`using the stack that runs (process ${running.pid})`);
    return { ...running, isOwn: false, stop: async () => undefined };
  }
  await build(say);
  const home = join(root, '.ambit', use);
  if (stackIn(home) !== undefined) throw new Error(`another one runs from ${home}; wait for it, or stop it`);
  rmSync(home, { recursive: true, force: true });
  say('starting a stack of its own');
  const child = spawn(process.execPath, [join(root, 'apps', 'stack', 'dist', 'main.js'), '--bare'], {
    env: { ...process.env, AMBIT_HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said = `${said}${chunk}`.slice(-8_192)));
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
  };
  for (const until = performance.now() + READY_MS; ;) {
    if (child.exitCode !== null) throw new Error(`the stack ended while it started:\n${said}`);
    const stack = stackIn(home);
    if (stack?.pid === child.pid && (await isReady(stack))) return { ...stack, isOwn: true, stop };
    if (performance.now() > until) {
      await stop();
      throw new Error(`the stack was not ready after ${READY_MS / 1_000} s:\n${said}`);
    }
    await pause(100);
  }
}

function stackIn(home) {
  const file = join(home, 'stack.json');
  if (!existsSync(file)) return undefined;
  try {
    const stack = JSON.parse(readFileSync(file, 'utf8'));
    process.kill(stack.pid, 0);
    return stack.apiUrl === undefined || stack.natsUrl === undefined ? undefined : stack;
  } catch {
    return undefined;
  }
}

/** How often nats-server syncs what it stored to the disk; undefined where it does not tell us. */
export async function syncIntervalOf({ natsMonitorUrl }) {
  if (natsMonitorUrl === undefined) return undefined;
  const { config } = await (await fetch(`${natsMonitorUrl}/jsz`)).json();
  return config.sync_always === true ? 'always' : `every ${config.sync_interval / 1e9} s`;
}

async function isReady({ services }) {
  const answers = await Promise.all(
    services.map(({ opsPort }) =>
      fetch(`http://127.0.0.1:${opsPort}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      ),
    ),
  );
  return answers.length > 0 && answers.every(Boolean);
}
