/** Resolves when the thing is usable; the reason of a rejection is logged by whoever owns the thing, never shown. */
export type ReadinessCheck = (signal: AbortSignal) => Promise<unknown>;

const CHECK_MS = 1_000;
const KEEP_MS = 500;

export interface Report {
  readonly ready: boolean;
  readonly checks: Readonly<Record<string, 'ok' | 'away'>>;
}

/** What must be usable before this process is sent work. Losing it makes the process unready, never dead. */
export class Readiness {
  readonly #checks = new Map<string, ReadinessCheck>();
  #isOpen = false;
  #last: { readonly at: number; readonly report: Promise<Report> } | undefined;

  add(name: string, check: ReadinessCheck): void {
    this.#checks.set(name, check);
  }

  /** Tells whether the start is over and the stop has not begun. */
  open(isOpen: boolean): void {
    this.#isOpen = isOpen;
  }

  /** Runs the checks, at most twice a second however often it is asked. */
  async report(): Promise<Report> {
    const now = performance.now();
    if (this.#last === undefined || now - this.#last.at > KEEP_MS) this.#last = { at: now, report: this.#run() };
    const report = await this.#last.report;
    return { ...report, ready: report.ready && this.#isOpen };
  }

  async #run(): Promise<Report> {
    const results = await Promise.all(
      [...this.#checks].map(async ([name, check]): Promise<[string, 'ok' | 'away']> => [name, (await passes(check)) ? 'ok' : 'away']),
    );
    return { ready: results.every(([, state]) => state === 'ok'), checks: Object.fromEntries(results) };
  }
}

async function passes(check: ReadinessCheck): Promise<boolean> {
  const signal = AbortSignal.timeout(CHECK_MS);
  const late = new Promise<false>((resolve) => signal.addEventListener('abort', () => resolve(false), { once: true }));
  return Promise.race([
    check(signal).then(
      () => true,
      () => false,
    ),
    late,
  ]);
}
