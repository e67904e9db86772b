import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

/** The time between saying that no more work is wanted and refusing it: whoever spreads requests hears of it, and connections are given up in order. */
export class Drain {
  #isOn = false;

  /** Puts it to each answer that its connection ends with it, once the stop has begun. */
  readonly handle = (_request: IncomingMessage, response: ServerResponse, next: () => void): void => {
    if (this.#isOn) response.setHeader('connection', 'close');
    next();
  };

  async begin(ms: number): Promise<void> {
    this.#isOn = true;
    if (ms > 0) await pause(ms);
  }
}
