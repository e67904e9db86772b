import type { Call } from '@ambit/bus';
import type { Output, Parsed, sessionService } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { doerOf } from './doer.js';
import { erasure } from './erasure.repository.js';
import { RunService } from './run.service.js';
import { Transactions } from './transactions.repository.js';

const SESSIONS = 10_000;

/** Erases people. What stays is what proves that something happened: ids, digests, the audit. */
@Injectable()
export class PrincipalService {
  constructor(
    private readonly transactions: Transactions,
    private readonly runs: RunService,
  ) {}

  async erase(
    { principal }: Parsed<typeof sessionService.erasePrincipal>,
    call: Call,
  ): Promise<Output<typeof sessionService.erasePrincipal>> {
    // First: the end of a run begins the message that waits for it.
    await this.transactions.run((unit) => erasure.queuedOf(unit.sql, principal));
    const ended = new Set<string>();
    // Again and again, because one may have begun meanwhile.
    for (let open = await this.#open(principal); open.length > 0; open = await this.#open(principal)) {
      call.signal.throwIfAborted();
      for (const runId of open) await this.runs.cancelFor(runId, { reason: 'its principal is erased', doer: doerOf(call) });
      for (const runId of open) ended.add(runId);
    }
    return this.transactions.run(async (unit) => {
      const sessionIds = await erasure.sessionsOf(unit.sql, principal, SESSIONS);
      const entries = await erasure.principal(unit.sql, principal);
      unit.audit(
        { action: 'principal.erase', target: `principal:${principal}`, projectId: null, reason: `${entries} entries` },
        doerOf(call),
      );
      return { runs: ended.size, entries, sessionIds };
    });
  }

  #open(principal: string): Promise<string[]> {
    return erasure.openRunsOf(this.transactions.read, principal);
  }
}
