import { Bus, type Call } from '@ambit/bus';
import { fault, platformFault, refusals, sessionService, toolGateway, type Output, type Parsed } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { agents } from './agent.repository.js';
import { refusedResult } from './domain/decision.js';
import { userVisible } from './domain/faults.js';
import type { RunRecord } from './domain/run-state.js';
import { callsBefore, digestsOf, haveRepeatedIds, isCutOff, nextStep, type StepDigest } from './domain/step.js';
import { resultEntry, stepEntries } from './domain/tape.js';
import { Endings } from './ending.service.js';
import { Progress } from './progress.service.js';
import { Results } from './results.service.js';
import { tape } from './tape.repository.js';
import { Transactions, type Unit } from './transactions.repository.js';
import { guarded } from './worker-guard.js';

type Step = Parsed<typeof sessionService.stepRun>;

/** Outputs of one run that may be cut off: after the first its model is asked again, the next ends it. */
const CUTS_MAX = 2;
const TRUNCATED = { code: 'OUTPUT_TRUNCATED', message: refusals.OUTPUT_TRUNCATED.message } as const;

interface Stored {
  readonly run: RunRecord;
  readonly callsBefore: number;
}

/** Stores what a model said, once, before anything it asked for happens. */
@Injectable()
export class StepService {
  constructor(
    private readonly bus: Bus,
    private readonly transactions: Transactions,
    private readonly results: Results,
    private readonly progress: Progress,
    private readonly endings: Endings,
  ) {}

  async step(input: Step, call: Call<typeof sessionService.stepRun>): Promise<Output<typeof sessionService.stepRun>> {
    if (haveRepeatedIds(input.calls)) throw fault(sessionService.stepRun, 'CALL_ID_REPEATED');
    const digests = digestsOf(input.calls);
    if (digests === undefined)
      throw platformFault('INVALID_INPUT', {
        issues: [{ path: 'calls', message: 'names and arguments must be well-formed Unicode text' }],
      });
    const from = { contract: sessionService.stepRun, agentId: call.keys.agentId, ref: input };
    const { run } = await guarded(this.transactions.read, from);
    if (input.calls.length > 0 && (await agents.find(this.transactions.read, run.agentId))?.kind === 'acp')
      throw platformFault('INVALID_INPUT', {
        issues: [{ path: 'calls', message: 'an ACP agent reaches its tools through the edge; a step of its run has none' }],
      });
    await this.results.absorb(run);
    if (!(await this.progress.look(run))) throw fault(sessionService.stepRun, 'TURN_ENDED');
    const cut = input.calls.length > 0 && isCutOff(input.stop);
    const stored = await this.#store(input, { from, digests, cut });
    if (stored.run.endedAt !== null) await this.progress.leave(stored.run);
    // Before the answer: the batch that follows it finds a gateway that knows the step.
    this.bus.signal(
      toolGateway.stepStored,
      { runId: run.id, step: input.step, callsBefore: stored.callsBefore, calls: digests, ...(cut ? { cut } : {}) },
      { keys: { runId: run.id } },
    );
    return { step: input.step };
  }

  async #store(
    input: Step,
    { from, digests, cut }: { readonly from: Parameters<typeof guarded>[1]; readonly digests: StepDigest[]; readonly cut: boolean },
  ): Promise<Stored> {
    const work = async (unit: Unit): Promise<Stored> => {
      const { run } = await guarded(unit.sql, from, { lock: true });
      const newest = await tape.newestStep(unit.sql, run.originRunId);
      if (input.step !== nextStep(newest)) throw fault(sessionService.stepRun, 'STEP_TAKEN', { step: nextStep(newest) });
      const before = callsBefore(newest);
      const { step, usage } = input;
      const { originRunId } = run;
      const ofRun = { runId: run.id, originRunId };
      await tape.storeStep(unit, { ...ofRun, step, callsBefore: before, calls: digests, cut, usage: usage ?? null });
      await tape.append(unit, run.sessionId, stepEntries(input, ofRun));
      return { run: cut ? await this.#cutOff(unit, run, input) : run, callsBefore: before };
    };
    return cut ? this.transactions.runFlushed(work) : this.transactions.run(work);
  }

  /** What a call was meant to say whose end is missing nobody knows: none of the step's calls is made, and each is told so. */
  async #cutOff(unit: Unit, run: RunRecord, { step, calls }: Step): Promise<RunRecord> {
    const ofRun = { runId: run.id, originRunId: run.originRunId };
    const results = calls.map(({ callId }) => resultEntry(refusedResult(callId, TRUNCATED), step, ofRun));
    await tape.append(unit, run.sessionId, results);
    if ((await tape.cutSteps(unit.sql, run.originRunId)) < CUTS_MAX) return run;
    return this.endings.end(unit, run, { status: 'failed', fault: userVisible('OUTPUT_TRUNCATED') });
  }
}
