import { Bus, connectBus } from '@ambit/bus';
import { services, workerInboxPrefix, type ServiceName } from '@ambit/contracts';
import { freePort, startGuarded } from '@ambit/embedded';
import {
  ACCOUNT,
  allContracts,
  credentialsFile,
  installationUsers,
  keyFiles,
  makeUserKey,
  prepareInstallation,
  signUser,
  workerPermissions,
  type Installation,
} from '@ambit/identity';
import { searchStored, watchWire } from '@ambit/testing';
import { nkeys } from '@nats-io/nats-core';
import { connect, credsAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DatabaseProcess, NatsProcess } from './server-process.js';
import { ServiceProcess } from './service-process.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const WITHOUT_DATABASE: ReadonlySet<string> = new Set(['mcp-runner', 'mcp-edge']);

export interface SystemOptions {
  /** In the order of starting. @default all of them, mcp-edge only where `replicas` names it */
  readonly services?: readonly ServiceName[];
  /** Processes of a service. @default one of each */
  readonly replicas?: Partial<Record<ServiceName, number>>;
  /** Further environment variables of every service. */
  readonly environment?: Readonly<Record<string, string>>;
}

export interface WorkerOptions {
  readonly agentId: string;
  readonly credentialName?: string;
  readonly pools?: readonly string[];
  /** The key in this credentials file, in place of a new one. */
  readonly keyOf?: string;
  /** Seconds from now. @default 0 */
  readonly issuedIn?: number;
  /** Seconds from now. @default 3_600 */
  readonly expiresIn?: number;
}

/** The built services as processes on servers of their own, behind the same walls as an installation. */
export interface System {
  readonly natsUrl: string;
  readonly databaseUrl: string;
  /** One file of log lines a process. */
  readonly logFolder: string;
  /** A caller in the services' account, with all rights. */
  readonly bus: Bus;
  readonly connection: NatsConnection;
  /** Where the console and the CLI go; only with admin-api. */
  readonly apiUrl: string;
  /** The same for each replica of admin-api. */
  readonly apiUrls: readonly string[];
  /** Where MCP clients go: one address a replica of mcp-edge. */
  readonly edgeUrls: readonly string[];
  readonly token: string;
  process(name: ServiceName, replica?: number): ServiceProcess;
  /** nats-server, to be killed and started again. */
  readonly nats: NatsProcess;
  /** PostgreSQL, likewise. */
  readonly database: DatabaseProcess;
  /** Runs `ambit init` again; answers with what it said. */
  init(...args: readonly string[]): Promise<string>;
  /** Stops PostgreSQL for good. */
  loseDatabase(): Promise<void>;
  /** Writes a credentials file for a worker of an agent, as admin-api would issue it; returns its path. */
  workerCredentials(worker: WorkerOptions): Promise<string>;
  /** A bare connection of a worker of an agent, behind the wall. */
  connectWorker(worker: WorkerOptions): Promise<NatsConnection>;
  /** A connection with the credentials of a service. */
  connectAs(name: ServiceName): Promise<NatsConnection>;
  stop(): Promise<void>;
}

/** Whether a service can be started; `npm test` builds all of them first. */
export function isBuilt(name: ServiceName): boolean {
  return existsSync(programOf(name));
}

function programOf(name: string): string {
  return join(root, 'apps', name, 'dist', 'main.js');
}

/** Starts servers, prepares them with `ambit init`, and starts the services. Logs go to coverage/logs. */
export async function startSystem(options: SystemOptions = {}): Promise<System> {
  watchWire();
  const folder = await mkdtemp(join(tmpdir(), 'ambit-system-'));
  const undo: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  const stop = async (): Promise<void> => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    return await build({ options, folder, undo, stop });
  } catch (error) {
    await stop();
    throw error;
  }
}

interface Building {
  readonly options: SystemOptions;
  readonly folder: string;
  readonly undo: (() => Promise<unknown>)[];
  readonly stop: () => Promise<void>;
}

