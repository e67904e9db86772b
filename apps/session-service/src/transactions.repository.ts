import type { AuditRecord, Principal, StoredMessage, Via } from '@ambit/contracts';
import { addToOutbox, appendAudit, DB, OutboxRelay, type OutboxId, type SessionDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';

/** What repositories take: the database, or one transaction of it. */
export type Reader = Omit<SessionDb, '$transaction'>;

/** By whom and through what something is done. */
export interface Doer {
  readonly principal?: Principal | undefined;
  readonly actor?: Principal | undefined;
  readonly via?: Via | undefined;
  readonly traceId?: string | undefined;
}

export type AuditFact = Pick<AuditRecord, 'action' | 'target' | 'projectId'> &
  Partial<Pick<AuditRecord, 'beforeDigest' | 'afterDigest' | 'rule' | 'reason'>>;

/** One transaction, and what is to be told once it is committed. */
export class Unit {
  readonly id = randomUUID();
  readonly messages: StoredMessage[] = [];
  readonly audits: { readonly fact: AuditFact; readonly doer: Doer }[] = [];
  readonly afterwards: (() => void)[] = [];

  constructor(
    readonly sql: Reader,
    readonly now: Date,
  ) {}

  tell(...messages: readonly StoredMessage[]): void {
    this.messages.push(...messages);
  }

  audit(fact: AuditFact, doer: Doer): void {
    this.audits.push({ fact, doer });
  }

  /** Done once this is committed: for hints, which may be lost. */
  after(hint: () => void): void {
    this.afterwards.push(hint);
  }
}

const OWNER = 'session-service';
const TRANSACTION_MS = 15_000;
const FLUSH_MS = 10_000;

/** Runs transactions and adds what they tell to the outbox, messages first and the audit chain last, because that serialises. */
@Injectable()
export class Transactions {
  constructor(
    @Inject(DB) private readonly db: SessionDb,
    @Inject(OutboxRelay) private readonly outbox: OutboxRelay,
  ) {}

  /** Reads outside of a transaction. */
  get read(): Reader {
    return this.db;
  }

  async run<T>(work: (unit: Unit) => Promise<T>, timeoutMs = TRANSACTION_MS): Promise<T> {
    const { result, afterwards } = await this.#commit(work, timeoutMs);
    for (const hint of afterwards) hint();
    return result;
  }

  /** As run(), and answers only once everything told is in its stream. */
  async runFlushed<T>(work: (unit: Unit) => Promise<T>): Promise<T> {
    const { result, told, afterwards } = await this.#commit(work);
    await this.outbox.flushed(told, AbortSignal.timeout(FLUSH_MS));
    for (const hint of afterwards) hint();
    return result;
  }

  async #commit<T>(
    work: (unit: Unit) => Promise<T>,
    timeoutMs = TRANSACTION_MS,
  ): Promise<{ result: T; told: OutboxId[]; afterwards: Unit['afterwards'] }> {
    return this.db.$transaction(
      async (transaction) => {
        const unit = new Unit(transaction, new Date());
        const result = await work(unit);
        const told = await addToOutbox(transaction, OWNER, unit.messages);
        for (const { fact, doer } of unit.audits)
          told.push(...(await appendAudit(transaction, OWNER, entryOf(fact, { doer, at: unit.now }))));
        return { result, told, afterwards: unit.afterwards };
      },
      { timeout: timeoutMs, maxWait: TRANSACTION_MS },
    );
  }
}

function entryOf(fact: AuditFact, { doer, at }: { readonly doer: Doer; readonly at: Date }) {
  return {
    at: at.toISOString(),
    actor: doer.actor ?? null,
    principal: doer.principal ?? null,
    via: doer.via ?? null,
    traceId: doer.traceId ?? null,
    beforeDigest: null,
    afterDigest: null,
    rule: null,
    reason: null,
    retention: 'audit' as const,
    ...fact,
  };
}
