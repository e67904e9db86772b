import type { Call } from '@ambit/bus';
import { fault, sessionService, type Output, type Parsed } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { withFresh } from './agent.repository.js';
import { withFingerprint } from './domain/fingerprints.js';
import { refreshEntry } from './domain/tape.js';
import { Instructions } from './instruction.service.js';
import { runs } from './run.repository.js';
import { Results } from './results.service.js';
import { Snapshots } from './snapshot.service.js';
import { tape } from './tape.repository.js';
import { Transactions } from './transactions.repository.js';
import { WhoseReader } from './whose.service.js';
import { guarded } from './worker-guard.js';

type Refresh = Parsed<typeof sessionService.refreshRun>;

/** Gives a running run the world as it is now: the only change of what it sees. */
@Injectable()
export class RefreshService {
  constructor(
    private readonly transactions: Transactions,
    private readonly snapshots: Snapshots,
    private readonly whose: WhoseReader,
    private readonly instructions: Instructions,
    private readonly results: Results,
  ) {}

  async refresh(ref: Refresh, call: Call<typeof sessionService.refreshRun>): Promise<Output<typeof sessionService.refreshRun>> {
    return withFresh(() => this.#refresh(ref, call));
  }

  async #refresh(ref: Refresh, call: Call<typeof sessionService.refreshRun>): Promise<Output<typeof sessionService.refreshRun>> {
    const from = { contract: sessionService.refreshRun, agentId: call.keys.agentId, ref };
    const { run: asking } = await guarded(this.transactions.read, from);
    // What the last step did is read off the journal first: a skill viewed there is what the run asks for.
    await this.results.absorb(asking);
    const whose = await this.whose.ofRun(ref.runId);
    if (whose === undefined) throw fault(sessionService.refreshRun, 'TOOL_NOT_IN_SNAPSHOT');
    const prepared = await this.snapshots.prepare(whose);
    const { fingerprint } = prepared.projection;
    const instructions = await this.transactions.runFlushed(async (unit) => {
      await this.whose.hold(unit, whose);
      const { run } = await guarded(unit.sql, from, { lock: true });
      await this.snapshots.give(unit, run.sessionId, prepared);
      await runs.move(unit, { ...run, fingerprints: withFingerprint(run.fingerprints, fingerprint) }, { fingerprint, reason: 'refreshed' });
      const { id: runId, originRunId, sessionId } = run;
      if (fingerprint !== run.fingerprint)
        await tape.append(unit, sessionId, [refreshEntry({ runId, originRunId }, run.fingerprint, fingerprint)]);
      return this.instructions.of(unit.sql, whose.agent, fingerprint);
    });
    return { fingerprint, instructions };
  }
}
