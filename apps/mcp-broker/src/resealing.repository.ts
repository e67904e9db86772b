import { DB, type BrokerDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import { sealName } from './authorization/sealed.js';
import { Sealer, type Sealed } from './sealer.js';
import { nameOf } from './secret.resolver.js';

const AT_ONCE = 100;

/** Seals anew what an older key sealed. A row that changes meanwhile was sealed by whoever changed it. */
@Injectable()
export class ResealingRepository {
  constructor(
    @Inject(DB) private readonly db: BrokerDb,
    @Inject(Sealer) private readonly sealer: Sealer,
  ) {}

  /** Gives how many envelopes it made; goes on until none is left that this process could open. */
  async reseal(): Promise<number> {
    const { keyId } = this.sealer;
    if (keyId === undefined) return 0;
    const old = { in: this.sealer.oldKeyIds };
    let made = 0;
    for (let before = -1; made > before;) {
      before = made;
      for (const { projectId, name, sealed, keyId: by } of await this.db.brokerSecret.findMany({ where: { keyId: old }, take: AT_ONCE }))
        if (sealed !== null)
          made += await this.put(nameOf(projectId, name), { sealed, keyId: by }, (data) =>
            this.db.brokerSecret.updateMany({ where: { projectId, name, keyId: by }, data }),
          );
      for (const { serverId, subject, sealed, keyId: by, version } of await this.db.brokerCredential.findMany({
        where: { keyId: old },
        take: AT_ONCE,
      }))
        if (sealed !== null)
          made += await this.put(sealName.token(serverId, subject), { sealed, keyId: by }, (data) =>
            this.db.brokerCredential.updateMany({ where: { serverId, subject, version, keyId: by }, data }),
          );
      for (const { serverId, issuer, redirect, sealed, keyId: by } of await this.db.brokerClient.findMany({
        where: { keyId: old },
        take: AT_ONCE,
      }))
        made += await this.put(sealName.client(serverId, issuer), { sealed, keyId: by }, (data) =>
          this.db.brokerClient.updateMany({ where: { serverId, issuer, redirect, keyId: by }, data }),
        );
    }
    return made;
  }

  private async put(
    name: string,
    envelope: { readonly sealed: Uint8Array; readonly keyId: string | null },
    update: (data: Sealed) => Promise<{ readonly count: number }>,
  ): Promise<number> {
    return (await update(this.sealer.close(this.sealer.open(envelope, name), name))).count;
  }
}
