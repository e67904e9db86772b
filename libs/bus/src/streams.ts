import { Fault, type BucketDecl, type ObjectStoreDecl, type StreamDecl } from '@ambit/contracts';
import {
  DiscardPolicy,
  JetStreamApiError,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  type JetStreamManager,
  type StreamConfig,
} from '@nats-io/jetstream';
import { nanos, type NatsConnection } from '@nats-io/nats-core';

export type StorageDecl = StreamDecl | BucketDecl | ObjectStoreDecl;

export interface EnsureOptions {
  /** @default 1 */
  readonly replicas?: number;
}

/** Creates what is missing and brings the rest to its declaration; never deletes. */
export async function ensureStreams(
  connection: NatsConnection,
  declarations: readonly StorageDecl[],
  options: EnsureOptions = {},
): Promise<void> {
  const manager = await jetstreamManager(connection);
  for (const declaration of declarations) {
    const config = streamConfig(declaration, options.replicas ?? 1);
    const existing = await find(manager, config.name);
    if (existing === undefined) await manager.streams.add(config);
    else if (differing(existing, config).length > 0) await manager.streams.update(config.name, config);
  }
}

/** Throws one error that names everything missing or other than declared; the number of replicas is the installation's choice. */
export async function verifyStreams(connection: NatsConnection, declarations: readonly StorageDecl[]): Promise<void> {
  const manager = await jetstreamManager(connection, { checkAPI: false });
  const problems: string[] = [];
  for (const declaration of declarations) {
    const existing = await find(manager, streamName(declaration));
    if (existing === undefined) problems.push(`- ${declaration.name} does not exist`);
    else {
      const fields = differing(existing, streamConfig(declaration, existing.num_replicas));
      if (fields.length > 0) problems.push(`- ${declaration.name} differs in ${fields.join(', ')}`);
    }
  }
  if (problems.length > 0) throw new Error(`JetStream is not as declared; run \`ambit init\`:\n${problems.join('\n')}`);
}

// "stream store failed": both for a stream that is full, which passes, and for a subject that already has its one message.
const STORE_FAILED = 10_077;

/** Whether a stream refused a message for good: it is too large, its condition does not hold, or its subject has its fact already. */
export function isRefusedByStream(error: unknown): boolean {
  if (error instanceof Fault) return error.code === 'TOO_LARGE';
  if (!(error instanceof JetStreamApiError)) return false;
  return error.status === 400 || (error.code === STORE_FAILED && error.message.includes('per subject'));
}

type NamedConfig = Partial<StreamConfig> & { readonly name: string };

/** The JetStream configuration of a declaration. */
export function streamConfig(declaration: StorageDecl, replicas: number): NamedConfig {
  const common = { name: streamName(declaration), storage: StorageType.File, num_replicas: replicas, max_bytes: declaration.maxBytes };
  switch (declaration.kind) {
    case 'stream':
      return {
        ...common,
        subjects: [...declaration.subjects],
        retention: declaration.retention === 'workqueue' ? RetentionPolicy.Workqueue : RetentionPolicy.Limits,
        max_age: nanos(declaration.maxAgeMs),
        max_msg_size: declaration.maxMessageBytes,
        max_msgs_per_subject: declaration.maxMessagesPerSubject ?? -1,
        discard: declaration.discard === 'new' ? DiscardPolicy.New : DiscardPolicy.Old,
        discard_new_per_subject: declaration.discardNewPerSubject ?? false,
        allow_rollup_hdrs: declaration.allowRollup ?? false,
        allow_direct: declaration.allowDirect,
        duplicate_window: nanos(declaration.duplicateWindowMs),
      };
    case 'bucket':
      return {
        ...common,
        subjects: [`$KV.${declaration.name}.>`],
        retention: RetentionPolicy.Limits,
        max_age: nanos(declaration.ttlMs ?? 0),
        max_msg_size: declaration.maxValueBytes,
        max_msgs_per_subject: declaration.history,
        discard: DiscardPolicy.New,
        allow_rollup_hdrs: true,
        allow_direct: true,
        deny_delete: true,
        ...(declaration.markerTtlMs === undefined
          ? {}
          : { allow_msg_ttl: true, subject_delete_marker_ttl: nanos(declaration.markerTtlMs) }),
      };
    case 'objects':
      return {
        ...common,
        subjects: [`$O.${declaration.name}.C.>`, `$O.${declaration.name}.M.>`],
        retention: RetentionPolicy.Limits,
        discard: DiscardPolicy.New,
        allow_rollup_hdrs: true,
        allow_direct: true,
      };
  }
}

function streamName(declaration: StorageDecl): string {
  const prefixes = { stream: '', bucket: 'KV_', objects: 'OBJ_' } as const;
  return `${prefixes[declaration.kind]}${declaration.name}`;
}

async function find(manager: JetStreamManager, name: string): Promise<StreamConfig | undefined> {
  try {
    return (await manager.streams.info(name)).config;
  } catch (error) {
    if (error instanceof Error && error.name === 'StreamNotFoundError') return undefined;
    throw error;
  }
}

// The server leaves zero values out of what it tells.
function differing(existing: StreamConfig, wanted: NamedConfig): string[] {
  const plain = (value: unknown): string =>
    JSON.stringify(value === undefined || value === false || value === 0 || value === -1 ? null : value);
  const actual = new Map<string, unknown>(Object.entries(existing));
  return Object.entries(wanted).flatMap(([field, value]) => (plain(actual.get(field)) === plain(value) ? [] : [field]));
}
