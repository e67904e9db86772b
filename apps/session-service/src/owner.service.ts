import type { Call } from '@ambit/bus';
import type { Parsed, sessionService } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { doerOf } from './doer.js';
import { InteractionService } from './interaction.service.js';
import { Narrowing } from './narrowing.service.js';
import { ownerFences } from './owner.repository.js';
import { runs } from './run.repository.js';
import { Transactions } from './transactions.repository.js';

/** Takes owners away from the runs that depend on them. */
@Injectable()
export class OwnerService {
  constructor(
    private readonly transactions: Transactions,
    private readonly narrowing: Narrowing,
    private readonly interactions: InteractionService,
  ) {}

  /** The fence is kept first: a run whose authority is asked for from here on has the owner among the revoked. Then every run that was asked before is moved. */
  async revoke({ owner, service, fence }: Parsed<typeof sessionService.revokeOwner>, call: Call): Promise<{ runs: number }> {
    await this.transactions.run(async (unit) => {
      await ownerFences.raise(unit.sql, { owner, service, fence }, unit.now);
      unit.audit({ action: 'owner.revoke', target: `owner:${owner}`, projectId: null, reason: `${service} fence ${fence}` }, doerOf(call));
    });
    const live = await runs.openOfOwner(this.transactions.read, owner);
    const moved = await this.narrowing.moveEach(live, `${owner} was taken away`);
    await this.interactions.withdrawOwner(owner);
    return { runs: moved };
  }
}
