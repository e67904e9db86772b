import { randomUUID } from 'node:crypto';
import { migrate, migrationsFolder } from '@ambit/db';
import { throwAwayPostgres } from '@ambit/embedded';
import pg from 'pg';
import { inContainerOr } from './docker.js';

export interface TestPostgres {
  /** URL of a migrated database that no other test file uses. */
  readonly url: string;
  stop(): Promise<void>;
}

const IMAGE = 'postgres:18';
const TEMPLATE = 'ambit_template';
const LOCK = 71_001;

/**
 * A migrated database for one test file. With `AMBIT_TEST_POSTGRES_URL` it is made on that server from a template that the first
 * comer migrates; without it the file gets a server of its own, in a container where an engine answers, as a local process elsewhere.
 */
export async function startPostgres(): Promise<TestPostgres> {
  const shared = process.env['AMBIT_TEST_POSTGRES_URL'];
  if (shared !== undefined && shared !== '') return fromTemplate(shared);
  const server = await inContainerOr<{ readonly url: string; stop(): Promise<void> }>(IMAGE, postgresContainer, throwAwayPostgres);
  await migrate(server.url, migrationsFolder());
  return { url: server.url, stop: () => server.stop() };
}

async function fromTemplate(serverUrl: string): Promise<TestPostgres> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  await withClient(serverUrl, async (client) => {
    await client.query('SELECT pg_advisory_lock($1)', [LOCK]);
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [TEMPLATE]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${TEMPLATE}`);
    await migrate(database(serverUrl, TEMPLATE), migrationsFolder());
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${TEMPLATE}`);
  });
  return {
    url: database(serverUrl, name),
    stop: () => withClient(serverUrl, async (client) => void (await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`))),
  };
}

/** Runs statements of a test's own on a database, on a connection that is closed after them. */
export async function withClient(url: string, use: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  try {
    await client.connect();
    await use(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

function database(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

async function postgresContainer(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const { GenericContainer, Wait } = await import('testcontainers');
  const container = await new GenericContainer(IMAGE)
    .withExposedPorts(5432)
    .withEnvironment({ POSTGRES_USER: 'ambit', POSTGRES_PASSWORD: 'ambit', POSTGRES_DB: 'ambit' })
    .withWaitStrategy(Wait.forListeningPorts())
    .start();
  const url = `postgres://ambit:ambit@${container.getHost()}:${container.getMappedPort(5432)}/ambit`;
  await takesConnections(url);
  return { url, stop: async () => void (await container.stop()) };
}

const READY_MS = 45_000;

/** The engine opens the port before the server behind it answers, so that only a query proves it. */
async function takesConnections(url: string): Promise<void> {
  const end = performance.now() + READY_MS;
  for (;;) {
    const failure = await withClient(url, async (client) => void (await client.query('SELECT 1'))).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (failure === undefined) return;
    if (performance.now() > end) throw new Error('the container took no connections', { cause: failure });
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
