import { Bus, type Call } from '@ambit/bus';
import { fault, platformFault, sessionService, toolGateway, type Output, type Parsed } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { callsBefore, digestsOf, haveRepeatedIds, nextStep, type StepDigest } from './domain/step.js';
import { stepEntries } from './domain/tape.js';
import { Results } from './results.service.js';
import { tape } from './tape.repository.js';
import { Transactions } from './transactions.repository.js';
import { guarded } from './worker-guard.js';

type Step = Parsed<typeof sessionService.stepRun>;

/** Stores what a model said, once, before anything it asked for happens. */
@Injectable()
export class StepService {
  constructor(
    private readonly bus: Bus,
    private readonly transactions: Transactions,
    private readonly results: Results,
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
    await this.results.absorb(run);
    const before = await this.#store(input, { from, digests });
    // Before the answer: the batch that follows it finds a gateway that knows the step.
    this.bus.signal(
      toolGateway.stepStored,
      { runId: run.id, step: input.step, callsBefore: before, calls: digests },
      { keys: { runId: run.id } },
    );
    return { step: input.step };
  }

  async #store(
    input: Step,
    { from, digests }: { readonly from: Parameters<typeof guarded>[1]; readonly digests: StepDigest[] },
  ): Promise<number> {
    return this.transactions.run(async (unit) => {
      const { run } = await guarded(unit.sql, from, { lock: true });
      const newest = await tape.newestStep(unit.sql, run.originRunId);
      if (input.step !== nextStep(newest)) throw fault(sessionService.stepRun, 'STEP_TAKEN', { step: nextStep(newest) });
      const before = callsBefore(newest);
      const { step, usage } = input;
      await tape.storeStep(unit, {
        originRunId: run.originRunId,
        runId: run.id,
        step,
        callsBefore: before,
        calls: digests,
        usage: usage ?? null,
      });
      await tape.append(unit, run.sessionId, stepEntries(input, { runId: run.id, originRunId: run.originRunId }));
      return before;
    });
  }
}
