import type { Call } from '@ambit/bus';
import { fault, sessionService, type Output, type Parsed } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { agents } from './agent.repository.js';
import { isOwn, startVerdict, type WorkerRefusal } from './domain/attempt.js';
import { userVisible } from './domain/faults.js';
import type { RunRecord } from './domain/run-state.js';
import { Endings } from './ending.service.js';
import { Leases } from './lease.service.js';
import { Progress } from './progress.service.js';
import { Rebuild } from './rebuild.service.js';
import { Results } from './results.service.js';
import { runs } from './run.repository.js';
import { Transactions } from './transactions.repository.js';
import { guarded, hashOf, known, newToken } from './worker-guard.js';

/** How long a run rests that its agent has no room for, before it is offered again. */
const OFFER_AGAIN_MS = 2_000;

type Started = { readonly run: RunRecord } | { readonly refusal: WorkerRefusal | 'AGENT_DISABLED' };

/** The attempts of a run: opened by run.start, held by run.renew. */
@Injectable()
export class AttemptService {
  constructor(
    private readonly transactions: Transactions,
    private readonly endings: Endings,
    private readonly leases: Leases,
    private readonly results: Results,
    private readonly rebuild: Rebuild,
    private readonly progress: Progress,
  ) {}

  async start(
    input: Parsed<typeof sessionService.startRun>,
    call: Call<typeof sessionService.startRun>,
  ): Promise<Output<typeof sessionService.startRun>> {
    await this.rebuild.known();
    const token = newToken();
    const started = await this.#open(input, { agentId: call.keys.agentId, tokenHash: hashOf(token) });
    if ('refusal' in started) throw fault(sessionService.startRun, started.refusal);
    const { run } = started;
    await this.leases.renew(run.id, run.attempt);
    return { token, attempt: run.attempt, ...(await this.results.view(run)) };
  }

  async renew(
    ref: Parsed<typeof sessionService.renewRun>,
    call: Call<typeof sessionService.renewRun>,
  ): Promise<Output<typeof sessionService.renewRun>> {
    const { run, refusal } = await known(this.transactions.read, { contract: sessionService.renewRun, agentId: call.keys.agentId, ref });
    if (refusal === 'TURN_ENDED' && run.status === 'cancelled') return { cancelled: true };
    if (refusal !== null) throw fault(sessionService.renewRun, refusal);
    await this.leases.renew(run.id, run.attempt);
    return { cancelled: false };
  }

  async read(
    { before, ...ref }: Parsed<typeof sessionService.readTape>,
    call: Call<typeof sessionService.readTape>,
  ): Promise<Output<typeof sessionService.readTape>> {
    const { run } = await guarded(this.transactions.read, { contract: sessionService.readTape, agentId: call.keys.agentId, ref });
    if (before !== undefined) return this.results.view(run, before);
    const standing = await this.results.absorb(run);
    if (await this.progress.look(run)) return this.results.view(run, undefined, standing);
    throw fault(sessionService.readTape, 'TURN_ENDED');
  }

  /** Answers once the new state stands in the journal: from then on no claim of an older attempt is taken. */
  async #open(
    input: Parsed<typeof sessionService.startRun>,
    attempt: { readonly agentId: string; readonly tokenHash: string },
  ): Promise<Started> {
    const found = await runs.find(this.transactions.read, input.runId);
    if (!isOwn(found, attempt.agentId, input)) return { refusal: 'TOOL_NOT_IN_SNAPSHOT' };
    return this.transactions.runFlushed(async (unit): Promise<Started> => {
      const run = await runs.lock(unit.sql, input.runId);
      const agent = run === undefined ? undefined : await agents.find(unit.sql, run.agentId);
      if (run === undefined || agent === undefined) return { refusal: 'TOOL_NOT_IN_SNAPSHOT' };
      const verdict = startVerdict(run, agent.enabled);
      switch (verdict) {
        case 'disabled':
          await this.endings.end(unit, run, { status: 'failed', fault: userVisible('AGENT_DISABLED') });
          return { refusal: 'AGENT_DISABLED' };
        case 'exhausted':
          await this.endings.end(unit, run, { status: 'failed', fault: userVisible('DELIVERIES_EXHAUSTED') });
          return { refusal: 'TURN_ENDED' };
        case 'open': {
          if (run.status === 'queued' && !(await runs.hasRoom(unit.sql, run, agent.policy.limits.runsAtOnce))) {
            const requeueAt = new Date(unit.now.getTime() + OFFER_AGAIN_MS);
            await runs.move(unit, run, { status: 'queued', reason: 'the agent works on as many runs as it may', requeueAt });
            return { refusal: 'TURN_ENDED' };
          }
          const number = run.attempt + 1;
          await runs.openAttempt(unit, run.id, { number, tokenHash: attempt.tokenHash, workerId: input.workerId ?? null });
          return {
            run: await runs.move(unit, run, {
              status: 'running',
              attempt: number,
              fingerprint: input.fingerprint,
              reason: `attempt ${number}`,
            }),
          };
        }
        default:
          return { refusal: verdict };
      }
    });
  }
}
