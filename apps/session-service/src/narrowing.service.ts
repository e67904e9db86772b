import { Bus } from '@ambit/bus';
import { toolGateway, worker } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { hasEnded } from './domain/run-state.js';
import { runs } from './run.repository.js';
import { Transactions, type Unit } from './transactions.repository.js';

const AT_ONCE = 8;

/** Moves the authority of runs: from the moment it is told, claims that were decided under the old one are refused. */
@Injectable()
export class Narrowing {
  constructor(
    private readonly bus: Bus,
    private readonly transactions: Transactions,
  ) {}

  /** Moves each live run's state and returns once all of them stand in the journal; gives how many were live. */
  async moveEach(runIds: readonly string[], reason: string): Promise<number> {
    let count = 0;
    for (let start = 0; start < runIds.length; start += AT_ONCE) {
      const moved = await Promise.all(
        runIds.slice(start, start + AT_ONCE).map((id) => this.transactions.runFlushed((unit) => this.move(unit, id, reason))),
      );
      count += moved.filter(Boolean).length;
    }
    this.hint(runIds, { abort: false, reason });
    return count;
  }

  /** Moves one run's state inside a transaction; false where it has ended. */
  async move(unit: Unit, runId: string, reason: string): Promise<boolean> {
    const run = await runs.lock(unit.sql, runId);
    if (run === undefined || hasEnded(run)) return false;
    await runs.move(unit, run, { reason });
    return true;
  }

  /** Tells the gateways to let go of what they hold of these runs, and to stop their calls where they have to end. */
  hint(runIds: readonly string[], { abort, reason }: { readonly abort: boolean; readonly reason: string }): void {
    for (const runId of runIds)
      this.bus.signal(toolGateway.cancelRunCalls, { runId, abort, reason: reason.slice(0, 200) }, { keys: { runId } });
  }

  /** Tells the worker of a run to stop sampling. */
  hintWorker(run: { readonly id: string; readonly agentId: string }, workerId: string | null, reason: string): void {
    if (workerId === null) return;
    this.bus.signal(worker.cancelRun, { runId: run.id, reason: reason.slice(0, 200) }, { keys: { agentId: run.agentId, workerId } });
  }
}
