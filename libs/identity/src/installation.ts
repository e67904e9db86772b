import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Contract } from '@ambit/contracts';
import type { KeyPair } from '@nats-io/nkeys';
import { issuedAfter, readAccount } from './account-registry.js';
import { ACCOUNT, servicesAccount, systemAccount, workersAccount } from './accounts.js';
import type { AccountBody, ClaimsBody, Permissions, UserBody } from './claims.js';
import { credentialsFile, readClaims, readCredentialsFile, signClaims } from './jwt.js';
import { keyFiles, makeUserKey, openInstallationKeys, readOrMakeSecret, writeSecret, type InstallationKeys } from './key-folder.js';
import { serverConfig } from './server-config.js';

// A server keeps the account JWT that was issued later. What its configuration preloads must never win over one that was
// pushed, which may hold revocations: so it is always as old as can be.
const PRELOAD_ISSUED_AT = 1;

const SECRET_BYTES = 32;

export interface InstallationOptions {
  readonly folder: string;
  readonly contracts: readonly Contract[];
  /** Users of the services' account, by name, and what each may do. */
  readonly users: ReadonlyMap<string, Permissions>;
  /** Where nats-server will keep account JWTs, as it sees that path. */
  readonly resolverFolder: string;
  readonly nowSeconds: number;
}

export interface Installation {
  readonly keys: InstallationKeys;
  /** Lines for nats-server's configuration; also written to the folder. */
  readonly serverConfig: string;
  /** Account JWTs as the contracts want them, by public key, without the revocations that only the servers know. */
  readonly accounts: InstallationAccounts;
}

/** Account JWTs' names and claims, by public key. */
export type InstallationAccounts = ReadonlyMap<string, { readonly name: string; readonly body: AccountBody }>;

/** The public keys of an installation's accounts, as its `accounts.json` holds them. */
export interface AccountKeys {
  readonly system: string;
  readonly services: string;
  readonly workers: string;
  readonly workersSigning: string;
}

/** What the accounts of an installation may do, as the contracts want it. */
export function installationAccounts(contracts: readonly Contract[], keys: AccountKeys): InstallationAccounts {
  return new Map([
    [keys.system, { name: ACCOUNT.system, body: systemAccount() }],
    [keys.services, { name: ACCOUNT.services, body: servicesAccount(contracts, keys.workers) }],
    [
      keys.workers,
      { name: ACCOUNT.workers, body: workersAccount(contracts, { servicesAccountKey: keys.services, signingKey: keys.workersSigning }) },
    ],
  ]);
}

/** Makes what is missing of an installation's keys, accounts and credentials in `folder`, and renews what the contracts changed. */
export async function prepareInstallation(options: InstallationOptions): Promise<Installation> {
  const { folder, contracts, nowSeconds } = options;
  const keys = await openInstallationKeys(folder);
  const publicKeys = {
    system: keys.system.getPublicKey(),
    services: keys.services.getPublicKey(),
    workers: keys.workers.getPublicKey(),
    workersSigning: keys.workersSigning.getPublicKey(),
  };
  const accounts = installationAccounts(contracts, publicKeys);
  const operatorJwt = signClaims(
    {
      name: 'ambit',
      subject: keys.operator.getPublicKey(),
      body: { type: 'operator', signing_keys: [keys.operatorSigning.getPublicKey()], system_account: publicKeys.system },
      issuedAt: PRELOAD_ISSUED_AT,
    },
    keys.operator,
  );
  const preload = Object.fromEntries(
    [...accounts].map(([key, account]) => [key, signAccount({ key, ...account, issuedAt: PRELOAD_ISSUED_AT }, keys.operatorSigning)]),
  );
  const config = serverConfig({
    operatorJwt,
    systemAccountKey: publicKeys.system,
    accounts: preload,
    resolverFolder: options.resolverFolder,
  });

  await writeSecret(join(folder, keyFiles.accounts), `${JSON.stringify(publicKeys, null, 2)}\n`);
  await writeSecret(join(folder, keyFiles.serverConfig), config);
  for (const [service, permissions] of options.users) {
    await keepCredentials(
      join(folder, keyFiles.serviceCredentials(service)),
      { name: service, permissions, issuedAt: nowSeconds },
      keys.services,
    );
  }
  await readOrMakeSecret(join(folder, keyFiles.sealingKey), SECRET_BYTES);
  await readOrMakeSecret(join(folder, keyFiles.edgeKey), SECRET_BYTES);
  await readOrMakeSecret(join(folder, keyFiles.bootstrapToken), SECRET_BYTES);
  const administrator: Permissions = {
    pub: { allow: ['$SYS.REQ.CLAIMS.UPDATE', '$SYS.REQ.ACCOUNT.*.CLAIMS.LOOKUP'] },
    sub: { allow: ['_INBOX.>'] },
  };
  await keepCredentials(
    join(folder, keyFiles.systemCredentials),
    { name: 'ambit-administrator', permissions: administrator, issuedAt: nowSeconds },
    keys.system,
  );
  return { keys, serverConfig: config, accounts };
}

