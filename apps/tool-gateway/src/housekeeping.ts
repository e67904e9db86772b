import { Bus } from '@ambit/bus';
import { journalSubject, streams } from '@ambit/contracts';
import { LOG, Metrics, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { jetstreamManager } from '@nats-io/jetstream';
import { CallRepository } from './call.repository.js';
import { ForeignClaims } from './foreign.claims.js';
import { GatewayLease } from './gateway.lease.js';
import { OpenCalls } from './open-calls.js';
import { Reconciliation } from './reconciliation.js';

const PARK_MS = 2_000;
const PURGE_MS = 30_000;
/** session-service reads outcomes off the journal until a run has ended; a while later nobody does. */
const PURGE_AFTER_MS = 5 * 60_000;
/** A claim of ours whose acknowledgements were all lost was given up, and nobody may ask for it again. */
const LEFT_MS = 60_000;
const AT_ONCE = 500;

/** Ends what dead gateways left open, and empties the journal of runs that are over and stand in Postgres. */
@Injectable()
export class Housekeeping implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #timers: NodeJS.Timeout[] = [];
  #parking: Promise<void> | undefined;
  #purging: Promise<void> | undefined;
  #isClosing = false;

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(CallRepository) private readonly repository: CallRepository,
    @Inject(ForeignClaims) private readonly foreign: ForeignClaims,
    @Inject(GatewayLease) private readonly lease: GatewayLease,
    @Inject(OpenCalls) private readonly calls: OpenCalls,
    @Inject(Reconciliation) private readonly reconciliation: Reconciliation,
    @Inject(Metrics) metrics: Metrics,
    @Inject(LOG) private readonly log: Logger,
  ) {
    metrics.gauge({
      name: 'ambit_parked_calls',
      help: 'Calls whose end is unknown and that wait for a person',
      read: () => this.repository.parked().catch(() => undefined),
    });
  }

  onApplicationBootstrap(): void {
    this.#timers.push(
      setInterval(() => this.#park(), PARK_MS),
      setInterval(() => this.#purge(), PURGE_MS),
    );
    this.#park();
  }
  async onApplicationShutdown(): Promise<void> {
    this.#isClosing = true;
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all([this.#parking, this.#purging]);
  }

  /** Records as indeterminate every open claim whose gateway has no lease, and those of ours that we do not know of. */
  async park(): Promise<number> {
    const unended = await this.repository.unended(AT_ONCE);
    const gateways = new Map<string, Promise<boolean>>();
    let parked = 0;
    const isLeft = ({ gatewayId, claimedAt }: (typeof unended)[number]): boolean =>
      gatewayId !== this.lease.id || Date.now() - claimedAt.getTime() > LEFT_MS;
    for (const call of unended) {
      if (this.calls.isUnderWay(call.operationId) || !isLeft(call)) continue;
      const alive = gateways.get(call.gatewayId) ?? this.lease.isAlive(call.gatewayId);
      gateways.set(call.gatewayId, alive);
      if (call.gatewayId !== this.lease.id && (await alive)) continue;
      await this.foreign.park({ originRunId: call.originRunId, operationId: call.operationId, at: call.claimedAt.toISOString() });
      parked++;
    }
    return parked;
  }

  /** Purges the facts of runs that ended before a moment and stand in Postgres whole. */
  async purge(endedBefore: Date): Promise<number> {
    const runs = await this.repository.purgeable(endedBefore, AT_ONCE);
    if (runs.length === 0) return 0;
    const manager = await jetstreamManager(this.bus.connection, { checkAPI: false });
    let purged = 0;
    for (const originRunId of runs) {
      if (this.#isClosing) break;
      const filter = journalSubject.operationsOf(originRunId);
      // Read before what is compared: nothing that came later is purged.
      const { last_seq: last } = (await manager.streams.info(streams.journal.name)).state;
      const missed = await this.reconciliation.bring(filter);
      if (missed > 0 || !(await this.repository.isSettled(originRunId))) continue;
      await manager.streams.purge(streams.journal.name, { filter, seq: last + 1 });
      await this.repository.purged(originRunId, new Date());
      purged++;
    }
    return purged;
  }

  #park(): void {
    if (this.#isClosing) return;
    this.#parking ??= this.park()
      .then(
        () => undefined,
        (error: unknown) => (this.#isClosing ? undefined : this.log.warn({ error }, 'calls of gone gateways could not be looked for')),
      )
      .finally(() => (this.#parking = undefined));
  }

  #purge(): void {
    if (this.#isClosing) return;
    this.#purging ??= this.purge(new Date(Date.now() - PURGE_AFTER_MS))
      .then(
        () => undefined,
        (error: unknown) => (this.#isClosing ? undefined : this.log.warn({ error }, 'the journal was not purged')),
      )
      .finally(() => (this.#purging = undefined));
  }
}
