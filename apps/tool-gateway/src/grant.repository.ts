import type { Principal } from '@ambit/contracts';
import { DB, type GatewayDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';

export interface StoredGrant {
  readonly operationId: string;
  readonly interactionId: string;
  readonly targetHash: string;
  readonly argumentsHash: string;
  readonly policyVersion: number;
  readonly decidedBy: Principal;
  readonly decidedAt: Date;
  readonly expiresAt: Date;
}

/** Approvals as they arrived: a second delivery finds the first one's row. */
@Injectable()
export class GrantRepository {
  constructor(@Inject(DB) private readonly db: GatewayDb) {}

  /** Keeps the first grant of an operation. */
  async put(grant: StoredGrant): Promise<void> {
    await this.db.gatewayGrant.createMany({ data: [{ ...grant, decidedBy: { ...grant.decidedBy } }], skipDuplicates: true });
  }

  async settled(operationId: string, status: string, at: Date): Promise<void> {
    await this.db.gatewayGrant.updateMany({ where: { operationId, settledAt: null }, data: { settledAt: at, result: status } });
  }
}
