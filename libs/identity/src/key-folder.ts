import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createAccount, createOperator, createUser, fromSeed, type KeyPair } from '@nats-io/nkeys';

/** The secret keys of an installation. Each may sign only what its name says. */
export interface InstallationKeys {
  /** Root of trust; signs the operator's own JWT and nothing else. */
  readonly operator: KeyPair;
  /** Signs account JWTs; admin-api holds it to revoke worker credentials. */
  readonly operatorSigning: KeyPair;
  readonly system: KeyPair;
  /** Signs the users of services. */
  readonly services: KeyPair;
  readonly workers: KeyPair;
  /** Signs worker users; admin-api holds it. */
  readonly workersSigning: KeyPair;
}

/** Where each part of an installation's identities lies below its key folder. */
export const keyFiles = {
  operator: 'operator.seed',
  operatorSigning: join('admin', 'operator-signing.seed'),
  system: 'system.seed',
  services: 'services.seed',
  workers: 'workers.seed',
  workersSigning: join('admin', 'workers-signing.seed'),
  /** Credentials of a user of the system account; admin-api reads and replaces account JWTs with it. */
  systemCredentials: join('admin', 'system.creds'),
  /** Public keys: `{system, services, workers, workersSigning}`. */
  accounts: 'accounts.json',
  /** Seals the secrets that mcp-broker stores: 32 bytes, hexadecimal. */
  sealingKey: 'sealing-key',
  /** Seals what MCP clients carry for mcp-edge, the same for each of its replicas: 32 bytes, hexadecimal. */
  edgeKey: 'edge-key',
  /** The first token of the HTTP API. */
  bootstrapToken: 'bootstrap-token',
  serviceCredentials: (service: string) => join('creds', `${service}.creds`),
  /** Lines for nats-server's configuration. */
  serverConfig: 'nats-auth.conf',
} as const;

/** Reads the keys of an installation, making those that are not there. */
export async function openInstallationKeys(folder: string): Promise<InstallationKeys> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const key = (file: string, make: () => KeyPair): Promise<KeyPair> => readOrMakeKey(join(folder, file), make);
  return {
    operator: await key(keyFiles.operator, createOperator),
    operatorSigning: await key(keyFiles.operatorSigning, createOperator),
    system: await key(keyFiles.system, createAccount),
    services: await key(keyFiles.services, createAccount),
    workers: await key(keyFiles.workers, createAccount),
    workersSigning: await key(keyFiles.workersSigning, createAccount),
  };
}

/** Reads a key's seed file; throws an Error that names the file when it holds no seed. */
export async function readKey(file: string): Promise<KeyPair> {
  const seed = (await readFile(file, 'utf8')).trim();
  try {
    return fromSeed(Buffer.from(seed));
  } catch (error) {
    throw new Error(`${file} holds no NATS seed`, { cause: error });
  }
}

/** A new key for one user. */
export function makeUserKey(): KeyPair {
  return createUser();
}

async function readOrMakeKey(file: string, make: () => KeyPair): Promise<KeyPair> {
  const isThere = await readFile(file).then(
    () => true,
    () => false,
  );
  if (isThere) return readKey(file);
  const key = make();
  await writeSecret(file, Buffer.from(key.getSeed()).toString('utf8'));
  return key;
}

/** A secret of random bytes in hexadecimal, made once. */
export async function readOrMakeSecret(file: string, bytes: number): Promise<string> {
  const held = await readFile(file, 'utf8').catch(() => undefined);
  if (held !== undefined) return held.trim();
  const made = randomBytes(bytes).toString('hex');
  await writeSecret(file, `${made}\n`);
  return made;
}

/** Writes a file that only its owner can read, whole or not at all. */
export async function writeSecret(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const half = `${file}.new`;
  await writeFile(half, text, { mode: 0o600 });
  await chmod(half, 0o600);
  await rename(half, file);
}
