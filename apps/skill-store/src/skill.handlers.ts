import { Answers, type Call } from '@ambit/bus';
import { skillStore, type Parsed } from '@ambit/contracts';
import { Controller } from '@nestjs/common';
import { SkillBlobs } from './blobs.js';
import { ContentService } from './content.service.js';
import { ContributionService } from './contribution.service.js';
import { ScopeService } from './scope.service.js';
import { ScriptService } from './script.service.js';
import { SkillSwitch } from './skill-switch.service.js';
import { SkillService } from './skill.service.js';

const s = skillStore;

@Controller()
export class SkillHandlers {
  constructor(
    private readonly blobs: SkillBlobs,
    private readonly skills: SkillService,
    private readonly content: ContentService,
    private readonly contributions: ContributionService,
    private readonly scripts: ScriptService,
    private readonly master: SkillSwitch,
    private readonly scopes: ScopeService,
  ) {}

  @Answers(s.putBlob) putBlob(input: Parsed<typeof s.putBlob>) {
    return this.blobs.put(input);
  }
  @Answers(s.putSkill) put(input: Parsed<typeof s.putSkill>, call: Call<typeof s.putSkill>) {
    return this.skills.put(input, call);
  }
  @Answers(s.getSkill) get(input: Parsed<typeof s.getSkill>) {
    return this.skills.get(input.agentId, input.name);
  }
  @Answers(s.listSkills) list(input: Parsed<typeof s.listSkills>) {
    return this.skills.list(input);
  }
  @Answers(s.enableSkill) enable(input: Parsed<typeof s.enableSkill>, call: Call<typeof s.enableSkill>) {
    return this.skills.setEnabled(input.agentId, input.name, { enabled: true, context: call });
  }
  @Answers(s.disableSkill) disable(input: Parsed<typeof s.disableSkill>, call: Call<typeof s.disableSkill>) {
    return this.skills.setEnabled(input.agentId, input.name, { enabled: false, context: call });
  }
  @Answers(s.deleteSkill) remove(input: Parsed<typeof s.deleteSkill>, call: Call<typeof s.deleteSkill>) {
    return this.skills.remove(input.agentId, input.name, call);
  }
  @Answers(s.effectiveSkills) effective(input: Parsed<typeof s.effectiveSkills>) {
    return this.skills.effective(input);
  }
  @Answers(s.readSkill) read(input: Parsed<typeof s.readSkill>) {
    return this.content.read(input);
  }
  @Answers(s.describeSkill) describe(input: Parsed<typeof s.describeSkill>) {
    return this.content.describe(input);
  }
  @Answers(s.enableScript) enableScript(input: Parsed<typeof s.enableScript>, call: Call<typeof s.enableScript>) {
    return this.scripts.enable(input, call);
  }
  @Answers(s.disableScript) disableScript(input: Parsed<typeof s.disableScript>, call: Call<typeof s.disableScript>) {
    return this.scripts.disable(input, call);
  }
  @Answers(s.readScript) readScript(input: Parsed<typeof s.readScript>) {
    return this.scripts.read(input);
  }
  @Answers(s.putContribution) contribute(input: Parsed<typeof s.putContribution>, call: Call<typeof s.putContribution>) {
    return this.contributions.put(input, call);
  }
  @Answers(s.revokeOwner) revoke(input: Parsed<typeof s.revokeOwner>, call: Call<typeof s.revokeOwner>) {
    return this.contributions.revoke(input, call);
  }
  @Answers(s.putSwitch) putSwitch(input: Parsed<typeof s.putSwitch>, call: Call<typeof s.putSwitch>) {
    return this.master.put(input, call);
  }
  @Answers(s.listSwitches) listSwitches() {
    return this.master.list();
  }
  @Answers(s.removeScope) removeScope(input: Parsed<typeof s.removeScope>, call: Call<typeof s.removeScope>) {
    return this.scopes.remove(input, call);
  }
}
