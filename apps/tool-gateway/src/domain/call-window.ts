import type { UsageWindow } from '@ambit/capability';

const WINDOW_MS = 60_000;

interface Minute {
  startedAt: number;
  used: number;
  before: number;
}

/** Calls dispatched in the last minute by key, from two neighbouring minutes weighted by time: bounded memory, at most a few calls off. */
export class CallWindows {
  readonly #minutes = new Map<string, Minute>();

  constructor(private readonly maxKeys = 10_000) {}

  /** What a call would add to. `now` in milliseconds. */
  usage(name: string, limit: number, now: number): UsageWindow {
    const minute = this.#at(name, now);
    const elapsed = now - minute.startedAt;
    const used = minute.used + Math.floor(minute.before * (1 - elapsed / WINDOW_MS));
    return { name, used, limit, retryAfterMs: Math.max(1, Math.ceil(WINDOW_MS - elapsed)) };
  }

  take(name: string, now: number): void {
    this.#at(name, now).used += 1;
  }

  /** Gives back what was taken for a call that was not dispatched. */
  refund(name: string, now: number): void {
    const minute = this.#at(name, now);
    minute.used = Math.max(0, minute.used - 1);
  }

  #at(name: string, now: number): Minute {
    const known = this.#minutes.get(name);
    if (known === undefined) {
      if (this.#minutes.size >= this.maxKeys) this.#forgetIdle(now);
      const fresh = { startedAt: now, used: 0, before: 0 };
      this.#minutes.set(name, fresh);
      return fresh;
    }
    const passed = Math.floor((now - known.startedAt) / WINDOW_MS);
    if (passed < 1) return known;
    known.before = passed === 1 ? known.used : 0;
    known.used = 0;
    known.startedAt += passed * WINDOW_MS;
    return known;
  }

  #forgetIdle(now: number): void {
    for (const [name, minute] of this.#minutes) if (now - minute.startedAt > 2 * WINDOW_MS) this.#minutes.delete(name);
    for (const name of this.#minutes.keys()) {
      if (this.#minutes.size < this.maxKeys) return;
      this.#minutes.delete(name);
    }
  }
}
