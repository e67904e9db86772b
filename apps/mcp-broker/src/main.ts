import { openDatabase } from '@ambit/db';
import { runService } from '@ambit/service';
import { BrokerConfig } from './config.js';
import { McpBrokerModule } from './mcp-broker.module.js';

await runService('mcp-broker', McpBrokerModule, { config: BrokerConfig, database: openDatabase });
