import { buckets, fromToken, journalSubject, mappingKey, streams } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { chunks } from './chunks.js';
import { JetStream } from './jetstream.service.js';
import { runs } from './run.repository.js';
import { snapshots, type MappingKey } from './snapshot.repository.js';
import { Transactions } from './transactions.repository.js';

const EVERY_MS = 30 * 60_000;
/** How long the buckets keep what nobody has used. */
const UNUSED_MS = 24 * 3_600_000;
/** Whoever still asks for a run that ended is answered before its state leaves the journal. */
const STATE_MS = 60 * 60_000;
const AT_ONCE = 200;

const SNAPSHOTS = buckets.snapshots.name;
const MAPPINGS = buckets.mappings.name;
const JOURNAL = streams.journal.name;

export interface Swept {
  readonly snapshots: number;
  readonly mappings: number;
  readonly states: number;
}

/** Empties JetStream of what is in Postgres and used by nobody: it holds copies, and copies are made again when they are needed. Any replica may. */
@Injectable()
export class StorageSweeper implements OnApplicationBootstrap, OnModuleDestroy {
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<unknown> = Promise.resolve();
  #isClosing = false;

  constructor(
    private readonly transactions: Transactions,
    private readonly jetstream: JetStream,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  onApplicationBootstrap(): void {
    this.#later();
  }

  async onModuleDestroy(): Promise<void> {
    this.#isClosing = true;
    clearTimeout(this.#timer);
    await this.#sweeping;
  }

  /** One round; a part that fails keeps no other from being done. */
  async sweep(now: Date): Promise<Swept> {
    const before = (ms: number) => new Date(now.getTime() - ms);
    return {
      snapshots: await this.#attempt('snapshots', () => this.#snapshots(before(UNUSED_MS), now)),
      mappings: await this.#attempt('mappings', () => this.#mappings(before(UNUSED_MS))),
      states: await this.#attempt('states of runs', () => this.#states(before(STATE_MS))),
    };
  }

  async #snapshots(before: Date, now: Date): Promise<number> {
    const stored = new Map<string, string>();
    for (const key of await this.#keys(SNAPSHOTS)) {
      const [agent, fingerprint] = key.split('.');
      if (agent !== undefined && fingerprint !== undefined) stored.set(fingerprint, `${agent}.${fingerprint}`);
    }
    let count = 0;
    for (const some of chunks([...stored.keys()], AT_ONCE)) {
      const known = await snapshots.known(this.transactions.read, some);
      for (const fingerprint of await snapshots.unused(this.transactions.read, some, before)) {
        if (this.#isClosing) return count;
        if (await this.#give(fingerprint, { key: stored.get(fingerprint) ?? '', before, now })) count++;
      }
      for (const fingerprint of some) {
        const key = stored.get(fingerprint) ?? '';
        if (known.has(fingerprint) || !(await this.#isOlder(SNAPSHOTS, `${key}.head`, before))) continue;
        if ((await this.jetstream.drop(SNAPSHOTS, `${key}.>`)) > 0) count++;
      }
    }
    return count;
  }

  /**
   * First says that the snapshot is given up, then takes it out of the bucket, both while nobody gives it to a session. Whoever gives it
   * between the two or afterwards reads that, and fills the bucket again.
   */
  async #give(
    fingerprint: string,
    { key, before, now }: { readonly key: string; readonly before: Date; readonly now: Date },
  ): Promise<boolean> {
    const isUnused = await this.transactions.run(async ({ sql }) => {
      await snapshots.alone(sql, fingerprint);
      if ((await snapshots.unused(sql, [fingerprint], before)).length === 0) return false;
      await snapshots.mark(sql, fingerprint, now);
      return true;
    });
    if (!isUnused) return false;
    return this.transactions.run(async ({ sql }) => {
      const row = await snapshots.alone(sql, fingerprint);
      if (row !== undefined && row.sweptAt === null) return false;
      // Another replica may have been here first.
      return (await this.jetstream.drop(SNAPSHOTS, `${key}.>`)) > 0;
    });
  }

  async #mappings(before: Date): Promise<number> {
    const keys = (await this.#keys(MAPPINGS)).flatMap((key): MappingKey[] => {
      const [sessionId, fingerprint] = key.split('.');
      return sessionId === undefined || fingerprint === undefined ? [] : [{ sessionId: fromToken(sessionId), fingerprint }];
    });
    let count = 0;
    for (const some of chunks(keys, AT_ONCE)) {
      if (this.#isClosing) return count;
      // Under the rows' locks: whoever gives one of them to its session again puts it back after this.
      const swept = await this.transactions.run(async ({ sql }) => {
        const unused = await snapshots.unusedMappings(sql, some, before);
        let dropped = 0;
        for (const mapping of unused) dropped += await this.#dropMapping(mapping);
        return dropped;
      });
      const rows = await snapshots.knownMappings(this.transactions.read, some);
      const known = new Set(rows.map(({ sessionId, fingerprint }) => `${sessionId}.${fingerprint}`));
      const orphans = some.filter(({ sessionId, fingerprint }) => !known.has(`${sessionId}.${fingerprint}`));
      for (const orphan of orphans) {
        if (!(await this.#isOlder(MAPPINGS, mappingKey(orphan.sessionId, orphan.fingerprint), before))) continue;
        count += await this.#dropMapping(orphan);
      }
      count += swept;
    }
    return count;
  }

  /** A run's state goes once the run has ended and its operations have left: the gateway lets them go when they stand in Postgres. */
  async #states(before: Date): Promise<number> {
    const subjects = await this.jetstream.subjects(JOURNAL, journalSubject.allRunStates);
    const ids = subjects.flatMap((subject) => subject.split('.').slice(4, 5).map(fromToken));
    let count = 0;
    for (const some of chunks(ids, AT_ONCE)) {
      for (const { id, originRunId } of await runs.over(this.transactions.read, some, before)) {
        if (this.#isClosing) return count;
        if ((await this.jetstream.subjects(JOURNAL, journalSubject.operationsOf(originRunId))).length > 0) continue;
        await this.jetstream.purge(JOURNAL, journalSubject.runState(id));
        count++;
      }
    }
    return count;
  }

  async #keys(bucket: string): Promise<string[]> {
    const prefix = `$KV.${bucket}.`;
    return (await this.jetstream.subjects(`KV_${bucket}`, `${prefix}>`)).map((subject) => subject.slice(prefix.length));
  }

  async #dropMapping({ sessionId, fingerprint }: MappingKey): Promise<number> {
    return this.jetstream.drop(MAPPINGS, mappingKey(sessionId, fingerprint));
  }

  /** What no row knows may belong to a transaction that is not committed yet; what is older does not. */
  async #isOlder(bucket: string, key: string, before: Date): Promise<boolean> {
    const message = await this.jetstream.last(`KV_${bucket}`, `$KV.${bucket}.${key}`);
    return message !== null && message.time < before;
  }

  async #attempt(what: string, work: () => Promise<number>): Promise<number> {
    try {
      return this.#isClosing ? 0 : await work();
    } catch (error) {
      if (!this.#isClosing) this.log.warn({ error, what }, 'a sweep of JetStream did not finish; it is tried again');
      return 0;
    }
  }

  #later(): void {
    if (this.#isClosing) return;
    this.#timer = setTimeout(() => {
      this.#sweeping = this.sweep(new Date()).finally(() => this.#later());
    }, EVERY_MS);
  }
}
