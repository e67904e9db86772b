// The machine that a property runs gateways on: the order of everything that is under way is drawn, and a process may end between any two of its steps.

/** Numbers from 0 up to a bound, the same for the same seed. */
export function drawing(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

/** What a process may be told of a request: a lost one was carried out, or not, and it cannot tell which. */
export type Fate = 'answered' | 'lost before' | 'lost after';

export interface Living {
  isAlive: boolean;
}

/** Later than anything waits for that a property looks at. */
const HORIZON_MS = 120_000;

/** Runs steps one at a time in a drawn order; its clock moves when nothing else does. */
export class Machine {
  #steps: { readonly of: Living; readonly run: () => void }[] = [];
  readonly #timers = new Map<number, Timer>();
  #nextTimer = 1;
  #now = 0;
  readonly #real = { setTimeout, clearTimeout, setInterval, clearInterval, Date };
  readonly #startedAt = Date.now();

  #fates: readonly Fate[];

  constructor(
    readonly draw: (below: number) => number,
    fates: readonly Fate[],
  ) {
    this.#fates = fates;
  }

  get now(): number {
    return this.#now;
  }

  /** Takes clock and timers of this realm over; give them back. */
  take(): () => void {
    const start = (run: () => void, ms = 0): number => {
      const id = this.#nextTimer++;
      if (ms < HORIZON_MS) this.#timers.set(id, { at: this.#now + ms, run });
      return id;
    };
    const stop = (id: number | undefined): void => void (id !== undefined && this.#timers.delete(id));
    // What happens every so often is done where the property says.
    Object.assign(globalThis, {
      setTimeout: start,
      clearTimeout: stop,
      setInterval: () => 0,
      clearInterval: stop,
      Date: clockOf(() => this.#startedAt + this.#now),
    });
    return () => void Object.assign(globalThis, this.#real);
  }

  /** Something that a process asks of what is outside: it happens at a later step, and is told of at a still later one, while the process lives. */
  outside<T>(of: Living, happens: () => T, lost: () => Error): Promise<T> {
    const fate = this.#fates[this.draw(Math.max(1, this.#fates.length))] ?? 'answered';
    return new Promise((resolve, reject) => {
      const tell = (run: () => void): void => void this.#steps.push({ of, run });
      if (!of.isAlive) return;
      tell(() => {
        if (fate === 'lost before') return tell(() => reject(lost()));
        const result = happens();
        tell(() => (fate === 'lost after' ? reject(lost()) : resolve(result)));
      });
    });
  }

  /** Ends a process: what it asked and has not happened does not, and it hears of nothing any more. */
  end(of: Living): void {
    of.isAlive = false;
    this.#steps = this.#steps.filter((step) => step.of !== of);
  }

  /** Runs so many steps, or all that there is to do; gives how many it ran. */
  async run(atMost = 5_000): Promise<number> {
    for (let ran = 0; ran < atMost; ran++) {
      await settled();
      const [step] = this.#steps.splice(this.draw(Math.max(1, this.#steps.length)), 1);
      if (step === undefined && !this.#tick()) return ran;
      step?.run();
    }
    await settled();
    return atMost;
  }

  /** From now on every answer arrives. */
  calm(): void {
    this.#fates = [];
  }
  get isCalm(): boolean {
    return this.#fates.length === 0;
  }

  /** Lets time pass that nobody waits for. */
  pass(ms: number): void {
    this.#now += ms;
  }

  #tick(): boolean {
    const [id, timer] = [...this.#timers].sort(([, left], [, right]) => left.at - right.at)[0] ?? [];
    if (id === undefined || timer === undefined) return false;
    this.#timers.delete(id);
    this.#now = Math.max(this.#now, timer.at);
    timer.run();
    return true;
  }
}

/** A `Date` that tells this time. */
function clockOf(now: () => number): typeof globalThis.Date.prototype.constructor {
  return class extends Date {
    constructor(...values: readonly [] | readonly [number | string | Date]) {
      super(values[0] ?? now());
    }
    static override now(): number {
      return now();
    }
  };
}

/** When everything that follows from the last step has been done. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
