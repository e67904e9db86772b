import { join } from 'node:path';
import { allContracts, installationUsers, keyFiles, prepareInstallation, type Installation } from '@ambit/identity';
import type { Config } from './config.js';

/** Makes what is missing of keys, credentials and the servers' configuration lines. Needs no server. */
export async function makeKeys(config: Config & { readonly AMBIT_KEYS_DIR: string }, nowSeconds: number): Promise<Installation> {
  return prepareInstallation({
    folder: config.AMBIT_KEYS_DIR,
    contracts: allContracts(),
    users: installationUsers(),
    resolverFolder: config.AMBIT_RESOLVER_DIR,
    nowSeconds,
  });
}

export function whereKeysAre(folder: string): string {
  return `identities in ${folder}; nats-server includes ${join(folder, keyFiles.serverConfig)}`;
}
