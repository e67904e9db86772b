import { startGuarded, type Exit, type GuardedProcess } from '@ambit/embedded';
import type { ServiceName } from '@ambit/contracts';
import { existsSync, readFileSync } from 'node:fs';

const READY_MS = 180_000;
const LOG_LINES = 20;

export interface ServiceProcessOptions {
  readonly name: ServiceName;
  /** The service's name, with a number for a further replica. */
  readonly label: string;
  readonly program: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly opsPort: number;
  readonly logFile: string;
}

/** One built service as a process of its own, that a test can kill and start again. */
export class ServiceProcess {
  readonly #options: ServiceProcessOptions;
  #process: GuardedProcess | undefined;

  constructor(options: ServiceProcessOptions) {
    if (!existsSync(options.program)) throw new Error(`${options.program} is not built: run \`npm run build\` first`);
    this.#options = options;
  }

  get label(): string {
    return this.#options.label;
  }

  /** Settles when the process that runs now has ended, at once where none does. */
  get exited(): Promise<unknown> {
    return this.#process?.exited ?? Promise.resolve();
  }

  /** Of the process that runs now. */
  get pid(): number {
    if (this.#process === undefined) throw new Error(`${this.label} does not run`);
    return this.#process.pid;
  }

  get opsUrl(): string {
    return `http://127.0.0.1:${this.#options.opsPort}`;
  }

  /** Everything it has logged so far. */
  log(): string {
    return existsSync(this.#options.logFile) ? readFileSync(this.#options.logFile, 'utf8') : '';
  }

  /** Starts it and answers when it says that it is ready. Throws with the end of its log when it ends before. */
  async start(): Promise<void> {
    const { program, environment, logFile, label } = this.#options;
    const child = startGuarded({
      command: process.execPath,
      args: [program],
      env: environment,
      output: { file: logFile },
      graceSeconds: 10,
    });
    this.#process = child;
    const ended = child.exited.then(({ code, signal }) => {
      throw new Error(
        `${label} ended while starting (${signal ?? code}):\n${this.log().trimEnd().split('\n').slice(-LOG_LINES).join('\n')}`,
      );
    });
    await Promise.race([ended, this.#ready()]);
    ended.catch(() => undefined);
  }

  /** SIGKILL to the service itself; answers when it is gone. */
  async kill(): Promise<Exit | undefined> {
    return this.#signal('SIGKILL');
  }

  /** Holds it where it is: it lives and keeps its connections, and does nothing, until `resume`. */
  pause(): void {
    if (this.#process !== undefined) process.kill(this.#process.pid, 'SIGSTOP');
  }
  resume(): void {
    if (this.#process !== undefined) process.kill(this.#process.pid, 'SIGCONT');
  }

  /** Asks it to end in order; answers when it has. */
  async stop(): Promise<void> {
    await this.#process?.stop();
    this.#process = undefined;
  }

  async #signal(signal: NodeJS.Signals): Promise<Exit | undefined> {
    const child = this.#process;
    if (child === undefined) return undefined;
    process.kill(child.pid, signal);
    this.#process = undefined;
    return child.exited;
  }

  async #ready(): Promise<void> {
    const end = performance.now() + READY_MS;
    while (performance.now() < end) {
      const isReady = await fetch(`${this.opsUrl}/readyz`, { signal: AbortSignal.timeout(2_000) }).then(
        (response) => response.ok,
        () => false,
      );
      if (isReady) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(
      `${this.label} was not ready within ${READY_MS / 1_000} s:\n${this.log().trimEnd().split('\n').slice(-LOG_LINES).join('\n')}`,
    );
  }
}
