import { Bus } from '@ambit/bus';
import { Inject, Injectable } from '@nestjs/common';
import { ArtifactStore } from '../artifact.store.js';
import { DelegationWaits } from '../delegation.waits.js';
import { PlanRepository } from '../plan.repository.js';
import { SkillScripts } from '../skill-scripts.js';
import { artifactBuiltin } from './artifact.builtin.js';
import type { BuiltinGroup } from './builtin.registry.js';
import { deferredBuiltins } from './deferred.builtins.js';
import { planBuiltin } from './plan.builtin.js';
import { question } from './question.builtin.js';
import { settingsBuiltins } from './settings.builtins.js';
import { skillDraftBuiltins } from './skill-draft.builtins.js';
import { skillRunBuiltin } from './skill-run.builtin.js';
import { skillBuiltins } from './skill.builtins.js';
import { subagentBuiltin } from './subagent.builtin.js';
import { tapeBuiltins } from './tape.builtins.js';

/** Every built-in tool of this release. */
@Injectable()
export class BuiltinGroups {
  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(PlanRepository) private readonly plans: PlanRepository,
    @Inject(ArtifactStore) private readonly artifacts: ArtifactStore,
    @Inject(DelegationWaits) private readonly waits: DelegationWaits,
    @Inject(SkillScripts) private readonly scripts: SkillScripts,
  ) {}

  all(): BuiltinGroup[] {
    return [
      { name: 'question', load: () => [question] },
      { name: 'plan', load: () => [planBuiltin(this.plans)] },
      { name: 'tape', load: () => tapeBuiltins(this.bus) },
      { name: 'artifact', load: () => [artifactBuiltin(this.artifacts)] },
      { name: 'skill', load: () => skillBuiltins(this.bus) },
      { name: 'skill-drafts', load: () => skillDraftBuiltins(this.bus) },
      { name: 'skill-scripts', load: () => [skillRunBuiltin(this.scripts)] },
      { name: 'settings', load: () => settingsBuiltins(this.bus) },
      { name: 'deferred', load: () => deferredBuiltins(this.bus) },
      { name: 'delegation', load: () => [subagentBuiltin(this.bus, this.waits)] },
    ];
  }
}
