import type { Call } from '@ambit/bus';
import { ContentBlock, fault, platformFault, sessionService, type Output, type Parsed } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { z } from 'zod';
import { agents } from './agent.repository.js';
import { messagePosted, runJob } from './domain/facts.js';
import { userVisible } from './domain/faults.js';
import type { RunRecord } from './domain/run-state.js';
import { Endings } from './ending.service.js';
import { DelegationService } from './delegation.service.js';
import { Instructions } from './instruction.service.js';
import { interactions } from './interaction.repository.js';
import { jobOf } from './launch.service.js';
import { Leases } from './lease.service.js';
import { MessageService } from './message.service.js';
import { Results } from './results.service.js';
import { Resumes } from './resume.service.js';
import { runs } from './run.repository.js';
import { sessions } from './session.repository.js';
import { tape } from './tape.repository.js';
import { Transactions, type Unit } from './transactions.repository.js';
import { guarded, type FromWorker } from './worker-guard.js';

type Finish = Parsed<typeof sessionService.finishRun>;

const Said = z.object({ content: z.array(ContentBlock) });

/** How long a run that no worker could take rests before it is offered again. */
const OFFER_AGAIN_MS = 5_000;

/** Closes attempts, and with them runs. */
@Injectable()
export class FinishService {
  constructor(
    private readonly transactions: Transactions,
    private readonly endings: Endings,
    private readonly leases: Leases,
    private readonly results: Results,
    private readonly resumes: Resumes,
    private readonly messages: MessageService,
    private readonly instructions: Instructions,
    private readonly delegations: DelegationService,
  ) {}

  async finish(input: Finish, call: Call<typeof sessionService.finishRun>): Promise<Output<typeof sessionService.finishRun>> {
    const from = { contract: sessionService.finishRun, agentId: call.keys.agentId, ref: input };
    const { run } = await guarded(this.transactions.read, from);
    const { open } = await this.results.absorb(run);
    if (input.status === 'completed' && open.length > 0) throw fault(sessionService.finishRun, 'OPEN_CALLS');
    const finished = await this.transactions.runFlushed((unit) => this.#close(unit, from, input));
    await this.leases.release(run.id);
    const resumeRunId = finished.status === 'suspended' ? await this.resumes.resume(run.id) : null;
    if (finished.endedAt !== null) {
      await this.messages.advance(run.sessionId);
      await this.delegations.advanceOf(run.sessionId);
    }
    return { status: finished.status, resumeRunId };
  }

  /** Offers a run again that rested, under a new job. */
  async offerAgain(runId: string): Promise<void> {
    await this.transactions.run(async (unit) => {
      const run = await runs.lock(unit.sql, runId);
      if (run === undefined || run.status !== 'queued') return;
      const agent = await agents.find(unit.sql, run.agentId);
      const session = await sessions.find(unit.sql, run.sessionId);
      if (agent === undefined || session === undefined) return;
      const next = { ...run, jobVersion: run.jobVersion + 1 };
      await runs.store(unit, next);
      const instructions = await this.instructions.of(unit.sql, agent, run.fingerprints[0] ?? run.fingerprint);
      unit.tell(runJob(next, { ...jobOf(agent, session, run), instructions }));
    });
  }

  async #close(unit: Unit, from: FromWorker, input: Finish): Promise<RunRecord> {
    const { run } = await guarded(unit.sql, from, { lock: true });
    switch (input.status) {
      case 'waiting':
        return this.#suspend(unit, run);
      case 'completed':
        await this.#post(unit, run);
        return this.endings.end(unit, run, { status: 'completed' });
      case 'cancelled':
        return this.endings.end(unit, run, { status: 'cancelled', reason: input.reason ?? 'cancelled by the worker' });
      case 'failed':
        if (input.code === 'WORKSPACE_UNAVAILABLE') return this.#rest(unit, run);
        return this.endings.end(unit, run, { status: 'failed', fault: userVisible(input.code ?? 'WORKER_FAILED', input.reason) });
    }
  }

  async #suspend(unit: Unit, run: RunRecord): Promise<RunRecord> {
    if (!(await interactions.standing(unit.sql, run.id)).asked) {
      throw platformFault('INVALID_INPUT', {
        issues: [{ path: 'status', message: 'waiting needs a decision that was asked for; this run asked for none' }],
      });
    }
    await runs.closeAttempts(unit, run.id);
    return runs.move(unit, run, { status: 'suspended', reason: 'waits for a decision' });
  }

  /** Not this worker's fault nor the run's: the attempt counts for nothing, and another worker may be able. */
  async #rest(unit: Unit, run: RunRecord): Promise<RunRecord> {
    await runs.closeAttempts(unit, run.id);
    const requeueAt = new Date(unit.now.getTime() + OFFER_AGAIN_MS);
    return runs.move(
      unit,
      { ...run, uncounted: run.uncounted + 1 },
      { status: 'queued', reason: 'the workspace was not available', requeueAt },
    );
  }

  async #post(unit: Unit, run: RunRecord): Promise<void> {
    const said = await tape.lastSaid(unit.sql, run.originRunId);
    const session = await sessions.find(unit.sql, run.sessionId);
    // What a subagent says is for its parent alone.
    if (said === undefined || session === undefined || session.kind === 'subagent') return;
    const { content } = Said.parse(said.content);
    unit.tell(messagePosted(run, session, { content, now: unit.now }));
  }
}
