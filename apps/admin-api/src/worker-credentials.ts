import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  adminApi,
  mcpBroker,
  mcpRunner,
  pluginRegistry,
  sessionService,
  skillStore,
  toolGateway,
  worker,
  type Contract,
} from '@ambit/contracts';
import {
  credentialsFile,
  issuedAfter,
  lookUpAccount,
  makeUserKey,
  pushAccount,
  readAccount,
  readKey,
  signAccount,
  signUser,
  withRevocations,
  workerPermissions,
  type WorkerIdentity,
} from '@ambit/identity';
import { CONFIG, ServiceConfig } from '@ambit/service';
import { connect, credsAuthenticator } from '@nats-io/transport-node';
import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';
import type { AdminApiConfig } from './config.js';

/** A worker's JWT lives an hour; it renews it for its own key. */
export const CREDENTIAL_MS = 3_600_000;
const Accounts = z.object({ workers: z.string() });
const contracts: readonly Contract[] = [
  adminApi,
  mcpBroker,
  mcpRunner,
  pluginRegistry,
  sessionService,
  skillStore,
  toolGateway,
  worker,
].flatMap((one): Contract[] => Object.values(one));

/** Signs, renews and revokes the NATS users of workers, with the keys that this service alone holds. */
@Injectable()
export class WorkerCredentials {
  constructor(@Inject(CONFIG) private readonly config: AdminApiConfig) {}

  get isOn(): boolean {
    return this.config.AMBIT_ADMIN_KEYS_DIR !== undefined;
  }

  /** A new key, its JWT and the file for the worker. The seed is in the file alone. */
  async make(identity: WorkerIdentity, now: Date): Promise<{ readonly publicKey: string; readonly file: string }> {
    const key = makeUserKey();
    const jwt = await this.sign(identity, key.getPublicKey(), now);
    return { publicKey: key.getPublicKey(), file: credentialsFile(jwt, key) };
  }

  async sign(identity: WorkerIdentity, publicKey: string, now: Date): Promise<string> {
    const issuedAt = Math.floor(now.getTime() / 1_000);
    const signer = await readKey(join(this.folder, 'workers-signing.seed'));
    return signUser(
      {
        name: `${identity.agentId}/${identity.credentialName}`,
        userKey: publicKey,
        permissions: workerPermissions(contracts, identity),
        account: await this.workersAccount(),
        issuedAt,
        expiresAt: issuedAt + CREDENTIAL_MS / 1_000,
      },
      signer,
    );
  }

  /** Refuses keys from now on; answers once a server has stored that. */
  async revoke(publicKeys: readonly string[], now: Date): Promise<void> {
    if (publicKeys.length === 0) return;
    const account = await this.workersAccount();
    const system = await connect({
      servers: ServiceConfig.shape.NATS_URL.parse(process.env['NATS_URL']),
      authenticator: credsAuthenticator(await readFile(join(this.folder, 'system.creds'))),
      name: 'admin-api: worker credentials',
    });
    try {
      const current = await lookUpAccount(system, account);
      if (current === undefined) throw new Error('the NATS servers do not know the workers’ account; run ambit init');
      const nowSeconds = Math.floor(now.getTime() / 1_000);
      const claims = readAccount(current);
      const unknown = publicKeys.filter((key) => claims.nats.revocations?.[key] === undefined);
      if (unknown.length === 0) return;
      const body = withRevocations(claims.nats, unknown, nowSeconds);
      await pushAccount(
        system,
        signAccount(
          { key: account, name: claims.name, body, issuedAt: issuedAfter(current, nowSeconds) },
          await readKey(join(this.folder, 'operator-signing.seed')),
        ),
      );
    } finally {
      await system.close();
    }
  }

  private get folder(): string {
    const folder = this.config.AMBIT_ADMIN_KEYS_DIR;
    if (folder === undefined) throw new Error('AMBIT_ADMIN_KEYS_DIR is not set');
    return folder;
  }

  /** Public keys of the accounts stand beside the secret ones, or one folder above, as `ambit init` writes them. */
  private async workersAccount(): Promise<string> {
    const beside = join(this.folder, 'accounts.json');
    const path = existsSync(beside) ? beside : join(dirname(this.folder), 'accounts.json');
    return Accounts.parse(JSON.parse(await readFile(path, 'utf8'))).workers;
  }
}
