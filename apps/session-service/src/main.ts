import { openDatabase } from '@ambit/db';
import { runService } from '@ambit/service';
import { SessionServiceConfig } from './config.js';
import { SessionServiceModule } from './session-service.module.js';

await runService('session-service', SessionServiceModule, { config: SessionServiceConfig, database: openDatabase });
