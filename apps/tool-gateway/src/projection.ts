import { Bus } from '@ambit/bus';
import { toolGateway, type Claim, type Outcome } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { CallRepository, type EndedCall } from './call.repository.js';
import { endedTogether } from './domain/ended-calls.js';
import type { OperationFact } from './domain/operation-facts.js';
import { Journal } from './journal.js';
import { Previews } from './previews.js';
import { StoredFacts } from './stored-facts.js';

/** Facts are taken in bunches: a bunch costs Postgres about as much as one fact. */
const GATHER_MS = 250;
const RETRY_MS = 1_000;
/** Facts in one transaction: however many wait, each takes its time and no more. */
const TOGETHER = 1_000;

/**
 * Brings facts of the journal into Postgres, where people look and where they may stay when the journal is emptied. Off every call's path. What
 * this process wrote comes from its memory; what a process left that died comes through `reconciliation.ts`.
 */
@Injectable()
export class Projection implements OnApplicationBootstrap, OnApplicationShutdown {
  /** Claims of this process that stand in Postgres, and whose outcomes do not. */
  readonly #open = new Map<string, Claim>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #isClosing = false;
  #onLost: () => void = () => undefined;

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(CallRepository) private readonly repository: CallRepository,
    @Inject(Journal) private readonly journal: Journal,
    @Inject(StoredFacts) private readonly stored: StoredFacts,
    @Inject(Previews) private readonly previews: Previews,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  onApplicationBootstrap(): void {
    this.stored.listen(() => this.#later(GATHER_MS));
  }

  async onApplicationShutdown(): Promise<void> {
    this.#isClosing = true;
    clearTimeout(this.#timer);
    await this.#writing;
    await this.#write();
  }

  /** Says whom to tell that facts were let go while Postgres was away. */
  whenLost(onLost: () => void): void {
    this.#onLost = onLost;
  }

  /** Brings what waits now to Postgres; where it was not taken it still waits. */
  async flush(): Promise<void> {
    await this.#writing;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#begin();
  }

  /**
   * Writes facts as they stand in the journal and tells of calls that ended by them. Repeating it changes nothing. A call that Postgres does not take
   * is left out and stays in the journal alone; gives how many were. Rejects while Postgres is away.
   */
  async project(facts: readonly OperationFact[]): Promise<number> {
    try {
      await this.#together(facts);
      return 0;
    } catch {
      // What stops a bunch shows when each call is written by itself; where Postgres is away this says so.
      await this.repository.answers();
    }
    let leftOut = 0;
    for (const [operationId, own] of byOperation(facts)) {
      try {
        await this.#together(own);
      } catch (error) {
        await this.repository.answers();
        this.log.error({ error, operationId }, 'a call cannot be brought into Postgres; it stays in the journal');
        leftOut++;
      }
    }
    return leftOut;
  }

  async #together(facts: readonly OperationFact[]): Promise<void> {
    const claims = new Map<string, Claim>();
    const outcomes = new Map<string, Outcome>();
    const aborted: string[] = [];
    for (const fact of facts) {
      if (fact.kind === 'claim') claims.set(fact.claim.operationId, fact.claim);
      else if (fact.kind === 'outcome') outcomes.set(fact.outcome.operationId, fact.outcome);
      else aborted.push(fact.operationId);
    }
    const ended = await this.#ended(claims, outcomes);
    const open = [...claims.values()].filter(({ operationId }) => !outcomes.has(operationId));
    const written = [...open, ...ended.map(({ claim }) => claim)];
    const previews = await this.previews.of(written);
    const fresh = await this.repository.project({ open, ended, aborted, previews });
    this.previews.forget(written);
    for (const claim of open) this.#open.set(claim.operationId, claim);
    for (const { claim } of ended) this.#open.delete(claim.operationId);
    // Hints for whoever watches: one message for each run.
    for (const payload of endedTogether(fresh)) this.bus.hint(toolGateway.callEnded, payload, { keys: { runId: payload.runId } });
  }

  #later(ms: number): void {
    if (this.#timer !== undefined || this.#writing !== undefined || this.#isClosing) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#begin();
    }, ms);
  }

  #begin(): Promise<void> {
    this.#writing ??= this.#write().then((isDone) => {
      this.#writing = undefined;
      if (!this.stored.isEmpty) this.#later(isDone ? GATHER_MS : RETRY_MS);
    });
    return this.#writing;
  }

  /** False where Postgres did not take it; it waits again then. */
  async #write(): Promise<boolean> {
    for (let facts = this.stored.take(TOGETHER); facts.length > 0; facts = this.stored.take(TOGETHER)) {
      try {
        await this.project(facts);
      } catch (error) {
        this.stored.putBack(facts);
        this.log.warn({ error, facts: facts.length }, 'facts were not brought into Postgres; trying again');
        return false;
      }
    }
    if (this.stored.hasLost()) this.#onLost();
    return true;
  }

  /** The claim of a call that another process left was never in this one's memory. */
  async #ended(claims: ReadonlyMap<string, Claim>, outcomes: ReadonlyMap<string, Outcome>): Promise<EndedCall[]> {
    const found = await Promise.all(
      [...outcomes.values()].map(async (outcome) => {
        const { operationId, originRunId } = outcome;
        const claim = claims.get(operationId) ?? this.#open.get(operationId) ?? (await this.journal.readClaim(originRunId, operationId));
        return { outcome, claim };
      }),
    );
    // A claim that stands in Postgres and not in the journal was lost with the journal.
    const lost = await this.repository.claimsOf(found.flatMap(({ outcome, claim }) => (claim === undefined ? [outcome.operationId] : [])));
    return found.flatMap(({ outcome, claim = lost.get(outcome.operationId) }) => (claim === undefined ? [] : [{ outcome, claim }]));
  }
}

function byOperation(facts: readonly OperationFact[]): ReadonlyMap<string, OperationFact[]> {
  const found = new Map<string, OperationFact[]>();
  for (const fact of facts) {
    const operationId =
      fact.kind === 'claim' ? fact.claim.operationId : fact.kind === 'outcome' ? fact.outcome.operationId : fact.operationId;
    found.set(operationId, [...(found.get(operationId) ?? []), fact]);
  }
  return found;
}
