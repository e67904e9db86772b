import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findNatsServer, startNats, startPostgres } from '@ambit/embedded';
import { keyFiles } from '@ambit/identity';
import { runInit } from './run-init.js';
import { say, timed } from './say.js';
import type { StackFolder } from './stack-folder.js';

/** What services need to reach NATS and Postgres, and how to stop what was started for it. */
export interface Servers {
  readonly natsUrl: string;
  /** Where nats-server tells of itself; undefined with one of the user's own. */
  readonly natsMonitorUrl: string | undefined;
  readonly databaseUrl: string;
  /** The path of a service's NATS credentials; undefined where the server asks for none. */
  readonly credentialsOf: (service: string) => string | undefined;
  /** Holds worker signing keys and the like for admin-api; undefined with a NATS of the user's own that has none. */
  readonly adminKeys: string | undefined;
  readonly ports: Readonly<Record<string, number>>;
  readonly pids: Readonly<Record<string, number>>;
  stop(): Promise<void>;
}

interface Part {
  readonly url: string;
  readonly port?: number;
  readonly pid?: number;
  readonly monitorUrl?: string;
  stop(): Promise<void>;
}

/** Starts nats-server and PostgreSQL, or takes those that NATS_URL and DATABASE_URL name. */
export async function startServers(folder: StackFolder): Promise<Servers> {
  const ports = await folder.ports();
  const nats = await natsPart(folder, ports['nats']);
  try {
    const postgres = await postgresPart(folder, ports['postgres']);
    return {
      natsUrl: nats.url,
      natsMonitorUrl: nats.monitorUrl,
      databaseUrl: postgres.url,
      credentialsOf: credentialsRule(folder),
      adminKeys: process.env.NATS_URL === undefined ? join(folder.keys, 'admin') : process.env.AMBIT_ADMIN_KEYS_DIR,
      ports: {
        ...(nats.port === undefined ? {} : { nats: nats.port }),
        ...(postgres.port === undefined ? {} : { postgres: postgres.port }),
      },
      pids: { ...(nats.pid === undefined ? {} : { nats: nats.pid }), ...(postgres.pid === undefined ? {} : { postgres: postgres.pid }) },
      stop: async () => {
        await Promise.all([nats.stop(), postgres.stop()]);
      },
    };
  } catch (error) {
    await nats.stop();
    throw error;
  }
}

async function natsPart(folder: StackFolder, port: number | undefined): Promise<Part> {
  const url = process.env.NATS_URL;
  if (url !== undefined) {
    say(`nats-server: yours, at ${url} (NATS_URL)`);
    return { url, stop: () => Promise.resolve() };
  }
  const binary = await findNatsServer({ cacheDir: folder.bin, report: say });
  await runInit(['keys'], { AMBIT_KEYS_DIR: folder.keys, AMBIT_RESOLVER_DIR: join(folder.nats, 'accounts') });
  const authorization = await readFile(join(folder.keys, keyFiles.serverConfig), 'utf8');
  const server = await timed(`nats-server ${binary.version} (${binary.origin})`, () =>
    startNats({
      binary: binary.path,
      dataDir: folder.nats,
      logFile: join(folder.logs, 'nats.log'),
      authorization,
      ...(process.env.AMBIT_NATS_SYNC === undefined ? {} : { syncInterval: process.env.AMBIT_NATS_SYNC }),
      ...(port === undefined ? {} : { port }),
    }),
  );
  say(`  ${server.url}, streams below ${folder.nats}`);
  const { url: natsUrl, port: natsPort, monitorUrl } = server;
  return { url: natsUrl, port: natsPort, pid: server.process.pid, monitorUrl, stop: () => server.stop() };
}

async function postgresPart(folder: StackFolder, port: number | undefined): Promise<Part> {
  const url = process.env.DATABASE_URL;
  if (url !== undefined) {
    say('PostgreSQL: yours (DATABASE_URL)');
    return { url, stop: () => Promise.resolve() };
  }
  const server = await timed('PostgreSQL', () =>
    startPostgres({ dataDir: folder.postgres, logFile: join(folder.logs, 'postgres.log'), ...(port === undefined ? {} : { port }) }),
  );
  say(`  127.0.0.1:${server.port}, data in ${server.dataDir}`);
  return { url: server.url, port: server.port, pid: server.process.pid, stop: () => server.stop() };
}

/** With a NATS of the user's own: `NATS_CREDS_DIR/<service>.creds`, else `NATS_CREDS` for all. */
function credentialsRule(folder: StackFolder): Servers['credentialsOf'] {
  const { NATS_URL, NATS_CREDS_DIR, NATS_CREDS } = process.env;
  if (NATS_URL === undefined) return (service) => join(folder.keys, keyFiles.serviceCredentials(service));
  if (NATS_CREDS_DIR !== undefined) return (service) => join(NATS_CREDS_DIR, `${service}.creds`);
  return () => NATS_CREDS;
}
