import { operationId } from '@ambit/capability';
import type { Call } from '@ambit/bus';
import { fault, sessionService, type Output, type Parsed } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { doerOf } from './doer.js';
import { hasEnded, type RunRecord } from './domain/run-state.js';
import { Endings } from './ending.service.js';
import { Journal } from './journal.service.js';
import { Leases } from './lease.service.js';
import { MessageService } from './message.service.js';
import { pageOf, placeFrom } from './paging.js';
import { Results } from './results.service.js';
import { publicRun, runs } from './run.repository.js';
import { Transactions, type Doer } from './transactions.repository.js';

type Cancelled = Output<typeof sessionService.cancelRun>;

/** How long an answer to a cancel waits for the gateway that executes. */
const WORD_MS = 1_000;

@Injectable()
export class RunService {
  /** Cancels that wait for a gateway's word, by run. */
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(
    private readonly transactions: Transactions,
    private readonly endings: Endings,
    private readonly results: Results,
    private readonly journal: Journal,
    private readonly leases: Leases,
    private readonly messages: MessageService,
  ) {}

  async get(id: string): Promise<Output<typeof sessionService.getRun>> {
    const run = await runs.find(this.transactions.read, id);
    if (run === undefined) throw fault(sessionService.getRun, 'RUN_UNKNOWN');
    return publicRun(run);
  }

  async list({ cursor, limit, ...filter }: Parsed<typeof sessionService.listRuns>): Promise<Output<typeof sessionService.listRuns>> {
    const found = await runs.list(this.transactions.read, { ...filter, before: placeFrom(cursor), limit });
    return pageOf(found.map(publicRun), limit);
  }

  async cancel({ id, reason }: Parsed<typeof sessionService.cancelRun>, call: Call): Promise<Cancelled> {
    return { state: await this.cancelFor(id, { reason, doer: doerOf(call) }) };
  }

  /** Cancels for whoever asks: the authority moves before anything is told to stop. */
  async cancelFor(id: string, { reason, doer }: { readonly reason: string; readonly doer: Doer }): Promise<Cancelled['state']> {
    const found = await runs.find(this.transactions.read, id);
    if (found === undefined) return 'unknown';
    if (hasEnded(found)) return 'ended';
    const word = this.#word(id);
    try {
      const cancelled = await this.transactions.runFlushed(async (unit) => {
        const run = await this.endings.cancel(unit, id, reason);
        if (run !== undefined) unit.audit({ action: 'run.cancel', target: `run:${id}`, projectId: run.projectId, reason }, doer);
        return run;
      });
      return cancelled === undefined ? 'ended' : await this.#stop(cancelled, word.heard);
    } finally {
      word.end();
    }
  }

  /** A gateway says that it has no open call of the run any more. */
  stopped(runId: string): void {
    for (const heard of this.#waiting.get(runId) ?? []) heard();
  }

  async #stop(run: RunRecord, heard: Promise<boolean>): Promise<Cancelled['state']> {
    await this.leases.release(run.id);
    // Only what was dispatched can have to be stopped, and only who executes it can say that it was.
    const state = !(await this.#hasClaims(run)) ? 'ended' : (await heard) ? 'stopped' : 'stopping';
    // What the gateway recorded of the calls it stopped joins the tape before another run reads it.
    await this.results.absorb(run);
    await this.messages.advance(run.sessionId);
    return state;
  }

  /** Whether anything of the run's last step was dispatched and has not come back. */
  async #hasClaims(run: RunRecord): Promise<boolean> {
    const { newest, open } = await this.results.standing(run.originRunId);
    if (newest === undefined) return false;
    return this.journal.claimed(
      run.originRunId,
      open.map(({ callId }) => operationId(run.originRunId, newest.step, callId)),
    );
  }

  #word(runId: string): { readonly heard: Promise<boolean>; end(): void } {
    const waiting = this.#waiting.get(runId) ?? new Set();
    this.#waiting.set(runId, waiting);
    let end: () => void = () => undefined;
    const heard = new Promise<boolean>((resolve) => {
      const hear = (): void => resolve(true);
      const timer = setTimeout(() => resolve(false), WORD_MS);
      waiting.add(hear);
      end = () => {
        clearTimeout(timer);
        waiting.delete(hear);
        if (waiting.size === 0) this.#waiting.delete(runId);
      };
    });
    return { heard, end: () => end() };
  }
}
