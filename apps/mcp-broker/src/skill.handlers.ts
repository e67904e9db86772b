import { Answers, type Call } from '@ambit/bus';
import { mcpBroker, type Parsed } from '@ambit/contracts';
import { Controller, Inject } from '@nestjs/common';
import { ServerSkillService } from './server-skill.service.js';
import { SkillSwitch } from './skill-switch.service.js';

@Controller()
export class SkillHandlers {
  constructor(
    @Inject(ServerSkillService) private readonly skills: ServerSkillService,
    @Inject(SkillSwitch) private readonly switches: SkillSwitch,
  ) {}

  @Answers(mcpBroker.skillPage) page(input: Parsed<typeof mcpBroker.skillPage>) {
    return this.skills.page(input);
  }
  @Answers(mcpBroker.readServerSkill) read(input: Parsed<typeof mcpBroker.readServerSkill>, call: Call<typeof mcpBroker.readServerSkill>) {
    return this.skills.read(input, call);
  }
  @Answers(mcpBroker.putSwitch) put(input: Parsed<typeof mcpBroker.putSwitch>, call: Call) {
    return this.switches.put(input, call);
  }
  @Answers(mcpBroker.listSwitches) list() {
    return this.switches.list();
  }
}
