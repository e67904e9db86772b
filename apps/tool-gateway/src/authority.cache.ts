import { BoundedMap } from '@ambit/capability';
import { Bus } from '@ambit/bus';
import { sessionService, type Authority } from '@ambit/contracts';
import { Fault } from '@ambit/contracts';
import { Injectable, Inject } from '@nestjs/common';

const MAX_RUNS = 10_000;

/** A run's authority as it was fetched, with the moment its time is up on our own clock. */
export interface HeldAuthority {
  readonly authority: Authority;
  /** By `performance.now()`. */
  readonly endsAt: number;
}

type StoredStep = NonNullable<Authority['step']>;

/** The authority of runs, in memory from their first call; a moved state shows at the claim, which has it fetched again. */
@Injectable()
export class AuthorityCache {
  readonly #held = new BoundedMap<string, HeldAuthority>(MAX_RUNS);
  readonly #fetching = new Map<string, Promise<HeldAuthority | undefined>>();

  constructor(@Inject(Bus) private readonly bus: Bus) {}

  held(runId: string): HeldAuthority | undefined {
    return this.#held.get(runId);
  }

  /** Asks session-service now; undefined where there is no such run. Requests for one run that overlap share one answer. */
  fetch(runId: string): Promise<HeldAuthority | undefined> {
    const running = this.#fetching.get(runId);
    if (running !== undefined) return running;
    const fetching = this.#fetch(runId).finally(() => this.#fetching.delete(runId));
    this.#fetching.set(runId, fetching);
    return fetching;
  }

  drop(runId: string): void {
    this.#held.delete(runId);
    // An answer on its way may be older than what made us drop it.
    this.#fetching.delete(runId);
  }

  /** Takes the hint that a run stored a newer step, where its authority is held. */
  stepStored(runId: string, step: StoredStep): void {
    const held = this.#held.get(runId);
    if (held === undefined || (held.authority.step !== null && held.authority.step.step >= step.step)) return;
    this.#held.set(runId, { ...held, authority: { ...held.authority, step } });
  }

  async #fetch(runId: string): Promise<HeldAuthority | undefined> {
    const asked = performance.now();
    try {
      const authority = await this.bus.call(sessionService.getAuthority, { runId });
      const held = { authority, endsAt: asked + authority.remainingMs };
      const known = this.#held.get(runId);
      if (known === undefined || known.authority.stateSequence <= authority.stateSequence) this.#held.set(runId, held);
      return held;
    } catch (error) {
      if (error instanceof Fault && error.code === 'TOOL_NOT_IN_SNAPSHOT') {
        this.#held.delete(runId);
        return undefined;
      }
      throw error;
    }
  }
}
