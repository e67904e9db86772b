import { randomBytes } from 'node:crypto';
import { toolFailed } from './path-problem.js';
import type { RunningCommand } from './command.js';
import type { Exit } from './group.js';

const PER_SESSION = 8;
const IN_ALL = 64;
const REMEMBERED = 256;

export interface Process {
  readonly id: string;
  readonly sessionId: string;
  readonly runId: string;
  readonly command: string;
  readonly startedAt: number;
  readonly running: RunningCommand;
  exit: Exit | undefined;
}

/** Commands that go on after their call: each session sees its own, and each ends after its time, with its run's cancel, or with the worker. */
export class Processes {
  readonly #known = new Map<string, Process>();
  readonly #timers = new Map<string, NodeJS.Timeout>();

  constructor(private readonly lifetimeMs: number) {}

  /** Refuses what would be one too many, before it is started. */
  admit(sessionId: string): void {
    const running = [...this.#known.values()].filter((one) => one.exit === undefined);
    if (running.length >= IN_ALL) throw toolFailed(`${IN_ALL} processes run on this worker; end some first`);
    if (running.filter((one) => one.sessionId === sessionId).length >= PER_SESSION)
      throw toolFailed(`${PER_SESSION} processes of this session run; end some first`);
  }

  add(what: Omit<Process, 'id' | 'exit' | 'startedAt'>): Process {
    const process: Process = { ...what, id: randomBytes(4).toString('hex'), startedAt: Date.now(), exit: undefined };
    this.#forgetOldest();
    this.#known.set(process.id, process);
    this.#timers.set(
      process.id,
      setTimeout(() => void this.end(process), this.lifetimeMs),
    );
    void what.running.exited.then(async (exit) => {
      process.exit = exit;
      await this.end(process);
    });
    return process;
  }

  of(sessionId: string): Process[] {
    return [...this.#known.values()].filter((one) => one.sessionId === sessionId);
  }
  find(sessionId: string, id: string): Process {
    const found = this.#known.get(id);
    if (found?.sessionId !== sessionId) throw toolFailed(`this session has no process ${id}`);
    return found;
  }

  async end(process: Process): Promise<void> {
    clearTimeout(this.#timers.get(process.id));
    this.#timers.delete(process.id);
    await process.running.end();
    process.exit ??= await process.running.exited;
  }

  /** Ends those that a run started, or all. */
  async stop(runId: string | null): Promise<void> {
    const ending = [...this.#known.values()].filter((one) => one.exit === undefined && (runId === null || one.runId === runId));
    await Promise.all(ending.map((one) => this.end(one)));
  }

  /** Ends those of a session. */
  async endSession(sessionId: string): Promise<void> {
    await Promise.all(this.of(sessionId).flatMap((one) => (one.exit === undefined ? [this.end(one)] : [])));
  }

  #forgetOldest(): void {
    for (const [id, { exit }] of this.#known) {
      if (this.#known.size < REMEMBERED) return;
      if (exit !== undefined) this.#known.delete(id);
    }
  }
}
