import { openDatabase } from '@ambit/db';
import { runService } from '@ambit/service';
import { ToolGatewayConfig } from './config.js';
import { ToolGatewayModule } from './tool-gateway.module.js';

await runService('tool-gateway', ToolGatewayModule, { config: ToolGatewayConfig, database: openDatabase });
