import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const GUARD = fileURLToPath(new URL('../../bin/guard.js', import.meta.url));
/** A guard is idle all its life: a small heap, one thread for collection. */
const FLAGS = ['--v8-pool-size=0', '--max-semi-space-size=1', '--max-old-space-size=32'];
const ENDED_MS = 5_000;

/** The worker's side of its guard: tells it of each process group, and has it end them. */
export class Guard {
  #process: ChildProcess | undefined;
  readonly #groups = new Map<number, string>();
  readonly #waiting = new Map<string, (isDone: boolean) => void>();

  /** Resolves when the guard knows the group: from then on it does not outlive this process. */
  async add(group: number, mark: string): Promise<void> {
    this.#groups.set(group, mark);
    if (!(await this.#ask(`+${group}`, ` ${mark}`))) {
      this.#groups.delete(group);
      throw new Error('the guard of the worker’s commands is gone');
    }
  }

  /** Ends a group and everything it started; resolves when nothing of it is left. */
  async end(group: number): Promise<void> {
    if (!this.#groups.has(group)) return;
    if (!(await this.#ask(`!${group}`))) killGroup(group);
    this.#groups.delete(group);
  }

  /** Ends every group, then the guard. */
  async close(): Promise<void> {
    await Promise.all([...this.#groups.keys()].map((group) => this.end(group)));
    this.#process?.stdin?.end();
    this.#process = undefined;
  }

  async #ask(question: string, more = ''): Promise<boolean> {
    const { stdin } = this.#running();
    return new Promise((resolve) => {
      const done = (isDone: boolean): void => {
        clearTimeout(timer);
        this.#waiting.delete(question);
        resolve(isDone);
      };
      const timer = setTimeout(() => done(false), ENDED_MS);
      this.#waiting.set(question, done);
      stdin?.write(`${question}${more}\n`);
    });
  }

  #running(): ChildProcess {
    if (this.#process !== undefined) return this.#process;
    const child = spawn(process.execPath, [...FLAGS, GUARD], { env: {}, stdio: ['pipe', 'pipe', 'ignore'], detached: true });
    this.#process = child;
    const lost = (): void => {
      if (this.#process === child) this.#process = undefined;
      for (const done of [...this.#waiting.values()]) done(false);
    };
    child.once('error', lost);
    child.once('exit', lost);
    child.stdin.on('error', lost);
    createInterface({ input: child.stdout }).on('line', (line) => this.#waiting.get(line)?.(true));
    child.unref();
    for (const [group, mark] of this.#groups) child.stdin.write(`+${group} ${mark}\n`);
    return child;
  }
}

function killGroup(group: number): void {
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // Nothing of it is left.
  }
}
