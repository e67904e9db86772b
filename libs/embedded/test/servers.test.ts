import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it, jest } from '@jest/globals';
import pg from 'pg';
import { findNatsServer, startGuarded, startNats, throwAwayNats, throwAwayPostgres } from '@ambit/embedded';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';

jest.setTimeout(90_000);
const cacheDir = fileURLToPath(new URL('../../../.ambit/bin', import.meta.url));

function isAlive(target: number): boolean {
  try {
    process.kill(target, 0);
    return true;
  } catch {
    return false;
  }
}

async function gone(target: number, withinMs: number): Promise<boolean> {
  const end = performance.now() + withinMs;
  while (isAlive(target)) {
    if (performance.now() > end) return false;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return true;
}

describe('throw-away servers', () => {
  const stops: (() => Promise<void>)[] = [];
  afterAll(async () => {
    for (const stop of stops.reverse()) await stop();
  });

  it('a nats-server with JetStream starts and stops', async () => {
    const nats = await throwAwayNats({ cacheDir });
    const jetstream: unknown = await (await fetch(`${nats.monitorUrl}/jsz`)).json();
    expect(jetstream).toHaveProperty('config.store_dir');
    await nats.stop();
    expect(isAlive(nats.process.pid)).toBe(false);
  });

  it('a server runs as a user who may not enter the folder that this package lies in', async () => {
    const closed = await mkdtemp(join(tmpdir(), 'ambit-closed-'));
    await cp(fileURLToPath(new URL('../dist', import.meta.url)), join(closed, 'dist'), { recursive: true });
    await cp(fileURLToPath(new URL('../guard.sh', import.meta.url)), join(closed, 'guard.sh'));
    const copy: { startGuarded: typeof startGuarded } = await import(join(closed, 'dist', 'guarded-process.js'));
    // Only root has another user to run it as.
    const other = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
    const child = copy.startGuarded({ command: '/usr/bin/id', args: ['-u'], cwd: '/', ...other });
    expect(await child.exited).toEqual({ code: 0, signal: null });
    expect(child.lastOutput().trim()).toBe(String(other.uid ?? process.getuid?.()));
    await rm(closed, { recursive: true });
  });

  it('what nats-server acknowledged outlives its kill -9, without a sync before each acknowledgement', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'ambit-nats-'));
    const { path: binary } = await findNatsServer({ cacheDir });
    const first = await startNats({ binary, dataDir: folder });
    stops.push(() => rm(folder, { recursive: true, force: true }));
    const connection = await connect({ servers: first.url, reconnect: false });
    await (await jetstreamManager(connection)).streams.add({ name: 'FACTS', subjects: ['fact.>'] });
    const acknowledged = await Promise.all(
      Array.from({ length: 500 }, async (_, index) => (await jetstream(connection).publish(`fact.${index}`, 'x'.repeat(500))).seq),
    );
    process.kill(first.process.pid, 'SIGKILL');
    await first.process.exited;
    const second = await startNats({ binary, dataDir: folder });
    stops.push(second.stop);
    const again = await connect({ servers: second.url });
    const { state } = await (await jetstreamManager(again)).streams.info('FACTS');
    await again.close();
    expect(state.messages).toBe(acknowledged.length);
  });

  it('a PostgreSQL takes connections with its password only', async () => {
    const postgres = await throwAwayPostgres();
    stops.push(postgres.stop);
    const client = new pg.Client({ connectionString: postgres.url });
    await client.connect();
    const { rows } = await client.query<{ readonly version: string }>("select current_setting('server_version_num') as version");
    await client.end();
    expect(rows).toHaveLength(1);
    const wrong = new URL(postgres.url);
    wrong.password = 'wrong';
    await expect(new pg.Client({ connectionString: wrong.href }).connect()).rejects.toThrow(/password/);
  });
});

describe('no orphans', () => {
  it('a kill -9 of the starter ends both servers and the grandchildren of a process that ignores SIGTERM', async () => {
    const parent = spawn(process.execPath, [fileURLToPath(new URL('./keeps-servers.mjs', import.meta.url)), cacheDir], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(createInterface({ input: parent.stdout }), 'line')) as [string];
    const { pids, groups } = JSON.parse(line) as { readonly pids: readonly number[]; readonly groups: readonly number[] };
    expect(pids.every(isAlive)).toBe(true);
    parent.kill('SIGKILL');
    for (const pid of pids) expect(await gone(pid, 12_000)).toBe(true);
    for (const group of groups) expect(await gone(-group, 12_000)).toBe(true);
  });

  it('what a process leaves in its group goes when it ends by itself', async () => {
    const leaver = startGuarded({ command: '/bin/sh', args: ['-c', 'sleep 1000 & exit 3'] });
    expect(await leaver.exited).toEqual({ code: 3, signal: null });
    expect(await gone(-leaver.pid, 5_000)).toBe(true);
  });

  it('stop() kills a process that ignores the signal', async () => {
    const stubborn = startGuarded({
      command: '/bin/sh',
      args: ['-c', 'trap "" TERM; echo ready; while :; do sleep 1; done'],
      graceSeconds: 1,
    });
    while (!stubborn.lastOutput().includes('ready')) await new Promise((resolve) => setImmediate(resolve));
    expect(await stubborn.stop()).toEqual({ code: null, signal: 'SIGKILL' });
    expect(await gone(-stubborn.pid, 5_000)).toBe(true);
  });
});
