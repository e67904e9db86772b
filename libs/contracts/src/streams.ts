/** The one declaration of every stream, bucket and object store. `ambit init` creates them, services verify them. */

export interface StreamDecl {
  readonly kind: 'stream';
  readonly name: string;
  readonly subjects: readonly string[];
  readonly retention: 'limits' | 'workqueue';
  readonly maxBytes: number;
  readonly maxAgeMs: number;
  readonly maxMessageBytes: number;
  readonly maxMessagesPerSubject?: number;
  readonly discard: 'old' | 'new';
  readonly discardNewPerSubject?: boolean;
  readonly allowRollup?: boolean;
  readonly allowDirect: boolean;
  readonly duplicateWindowMs: number;
}
export interface BucketDecl {
  readonly kind: 'bucket';
  readonly name: string;
  readonly maxBytes: number;
  readonly maxValueBytes: number;
  readonly history: number;
  /** The bucket's TTL; never a TTL by key, which an update makes permanent. */
  readonly ttlMs?: number;
  readonly markerTtlMs?: number;
}
export interface ObjectStoreDecl {
  readonly kind: 'objects';
  readonly name: string;
  readonly maxBytes: number;
}

const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

/** No message on the bus may be larger; more travels as an artifact. */
export const MAX_PAYLOAD_BYTES = 512 * KiB;

export const streams = {
  events: { kind: 'stream', name: 'AMBIT_EVENTS', subjects: ['ambit.evt.>'], retention: 'limits', maxBytes: 1 * GiB, maxAgeMs: 7 * DAY, maxMessageBytes: MAX_PAYLOAD_BYTES, discard: 'old', allowDirect: true, duplicateWindowMs: 2 * MINUTE },
  runs: { kind: 'stream', name: 'AMBIT_RUNS', subjects: ['ambit.job.session-service.v1.run.execute.>'], retention: 'workqueue', maxBytes: 512 * MiB, maxAgeMs: 7 * DAY, maxMessageBytes: MAX_PAYLOAD_BYTES, discard: 'new', allowDirect: true, duplicateWindowMs: 10 * MINUTE },
  journal: { kind: 'stream', name: 'AMBIT_JOURNAL', subjects: ['ambit.jrn.v1.>'], retention: 'limits', maxBytes: 2 * GiB, maxAgeMs: 0, maxMessageBytes: 64 * KiB, maxMessagesPerSubject: 1, discard: 'new', discardNewPerSubject: true, allowRollup: true, allowDirect: true, duplicateWindowMs: 2 * MINUTE },
  deferred: { kind: 'stream', name: 'AMBIT_DEFERRED', subjects: ['ambit.job.tool-gateway.v1.call.execute-deferred.>'], retention: 'workqueue', maxBytes: 256 * MiB, maxAgeMs: 7 * DAY, maxMessageBytes: MAX_PAYLOAD_BYTES, discard: 'new', allowDirect: true, duplicateWindowMs: 10 * MINUTE },
} as const satisfies Record<string, StreamDecl>;

export const buckets = {
  snapshots: { kind: 'bucket', name: 'ambit_snapshots', maxBytes: 1 * GiB, maxValueBytes: MAX_PAYLOAD_BYTES, history: 1 },
  mappings: { kind: 'bucket', name: 'ambit_mappings', maxBytes: 512 * MiB, maxValueBytes: 64 * KiB, history: 1 },
  leases5s: { kind: 'bucket', name: 'ambit_leases_5s', maxBytes: 64 * MiB, maxValueBytes: 4 * KiB, history: 1, ttlMs: 5_000, markerTtlMs: 60_000 },
  leases15s: { kind: 'bucket', name: 'ambit_leases_15s', maxBytes: 64 * MiB, maxValueBytes: 4 * KiB, history: 1, ttlMs: 15_000, markerTtlMs: 60_000 },
  leases60s: { kind: 'bucket', name: 'ambit_leases_60s', maxBytes: 64 * MiB, maxValueBytes: 4 * KiB, history: 1, ttlMs: 60_000, markerTtlMs: 60_000 },
  /** Sessions of MCP clients that they ended themselves; as long as a session may live. */
  tombstones: { kind: 'bucket', name: 'ambit_tombstones', maxBytes: 64 * MiB, maxValueBytes: 1 * KiB, history: 1, ttlMs: DAY, markerTtlMs: 60_000 },
  epochs: { kind: 'bucket', name: 'ambit_epochs', maxBytes: 64 * MiB, maxValueBytes: 1 * KiB, history: 1 },
} as const satisfies Record<string, BucketDecl>;

export const objectStores = {
  artifacts: { kind: 'objects', name: 'ambit_artifacts', maxBytes: 4 * GiB },
} as const satisfies Record<string, ObjectStoreDecl>;

/** The oldest nats-server that the tests run on; services refuse an older one. */
export const MINIMUM_NATS_SERVER = '2.15.0';
