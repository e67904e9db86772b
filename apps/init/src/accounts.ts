import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { keyFiles, lookUpAccount, pushAccount, renewedAccount, type Installation } from '@ambit/identity';
import { connect, credsAuthenticator } from '@nats-io/transport-node';

/** Brings the servers' account JWTs to what the contracts say, keeping revocations; gives the names of those that changed. */
export async function registerAccounts(
  installation: Installation,
  at: { readonly natsUrl: string; readonly keysFolder: string; readonly nowSeconds: number },
): Promise<readonly string[]> {
  const credentials = await readFile(join(at.keysFolder, keyFiles.systemCredentials));
  const connection = await connect({ servers: at.natsUrl.split(','), name: 'ambit init', authenticator: credsAuthenticator(credentials) });
  try {
    const changed: string[] = [];
    for (const [key, account] of installation.accounts) {
      const jwt = renewedAccount({ key, ...account }, await lookUpAccount(connection, key), {
        operatorSigning: installation.keys.operatorSigning,
        nowSeconds: at.nowSeconds,
      });
      if (jwt === undefined) continue;
      await pushAccount(connection, jwt);
      changed.push(account.name);
    }
    return changed;
  } finally {
    await connection.close();
  }
}
