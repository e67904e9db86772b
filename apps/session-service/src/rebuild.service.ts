import { Bus } from '@ambit/bus';
import { refusals, streams } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { userVisible } from './domain/faults.js';
import { hasEnded } from './domain/run-state.js';
import { resultEntry } from './domain/tape.js';
import { Endings } from './ending.service.js';
import { FenceReader } from './fence.service.js';
import { interactions } from './interaction.repository.js';
import { JetStream } from './jetstream.service.js';
import { PoolService } from './pool.service.js';
import { knownJournal } from './rebuild.repository.js';
import { Results } from './results.service.js';
import { runs } from './run.repository.js';
import { Snapshots } from './snapshot.service.js';
import { tape } from './tape.repository.js';
import { Transactions, type Unit } from './transactions.repository.js';

const JOURNAL = streams.journal.name;
const EVERY_MS = 5_000;
const AT_ONCE = 200;
/** Parking ten thousand runs takes a while. */
const REBUILD_MS = 10 * 60_000;
const INDETERMINATE = { code: 'INDETERMINATE', message: refusals.INDETERMINATE.message };

/**
 * Notices that JetStream was lost, or made anew after a backup of Postgres was restored, and makes good what was in it. Nobody knows any
 * more which calls of the runs that were going had happened, so these runs are parked, and none of them is ever offered again.
 */
@Injectable()
export class Rebuild implements OnModuleInit, OnModuleDestroy {
  #known: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosing = false;

  constructor(
    private readonly bus: Bus,
    private readonly transactions: Transactions,
    private readonly jetstream: JetStream,
    private readonly endings: Endings,
    private readonly fences: FenceReader,
    private readonly pools: PoolService,
    private readonly snapshots: Snapshots,
    private readonly results: Results,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  /** Nothing is answered before it is known whose rows these are. */
  async onModuleInit(): Promise<void> {
    void this.#watch();
    await this.known();
    this.#later();
  }

  onModuleDestroy(): void {
    this.#isClosing = true;
    clearTimeout(this.#timer);
  }

  /** Resolves once the journal that is there now is the one that our rows belong to. Asked before a run may go on. */
  known(): Promise<void> {
    const looking = (this.#known ??= this.look());
    looking.catch(() => {
      if (this.#known === looking) this.#known = undefined;
    });
    return looking;
  }

  /** Compares, and rebuilds where the journal is another one. Safe to repeat, and to be cut short. */
  async look(): Promise<void> {
    const created = await this.jetstream.createdAt(JOURNAL);
    if ((await knownJournal.find(this.transactions.read)) === created) return;
    // Other replicas wait here, and find that it is done.
    await this.transactions.run(async (unit) => {
      await knownJournal.alone(unit.sql);
      const known = await knownJournal.find(unit.sql);
      if (known === created) return;
      if (known !== undefined) await this.#rebuild(unit, known);
      await knownJournal.remember(unit.sql, created, unit.now);
    }, REBUILD_MS);
  }

  async #rebuild(unit: Unit, lost: string): Promise<void> {
    this.log.warn({ lost }, 'the journal is another one than our rows know; runs that were going are parked');
    this.snapshots.forget();
    let parked = 0;
    for (
      let ids = await runs.someOpen(this.transactions.read, AT_ONCE);
      ids.length > 0;
      ids = await runs.someOpen(this.transactions.read, AT_ONCE)
    ) {
      for (const id of ids) if (await this.transactions.run((own) => this.#park(own, id))) parked++;
    }
    await this.fences.restore();
    await this.pools.restore();
    unit.audit(
      { action: 'jetstream.rebuild', target: JOURNAL, projectId: null, reason: `${parked} runs were parked` },
      { principal: { id: 'system:session-service', kind: 'system', issuer: 'local', display: 'session-service' } },
    );
    this.log.warn({ parked }, 'JetStream is made good from Postgres');
  }

  async #park(unit: Unit, id: string): Promise<boolean> {
    const run = await runs.lock(unit.sql, id);
    if (run === undefined || hasEnded(run)) return false;
    const { newest, open } = await this.results.standing(run.originRunId);
    const undecided = new Set(
      (await interactions.unsettledOf(unit.sql, id)).flatMap(({ isLive, status, callId }) =>
        status === 'pending' && !isLive ? [callId] : [],
      ),
    );
    const lost = open.filter(({ callId }) => !undecided.has(callId));
    if (newest !== undefined)
      await tape.append(
        unit,
        run.sessionId,
        lost.map(({ callId }) =>
          resultEntry({ callId, status: 'indeterminate', fault: INDETERMINATE }, newest.step, { runId: id, originRunId: run.originRunId }),
        ),
      );
    await this.endings.end(unit, run, { status: 'parked', fault: userVisible('PARKED'), reason: 'JetStream was lost' });
    return true;
  }

  /** A stream cannot be lost while its server answers: it is enough to look again after the connection was away, and now and then. */
  async #watch(): Promise<void> {
    for await (const { type } of this.bus.connection.status()) if (type === 'disconnect' || type === 'reconnect') this.#known = undefined;
  }

  #later(): void {
    if (this.#isClosing) return;
    this.#timer = setTimeout(() => {
      this.#known = undefined;
      this.known()
        .catch((error: unknown) =>
          this.#isClosing ? undefined : this.log.warn({ error }, 'it is not known yet whether JetStream was lost'),
        )
        .finally(() => this.#later());
    }, EVERY_MS);
  }
}
