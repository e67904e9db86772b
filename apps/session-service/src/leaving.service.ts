import { Bus, type Call } from '@ambit/bus';
import { skillStore } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { leavings, type Leaving } from './leaving.repository.js';
import { Transactions } from './transactions.repository.js';

/** A request that made it sees to it first; after that the sweeper does. */
const YOUNG_MS = 3_000;

/** Removes what a deleted agent has elsewhere. The debt is written down with the deletion, and its id is nobody's until it is paid. */
@Injectable()
export class LeavingService {
  constructor(
    private readonly bus: Bus,
    private readonly transactions: Transactions,
  ) {}

  /** What is still owed and no request sees to any more, oldest first. */
  owed(now: Date): Promise<Leaving[]> {
    return leavings.open(this.transactions.read, new Date(now.getTime() - YOUNG_MS));
  }

  /** May be done again. */
  async attend({ id, createdAt }: Leaving, within?: Call): Promise<void> {
    const sending = within === undefined ? {} : { within };
    await this.bus.call(skillStore.removeScope, { agentId: id, createdAt: createdAt.toISOString() }, sending);
    await leavings.done(this.transactions.read, { id, createdAt });
  }
}
