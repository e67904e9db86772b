export { freePort } from './ports.js';
export { startGuarded, type Exit, type GuardedOptions, type GuardedProcess } from './guarded-process.js';
export { findNatsServer, type FindNatsOptions, type NatsBinary } from './nats-binary.js';
export { startNats, type NatsOptions, type NatsServer } from './nats.js';
export { startPostgres, type PostgresOptions, type PostgresServer } from './postgres.js';
export { throwAwayNats, throwAwayPostgres, type ThrowAwayNatsOptions } from './throw-away.js';
