import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import type { OperationFact } from './domain/operation-facts.js';

/** What waits here at most: Postgres may be away for long. */
const MAX_WAITING = 20_000;

/** The facts that this process put into the journal and that are not in Postgres yet. Losing them costs a look into the journal, nothing else. */
@Injectable()
export class StoredFacts {
  #facts: OperationFact[] = [];
  #hasLost = false;
  #onAdded: () => void = () => undefined;

  constructor(@Inject(LOG) private readonly log: Logger) {}

  get isEmpty(): boolean {
    return this.#facts.length === 0;
  }

  /** Says whom to tell that something waits. */
  listen(onAdded: () => void): void {
    this.#onAdded = onAdded;
  }

  /** Takes a fact that the journal has acknowledged. */
  add(fact: OperationFact): void {
    if (this.#facts.length >= MAX_WAITING) {
      if (!this.#hasLost)
        this.log.warn({ waiting: MAX_WAITING }, 'too many facts wait for Postgres; the journal will be read for the others');
      this.#hasLost = true;
      return;
    }
    this.#facts.push(fact);
    this.#onAdded();
  }

  /** Gives the oldest that wait, at most so many; they wait no more. */
  take(limit: number): readonly OperationFact[] {
    return this.#facts.splice(0, limit);
  }

  /** Puts back what could not be brought to Postgres, before what came since; the newest are let go where that is too much. */
  putBack(facts: readonly OperationFact[]): void {
    const all = [...facts, ...this.#facts];
    this.#facts = all.slice(0, MAX_WAITING);
    if (all.length > MAX_WAITING) this.#hasLost = true;
  }

  /** Whether facts were let go since this was asked last. */
  hasLost(): boolean {
    const hasLost = this.#hasLost;
    this.#hasLost = false;
    return hasLost;
  }
}
