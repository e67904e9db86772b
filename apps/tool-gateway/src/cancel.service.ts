import { Bus } from '@ambit/bus';
import { sessionService, toolGateway } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import { AuthorityCache } from './authority.cache.js';
import { CallRepository } from './call.repository.js';
import { GatewayLease } from './gateway.lease.js';
import { Journal } from './journal.js';
import { OpenCalls, type OpenCall } from './open-calls.js';

type CancelState = 'stopped' | 'stopping' | 'ended' | 'unknown';

/** How long a cancel waits for the executing replica's word. */
const WORD_MS = 2_500;
const LOOK_MS = 100;
const PROJECTION_MS = 1_500;
/** A run's stop is told even when a call does not end; what is left then is parked by its own deadline. */
const RUN_STOP_MS = 10_000;

/** Stops calls: the fact first, then the signal; only who executes a call may say that it stopped. */
@Injectable()
export class CancelService {
  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(Journal) private readonly journal: Journal,
    @Inject(OpenCalls) private readonly calls: OpenCalls,
    @Inject(AuthorityCache) private readonly authorities: AuthorityCache,
    @Inject(CallRepository) private readonly repository: CallRepository,
    @Inject(GatewayLease) private readonly lease: GatewayLease,
  ) {}

  /** A run's authority moved. With `abort` its calls that run here are stopped, and session-service is told when none is left. */
  async runMoved(runId: string, abort: boolean, reason: string): Promise<void> {
    this.authorities.drop(runId);
    if (!abort) return;
    const open = this.calls.ofRun(runId);
    for (const call of open) call.stop(reason);
    const late = new Promise<'late'>((resolve) => setTimeout(resolve, RUN_STOP_MS, 'late').unref());
    const ended = await Promise.race([Promise.allSettled(open.map((call) => call.ended)), late]);
    if (ended === 'late') return;
    this.bus.signal(sessionService.runStopped, { runId, gatewayId: this.lease.id, stopped: open.length }, { keys: { runId } });
  }

  /** Another replica was asked to stop a call that may run here. */
  stopHere(operationId: string, reason: string): void {
    this.calls.abort(operationId, reason);
  }

  async cancel(operationId: string, reason: string, by: string): Promise<CancelState> {
    const known = this.calls.find(operationId)?.claim ?? (await this.#projected(operationId));
    if (known === undefined) return 'unknown';
    const { originRunId } = known;
    if (
      (await this.journal.readOutcome(originRunId, operationId)) !== undefined ||
      ('status' in known && known.status !== 'running' && known.status !== 'aborting')
    )
      return 'ended';
    await this.journal.abort({ schemaVersion: 1, operationId, originRunId, reason, by: by.slice(0, 200), at: new Date().toISOString() });
    this.calls.abort(operationId, reason);
    this.bus.signal(toolGateway.cancelOperation, { operationId, reason }, { keys: { operationId } });
    return this.#word(originRunId, operationId);
  }

  /** Reads again what an open call may have missed: its abort fact, and the state of its run. */
  async reread(open: readonly OpenCall[]): Promise<void> {
    const states = new Map([...new Set(open.map(({ claim }) => claim.runId))].map((runId) => [runId, this.journal.readRunState(runId)]));
    await Promise.all(
      open.map(async (call) => {
        const { originRunId, operationId, runId, attempt, interactionId } = call.claim;
        const [abort, state] = await Promise.all([this.journal.readAbort(originRunId, operationId), states.get(runId)]);
        if (abort !== undefined) return call.stop(abort.reason);
        if (state === undefined) return;
        // An approved call runs for a suspended run, whose next attempt is another run's.
        const isLive =
          interactionId === null
            ? state.status === 'running' && state.attempt <= attempt
            : state.status === 'running' || state.status === 'suspended';
        if (!isLive) call.stop(`the run is ${state.status}${state.attempt > attempt ? ', in a newer attempt' : ''}`);
      }),
    );
  }

  async #projected(operationId: string): Promise<{ originRunId: string; status: string } | undefined> {
    const until = performance.now() + PROJECTION_MS;
    for (;;) {
      const known = await this.repository.find(operationId);
      if (known !== undefined || performance.now() > until) return known;
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  async #word(originRunId: string, operationId: string): Promise<CancelState> {
    const until = performance.now() + WORD_MS;
    for (;;) {
      const outcome = await this.journal.readOutcome(originRunId, operationId);
      if (outcome !== undefined) return outcome.status === 'cancelled' ? 'stopped' : 'ended';
      if (performance.now() > until) return 'stopping';
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }
}
