/** One who waits for news of a thing. */
export interface Listening {
  /** Resolves with the next news, when the signal aborts, or after so many milliseconds. */
  within(ms: number): Promise<void>;
  /** Call it in any case: nobody listens any more. */
  end(): void;
}

/** Who waits here for news of which thing. News is a hint: whoever is woken looks for itself. */
export class Wakes {
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Wakes everybody who listens for news of it. */
  wake(id: string): void {
    for (const wake of this.#waiting.get(id) ?? []) wake();
  }

  /** Listens from now on. Begun before a look, it lets no news fall between the look and the wait. */
  listen(id: string, signal: AbortSignal): Listening {
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting);
    let wake: () => void = () => undefined;
    const woken = new Promise<void>((resolve) => (wake = resolve));
    waiting.add(wake);
    signal.addEventListener('abort', wake, { once: true });
    let timer: NodeJS.Timeout | undefined;
    return {
      within: async (ms) => {
        timer = setTimeout(wake, ms);
        await woken;
      },
      end: () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', wake);
        waiting.delete(wake);
        if (waiting.size === 0) this.#waiting.delete(id);
      },
    };
  }
}
