export { Fault, type FaultBody, type FaultDef, type FaultMap, type Retry } from './kit/fault.js';
export { event, fault, job, rpc, signal } from './kit/contract.js';
export type { Audience, Contract, EventContract, Input, JobContract, Keys, KeysOf, Output, Parsed, Payload, Returns, Rpc, SignalContract } from './kit/contract.js';
export { keysOf, pattern, subject } from './kit/subject.js';
export { fromToken, toToken } from './kit/token.js';
export { HEADER } from './kit/headers.js';
export { platformFault, platformFaults, type PlatformCode } from './faults.js';
