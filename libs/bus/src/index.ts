export { Bus, type BusOptions, type CallOptions, type PublishOptions, type Stored } from './bus.js';
export { BusServer, type BusServerOptions, type HandledUse, type InstanceSource } from './bus-server.js';
export type { Call } from './call.js';
export { connectBus, isAtLeast, type ConnectOptions } from './connect.js';
export { Answers, Hears, Listens, Works, type HearsOptions, type WorksOptions } from './decorators.js';
export { EndpointStats } from './endpoint-stats.js';
export type { Delivery } from './held-message.js';
export type { Identity } from './identity.js';
export type { IncomingSignal } from './incoming-signal.js';
export { silentLog, type Log } from './log.js';
export {
  Responder,
  type AnswerHandler,
  type Listening,
  type ResponderOptions,
  type SignalHandler,
  type SubscribeOptions,
} from './responder.js';
export { ensureStreams, isRefusedByStream, streamConfig, verifyStreams, type EnsureOptions, type StorageDecl } from './streams.js';
export { continueTrace, traceIdOf } from './trace.js';
export { Workers, type ConsumeOptions, type StoredHandler } from './workers.js';
