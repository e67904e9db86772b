import { mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { services } from '@ambit/contracts';
import { keyFiles, writeSecret } from '@ambit/identity';

/** A process's file in its own folder, and where it lies among the keys. */
interface Handed {
  readonly from: string;
  readonly to: string;
}

/** What renewing the servers' account JWTs needs. */
const keepsAccounts: readonly Handed[] = [
  { from: keyFiles.operatorSigning, to: 'admin/operator-signing.seed' },
  { from: keyFiles.systemCredentials, to: 'admin/system.creds' },
  { from: keyFiles.accounts, to: 'admin/accounts.json' },
];

/** Files that a process needs beside its NATS credentials. */
const more: Readonly<Record<string, readonly Handed[]>> = {
  'mcp-broker': [{ from: keyFiles.sealingKey, to: 'sealing-key' }],
  'admin-api': [{ from: keyFiles.workersSigning, to: 'admin/workers-signing.seed' }, ...keepsAccounts],
  init: keepsAccounts,
};

/** Lays out for every process what it may know: `<folder>/<process>/…`; `nats` gets its configuration lines and no key. Gives the names. */
export async function handOut(keysFolder: string, folder: string): Promise<readonly string[]> {
  const names = [...Object.keys(services), 'init'];
  for (const name of names) {
    const files: readonly Handed[] = [{ from: keyFiles.serviceCredentials(name), to: 'nats.creds' }, ...(more[name] ?? [])];
    for (const { from, to } of files) {
      const target = join(folder, name, to);
      await mkdir(dirname(target), { recursive: true });
      await writeSecret(target, await readFile(join(keysFolder, from), 'utf8'));
    }
  }
  const token = (await readFile(join(keysFolder, keyFiles.bootstrapToken), 'utf8')).trim();
  await writeSecret(join(folder, 'admin-api', 'service.env'), `AMBIT_BOOTSTRAP_TOKEN=${token}\n`);
  const edgeKey = (await readFile(join(keysFolder, keyFiles.edgeKey), 'utf8')).trim();
  await writeSecret(join(folder, 'mcp-edge', 'service.env'), `AMBIT_EDGE_KEY=${edgeKey}\n`);
  await writeSecret(join(folder, 'nats', keyFiles.serverConfig), await readFile(join(keysFolder, keyFiles.serverConfig), 'utf8'));
  return [...names, 'nats'];
}
