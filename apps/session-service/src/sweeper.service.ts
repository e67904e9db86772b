import { Bus } from '@ambit/bus';
import { sessionService, streams } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import type { Subscription } from '@nats-io/nats-core';
import { Inject, Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { MAX_DELIVERIES, RUN_MS } from './domain/run-state.js';
import { userVisible } from './domain/faults.js';
import { AftercareService } from './aftercare.service.js';
import { delegations } from './delegation.repository.js';
import { DelegationService } from './delegation.service.js';
import { DraftService } from './draft.service.js';
import { Endings } from './ending.service.js';
import { FinishService } from './finish.service.js';
import { inbound } from './inbound.repository.js';
import { InteractionService } from './interaction.service.js';
import { JetStream } from './jetstream.service.js';
import { Leases } from './lease.service.js';
import { LeavingService } from './leaving.service.js';
import { MessageService } from './message.service.js';
import { Narrowing } from './narrowing.service.js';
import { PoolService } from './pool.service.js';
import { Resumes } from './resume.service.js';
import { runs } from './run.repository.js';
import { SpentJobs } from './spent-jobs.service.js';
import { Transactions } from './transactions.repository.js';

const EVERY_MS = 2_000;
/** Between two looks at jobs: nothing there is urgent. */
const LOOK_MS = 10_000;
/** A lease is written right after its attempt is opened; a younger attempt may not have it yet. */
const YOUNG_MS = 5_000;
/** A closed attempt's job comes again after 30 s; where it does not, somebody acknowledged it. */
const FORSAKEN_MS = 120_000;
/** Longer than any call may take that began when its run was last used. */
const DISUSED_MS = RUN_MS + 5 * 60_000;
const RECEIPTS_KEPT_MS = 7 * 86_400_000;

/** Notices what nobody tells: leases that lapsed, decisions that came too late, work that a crash left half-way. Any replica may; each step is safe twice. */
@Injectable()
export class Sweeper implements OnApplicationBootstrap, OnModuleDestroy {
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> = Promise.resolve();
  #advisories: Subscription | undefined;
  #isClosing = false;
  #lookedAt = 0;

  constructor(
    private readonly bus: Bus,
    private readonly transactions: Transactions,
    private readonly jetstream: JetStream,
    private readonly leases: Leases,
    private readonly endings: Endings,
    private readonly narrowing: Narrowing,
    private readonly interactions: InteractionService,
    private readonly resumes: Resumes,
    private readonly messages: MessageService,
    private readonly finishes: FinishService,
    private readonly pools: PoolService,
    private readonly jobs: SpentJobs,
    private readonly delegations: DelegationService,
    private readonly aftercare: AftercareService,
    private readonly leaving: LeavingService,
    private readonly drafts: DraftService,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  onApplicationBootstrap(): void {
    // JetStream says so when a message was delivered as often as its consumer allows.
    this.#advisories = this.bus.connection.subscribe(`$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.${streams.runs.name}.>`, {
      callback: (error, message) => {
        if (error === null) void this.#attempt('exhausted', () => this.#exhausted(message.json()));
        else this.log.error({ error }, 'what JetStream says of jobs delivered too often is not heard');
      },
    });
    void this.#attempt('pools', () => this.pools.restore());
    this.#later();
  }

  async onModuleDestroy(): Promise<void> {
    this.#isClosing = true;
    clearTimeout(this.#timer);
    this.#advisories?.unsubscribe();
    await this.#sweeping;
  }

  /** One round of everything. */
  async sweep(now: Date = new Date()): Promise<void> {
    const before = (ms: number) => new Date(now.getTime() - ms);
    const db = this.transactions.read;
    await this.#attempt('expired interactions', () => this.interactions.expire(now));
    await this.#attempt('lapsed leases', async () =>
      this.#each(await this.leases.lapsed(await runs.working(db, before(YOUNG_MS))), (id) => this.#lapse(id)),
    );
    await this.#attempt('forsaken runs', async () => this.#each(await runs.forsaken(db, before(FORSAKEN_MS)), (id) => this.#forsaken(id)));
    await this.#attempt('spent jobs', () => this.#spent(now));
    await this.#attempt('runs to offer again', async () => this.#each(await runs.toRequeue(db, now), (id) => this.finishes.offerAgain(id)));
    await this.#attempt('runs to resume', async () => this.#each(await runs.toResume(db), (id) => this.resumes.resume(id)));
    await this.#attempt('disused runs of MCP clients', async () =>
      this.#each(await runs.disused(db, before(DISUSED_MS)), (id) => this.#disused(id, before(DISUSED_MS))),
    );
    await this.#attempt('waiting messages', async () => this.#each(await inbound.idleWithQueue(db), (id) => this.messages.advance(id)));
    await this.#attempt('overdue delegations', async () =>
      this.#each(await delegations.overdue(db, now), (one) => this.delegations.expire(one)),
    );
    // A crash left them so.
    await this.#attempt('resting chains', async () => this.#each(await delegations.resting(db), (id) => this.delegations.advance(id)));
    await this.#attempt('aftercare', async () => this.#each(await this.aftercare.owed(now), (one) => this.aftercare.attend(one)));
    await this.#attempt('deleted agents', async () => this.#each(await this.leaving.owed(now), (one) => this.leaving.attend(one)));
    await this.#attempt('drafts', () => this.drafts.dropExpired(now));
    await this.#attempt('receipts', () => inbound.forget(db, before(RECEIPTS_KEPT_MS)));
  }

  /** The worker of a run is gone: its attempt is closed, its open calls are stopped, and its job comes again, or was the last. */
  async #lapse(runId: string): Promise<void> {
    const lapsed = await this.transactions.runFlushed(async (unit) => {
      const run = await runs.lock(unit.sql, runId);
      if (run === undefined || run.status !== 'running') return undefined;
      // Held again since, or by the next attempt.
      if ((await this.leases.lapsed([{ id: run.id, attempt: run.attempt }])).length === 0) return undefined;
      const newest = (await runs.attempts(unit.sql, runId)).at(-1);
      if (newest === undefined || newest.closedAt !== null || Date.parse(newest.openedAt) > unit.now.getTime() - YOUNG_MS) return undefined;
      const isLast = run.attempt - run.uncounted >= MAX_DELIVERIES;
      if (isLast)
        return { run: await this.endings.end(unit, run, { status: 'failed', fault: userVisible('DELIVERIES_EXHAUSTED') }), isLast };
      await runs.closeAttempts(unit, runId);
      return { run: await runs.move(unit, run, { reason: 'the worker’s lease lapsed' }), isLast };
    });
    if (lapsed === undefined) return;
    this.log.warn({ runId, attempt: lapsed.run.attempt }, 'a run’s worker is gone');
    this.narrowing.hint([runId], { abort: true, reason: 'the worker’s lease lapsed' });
    if (!lapsed.isLast) return;
    await this.pools.deleteJob(lapsed.run);
    await this.messages.advance(lapsed.run.sessionId);
  }

  /** Its job was acknowledged by a worker that had lost it: a new one is made. */
  async #forsaken(runId: string): Promise<void> {
    const isQueued = await this.transactions.runFlushed(async (unit) => {
      const run = await runs.lock(unit.sql, runId);
      const newest = run === undefined ? undefined : (await runs.attempts(unit.sql, runId)).at(-1);
      if (run === undefined || run.status !== 'running' || newest === undefined || newest.closedAt === null) return false;
      await runs.move(unit, run, { status: 'queued', reason: 'its job did not come again' });
      return true;
    });
    if (isQueued) await this.finishes.offerAgain(runId);
  }

  /** A job that was delivered three times: unless somebody works on its run, the run has failed. */
  async #exhausted(advisory: unknown): Promise<void> {
    const sequence =
      typeof advisory === 'object' && advisory !== null && 'stream_seq' in advisory && typeof advisory.stream_seq === 'number'
        ? advisory.stream_seq
        : undefined;
    if (sequence === undefined) return;
    const manager = await this.jetstream.manager();
    const message = await manager.direct.getMessage(streams.runs.name, { seq: sequence });
    const job = message === null ? undefined : sessionService.runExecute.payload.safeParse(message.json()).data;
    if (job !== undefined) await this.#giveUp(job.runId, sequence);
  }

  /** What JetStream said of spent jobs while nobody listened. */
  async #spent(now: Date): Promise<void> {
    if (now.getTime() - this.#lookedAt < LOOK_MS) return;
    this.#lookedAt = now.getTime();
    for (const { runId, sequence } of await this.jobs.find(now)) {
      this.log.warn({ runId }, 'a queued run has no job that a worker is given any more');
      await this.#attempt(runId, () => (sequence === null ? this.finishes.offerAgain(runId) : this.#giveUp(runId, sequence)));
    }
  }

  async #giveUp(runId: string, sequence: number): Promise<void> {
    const manager = await this.jetstream.manager();
    const failed = await this.transactions.runFlushed(async (unit) => {
      const run = await runs.lock(unit.sql, runId);
      if (run === undefined || (run.status !== 'queued' && run.status !== 'running')) return undefined;
      if (run.status === 'running' && (await this.leases.lapsed([{ id: run.id, attempt: run.attempt }])).length === 0) return undefined;
      return this.endings.end(unit, run, { status: 'failed', fault: userVisible('DELIVERIES_EXHAUSTED') });
    });
    if (failed === undefined) return;
    this.narrowing.hint([failed.id], { abort: true, reason: 'delivered three times' });
    await manager.streams.deleteMessage(streams.runs.name, sequence, false);
    await this.messages.advance(failed.sessionId);
  }

  /** No MCP client has asked for it for longer than its calls may take. */
  async #disused(runId: string, since: Date): Promise<void> {
    await this.transactions.runFlushed(async (unit) => {
      const run = await runs.lock(unit.sql, runId);
      if (run !== undefined && (await runs.disused(unit.sql, since)).includes(runId))
        await this.endings.end(unit, run, { status: 'completed' });
    });
  }

  async #each<T extends string | { readonly id: string }>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
    for (const item of items) if (!this.#isClosing) await this.#attempt(typeof item === 'string' ? item : item.id, () => work(item));
  }

  /** One thing that cannot be done now keeps nothing else from being done; it is tried again in the next round. */
  async #attempt(what: string, work: () => Promise<unknown>): Promise<void> {
    if (this.#isClosing) return;
    try {
      await work();
    } catch (error) {
      if (!this.#isClosing) this.log.warn({ error, what }, 'a sweep did not finish; it is tried again');
    }
  }

  #later(): void {
    if (this.#isClosing) return;
    this.#timer = setTimeout(() => {
      this.#sweeping = this.sweep().finally(() => this.#later());
    }, EVERY_MS);
  }
}
