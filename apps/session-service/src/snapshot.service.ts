import { BoundedMap } from '@ambit/capability';
import { gzipSync } from 'node:zlib';
import type { Call } from '@ambit/bus';
import {
  buckets,
  fault,
  mappingKey,
  MAX_PAYLOAD_BYTES,
  sessionService,
  snapshotKey,
  type Mapping,
  type Output,
  type Parsed,
} from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { agents, Overtaken } from './agent.repository.js';
import { cursorOf } from './domain/cursor.js';
import { mappingPublished, snapshotPublished } from './domain/facts.js';
import type { Whose } from './domain/world.js';
import { Ingress, type Prepared } from './ingress.service.js';
import { JetStream } from './jetstream.service.js';
import { placeFrom } from './paging.js';
import { sessions } from './session.repository.js';
import { snapshots, type SnapshotRow } from './snapshot.repository.js';
import { Transactions, type Unit } from './transactions.repository.js';

const SNAPSHOTS = buckets.snapshots.name;
const MAPPINGS = buckets.mappings.name;
/** The bucket's own limit counts the subject too. */
const PART_BYTES = MAX_PAYLOAD_BYTES - 4 * 1024;
/** How long a snapshot that was seen in the bucket is taken to be there still. */
const LOOK_AGAIN_MS = 60_000;
const CHUNK = 256 * 1024;

/** Keeps snapshots and mappings: in Postgres, which is the truth, and in the buckets, from which runs read them. */
@Injectable()
export class Snapshots {
  readonly #seenAt = new BoundedMap<string, number>(2_000);

  constructor(
    private readonly ingress: Ingress,
    private readonly jetstream: JetStream,
    private readonly transactions: Transactions,
  ) {}

  /** Composes what a run may see and makes sure that it can be read. Nothing is a session's yet. */
  async prepare(whose: Whose, within?: Call): Promise<Prepared> {
    const prepared = await this.ingress.prepare(whose, within);
    if (prepared.text !== null) await this.#refuseOvertaken(whose);
    await this.#publish(prepared);
    this.ingress.remember(prepared);
    return prepared;
  }

  /** Gives a session the snapshot, inside the transaction that uses it. */
  async give(unit: Unit, sessionId: string, prepared: Prepared): Promise<void> {
    const { projection, fences } = prepared;
    const { agentId, fingerprint } = projection;
    const at = unit.now.toISOString();
    await this.#hold(unit, prepared);
    await snapshots.map(unit.sql, { sessionId, agentId, fingerprint, owners: fences, at });
    const mapping: Mapping = { schemaVersion: 1, sessionId, agentId, fingerprint, owners: { ...fences }, at };
    // Before the commit: whoever is told of the run finds its mapping. One that no run follows opens nothing.
    await this.jetstream.put(MAPPINGS, mappingKey(sessionId, fingerprint), JSON.stringify(mapping));
    unit.tell(mappingPublished({ sessionId, agentId, fingerprint }, unit));
  }

  /** Takes away what a removed session was given. */
  async withdraw(sessionId: string, fingerprints: readonly string[]): Promise<void> {
    for (const fingerprint of fingerprints) await this.jetstream.drop(MAPPINGS, mappingKey(sessionId, fingerprint));
  }

  /** Looks for every snapshot in its bucket again: the bucket is another one. */
  forget(): void {
    this.#seenAt.clear();
  }

  async read({ fingerprint, offset }: Parsed<typeof sessionService.readSnapshot>): Promise<Output<typeof sessionService.readSnapshot>> {
    const row = await snapshots.find(this.transactions.read, fingerprint);
    if (row === undefined) throw fault(sessionService.readSnapshot, 'SNAPSHOT_UNKNOWN');
    const end = boundary(row.text, Math.min(row.text.length, offset + CHUNK));
    return { text: row.text.slice(offset, end), next: end < row.text.length ? end : null, agentId: row.agentId };
  }

