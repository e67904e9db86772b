import { randomUUID } from 'node:crypto';
import { Bus } from '@ambit/bus';
import { buckets, streams } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { AckPolicy, DeliverPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { Kvm, type KvEntry } from '@nats-io/kv';
import { nanos, type QueuedIterator } from '@nats-io/nats-core';
import { CallRepository } from './call.repository.js';
import { operationFacts, type OperationFact } from './domain/operation-facts.js';
import { GatewayLease } from './gateway.lease.js';
import { Journal } from './journal.js';
import { Projection } from './projection.js';

const AT_ONCE = 500;
const READS_AT_ONCE = 32;
const PULL_MS = 5_000;
const KEPT_MS = 30_000;
const RETRY_MS = 1_000;
const GATEWAYS = 'gateway.>';

/** The facts that a stretch of the journal has of one operation. */
interface Seen {
  readonly originRunId: string;
  readonly operationId: string;
  readonly kinds: Set<string>;
}

/**
 * Finds facts that stand in the journal and not in Postgres, and brings them there: those of a gateway that died before it had, and those that were let
 * go while Postgres was away. Each gateway looks when it starts, and when another is gone. Only subjects are read, and bodies of what is missing.
 */
@Injectable()
export class Reconciliation implements OnApplicationBootstrap, OnApplicationShutdown {
  #watch: QueuedIterator<KvEntry> | undefined;
  #running: Promise<void> | undefined;
  #isWanted = false;
  #timer: NodeJS.Timeout | undefined;
  #isClosing = false;

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(CallRepository) private readonly repository: CallRepository,
    @Inject(Journal) private readonly journal: Journal,
    @Inject(Projection) private readonly projection: Projection,
    @Inject(GatewayLease) private readonly lease: GatewayLease,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    this.projection.whenLost(() => this.#want());
    const bucket = await new Kvm(this.bus.connection).open(buckets.leases5s.name);
    this.#watch = await bucket.watch({ key: GATEWAYS });
    void this.#follow(this.#watch);
    this.#want();
  }

  async onApplicationShutdown(): Promise<void> {
    this.#isClosing = true;
    clearTimeout(this.#timer);
    this.#watch?.stop();
    await this.#running;
  }

  /**
   * Brings what is missing of the operations that a filter names; gives how many were not brought: a gateway that lives will, or Postgres does not
   * take them. Rejects where not everything was compared.
   */
  async bring(filter: string): Promise<number> {
    let missed = 0;
    await this.projection.flush();
    const manager = await jetstreamManager(this.bus.connection, { checkAPI: false });
    const info = await manager.consumers.add(streams.journal.name, {
      name: `tool-gateway-look-${randomUUID()}`,
      filter_subject: filter,
      ack_policy: AckPolicy.None,
      deliver_policy: DeliverPolicy.All,
      headers_only: true,
      mem_storage: true,
      inactive_threshold: nanos(KEPT_MS),
    });
    try {
      const consumer = jetstream(this.bus.connection).consumers.getConsumerFromInfo(info);
      for (let left = info.num_pending; left > 0;) {
        if (this.#isClosing) throw new Error('the gateway is shutting down');
        const wanted = Math.min(left, AT_ONCE);
        const seen = new Map<string, Seen>();
        let read = 0;
        for await (const { subject } of await consumer.fetch({ max_messages: wanted, expires: PULL_MS })) {
          read++;
          note(seen, subject);
        }
        // What is left then was purged while we read, or the stream is slow to answer.
        if (read === 0) {
          if ((await consumer.info()).num_pending > 0) throw new Error('the journal did not give its facts in time');
          break;
        }
        left -= read;
        missed += await this.#bring([...seen.values()]);
      }
      return missed;
    } finally {
      await manager.consumers.delete(streams.journal.name, info.name).catch(() => undefined);
    }
  }

  async #bring(seen: readonly Seen[]): Promise<number> {
    let missed = 0;
    const standing = await this.repository.standing(seen.map(({ operationId }) => operationId));
    const missing = seen.filter(({ operationId, kinds }) => isMissing(standing.get(operationId), kinds));
    const alive = new Map<string, Promise<boolean>>();
    for (let from = 0; from < missing.length; from += READS_AT_ONCE) {
      const facts = await Promise.all(missing.slice(from, from + READS_AT_ONCE).map((one) => this.#facts(one, alive)));
      missed += facts.filter((one) => one === undefined).length;
      missed += await this.projection.project(facts.flatMap((one) => one ?? []));
    }
    return missed;
  }

  /** All facts of one operation; undefined where another gateway lives that will bring them itself. */
  async #facts({ originRunId, operationId, kinds }: Seen, alive: Map<string, Promise<boolean>>): Promise<OperationFact[] | undefined> {
    const [claim, outcome] = await Promise.all([
      this.journal.readClaim(originRunId, operationId),
      this.journal.readOutcome(originRunId, operationId),
    ]);
    if (claim === undefined) return [];
    const isAlive = alive.get(claim.gatewayId) ?? this.lease.isAlive(claim.gatewayId);
    alive.set(claim.gatewayId, isAlive);
    if (claim.gatewayId !== this.lease.id && (await isAlive)) return undefined;
    return [
      { kind: 'claim', claim },
      ...(outcome === undefined ? [] : [{ kind: 'outcome' as const, outcome }]),
      ...(kinds.has('abort') ? [{ kind: 'abort' as const, operationId }] : []),
    ];
  }

  async #follow(watch: QueuedIterator<KvEntry>): Promise<void> {
    for await (const { operation } of watch) if (operation !== 'PUT') this.#want();
  }

  /** Looks now, or once more after the look that is under way. */
  #want(): void {
    this.#isWanted = true;
    if (this.#isClosing || this.#running !== undefined) return;
    this.#running = this.#look().finally(() => (this.#running = undefined));
  }

  async #look(): Promise<void> {
    while (this.#isWanted && !this.#isClosing) {
      this.#isWanted = false;
      try {
        await this.bring(operationFacts.all);
      } catch (error) {
        if (this.#isClosing || this.bus.connection.isClosed()) return;
        this.log.warn({ error }, 'the journal was not compared with Postgres; trying again');
        this.#isWanted = true;
        await new Promise<void>((resolve) => (this.#timer = setTimeout(resolve, RETRY_MS)));
      }
    }
  }
}

function note(seen: Map<string, Seen>, subject: string): void {
  const at = operationFacts.place(subject);
  if (at === undefined) return;
  const known = seen.get(at.operationId) ?? { originRunId: at.originRunId, operationId: at.operationId, kinds: new Set<string>() };
  known.kinds.add(at.kind);
  seen.set(at.operationId, known);
}

function isMissing(status: string | undefined, kinds: ReadonlySet<string>): boolean {
  switch (status) {
    case undefined:
    case 'refused':
      return true;
    case 'running':
      return kinds.has('outcome') || kinds.has('abort');
    case 'aborting':
      return kinds.has('outcome');
    default:
      return false;
  }
}
