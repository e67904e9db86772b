import { Bus } from '@ambit/bus';
import { Fault, sessionService, type Delegation } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import { Wakes } from './wakes.js';

/** An event is a hint: a delegation that is waited for is read again so often in any case. */
const READ_AGAIN_MS = 2_000;

/** Calls that wait here for a delegation to end. */
@Injectable()
export class DelegationWaits {
  readonly #wakes = new Wakes();

  constructor(@Inject(Bus) private readonly bus: Bus) {}

  changed(delegationId: string): void {
    this.#wakes.wake(delegationId);
  }

  /** How a delegation stands when it has ended, or when the time is up. Rejects with the signal's reason. */
  async ended(own: { readonly sessionId: string; readonly id: string }, withinMs: number, signal: AbortSignal): Promise<Delegation> {
    const until = performance.now() + withinMs;
    for (;;) {
      signal.throwIfAborted();
      const news = this.#wakes.listen(own.id, signal);
      try {
        const delegation = await this.#look(own, signal);
        const left = until - performance.now();
        if (!(delegation instanceof Fault)) {
          if (delegation.status !== 'running' || left <= 0) return delegation;
        } else if (left <= 0) throw delegation;
        await news.within(Math.min(left, READ_AGAIN_MS));
      } finally {
        news.end();
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
}
