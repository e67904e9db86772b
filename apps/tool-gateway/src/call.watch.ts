import { Bus } from '@ambit/bus';
import { worker, type CallLog } from '@ambit/contracts';
import { LOG, Metrics, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { BatchService } from './batch.service.js';
import { CancelService } from './cancel.service.js';
import { OpenCalls } from './open-calls.js';

const REREAD_MS = 1_000;
const PROGRESS_MS = 2_000;
/** Sixteen KiB each at most, so that a signal stays small enough to send. */
const LOGS_TOLD = 20;

/** Looks after calls while they run: re-reads what may stop them, and tells their workers that they go on. */
@Injectable()
export class CallWatch implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #timers: NodeJS.Timeout[] = [];
  #isReading = false;

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(OpenCalls) private readonly calls: OpenCalls,
    @Inject(CancelService) private readonly cancels: CancelService,
    @Inject(BatchService) private readonly batches: BatchService,
    @Inject(Metrics) metrics: Metrics,
    @Inject(LOG) private readonly log: Logger,
  ) {
    metrics.gauge({
      name: 'ambit_open_calls',
      help: 'Calls that this gateway claimed and that have not ended',
      read: () => this.calls.all().length,
    });
  }

  onApplicationBootstrap(): void {
    this.#timers.push(
      setInterval(() => void this.#reread(), REREAD_MS),
      setInterval(() => this.tell(), PROGRESS_MS),
    );
  }
  onApplicationShutdown(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  /** One signal for each batch that runs here. */
  tell(): void {
    if (this.bus.connection.isClosed()) return;
    for (const { start, open } of this.batches.running()) {
      const { runId, agentId, workerId } = start.held.authority;
      if (workerId === null || open.length === 0) continue;
      const progress = open.flatMap(({ operationId, call }) => {
        const known = this.calls.find(operationId)?.progress;
        return known === undefined ? [] : [{ callId: call.callId, ...known }];
      });
      const logs = open.flatMap(({ operationId, call }) => this.#logsOf(operationId, call.callId)).slice(-LOGS_TOLD);
      this.bus.signal(
        worker.batchProgress,
        { runId, step: start.step, running: open.map(({ call }) => call.callId), progress, ...(logs.length === 0 ? {} : { logs }) },
        { keys: { agentId, workerId } },
      );
    }
  }

  /** What its server logged, once. */
  #logsOf(operationId: string, callId: string): (CallLog & { readonly callId: string })[] {
    const call = this.calls.find(operationId);
    if (call === undefined) return [];
    const { logs } = call;
    call.logs = [];
    return logs.map((log) => ({ callId, ...log }));
  }

  async #reread(): Promise<void> {
    if (this.#isReading) return;
    const old = this.calls.all().filter((call) => performance.now() - call.startedAt >= REREAD_MS && !call.signal.aborted);
    if (old.length === 0) return;
    this.#isReading = true;
    await this.cancels.reread(old).catch((error: unknown) => this.log.warn({ error }, 'aborts and run states could not be read again'));
    this.#isReading = false;
  }
}
