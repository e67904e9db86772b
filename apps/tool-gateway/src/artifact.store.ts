import { createHash } from 'node:crypto';
import { Bus } from '@ambit/bus';
import { objectStores } from '@ambit/contracts';
import { CONFIG, LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { jetstreamManager } from '@nats-io/jetstream';
import { Objm, type ObjectStore } from '@nats-io/obj';
import type { ToolGatewayConfig } from './config.js';
import { ArtifactRepository, type ArtifactName } from './artifact.repository.js';
import { ByteCache } from './domain/byte-cache.js';

const DAY_MS = 86_400_000;
const SWEEP_MS = 60_000;
const UPLOAD_KEPT_MS = 10 * 60_000;
const SWEEP_AT_ONCE = 200;
/** Readers go through an artifact range by range: it stays at hand while they do. The largest result fits twice. */
const CACHED_BYTES = 64 * 1024 * 1024;

export interface ArtifactRange {
  readonly data: Buffer;
  readonly bytes: number;
  readonly next: number | null;
}

/** As the object store writes a name into its subject. */
const padded = (name: string): string => Buffer.from(name).toString('base64').replaceAll('+', '-').replaceAll('/', '_');

const objectName = ({ sessionId, digest }: ArtifactName): string => `${sessionId}/${digest}`;

/** Large results by session and digest. The Postgres row says that an artifact exists and until when; the object store has its bytes. */
@Injectable()
export class ArtifactStore implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #cache = new ByteCache<Buffer>(CACHED_BYTES);
  /** Several ranges of one artifact that are asked for at once wait for one reading. */
  readonly #reading = new Map<string, Promise<Buffer | undefined>>();
  #store: ObjectStore | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(ArtifactRepository) private readonly repository: ArtifactRepository,
    @Inject(CONFIG) private readonly config: ToolGatewayConfig,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    this.#store = await new Objm(this.bus.connection).open(objectStores.artifacts.name);
    this.#timer = setInterval(() => {
      this.#cache.dropUnusedSince(performance.now() - SWEEP_MS);
      void this.sweep(new Date()).catch((error: unknown) => this.log.warn({ error }, 'expired artifacts were not swept'));
    }, SWEEP_MS);
  }
  onApplicationShutdown(): void {
    clearInterval(this.#timer);
  }

  /** Stores bytes for a session and gives their digest; the same bytes again only live longer. */
  async put(sessionId: string, data: Uint8Array): Promise<{ digest: string; bytes: number }> {
    const digest = createHash('sha256').update(data).digest('hex');
    const name = { sessionId, digest };
    await this.#opened().putBlob({ name: objectName(name) }, data);
    await this.repository.put(name, data.length, new Date(Date.now() + this.config.AMBIT_KEEP_ARTIFACTS_DAYS * DAY_MS));
    return { digest, bytes: data.length };
  }

  /** A range of an artifact; undefined where the session has none of that digest. */
  async read({
    offset,
    length,
    ...name
  }: ArtifactName & { readonly offset: number; readonly length: number }): Promise<ArtifactRange | undefined> {
    const known = await this.repository.find({ sessionId: name.sessionId, digest: name.digest }, new Date());
    if (known === null) return undefined;
    const whole = await this.#bytes(name);
    if (whole === undefined) return undefined;
    const end = Math.min(whole.length, offset + length);
    return { data: whole.subarray(Math.min(offset, whole.length), end), bytes: whole.length, next: end < whole.length ? end : null };
  }

  /** Removes what has expired: the bytes first, so that no row is gone whose object stays for ever. */
  async sweep(now: Date): Promise<number> {
    await this.repository.dropPartsBefore(new Date(now.getTime() - UPLOAD_KEPT_MS));
    const expired = await this.repository.expired(now, SWEEP_AT_ONCE);
    for (const name of expired) {
      await this.#opened().delete(objectName(name));
      this.#cache.delete(objectName(name));
      await this.repository.remove(name);
    }
    return expired.length;
  }

  /** Removes everything that a session stored, and the markers that its objects leave, whose names hold the session's. */
  async forget(sessionId: string): Promise<void> {
    const manager = await jetstreamManager(this.bus.connection, { checkAPI: false });
    const store = objectStores.artifacts.name;
    for (const name of await this.repository.ofSession(sessionId)) {
      await this.#opened().delete(objectName(name));
      await manager.streams.purge(`OBJ_${store}`, { filter: `$O.${store}.M.${padded(objectName(name))}` });
      this.#cache.delete(objectName(name));
      await this.repository.remove(name);
    }
    await this.repository.dropUploads(sessionId);
  }

  async #bytes(name: ArtifactName): Promise<Buffer | undefined> {
    const key = objectName(name);
    const known = this.#cache.get(key, performance.now()) ?? this.#reading.get(key);
    if (known !== undefined) return known;
    const reading = this.#fetch(key).finally(() => this.#reading.delete(key));
    this.#reading.set(key, reading);
    return reading;
  }

  async #fetch(key: string): Promise<Buffer | undefined> {
    const blob = await this.#opened().getBlob(key);
    if (blob === null) return undefined;
    const value = Buffer.from(blob.buffer, blob.byteOffset, blob.byteLength);
    this.#cache.set(key, { value, bytes: value.length }, performance.now());
    return value;
  }

  #opened(): ObjectStore {
    if (this.#store === undefined) throw new Error('the object store is not open yet');
    return this.#store;
  }
}
