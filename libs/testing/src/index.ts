export { canariesIn, canary } from './canary.js';
export { openRecords, record, type ShownRecord } from './records.js';
export { countServed, noteServed, servedCount } from './served.js';
export { watchWire } from './wire.js';
