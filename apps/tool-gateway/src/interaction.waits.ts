import { Bus } from '@ambit/bus';
import { Fault, sessionService, type Interaction } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';

/** An event is a hint: what is waited for is read again so often in any case. */
const READ_AGAIN_MS = 2_000;

/** Calls that wait here for a person's answer. */
@Injectable()
export class InteractionWaits {
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(@Inject(Bus) private readonly bus: Bus) {}

  settled(interactionId: string): void {
    for (const wake of this.#waiting.get(interactionId) ?? []) wake();
  }

  /** The interaction once it is pending no more. Rejects with the signal's reason. */
  async decided(id: string, signal: AbortSignal): Promise<Interaction> {
    for (;;) {
      signal.throwIfAborted();
      const change = this.#change(id, signal);
      try {
        const interaction = await this.#look(id, signal);
        if (interaction !== undefined && interaction.status !== 'pending') return interaction;
        await change.within(READ_AGAIN_MS);
      } finally {
        change.end();
      }
    }
  }

  /** Undefined where nobody can say now: it is asked again. */
  async #look(id: string, signal: AbortSignal): Promise<Interaction | undefined> {
    try {
      return await this.bus.call(sessionService.getInteraction, { id }, { signal });
    } catch (error) {
      if (!signal.aborted && error instanceof Fault && (error.retry === 'later' || error.code === 'TIMEOUT')) return undefined;
      throw error;
    }
  }

  /** Listens from before the look, so that no change falls between. */
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
