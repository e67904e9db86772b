import { Bus } from '@ambit/bus';
import { Fault, sessionService, type Interaction } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import { Wakes } from './wakes.js';

/** An event is a hint: what is waited for is read again so often in any case. */
const READ_AGAIN_MS = 2_000;

/** Calls that wait here for a person's answer. */
@Injectable()
export class InteractionWaits {
  readonly #wakes = new Wakes();

  constructor(@Inject(Bus) private readonly bus: Bus) {}

  settled(interactionId: string): void {
    this.#wakes.wake(interactionId);
  }

  /** The interaction once it is pending no more. Rejects with the signal's reason. */
  async decided(id: string, signal: AbortSignal): Promise<Interaction> {
    for (;;) {
      signal.throwIfAborted();
      const news = this.#wakes.listen(id, signal);
      try {
        const interaction = await this.#look(id, signal);
        if (interaction !== undefined && interaction.status !== 'pending') return interaction;
        await news.within(READ_AGAIN_MS);
      } finally {
        news.end();
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
}
