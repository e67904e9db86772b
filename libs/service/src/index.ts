export { BadConfiguration, readConfig, ServiceConfig } from './config.js';
export { createLogger, NestLog, type LoggerOptions } from './logger.js';
export { Metrics, type GaugeDef, type MetricDef } from './metrics.js';
export { startOpsServer, type OpsServer } from './ops-server.js';
export { Readiness, type ReadinessCheck, type Report } from './readiness.js';
export { redact } from './redact.js';
export { runService } from './run-service.js';
export {
  CONFIG,
  LOG,
  type DatabaseContext,
  type HttpOptions,
  type Logger,
  type ServiceDatabase,
  type ServiceOptions,
} from './service-options.js';
export { startService, VERSION, type RunningService, type StartOptions } from './start-service.js';
