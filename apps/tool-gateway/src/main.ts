import { openDatabase } from '@ambit/db';
import { runService } from '@ambit/service';
import { ToolGatewayModule } from './tool-gateway.module.js';

await runService('tool-gateway', ToolGatewayModule, { database: openDatabase });
