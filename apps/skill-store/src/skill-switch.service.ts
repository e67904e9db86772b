import type { Parsed, Returns, skillStore } from '@ambit/contracts';
import { DB, type SkillDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import { EVERYBODY, tellChange } from './change.repository.js';
import type { Context } from './skill.change.js';

const NAME = 'skills';

/** Whether there are skills at run time at all. They are managed, mirrored and imported all the same. */
@Injectable()
export class SkillSwitch {
  constructor(@Inject(DB) private readonly db: SkillDb) {}

  /** Other replicas may switch it, so it is read each time. */
  async isOn(): Promise<boolean> {
    return (await this.db.skillSwitch.findUnique({ where: { name: NAME } }))?.enabled ?? true;
  }

  /** Everybody's catalogue is another one after that: the version that all have a part in moves. */
  async put(
    { enabled }: Parsed<typeof skillStore.putSwitch>,
    { principal, actor, via, traceId, startedAt }: Context,
  ): Promise<Returns<typeof skillStore.putSwitch>> {
    if (enabled !== (await this.isOn()))
      await this.db.$transaction(async (transaction) => {
        await transaction.skillSwitch.upsert({ where: { name: NAME }, create: { name: NAME, enabled }, update: { enabled } });
        await tellChange(transaction, {
          at: startedAt,
          owner: 'builtin',
          agentId: EVERYBODY,
          reason: enabled ? 'enabled' : 'disabled',
          names: [],
          audit: {
            ...{ actor: actor ?? null, principal: principal ?? null, via: via ?? null, projectId: null, traceId, retention: 'audit' },
            ...{ action: enabled ? 'switch.on' : 'switch.off', target: `switch:${NAME}`, rule: null, reason: null },
            ...{ beforeDigest: null, afterDigest: null },
          },
        });
      });
    return { name: NAME, enabled };
  }

  async list(): Promise<Returns<typeof skillStore.listSwitches>> {
    return { items: [{ name: NAME, enabled: await this.isOn() }] };
  }
}
