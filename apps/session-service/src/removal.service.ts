import type { Call } from '@ambit/bus';
import { fault, sessionService, type Output } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { aftercares, type Aftercare } from './aftercare.repository.js';
import { AftercareService } from './aftercare.service.js';
import { doerOf } from './doer.js';
import { Endings } from './ending.service.js';
import { runs } from './run.repository.js';
import { sessions } from './session.repository.js';
import { Transactions, type Unit } from './transactions.repository.js';

const REASON = 'the session was deleted';

/** Deletes sessions with everything below them: in one transaction here, and then everywhere else. */
@Injectable()
export class RemovalService {
  constructor(
    private readonly transactions: Transactions,
    private readonly endings: Endings,
    private readonly aftercare: AftercareService,
  ) {}

  /** Ends its runs and its children's first, a parent before its children, so that no child is started meanwhile. */
  async delete(id: string, call: Call): Promise<Output<typeof sessionService.deleteSession>> {
    const owed = await this.transactions.runFlushed(async (unit) => {
      const tree = await sessions.lockTree(unit.sql, id);
      if (tree.length === 0) throw fault(sessionService.deleteSession, 'SESSION_UNKNOWN');
      const left = new Map<string, Aftercare['runs']>();
      for (const sessionId of tree) left.set(sessionId, await runs.left(unit.sql, sessionId));
      for (const runId of await runs.openUnder(unit.sql, { sessionId: id })) await this.endings.cancel(unit, runId, REASON);
      const all: Aftercare[] = [];
      for (const sessionId of tree.toReversed()) all.push(await this.#remove(unit, sessionId, { runs: left.get(sessionId) ?? [], call }));
      return all;
    });
    await this.aftercare.settle(owed);
    return { deleted: true };
  }

  async #remove(
    unit: Unit,
    sessionId: string,
    { runs: left, call }: { readonly runs: Aftercare['runs']; readonly call: Call },
  ): Promise<Aftercare> {
    const session = await sessions.find(unit.sql, sessionId);
    const fingerprints = await sessions.removeWhole(unit.sql, sessionId);
    unit.audit({ action: 'session.delete', target: `session:${sessionId}`, projectId: session?.projectId ?? null }, doerOf(call));
    return aftercares.add(unit, { sessionId, whole: true, runs: left, fingerprints, by: call.actor ?? null });
  }
}
