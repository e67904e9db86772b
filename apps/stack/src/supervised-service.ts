import { startGuarded, type GuardedProcess } from '@ambit/embedded';
import { say } from './say.js';
import { programOf } from './services.js';

export interface SupervisedOptions {
  readonly service: string;
  /** `<service>` or, for a second replica, `<service>-2`. */
  readonly label: string;
  readonly env: NodeJS.ProcessEnv;
  readonly opsPort: number;
  readonly logFile: string;
}

/** Seven processes that start at once on a small and busy machine need more than one would. */
const READY_MS = 150_000;
const STOP_GRACE_SECONDS = 15;
const FIRST_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 10_000;
/** A process that ran this long was well; its end is a new trouble. */
const WELL_AFTER_MS = 30_000;
const BOOT_ATTEMPTS = 3;

/** One process of a service: started, watched, started again after a crash with growing pauses, and stopped in order. */
export class SupervisedService {
  readonly options: SupervisedOptions;
  #process: GuardedProcess | undefined;
  #isStopping = false;
  #backoffMs = FIRST_BACKOFF_MS;
  #restart: NodeJS.Timeout | undefined;

  constructor(options: SupervisedOptions) {
    this.options = options;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Starts the process and answers when it is ready. Throws an Error with the end of its log when it does not become so. */
  async start(onRestart: () => void): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const child = this.#spawn();
      const outcome = await this.#untilReady(child);
      if (outcome === 'ready' || this.#isStopping) {
        this.#watch(child, onRestart);
        return;
      }
      await child.stop();
      if (attempt >= BOOT_ATTEMPTS || outcome === 'slow') {
        const what = outcome === 'slow' ? `is not ready after ${READY_MS / 1_000} s` : `ended ${attempt} times while starting`;
        throw new Error(
          `${this.options.label} ${what}; the end of ${this.options.logFile}:\n${child.lastOutput().trimEnd().split('\n').slice(-12).join('\n')}`,
        );
      }
    }
  }

  /** SIGTERM, a grace time for open work, then SIGKILL. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#restart);
    await this.#process?.stop();
  }

  #spawn(): GuardedProcess {
    const { service, env, logFile } = this.options;
    this.#process = startGuarded({
      command: process.execPath,
      // Young garbage has less room than Node gives it: some twenty megabytes less for each service, at no measurable cost.
      args: ['--max-semi-space-size=8', programOf(service)],
      env,
      output: { file: logFile },
      graceSeconds: STOP_GRACE_SECONDS,
    });
    return this.#process;
  }

  async #untilReady(child: GuardedProcess): Promise<'ready' | 'ended' | 'slow'> {
    let hasEnded = false;
    void child.exited.then(() => (hasEnded = true));
    const end = performance.now() + READY_MS;
    while (performance.now() < end && !this.#isStopping) {
      if (hasEnded) return 'ended';
      const isReady = await fetch(`http://127.0.0.1:${this.options.opsPort}/readyz`, { signal: AbortSignal.timeout(2_000) }).then(
        (response) => response.ok,
        () => false,
      );
      if (isReady) return 'ready';
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return 'slow';
  }

  #watch(child: GuardedProcess, onRestart: () => void): void {
    const began = performance.now();
    void child.exited.then((exit) => {
      if (this.#isStopping) return;
      if (performance.now() - began > WELL_AFTER_MS) this.#backoffMs = FIRST_BACKOFF_MS;
      const pauseMs = this.#backoffMs;
      this.#backoffMs = Math.min(pauseMs * 2, MAX_BACKOFF_MS);
      say(`${this.options.label} ended (${exit.signal ?? `exit ${exit.code ?? 'unknown'}`}); starting it again in ${pauseMs} ms`);
      this.#restart = setTimeout(() => {
        this.#watch(this.#spawn(), onRestart);
        onRestart();
      }, pauseMs);
    });
  }
}
