export { connect, type AmbitWorker, type ConnectOptions, type WorkOptions } from './connect.js';
export type { Handler } from './attempt.js';
export { Run, type End, type Said, type Turn } from './run.js';
export { openSnapshot, SnapshotView } from './snapshot.js';
export type { CallResult, IntendedCall, Platform, RunJob, TapeMessage } from './platform.js';
export type { WorkerTool } from './tools.js';
