import { randomBytes } from 'node:crypto';
import { chown, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { runCommand } from './commands.js';
import { startGuarded, type GuardedProcess } from './guarded-process.js';
import { freePort } from './ports.js';
import { postgresBinaries } from './postgres-binaries.js';
import { reachableFolder, serverAccount, type ServerAccount } from './postgres-account.js';
import { awaitPreviousProcess } from './previous.js';
import { waitForTcp } from './ready.js';

export interface PostgresOptions {
  /** Holds the cluster; made when it is missing. */
  readonly dataDir: string;
  /** Wanted port; another is taken when it is in use. */
  readonly port?: number;
  /** Its log is written here. */
  readonly logFile?: string;
  /** Survive a power loss. Tests switch it off; what was committed outlives a killed server either way. @default true */
  readonly durable?: boolean;
}

export interface PostgresServer {
  /** `postgres://` URL of the database `ambit`, password included. */
  readonly url: string;
  readonly port: number;
  /** Where the cluster really lies; not the wanted folder when the server's user could not go there. */
  readonly dataDir: string;
  readonly process: GuardedProcess;
  stop(): Promise<void>;
}

const USER = 'ambit';
const READY_MS = 30_000;

/** Starts PostgreSQL on 127.0.0.1, as a user of its own when this process is root, and answers when it takes connections. */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const isRoot = process.getuid?.() === 0;
  const account = isRoot ? await serverAccount() : undefined;
  const binaries = await postgresBinaries(account?.binariesFolder);
  const dataDir = account === undefined ? options.dataDir : await reachableFolder(options.dataDir);
  await awaitPreviousProcess(join(dataDir, 'postmaster.pid'), 'postgres');
  const durable = options.durable !== false;
  // Beside the wanted folder even when the cluster is elsewhere: a cluster without its password belongs to a removed clone.
  const passwordFile = `${options.dataDir}.password`;
  const isComplete = (await exists(join(dataDir, 'PG_VERSION'))) && (await exists(passwordFile));
  if (!isComplete) await createCluster({ dataDir, initdb: binaries.initdb, passwordFile, account, durable });
  const password = (await readFile(passwordFile, 'utf8')).trim();

  const port = await freePort(options.port);
  const settings: Readonly<Record<string, string>> = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    max_connections: '200',
    shared_buffers: '64MB',
    ...(durable ? {} : { fsync: 'off', full_page_writes: 'off' }),
  };
  const guarded = startGuarded({
    command: binaries.postgres,
    args: ['-D', dataDir, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    env: serverEnvironment(),
    cwd: dataDir,
    ...(account === undefined ? {} : { uid: account.uid, gid: account.gid }),
    ...(options.logFile === undefined ? {} : { output: { file: options.logFile } }),
    // A "fast" shutdown: sessions are ended, the log is flushed.
    stopSignal: 'INT',
    graceSeconds: 10,
  });
  try {
    await waitForTcp({ port, timeoutMs: READY_MS, exited: guarded.exited });
    const url = `postgres://${USER}:${password}@127.0.0.1:${port}/ambit`;
    await ensureDatabase(url);
    return { url, port, dataDir, process: guarded, stop: async () => void (await guarded.stop()) };
  } catch (error) {
    await guarded.stop();
    throw new Error(`PostgreSQL did not start: ${guarded.lastOutput().trim()}`, { cause: error });
  }
}

interface ClusterOptions {
  readonly dataDir: string;
  readonly initdb: string;
  readonly passwordFile: string;
  readonly account: ServerAccount | undefined;
  readonly durable: boolean;
}

async function createCluster(options: ClusterOptions): Promise<void> {
  const { account, dataDir } = options;
  const password = randomBytes(24).toString('hex');
  await rm(dataDir, { recursive: true, force: true });
  if (account !== undefined) await mkdir(dirname(dataDir), { recursive: true, mode: 0o755 });
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const scratch = await mkdtemp(join(tmpdir(), 'ambit-initdb-'));
  try {
    const pwfile = join(scratch, 'password');
    await writeFile(pwfile, `${password}\n`, { mode: 0o600 });
    if (account !== undefined) {
      for (const path of [dataDir, scratch, pwfile]) await chown(path, account.initdbUid, account.initdbGid);
    }
    const args = [
      '-D',
      dataDir,
      '-U',
      USER,
      `--pwfile=${pwfile}`,
      '--auth=scram-sha-256',
      '--no-locale',
      '--encoding=UTF8',
      ...(options.durable ? [] : ['--no-sync']),
    ];
    const maker = startGuarded({
      command: options.initdb,
      args,
      env: serverEnvironment(),
      cwd: scratch,
      ...(account === undefined ? {} : { uid: account.initdbUid, gid: account.initdbGid }),
    });
    const exit = await maker.exited;
    if (exit.code !== 0) throw new Error(`initdb failed: ${maker.lastOutput().trim()}`);
    if (account !== undefined) {
      const owned = await runCommand('chown', ['-R', `${account.uid}:${account.gid}`, dataDir], { timeoutMs: 30_000 });
      if (!owned.ok) throw new Error(`chown of ${dataDir}: ${owned.stderr.trim()}`);
    }
    await writeFile(options.passwordFile, `${password}\n`, { mode: 0o600 });
  } catch (error) {
    await rm(dataDir, { recursive: true, force: true });
    throw error;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

async function ensureDatabase(url: string): Promise<void> {
  const { Client } = (await import('pg')).default;
  const maintenance = new URL(url);
  maintenance.pathname = '/postgres';
  const end = performance.now() + READY_MS;
  for (;;) {
    const client = new Client({ connectionString: maintenance.href });
    try {
      await client.connect();
      const { rowCount } = await client.query("select 1 from pg_database where datname = 'ambit'");
      if (rowCount === 0) await client.query('create database ambit');
      return;
    } catch (error) {
      // 57P03: it accepts connections, and is still reading its log after a crash.
      const isStarting = error instanceof Error && 'code' in error && error.code === '57P03';
      if (!isStarting || performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    } finally {
      await client.end().catch(() => undefined);
    }
  }
}

/** Nothing of our environment is the server's business; its libraries lie beside its programs. */
function serverEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };
}
