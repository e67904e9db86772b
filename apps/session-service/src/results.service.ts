import { operationId } from '@ambit/capability';
import type { CallResult, IntendedCall } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { resultOf } from './domain/outcome.js';
import type { RunRecord } from './domain/run-state.js';
import { nextStep, type StoredStep } from './domain/step.js';
import { openCalls, resultEntry } from './domain/tape.js';
import { tapeView } from './domain/tape-view.js';
import { Journal } from './journal.service.js';
import { sessions } from './session.repository.js';
import { tape } from './tape.repository.js';
import { Transactions } from './transactions.repository.js';

/** A reply carries at most so much of the tape; the rest of a message's size is for everything around it. */
const VIEW_BYTES = 400 * 1024;
const ENTRIES = 400;

export interface Standing {
  readonly newest: StoredStep | undefined;
  readonly open: readonly IntendedCall[];
}

/** Brings outcomes from the journal onto the tape, and reads the tape as a worker does. */
@Injectable()
export class Results {
  constructor(
    private readonly journal: Journal,
    private readonly transactions: Transactions,
  ) {}

  /** The newest stored step and its calls without a result, after every outcome that the journal has joined the tape. */
  async absorb(run: RunRecord): Promise<Standing> {
    const standing = await this.standing(run.originRunId);
    const { newest, open } = standing;
    if (newest === undefined || open.length === 0) return standing;
    const { originRunId } = run;
    const byOperation = new Map(open.map((call) => [operationId(originRunId, newest.step, call.callId), call]));
    const outcomes = await this.journal.outcomes(originRunId, [...byOperation.keys()]);
    const found = [...byOperation].flatMap(([id, { callId }]): CallResult[] => {
      const outcome = outcomes.get(id);
      // One that asks is no result: the call goes on, and its decision brings one.
      return outcome === undefined || outcome.asks !== undefined ? [] : [resultOf(callId, outcome)];
    });
    if (found.length === 0) return standing;
    await this.transactions.run(async (unit) => {
      await sessions.lock(unit.sql, run.sessionId);
      await tape.append(
        unit,
        run.sessionId,
        found.map((result) => resultEntry(result, newest.step, { runId: run.id, originRunId })),
      );
    });
    return { newest, open: openCalls(open, found) };
  }

  /** The same without asking the journal. */
  async standing(originRunId: string): Promise<Standing> {
    const db = this.transactions.read;
    const newest = await tape.newestStep(db, originRunId);
    if (newest === undefined || newest.calls.length === 0) return { newest, open: [] };
    const ofStep = { originRunId, step: newest.step };
    const results = await tape.results(db, ofStep);
    if (
      openCalls(
        newest.calls.map(({ callId }) => ({ callId, name: '', arguments: '' })),
        results,
      ).length === 0
    )
      return { newest, open: [] };
    return { newest, open: openCalls(await tape.calls(db, ofStep), results) };
  }

  /** What run.start and tape.read answer. */
  async view(run: RunRecord, before?: number, standing?: Standing) {
    const { newest, open } = standing ?? (await this.absorb(run));
    const entries = await tape.newest(this.transactions.read, run.sessionId, { before, limit: ENTRIES });
    const openBytes = Buffer.byteLength(JSON.stringify(open));
    const window = tapeView(entries, {
      budgetBytes: Math.max(0, VIEW_BYTES - openBytes),
      openStep: newest === undefined || open.length === 0 ? null : { originRunId: run.originRunId, step: newest.step },
      hasOlder: (entries[0]?.id ?? 1) > 1,
    });
    const step = newest !== undefined && open.length > 0 ? newest.step : nextStep(newest);
    return { step, messages: [...window.messages], openCalls: [...open], more: window.more, before: window.before };
  }
}
