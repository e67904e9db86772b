import { runService } from '@ambit/service';
import { EdgeConfig } from './config.js';
import { configureHttp } from './configure.js';
import { McpEdgeModule } from './mcp-edge.module.js';

await runService('mcp-edge', McpEdgeModule, {
  config: EdgeConfig,
  http: { port: (config) => config.AMBIT_EDGE_PORT, configure: configureHttp },
});
