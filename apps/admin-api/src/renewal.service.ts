import type { Call } from '@ambit/bus';
import { adminApi, fault, type Parsed, type Returns } from '@ambit/contracts';
import { fromPublic } from '@nats-io/nkeys';
import { Injectable } from '@nestjs/common';
import { CREDENTIAL_MS, WorkerCredentials } from './worker-credentials.js';
import { WorkerRepository } from './worker.repository.js';

/** Renews a worker's JWT for the key that it proves to hold. */
@Injectable()
export class RenewalService {
  constructor(
    private readonly credentials: WorkerCredentials,
    private readonly workers: WorkerRepository,
  ) {}

  async renew(
    input: Parsed<typeof adminApi.renewCredential>,
    call: Call<typeof adminApi.renewCredential>,
  ): Promise<Returns<typeof adminApi.renewCredential>> {
    const now = call.startedAt;
    const credential = await this.workers.find({ publicKey: input.publicKey });
    // One answer for a foreign, a revoked and an unproven key: nothing is told of other agents' workers.
    if (
      credential === undefined ||
      credential.agentId !== call.keys.agentId ||
      credential.revokedAt !== null ||
      !isProven(input) ||
      !this.credentials.isOn
    )
      throw fault(adminApi.renewCredential, 'CREDENTIAL_UNKNOWN');
    const jwt = await this.credentials.sign(
      { agentId: credential.agentId, credentialName: credential.name, pools: credential.pools },
      credential.publicKey,
      now,
    );
    const expiresAt = new Date(now.getTime() + CREDENTIAL_MS);
    await this.workers.renewed(credential.id, expiresAt);
    return { jwt, expiresAt: expiresAt.toISOString() };
  }
}

/** The worker's clock is not compared with ours: a JWT is worth nothing without the key, so an old proof opens nothing either. */
function isProven({ publicKey, proof, at }: Parsed<typeof adminApi.renewCredential>): boolean {
  try {
    return fromPublic(publicKey).verify(Buffer.from(`${publicKey}.${at}`), Buffer.from(proof, 'base64url'));
  } catch {
    return false;
  }
}
