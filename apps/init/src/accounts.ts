import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  allContracts,
  installationAccounts,
  keyFiles,
  lookUpAccount,
  pushAccount,
  readKey,
  renewedAccount,
  type InstallationAccounts,
} from '@ambit/identity';
import { connect, credsAuthenticator } from '@nats-io/transport-node';
import { z } from 'zod';

const Key = z.string().min(1);
const AccountKeys = z.object({ system: Key, services: Key, workers: Key, workersSigning: Key });

/** What it takes to bring the servers' account JWTs to what the contracts say. */
export interface AccountKeeping {
  readonly accounts: InstallationAccounts;
  /** Seed file of the key that signs accounts. */
  readonly operatorSigning: string;
  /** Credentials file of a user of the system account. */
  readonly systemCredentials: string;
}

/** Reads it from a folder of all keys. */
export function keepingFromKeys(folder: string, accounts: InstallationAccounts): AccountKeeping {
  return {
    accounts,
    operatorSigning: join(folder, keyFiles.operatorSigning),
    systemCredentials: join(folder, keyFiles.systemCredentials),
  };
}

/** Reads it from a folder with that alone, as it is handed out: no root key, none of an account. Public keys may stand one folder above. */
export async function keepingFromHandout(folder: string): Promise<AccountKeeping> {
  const read = (at: string): Promise<string> => readFile(join(at, keyFiles.accounts), 'utf8');
  const keys = AccountKeys.parse(JSON.parse(await read(folder).catch(() => read(dirname(folder)))));
  return {
    accounts: installationAccounts(allContracts(), keys),
    operatorSigning: join(folder, 'operator-signing.seed'),
    systemCredentials: join(folder, 'system.creds'),
  };
}

/** Brings the servers' account JWTs to what the contracts say, keeping revocations; gives the names of those that changed. */
export async function registerAccounts(
  keeping: AccountKeeping,
  at: { readonly natsUrl: string; readonly nowSeconds: number },
): Promise<readonly string[]> {
  const operatorSigning = await readKey(keeping.operatorSigning);
  const credentials = await readFile(keeping.systemCredentials);
  const connection = await connect({ servers: at.natsUrl.split(','), name: 'ambit init', authenticator: credsAuthenticator(credentials) });
  try {
    const changed: string[] = [];
    for (const [key, account] of keeping.accounts) {
      const jwt = renewedAccount({ key, ...account }, await lookUpAccount(connection, key), { operatorSigning, nowSeconds: at.nowSeconds });
      if (jwt === undefined) continue;
      await pushAccount(connection, jwt);
      changed.push(account.name);
    }
    return changed;
  } finally {
    await connection.close();
  }
}