async function build({ options, folder, undo, stop }: Building): Promise<System> {
  const keys = join(folder, 'keys');
  const { nats, installation, resolver } = await startWalledNats(keys);
  undo.push(() => nats.remove());
  const postgres = await DatabaseProcess.start();
  undo.push(() => postgres.remove());
  await runInit({ nats, postgres, keys, resolver });

  const credentialsOf = (name: string): string => join(keys, keyFiles.serviceCredentials(name));
  const connection = await connectBus({ url: nats.url, name: 'test', credentials: credentialsOf('init') });
  const bus = new Bus(connection);
  undo.push(async () => {
    bus.close();
    await connection.close();
  });
  undo.push(() => searchStored(connection));

  const token = `test-${randomBytes(24).toString('base64url')}`;
  const sealingKey = randomBytes(32).toString('base64');
  const edgeKey = randomBytes(32).toString('base64');
  const httpPorts: number[] = [];
  const edgePorts: number[] = [];
  const logs = join(root, 'coverage', 'logs', `${process.pid}-${Date.now()}`);
  await mkdir(logs, { recursive: true });
  const processes = new Map<string, ServiceProcess>();
  const wanted = (Object.keys(services) as ServiceName[]).filter((name) => name !== 'mcp-edge' || options.replicas?.[name] !== undefined);
  for (const name of options.services ?? wanted) {
    for (let replica = 1; replica <= (options.replicas?.[name] ?? 1); replica++) {
      const label = replica === 1 ? name : `${name}-${replica}`;
      const opsPort = await freePort();
      const httpPort = await freePort();
      if (name === 'admin-api') httpPorts.push(httpPort);
      if (name === 'mcp-edge') edgePorts.push(httpPort);
      const environment = {
        NODE_COMPILE_CACHE: join(root, '.ambit', 'compiled'),
        ...process.env,
        NODE_OPTIONS: '',
        AMBIT_LOG_LEVEL: 'info',
        NATS_URL: nats.url,
        NATS_CREDS: credentialsOf(name),
        OPS_PORT: String(opsPort),
        AMBIT_DATA_DIR: join(folder, 'data', label),
        ...(WITHOUT_DATABASE.has(name) ? {} : { DATABASE_URL: postgres.url }),
        ...(name === 'mcp-broker' ? { AMBIT_SEALING_KEY: sealingKey } : {}),
        ...(name === 'mcp-edge' ? { AMBIT_EDGE_PORT: String(httpPort), AMBIT_EDGE_KEY: edgeKey } : {}),
        ...(name === 'admin-api'
          ? { AMBIT_HTTP_PORT: String(httpPort), AMBIT_BOOTSTRAP_TOKEN: token, AMBIT_ADMIN_KEYS_DIR: join(keys, 'admin') }
          : {}),
        ...options.environment,
      };
      processes.set(
        label,
        new ServiceProcess({
          name,
          label,
          program: programOf(name),
          environment,
          opsPort,
          logFile: join(logs, `${label}.log`),
        }),
      );
    }
  }
  undo.push(() => Promise.all([...processes.values()].map((one) => one.stop())));
  await Promise.all([...processes.values()].map((one) => one.start()));

  const apiUrls = httpPorts.map((port) => `http://127.0.0.1:${port}`);
  const workerCredentials = async (worker: WorkerOptions): Promise<string> => {
    const path = join(folder, `${worker.agentId}-${worker.credentialName ?? 'main'}-${randomBytes(4).toString('hex')}.creds`);
    await writeFile(path, signWorker(installation, worker), { mode: 0o600 });
    return path;
  };
  const open = async (credentials: string, inboxPrefix: string): Promise<NatsConnection> => {
    const opened = await connect({
      servers: nats.url,
      authenticator: credsAuthenticator(Buffer.from(credentials)),
      inboxPrefix,
      reconnect: false,
    });
    undo.push(() => opened.close());
    return opened;
  };
  return {
    natsUrl: nats.url,
    databaseUrl: postgres.url,
    logFolder: logs,
    nats,
    database: postgres,
    bus,
    connection,
    apiUrl: apiUrls[0] ?? '',
    apiUrls,
    edgeUrls: edgePorts.map((port) => `http://127.0.0.1:${port}/mcp`),
    token,
    process: (name, replica = 1) => {
      const found = processes.get(replica === 1 ? name : `${name}-${replica}`);
      if (found === undefined) throw new Error(`${name} ${replica} was not started in this system`);
      return found;
    },
    init: (...args) => runInit({ nats, postgres, keys, resolver }, args),
    loseDatabase: () => postgres.stop(),
    workerCredentials,
    connectWorker: (worker) =>
      open(
        signWorker(installation, worker),
        workerInboxPrefix({ agentId: worker.agentId, credentialName: worker.credentialName ?? 'main' }),
      ),
    connectAs: async (name) => open(await readFile(credentialsOf(name), 'utf8'), `_INBOX.${name}`),
    stop,
  };
}

async function startWalledNats(
  keys: string,
): Promise<{ readonly nats: NatsProcess; readonly installation: Installation; readonly resolver: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'ambit-nats-'));
  const resolver = join(folder, 'accounts');
  const installation = await prepareInstallation({
    folder: keys,
    contracts: allContracts(),
    users: installationUsers(),
    resolverFolder: resolver,
    nowSeconds: seconds(),
  });
  const nats = await NatsProcess.start({ folder, cacheDir: join(root, '.ambit', 'bin'), authorization: installation.serverConfig });
  return { nats, installation, resolver };
}

interface InitOptions {
  readonly nats: NatsProcess;
  readonly postgres: DatabaseProcess;
  readonly keys: string;
  readonly resolver: string;
}

async function runInit({ nats, postgres, keys, resolver }: InitOptions, more: readonly string[] = []): Promise<string> {
  const init = startGuarded({
    command: process.execPath,
    args: [join(root, 'apps', 'init', 'dist', 'main.js'), ...more],
    env: {
      ...process.env,
      NODE_OPTIONS: '',
      NATS_URL: nats.url,
      DATABASE_URL: postgres.url,
      AMBIT_KEYS_DIR: keys,
      AMBIT_RESOLVER_DIR: resolver,
    },
  });
  const { code } = await init.exited;
  if (code !== 0) throw new Error(`ambit init failed:\n${init.lastOutput()}`);
  return init.lastOutput();
}

function signWorker({ keys, accounts }: Installation, worker: WorkerOptions): string {
  const { agentId, credentialName = 'main', pools = ['shared'], keyOf, issuedIn = 0, expiresIn = 3_600 } = worker;
  const account = [...accounts].find(([, { name }]) => name === ACCOUNT.workers)?.[0];
  if (account === undefined) throw new Error('the installation has no account for workers');
  const seed = /SU[A-Z0-9]{40,}/.exec(keyOf ?? '')?.[0];
  const userKey = seed === undefined ? makeUserKey() : nkeys.fromSeed(Buffer.from(seed));
  const permissions = workerPermissions(allContracts(), { agentId, credentialName, pools });
  const jwt = signUser(
    {
      name: credentialName,
      userKey: userKey.getPublicKey(),
      permissions,
      account,
      issuedAt: seconds() + issuedIn,
      expiresAt: seconds() + expiresIn,
    },
    keys.workersSigning,
  );
  return credentialsFile(jwt, userKey);
}

function seconds(): number {
  return Math.floor(Date.now() / 1_000);
}
