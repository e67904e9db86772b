import { openDatabase } from '@ambit/db';
import { runService } from '@ambit/service';
import { PluginRegistryConfig } from './config.js';
import { PluginRegistryModule } from './plugin-registry.module.js';

await runService('plugin-registry', PluginRegistryModule, { config: PluginRegistryConfig, database: openDatabase });
