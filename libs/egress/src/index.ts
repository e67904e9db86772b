export { Egress } from './egress.js';
export { EgressConfig } from './egress-config.js';
export { guardedLookup, requireOpen } from './guarded-lookup.js';
