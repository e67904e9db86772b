import type { Switch, SwitchName } from '@ambit/contracts';
import { appendAudit, DB, type BrokerDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import type { z } from 'zod';
import { tell, type Audit, type Moved } from './server.repository.js';

type Named = z.output<typeof SwitchName>;

/** How features are switched; what was never switched stands as the configuration says. */
@Injectable()
export class SwitchRepository {
  constructor(@Inject(DB) private readonly db: BrokerDb) {}

  async read(name: Named): Promise<boolean | undefined> {
    return (await this.db.brokerSwitch.findUnique({ where: { name } }))?.enabled;
  }

  /** Every catalogue is another one after that, so the version of what people own moves. */
  put({ name, enabled }: z.output<typeof Switch>, at: Date, audit: Audit): Promise<Moved> {
    return this.db.$transaction(async (transaction) => {
      await transaction.brokerSwitch.upsert({ where: { name }, create: { name, enabled }, update: { enabled } });
      const moved = await tell(transaction, { rows: [], at, owner: 'user' });
      await appendAudit(transaction, 'mcp-broker', { ...audit, at: at.toISOString() });
      return moved;
    });
  }
}
