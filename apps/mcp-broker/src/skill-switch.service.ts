import type { Call } from '@ambit/bus';
import type { mcpBroker, Parsed, Returns } from '@ambit/contracts';
import { CONFIG } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { auditOf } from './audit.js';
import type { BrokerConfig } from './config.js';
import { Epochs } from './epochs.js';
import { SkillDiscovery } from './skill-discovery.service.js';
import type { SkillModule } from './skills/entry.js';
import { SwitchRepository } from './switch.repository.js';

const NAME = 'mcp-skills';

/** Whether skills of servers are switched on. Their code is loaded when they are, and never before. */
@Injectable()
export class SkillSwitch implements OnApplicationBootstrap {
  constructor(
    @Inject(SwitchRepository) private readonly switches: SwitchRepository,
    @Inject(SkillDiscovery) private readonly discovery: SkillDiscovery,
    @Inject(Epochs) private readonly epochs: Epochs,
    @Inject(CONFIG) private readonly config: BrokerConfig,
  ) {}

  /** A part of it that is missing ends the start. */
  async onApplicationBootstrap(): Promise<void> {
    this.discovery.useSwitch(() => this.module());
    if (await this.isOn()) await load();
  }

  /** Other replicas may switch it, so it is read each time. */
  async isOn(): Promise<boolean> {
    return (await this.switches.read(NAME)) ?? this.config.FEATURE_MCP_SKILLS === '1';
  }

  /** The code of skills; undefined while they are switched off. */
  async module(): Promise<SkillModule | undefined> {
    return (await this.isOn()) ? load() : undefined;
  }

  async put(input: Parsed<typeof mcpBroker.putSwitch>, call: Call): Promise<Returns<typeof mcpBroker.putSwitch>> {
    if (input.enabled === (await this.isOn())) return input;
    if (input.enabled) await load();
    const action = input.enabled ? 'switch.on' : 'switch.off';
    const moved = await this.switches.put(input, new Date(), auditOf(call, { action, target: `switch:${input.name}`, projectId: null }));
    if (input.enabled) await this.discovery.all();
    else await this.discovery.forgetAll();
    await this.epochs.publish(moved);
    return input;
  }

  async list(): Promise<Returns<typeof mcpBroker.listSwitches>> {
    return { items: [{ name: NAME, enabled: await this.isOn() }] };
  }
}

async function load(): Promise<SkillModule> {
  const { skillModule } = await import('./skills/entry.js');
  return skillModule();
}
