import { Module } from '@nestjs/common';
import { AuditHandlers } from './audit.handlers.js';
import { SkillBlobs } from './blobs.js';
import { BuiltinSkills } from './builtin-skills.service.js';
import { ContentService } from './content.service.js';
import { ContributionService } from './contribution.service.js';
import { IntakeService } from './intake.service.js';
import { MirrorService } from './mirror.service.js';
import { ScriptRepository } from './script.repository.js';
import { ScriptService } from './script.service.js';
import { SkillHandlers } from './skill.handlers.js';
import { SkillRepository } from './skill.repository.js';
import { SkillService } from './skill.service.js';

@Module({
  controllers: [AuditHandlers, SkillHandlers],
  providers: [
    SkillBlobs,
    SkillRepository,
    ScriptRepository,
    IntakeService,
    SkillService,
    ScriptService,
    ContentService,
    ContributionService,
    MirrorService,
    BuiltinSkills,
  ],
})
export class SkillStoreModule {}
