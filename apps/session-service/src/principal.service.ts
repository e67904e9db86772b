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
    const open = await erasure.openRunsOf(this.transactions.read, principal);
    for (const runId of open) await this.runs.cancelFor(runId, { reason: 'its principal is erased', doer: doerOf(call) });
    return this.transactions.run(async (unit) => {
      const sessionIds = await erasure.sessionsOf(unit.sql, principal, SESSIONS);
      const entries = await erasure.principal(unit.sql, principal);
      unit.audit(
        { action: 'principal.erase', target: `principal:${principal}`, projectId: null, reason: `${entries} entries` },
        doerOf(call),
      );
      return { runs: open.length, entries, sessionIds };
    });
  }
}
