import { watch } from 'node:fs';
import { Module } from '@nestjs/common';
import { AgentDirectory } from './agent.directory.js';
import { AuditHandlers } from './audit.handlers.js';
import { SkillBlobs } from './blobs.js';
import { BuiltinSkills } from './builtin-skills.service.js';
import { ContentService } from './content.service.js';
import { ContributionService } from './contribution.service.js';
import { DraftHandlers } from './draft.handlers.js';
import { DraftRepository } from './draft.repository.js';
import { DraftService } from './draft.service.js';
import { FolderWatch, WATCH } from './folder.watch.js';
import { ImportHandlers } from './import.handlers.js';
import { ImportRepository } from './import.repository.js';
import { ImportService } from './import.service.js';
import { ImportSources } from './import.source.js';
import { IntakeService } from './intake.service.js';
import { MirrorRepository } from './mirror.repository.js';
import { MirrorService } from './mirror.service.js';
import { ScopeMirror } from './scope.mirror.js';
import { ScopeRepository } from './scope.repository.js';
import { ScopeService } from './scope.service.js';
import { ScriptRepository } from './script.repository.js';
import { ScriptService } from './script.service.js';
import { SkillHandlers } from './skill.handlers.js';
import { SkillRepository } from './skill.repository.js';
import { SkillService } from './skill.service.js';
import { SkillSwitch } from './skill-switch.service.js';
import { WatchTrust } from './watch.trust.js';

@Module({
  controllers: [AuditHandlers, SkillHandlers, ImportHandlers, DraftHandlers],
  providers: [
    SkillBlobs,
    SkillRepository,
    ScriptRepository,
    ScopeRepository,
    ScopeService,
    IntakeService,
    SkillService,
    SkillSwitch,
    ScriptService,
    ContentService,
    ContributionService,
    { provide: WATCH, useValue: watch },
    FolderWatch,
    WatchTrust,
    MirrorRepository,
    ScopeMirror,
    MirrorService,
    BuiltinSkills,
    AgentDirectory,
    ImportSources,
    ImportRepository,
    ImportService,
    DraftRepository,
    DraftService,
  ],
})
export class SkillStoreModule {}
