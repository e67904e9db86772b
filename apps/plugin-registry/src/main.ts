import { openDatabase } from '@ambit/db';
import { runService } from '@ambit/service';
import { PluginRegistryModule } from './plugin-registry.module.js';

await runService('plugin-registry', PluginRegistryModule, { database: openDatabase });
