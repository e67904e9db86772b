export { canariesIn, canary } from './canary.js';
export { collect, type Collected, type Collector } from './collect.js';
export { countServed, noteServed, servedCount } from './served.js';
export { openRecords, record, type ShownRecord } from './records.js';
export { startNats, type TestNats, type TestNatsOptions } from './nats.js';
export { startPostgres, type TestPostgres } from './postgres.js';
export { startService, type TestServiceOptions } from './service.js';
export { useContainers } from './docker.js';
export { watchWire } from './wire.js';
