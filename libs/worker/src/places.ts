/** How many runs a worker may have at once. One that waits for others gives its place away, and takes one again without waiting for it. */
export class Places {
  #taken = 0;
  readonly #waiting = new Set<() => void>();

  constructor(private readonly max: number) {}

  /** Resolves once a place is free. */
  async free(): Promise<void> {
    while (this.#taken >= this.max) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  take(): void {
    this.#taken += 1;
  }

  leave(): void {
    this.#taken -= 1;
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  /** Does something during which the run that holds a place needs none. */
  async away<T>(work: () => Promise<T>): Promise<T> {
    this.leave();
    try {
      return await work();
    } finally {
      this.take();
    }
  }
}
