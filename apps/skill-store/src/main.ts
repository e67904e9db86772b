import { openDatabase } from '@ambit/db';
import { runService } from '@ambit/service';
import { SkillStoreConfig } from './config.js';
import { SkillStoreModule } from './skill-store.module.js';

await runService('skill-store', SkillStoreModule, { config: SkillStoreConfig, database: openDatabase });
