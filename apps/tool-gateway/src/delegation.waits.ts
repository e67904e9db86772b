import { Bus } from '@ambit/bus';
import { Fault, sessionService, type Delegation } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';

/** An event is a hint: a delegation that is waited for is read again so often in any case. */
const READ_AGAIN_MS = 2_000;

/** Calls that wait here for a delegation to end. */
@Injectable()
export class DelegationWaits {
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(@Inject(Bus) private readonly bus: Bus) {}

  changed(delegationId: string): void {
    for (const wake of this.#waiting.get(delegationId) ?? []) wake();
  }

  /** How a delegation stands when it has ended, or when the time is up. Rejects with the signal's reason. */
  async ended(own: { readonly sessionId: string; readonly id: string }, withinMs: number, signal: AbortSignal): Promise<Delegation> {
    const until = performance.now() + withinMs;
    for (;;) {
      signal.throwIfAborted();
      const change = this.#change(own.id, signal);
      try {
        const delegation = await this.#look(own, signal);
        const left = until - performance.now();
        if (!(delegation instanceof Fault)) {
          if (delegation.status !== 'running' || left <= 0) return delegation;
        } else if (left <= 0) throw delegation;
        await change.within(Math.min(left, READ_AGAIN_MS));
      } finally {
        change.end();
      }
    }
  }

  /** A look that may succeed a while later gives why it did not: the children work on meanwhile. */
  async #look(own: { readonly sessionId: string; readonly id: string }, signal: AbortSignal): Promise<Delegation | Fault> {
    try {
      return await this.bus.call(sessionService.getDelegation, own, { signal });
    } catch (error) {
      if (!signal.aborted && error instanceof Fault && (error.retry === 'later' || error.code === 'TIMEOUT')) return error;
      throw error;
    }
  }

  /** Listens from before the first look, so that no change falls between. */
  #change(id: string, signal: AbortSignal): { within(ms: number): Promise<void>; end(): void } {
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
