// ambit init: makes what an installation needs and does not have yet; running it again changes nothing.
//   init keys   keys and credentials alone, before nats-server runs
//   init        these, then accounts, streams and buckets on NATS_URL, and schemas in DATABASE_URL
//   init --after-restore   the same, on a DATABASE_URL that was restored from a backup, while no service runs
import { connectBus, ensureStreams } from '@ambit/bus';
import { buckets, objectStores, streams } from '@ambit/contracts';
import { migrate, migrationsFolder } from '@ambit/db';
import { keyFiles } from '@ambit/identity';
import { join } from 'node:path';
import { keepingFromHandout, keepingFromKeys, registerAccounts, type AccountKeeping } from './accounts.js';
import { readConfig, type Config } from './config.js';
import { afterRestore } from './after-restore.js';
import { handOut } from './hand-out.js';
import { makeKeys, whereKeysAre } from './keys.js';

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function identities(config: Config, nowSeconds: number): Promise<AccountKeeping | undefined> {
  const folder = config.AMBIT_KEYS_DIR;
  if (folder === undefined) {
    if (config.AMBIT_ADMIN_KEYS_DIR !== undefined) return keepingFromHandout(config.AMBIT_ADMIN_KEYS_DIR);
    say(
      'identities: left alone (neither AMBIT_KEYS_DIR nor AMBIT_ADMIN_KEYS_DIR is set); credential files are configuration, and worker isolation is off without a signing key',
    );
    return undefined;
  }
  const installation = await makeKeys({ ...config, AMBIT_KEYS_DIR: folder }, nowSeconds);
  say(whereKeysAre(folder));
  if (config.AMBIT_HANDOUT_DIR !== undefined)
    say(`handed out below ${config.AMBIT_HANDOUT_DIR}: ${(await handOut(folder, config.AMBIT_HANDOUT_DIR)).join(', ')}`);
  return keepingFromKeys(folder, installation.accounts);
}

interface Preparing {
  readonly keeping: AccountKeeping | undefined;
  readonly nowSeconds: number;
  readonly isRestored: boolean;
}

async function servers(config: Config, { keeping, nowSeconds, isRestored }: Preparing): Promise<void> {
  const { NATS_URL: natsUrl, DATABASE_URL: databaseUrl, AMBIT_KEYS_DIR: keysFolder } = config;
  if (natsUrl !== undefined) {
    if (keeping !== undefined) {
      const changed = await registerAccounts(keeping, { natsUrl, nowSeconds });
      say(changed.length === 0 ? 'accounts: as the contracts say' : `accounts: renewed ${changed.join(', ')}`);
    }
    const credentials = config.NATS_CREDS ?? (keysFolder === undefined ? undefined : join(keysFolder, keyFiles.serviceCredentials('init')));
    const connection = await connectBus({ url: natsUrl, name: 'ambit init', credentials });
    try {
      if (isRestored && databaseUrl !== undefined) {
        await migrate(databaseUrl, migrationsFolder());
        for (const line of await afterRestore(connection, databaseUrl)) say(line);
      }
      const declarations = [...Object.values(streams), ...Object.values(buckets), ...Object.values(objectStores)];
      await ensureStreams(connection, declarations, { replicas: config.AMBIT_STREAM_REPLICAS });
      say(
        `streams and buckets: ${declarations.length}, ${config.AMBIT_STREAM_REPLICAS === 1 ? 'one copy' : `${config.AMBIT_STREAM_REPLICAS} copies`} each`,
      );
    } finally {
      await connection.close();
    }
  }
  if (databaseUrl !== undefined) {
    const applied = await migrate(databaseUrl, migrationsFolder());
    say(applied.length === 0 ? 'schemas: up to date' : `schemas: applied ${applied.join(', ')}`);
  }
}

try {
  const config = readConfig(process.env);
  const [command, ...rest] = process.argv.slice(2);
  const isRestored = command === '--after-restore';
  if ((command !== undefined && command !== 'keys' && !isRestored) || rest.length > 0)
    throw new Error('usage: init [keys | --after-restore]');
  if (isRestored && (config.NATS_URL === undefined || config.DATABASE_URL === undefined))
    throw new Error('init --after-restore compares the restored database with NATS: set DATABASE_URL and NATS_URL');
  const nowSeconds = Math.floor(Date.now() / 1_000);
  const keeping = await identities(config, nowSeconds);
  if (command !== 'keys') await servers(config, { keeping, nowSeconds, isRestored });
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
