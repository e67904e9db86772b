import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { Bus } from '@ambit/bus';
import { BoundedMap, readSnapshot, type SnapshotRecord, type SnapshotTool } from '@ambit/capability';
import { buckets, sessionService, SnapshotHead, snapshotKey } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';

const MAX_SNAPSHOTS = 256;
/** Larger than any record that composition makes. */
const MAX_BYTES = 64 * 1024 * 1024;
const DIRECT_MS = 2_000;

export interface HeldSnapshot {
  readonly record: SnapshotRecord;
  readonly tools: ReadonlyMap<string, SnapshotTool>;
  readonly slugs: ReadonlyMap<string, string>;
}

const unzip = promisify(gunzip);

/** Snapshots by fingerprint: read and verified once, then only looked into. */
@Injectable()
export class SnapshotCache {
  readonly #held = new BoundedMap<string, Promise<HeldSnapshot>>(MAX_SNAPSHOTS);
  readonly #ready = new BoundedMap<string, HeldSnapshot>(MAX_SNAPSHOTS);

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  held(fingerprint: string): HeldSnapshot | undefined {
    return this.#ready.get(fingerprint);
  }

  get(agentId: string, fingerprint: string): Promise<HeldSnapshot> {
    const known = this.#held.get(fingerprint);
    if (known !== undefined) return known;
    const loading = this.#load(agentId, fingerprint);
    this.#held.set(fingerprint, loading);
    loading.then(
      (snapshot) => this.#ready.set(fingerprint, snapshot),
      () => this.#held.delete(fingerprint),
    );
    return loading;
  }

  async #load(agentId: string, fingerprint: string): Promise<HeldSnapshot> {
    const record = await this.#fromBucket(agentId, fingerprint).catch((error: unknown) => {
      this.log.warn({ error, fingerprint }, 'the snapshot bucket has no good copy; asking its owner');
      return undefined;
    });
    return hold(record ?? (await this.#fromOwner(fingerprint)));
  }

  async #fromBucket(agentId: string, fingerprint: string): Promise<SnapshotRecord | undefined> {
    const headBytes = await this.#value(snapshotKey.head(agentId, fingerprint));
    if (headBytes === undefined) return undefined;
    const head = SnapshotHead.parse(JSON.parse(Buffer.from(headBytes).toString('utf8')));
    const parts: Uint8Array[] = [];
    for (let index = 0; index < head.parts; index++) {
      const part = await this.#value(snapshotKey.part(agentId, fingerprint, index));
      if (part === undefined) return undefined;
      parts.push(part);
    }
    const bytes = await unzip(Buffer.concat(parts), { maxOutputLength: Math.min(MAX_BYTES, head.bytes) });
    return readSnapshot(bytes.toString('utf8'), fingerprint);
  }

  async #fromOwner(fingerprint: string): Promise<SnapshotRecord> {
    let text = '';
    for (let offset: number | null = 0; offset !== null;) {
      const page: { text: string; next: number | null } = await this.bus.call(sessionService.readSnapshot, { fingerprint, offset });
      text += page.text;
      if (text.length > MAX_BYTES) throw new Error(`the snapshot ${fingerprint} is larger than ${MAX_BYTES} characters`);
      offset = page.next;
    }
    return readSnapshot(text, fingerprint);
  }

  async #value(key: string): Promise<Uint8Array | undefined> {
    const bucket = buckets.snapshots.name;
    const message = await this.bus.connection.request(`$JS.API.DIRECT.GET.KV_${bucket}.$KV.${bucket}.${key}`, '', { timeout: DIRECT_MS });
    const isGone = message.headers?.code === 404 || (message.headers?.get('KV-Operation') ?? '') !== '';
    return isGone ? undefined : message.data;
  }
}

function hold(record: SnapshotRecord): HeldSnapshot {
  return {
    record,
    tools: new Map(record.tools.map((tool) => [tool.name, tool])),
    slugs: new Map(record.servers.map((server) => [server.serverId, server.slug])),
  };
}
