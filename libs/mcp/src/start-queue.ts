/** Lets a few tasks run at once and a bounded number wait, in order. */
export class StartQueue {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(
    private readonly atOnce: number,
    private readonly longest: number,
  ) {}

  /** Runs the task when its turn comes. Throws the error that `full` makes when too many wait already. */
  async run<T>(task: () => Promise<T>, full: () => Error): Promise<T> {
    if (this.running >= this.atOnce) {
      if (this.waiting.length >= this.longest) throw full();
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    } else this.running++;
    try {
      return await task();
    } finally {
      // The place passes straight to the next in line, so that nobody can slip in between.
      const next = this.waiting.shift();
      if (next === undefined) this.running--;
      else next();
    }
  }
}
