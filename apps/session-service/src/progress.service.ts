import { Injectable } from '@nestjs/common';
import { correctionEntry, equalSteps, CORRECT_AFTER, progressVerdict, roundHash, STOP_AFTER } from './domain/progress.js';
import { userVisible } from './domain/faults.js';
import type { RunRecord } from './domain/run-state.js';
import type { StoredStep } from './domain/step.js';
import { Endings } from './ending.service.js';
import { Leases } from './lease.service.js';
import { MessageService } from './message.service.js';
import { runs } from './run.repository.js';
import { sessions } from './session.repository.js';
import { tape } from './tape.repository.js';
import { Transactions, type Reader } from './transactions.repository.js';

/** Notices models that go round in a circle: tells them once, and ends their run when they go on. */
@Injectable()
export class Progress {
  constructor(
    private readonly transactions: Transactions,
    private readonly endings: Endings,
    private readonly leases: Leases,
    private readonly messages: MessageService,
  ) {}

  /** Looks at the newest rounds of a run, whose outcomes have joined the tape. Answers whether the run goes on; where it does not, it was left. */
  async look(run: RunRecord): Promise<boolean> {
    const steps = await tape.newestSteps(this.transactions.read, run.originRunId, STOP_AFTER);
    const equal = steps.slice(0, equalSteps(steps));
    // Most rounds differ by what they ask for, and their results need not be read.
    if (equal.length < CORRECT_AFTER) return true;
    const verdict = await this.#verdict(this.transactions.read, run, equal);
    if (verdict === 'go-on') return true;
    if (verdict === 'stop') return this.#stop(run);
    await this.#correct(run, equal);
    return true;
  }

  /** Lets go of a run that ended under its worker, and begins what waits for its session. */
  async leave(run: RunRecord): Promise<void> {
    await this.leases.release(run.id);
    await this.messages.advance(run.sessionId);
  }

  async #verdict(db: Reader, { originRunId }: RunRecord, steps: readonly StoredStep[]): Promise<ReturnType<typeof progressVerdict>> {
    const rounds = await Promise.all(steps.map(async (step) => roundHash(step, await tape.results(db, { originRunId, step: step.step }))));
    return progressVerdict(rounds);
  }

  async #correct({ id: runId, originRunId, sessionId }: RunRecord, steps: readonly StoredStep[]): Promise<void> {
    const numbers = steps.map(({ step }) => step);
    if (await tape.isCorrected(this.transactions.read, originRunId, numbers)) return;
    await this.transactions.run(async (unit) => {
      await sessions.lock(unit.sql, sessionId);
      if (await tape.isCorrected(unit.sql, originRunId, numbers)) return;
      await tape.append(unit, sessionId, [correctionEntry(numbers[0] ?? 0, { runId, originRunId })]);
    });
  }

  async #stop(going: RunRecord): Promise<false> {
    await this.transactions.runFlushed(async (unit) => {
      const run = await runs.lock(unit.sql, going.id);
      if (run?.status === 'running') await this.endings.end(unit, run, { status: 'failed', fault: userVisible('NO_PROGRESS') });
    });
    await this.leave(going);
    return false;
  }
}
