import { Bus, type Call } from '@ambit/bus';
import { fault, sessionService, skillStore, type Agent } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';

/** Asks the owner of agents about them. */
@Injectable()
export class AgentDirectory {
  constructor(private readonly bus: Bus) {}

  /** Throws AGENT_UNKNOWN where there is no such agent. */
  get(id: string, call: Call): Promise<Agent> {
    return this.bus.call(sessionService.getAgent, { id }, { within: call });
  }

  /** An agent that can have skills of its own: one that is a program of others' making has none. */
  async holder(id: string, call: Call): Promise<Agent> {
    const agent = await this.get(id, call);
    if (agent.kind === 'acp') throw fault(skillStore.previewImport, 'IMPORT_TARGET', { agentId: id });
    return agent;
  }
}
