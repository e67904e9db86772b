export { Egress } from './egress.js';
export { EgressConfig } from './egress-config.js';
export { egressRefused, guardedLookup } from './guarded-lookup.js';
