import { BoundedMap } from '@ambit/capability';
import type { Claim } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import { ArgumentsPolicy } from './arguments.policy.js';

/** Arguments that wait at most: Postgres may be away for long. */
const WAITING = 5_000;

/** Holds what calls were given until their rows are written, as far as their servers let people see it. The tape has the arguments themselves. */
@Injectable()
export class Previews {
  readonly #waiting = new BoundedMap<string, Readonly<Record<string, unknown>>>(WAITING);

  constructor(@Inject(ArgumentsPolicy) private readonly policy: ArgumentsPolicy) {}

  /** Where too much waits, the oldest are not kept. */
  keep(operationId: string, input: Readonly<Record<string, unknown>>): void {
    this.#waiting.set(operationId, input);
  }

  /** The texts for people, by operation id; a call without one has no entry. */
  async of(claims: Iterable<Claim>): Promise<ReadonlyMap<string, string>> {
    const texts = new Map<string, string>();
    for (const { operationId, target } of claims) {
      const input = this.#waiting.get(operationId);
      const text = input === undefined ? undefined : await this.policy.textOf(target, input);
      if (text !== undefined) texts.set(operationId, text);
    }
    return texts;
  }

  /** Their rows are written. */
  forget(claims: Iterable<Claim>): void {
    for (const { operationId } of claims) this.#waiting.delete(operationId);
  }
}