/** Signs an account's claims with the operator's signing key. */
export function signAccount(
  account: { readonly key: string; readonly name: string; readonly body: AccountBody; readonly issuedAt: number },
  operatorSigning: KeyPair,
): string {
  return signClaims({ name: account.name, subject: account.key, body: account.body, issuedAt: account.issuedAt }, operatorSigning);
}

/** The JWT to push where the servers hold `current`: the wanted claims with the revocations of the current ones. `undefined`: nothing to do. */
export function renewedAccount(
  wanted: { readonly key: string; readonly name: string; readonly body: AccountBody },
  current: string | undefined,
  signing: { readonly operatorSigning: KeyPair; readonly nowSeconds: number },
): string | undefined {
  const held = current === undefined ? undefined : readAccount(current).nats;
  const body: AccountBody = held?.revocations === undefined ? wanted.body : { ...wanted.body, revocations: held.revocations };
  if (held !== undefined && isSame(held, body)) return undefined;
  return signAccount({ ...wanted, body, issuedAt: issuedAfter(current, signing.nowSeconds) }, signing.operatorSigning);
}

export interface UserSigning {
  readonly name: string;
  readonly userKey: string;
  readonly permissions: Permissions;
  /** The account's public key, when `signer` is a signing key of it. */
  readonly account?: string;
  readonly issuedAt: number;
  readonly expiresAt?: number;
}

/** Signs a user's claims with its account's key or signing key. Times are seconds since 1970. */
export function signUser(user: UserSigning, signer: KeyPair): string {
  const body: UserBody = userBody(user.permissions, user.account);
  return signClaims(
    {
      name: user.name,
      subject: user.userKey,
      body,
      issuedAt: user.issuedAt,
      ...(user.expiresAt === undefined ? {} : { expiresAt: user.expiresAt }),
    },
    signer,
  );
}

function userBody(permissions: Permissions, account: string | undefined): UserBody {
  return { type: 'user', ...permissions, subs: -1, data: -1, payload: -1, ...(account === undefined ? {} : { issuer_account: account }) };
}

/** Keeps a credentials file whose permissions are still the wanted ones; else signs anew for the same key. */
async function keepCredentials(
  file: string,
  user: { readonly name: string; readonly permissions: Permissions; readonly issuedAt: number },
  account: KeyPair,
): Promise<void> {
  const text = await readFile(file, 'utf8').catch(() => undefined);
  const held = text === undefined ? undefined : readCredentialsFile(text);
  const claims = held === undefined ? undefined : readClaims<UserBody>(held.jwt, 'user');
  const isCurrent = claims?.iss === account.getPublicKey() && isSame(claims.nats, userBody(user.permissions, undefined));
  if (isCurrent) return;
  const userKey = held?.userKey ?? makeUserKey();
  await writeSecret(file, credentialsFile(signUser({ ...user, userKey: userKey.getPublicKey() }, account), userKey));
}

/** Whether claims read from a JWT say what `wanted` says; both as JSON, which knows no `undefined`. */
function isSame(held: ClaimsBody & { readonly version: number }, wanted: ClaimsBody): boolean {
  return isDeepStrictEqual(asJson(held), asJson({ ...wanted, version: held.version }));
}

function asJson(value: object): unknown {
  return JSON.parse(JSON.stringify(value));
}
