import { Bus, type Call } from '@ambit/bus';
import { fault, skillStore, type Agent, type sessionService } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';

/** Any contract that takes a choice of skills. */
type Choosing =
  | typeof sessionService.createSession
  | typeof sessionService.updateSession
  | typeof sessionService.createDraft
  | typeof sessionService.receiveMessage;

/** Holds a choice of skills against what the agent has now: a name that is wrong is refused when it is chosen, and only then. */
@Injectable()
export class SkillChoice {
  constructor(private readonly bus: Bus) {}

  async refuseUnknown(
    contract: Choosing,
    { agent, skills }: { readonly agent: Pick<Agent, 'id' | 'policy'>; readonly skills: readonly string[] | null | undefined },
    call: Call,
  ): Promise<void> {
    if (skills === undefined || skills === null || skills.length === 0) return;
    const { plugins } = agent.policy;
    const { skills: effective } = await this.bus.call(skillStore.effectiveSkills, { agentId: agent.id, plugins }, { within: call });
    const names = skills.filter((name) => !effective.some((skill) => skill.name === name));
    if (names.length > 0) throw fault(contract, 'SKILL_UNKNOWN', { names });
  }
}
