import { sessionService, skillStore } from '@ambit/contracts';
import { openDatabase } from '@ambit/db';
import { runService } from '@ambit/service';
import { AdminApiModule } from './admin-api.module.js';
import { AdminApiConfig } from './config.js';
import { configureHttp } from './configure.js';

await runService('admin-api', AdminApiModule, {
  config: AdminApiConfig,
  database: openDatabase,
  dynamic: [sessionService.runOutput, skillStore.importProgressed],
  http: { port: (config) => config.AMBIT_HTTP_PORT, configure: configureHttp },
});
