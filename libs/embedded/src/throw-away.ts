import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findNatsServer } from './nats-binary.js';
import { startNats, type NatsServer } from './nats.js';
import { startPostgres, type PostgresServer } from './postgres.js';

/** Nobody misses what a power cut takes of these. */
const THROWN_AWAY = '2m';

export interface ThrowAwayNatsOptions {
  /** Where the nats-server program is kept between runs, usually `.ambit/bin`. */
  readonly cacheDir: string;
  /** Accounts and resolver lines for its configuration, given the folder it lives in. */
  readonly authorization?: (folder: string) => Promise<string>;
}

/** A nats-server with JetStream in a temporary folder, which `stop()` removes. */
export async function throwAwayNats(options: ThrowAwayNatsOptions): Promise<NatsServer> {
  const { path } = await findNatsServer({ cacheDir: options.cacheDir });
  const folder = await mkdtemp(join(tmpdir(), 'ambit-nats-'));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const authorization = await options.authorization?.(folder);
    const server = await startNats({
      binary: path,
      dataDir: folder,
      syncInterval: THROWN_AWAY,
      ...(authorization === undefined ? {} : { authorization }),
    });
    return { ...server, stop: () => server.stop().finally(remove) };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** A PostgreSQL cluster in a temporary folder, which `stop()` removes. */
export async function throwAwayPostgres(): Promise<PostgresServer> {
  const folder = await mkdtemp(join(tmpdir(), 'ambit-postgres-'));
  // As root the server runs as another user, who must be able to enter the folder above its data.
  await chmod(folder, 0o711);
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const server = await startPostgres({ dataDir: join(folder, 'data'), durable: false });
    return { ...server, stop: () => server.stop().finally(remove) };
  } catch (error) {
    await remove();
    throw error;
  }
}