  async list({
    sessionId,
    agentId,
    cursor,
    limit,
  }: Parsed<typeof sessionService.listSnapshots>): Promise<Output<typeof sessionService.listSnapshots>> {
    const before = placeFrom(cursor);
    const items = await snapshots.given(this.transactions.read, { sessionId, agentId, before, limit });
    const last = items.at(-1);
    return {
      items,
      ...(items.length === limit && last !== undefined && last.sessionId !== null ? { cursor: cursorOf(last.at, last.sessionId) } : {}),
    };
  }

  /** From here to the end of the transaction no sweep takes the snapshot away; one that did before is made good. */
  async #hold(unit: Unit, { projection: { fingerprint } }: Prepared): Promise<void> {
    const found = await snapshots.share(unit.sql, fingerprint);
    if (found?.isSwept === false) return;
    const row = found === undefined ? undefined : await snapshots.find(unit.sql, fingerprint);
    if (row === undefined) {
      // Its retention ended between composing and now, or a backup was restored that has never seen it.
      this.ingress.forget();
      this.forget();
      throw new Overtaken();
    }
    await this.#fill(row);
    await snapshots.mark(unit.sql, fingerprint, null);
  }

  /** What was composed for an agent or a session that is another by now is neither kept nor published. */
  async #refuseOvertaken({ agent, ancestors, session }: Whose): Promise<void> {
    const db = this.transactions.read;
    const chain = [agent, ...ancestors];
    const versions = await agents.versions(db, [...new Set(chain.map(({ id }) => id))]);
    if (chain.some(({ id, version }) => versions.get(id) !== version)) throw new Overtaken();
    // One that is not stored yet cannot have been overtaken.
    const stored = session === null ? undefined : await sessions.find(db, session.id);
    if (session !== null && stored !== undefined && stored.version !== session.version) throw new Overtaken();
  }

  async #publish({ projection, text }: Prepared): Promise<void> {
    const { fingerprint, agentId, tools, skills } = projection;
    if (text !== null) {
      await this.transactions.run(async (unit) => {
        const isNew = await snapshots.store(unit.sql, { fingerprint, agentId, tools, skills, text }, unit.now);
        if (isNew) unit.tell(snapshotPublished(projection, unit));
      });
    }
    if (performance.now() - (this.#seenAt.get(fingerprint) ?? -LOOK_AGAIN_MS) < LOOK_AGAIN_MS) return;
    const head = await this.jetstream.last(`KV_${SNAPSHOTS}`, `$KV.${SNAPSHOTS}.${snapshotKey.head(agentId, fingerprint)}`);
    if (head === null || head.header.has('KV-Operation')) {
      const row = text === null ? await snapshots.find(this.transactions.read, fingerprint) : { fingerprint, agentId, tools, skills, text };
      if (row !== undefined) await this.#fill(row);
    }
    this.#seenAt.set(fingerprint, performance.now());
  }

  /** Parts first, then the head that says how many there are: a reader never finds half a snapshot. */
  async #fill({ agentId, fingerprint, text }: SnapshotRow): Promise<void> {
    const canonical = Buffer.from(text);
    const zipped = gzipSync(canonical);
    const parts = Math.ceil(zipped.length / PART_BYTES);
    for (let index = 0; index < parts; index++) {
      await this.jetstream.put(
        SNAPSHOTS,
        snapshotKey.part(agentId, fingerprint, index),
        zipped.subarray(index * PART_BYTES, (index + 1) * PART_BYTES),
      );
    }
    await this.jetstream.put(SNAPSHOTS, snapshotKey.head(agentId, fingerprint), JSON.stringify({ parts, bytes: canonical.length }));
  }
}

/** Never between the halves of a character: each piece is text of its own. */
function boundary(text: string, end: number): number {
  const unit = text.charCodeAt(end - 1);
  return end < text.length && unit >= 0xd800 && unit < 0xdc00 ? end - 1 : end;
}
