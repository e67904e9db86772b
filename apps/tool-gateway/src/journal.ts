import { Abort, Claim, Fault, journalSubject, Outcome, platformFault, RunState, streams } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import { Bus } from '@ambit/bus';
import { isObject } from '@ambit/capability';
import { headers, type Msg, type MsgHdrs } from '@nats-io/nats-core';
import type { z } from 'zod';
import { StoredFacts } from './stored-facts.js';

/** What became of a claim: ours, the run's authority moved, or the operation was claimed before (perhaps by an attempt of ours that timed out). */
export type ClaimAnswer = { readonly kind: 'claimed' } | { readonly kind: 'moved' } | { readonly kind: 'exists' };

const WRONG_LAST_SEQUENCE = 10071;
const SUBJECT_IS_TAKEN = 10077;
const CONTENTION = 10164;

const EXPECTED = 'Nats-Expected-Last-Subject-Sequence';
const ACK_MS = 2_000;
const CLAIM_TRIES = 4;
const CONTENTION_TRIES = 40;
const LONGEST_PAUSE_MS = 2_000;

const decoder = new TextDecoder();

/** The facts of operations in AMBIT_JOURNAL: one message a subject, so the first of two writers wins and the other learns it. */
@Injectable()
export class Journal {
  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(StoredFacts) private readonly stored: StoredFacts,
  ) {}

  /** Publishes a claim fenced on the state of the run that asked. Throws UNAVAILABLE when nothing can have been stored and nobody answers. */
  async claim(claim: Claim, stateSequence: number): Promise<ClaimAnswer> {
    const subject = journalSubject.claim(claim.originRunId, claim.operationId);
    const body = JSON.stringify(claim);
    const fence = headers();
    fence.set(EXPECTED, String(stateSequence));
    fence.set(`${EXPECTED}-Subject`, journalSubject.runState(claim.runId));
    let isUncertain = false;
    for (let tries = 0; ; tries++) {
      const code = await this.#publish(subject, body, fence);
      if (code === 'stored') return this.#claimed(claim);
      if (code === CONTENTION && tries < CONTENTION_TRIES) continue;
      // A publication of ours whose acknowledgement was lost may be what took the subject, or the state may have moved after it.
      if (isUncertain && (code === SUBJECT_IS_TAKEN || code === WRONG_LAST_SEQUENCE) && (await this.#text(subject)) === body)
        return this.#claimed(claim);
      if (code === SUBJECT_IS_TAKEN) return { kind: 'exists' };
      if (code === WRONG_LAST_SEQUENCE) return { kind: 'moved' };
      if (code === 'lost') isUncertain = true;
      if (tries + 1 >= CLAIM_TRIES)
        throw platformFault('UNAVAILABLE', undefined, 'The journal does not answer; the call was not started, send the same batch again');
      await pause(50 * 2 ** tries);
    }
  }

  /** Stores an outcome, however long the journal is away, and gives the one that stands: another's, when somebody was first. */
  async outcome(outcome: Outcome, signal?: AbortSignal): Promise<Outcome> {
    const subject = journalSubject.outcome(outcome.originRunId, outcome.operationId);
    const body = JSON.stringify(outcome);
    for (let tries = 0; ; tries++) {
      const code = await this.#publish(subject, body);
      if (code === 'stored') return this.#ended(outcome);
      if (code === SUBJECT_IS_TAKEN) {
        const standing = await this.readOutcome(outcome.originRunId, outcome.operationId).catch(() => undefined);
        // It may be ours, from a publication whose acknowledgement was lost.
        if (standing !== undefined) return this.#ended(standing);
      }
      if (signal?.aborted === true) throw platformFault('UNAVAILABLE', undefined, 'The journal does not answer; the outcome is not stored');
      if (code !== CONTENTION) await pause(Math.min(LONGEST_PAUSE_MS, 50 * 2 ** tries));
    }
  }

  /** Publishes that an operation is to stop; false where that was said before. */
  async abort(abort: Abort): Promise<boolean> {
    const code = await this.#publish(journalSubject.abort(abort.originRunId, abort.operationId), JSON.stringify(abort));
    if (code === 'stored') {
      this.stored.add({ kind: 'abort', operationId: abort.operationId });
      return true;
    }
    if (code === SUBJECT_IS_TAKEN) return false;
    throw platformFault('UNAVAILABLE', undefined, 'The journal does not answer');
  }

  #claimed(claim: Claim): ClaimAnswer {
    this.stored.add({ kind: 'claim', claim });
    return { kind: 'claimed' };
  }
  #ended(outcome: Outcome): Outcome {
    this.stored.add({ kind: 'outcome', outcome });
    return outcome;
  }

  readClaim(originRunId: string, operationId: string): Promise<Claim | undefined> {
    return this.#read(journalSubject.claim(originRunId, operationId), Claim);
  }
  readOutcome(originRunId: string, operationId: string): Promise<Outcome | undefined> {
    return this.#read(journalSubject.outcome(originRunId, operationId), Outcome);
  }
  readAbort(originRunId: string, operationId: string): Promise<Abort | undefined> {
    return this.#read(journalSubject.abort(originRunId, operationId), Abort);
  }
  readRunState(runId: string): Promise<RunState | undefined> {
    return this.#read(journalSubject.runState(runId), RunState);
  }

  async #publish(subject: string, body: string, sent?: MsgHdrs): Promise<'stored' | 'lost' | 'nobody' | number> {
    let message: Msg;
    try {
      message = await this.bus.request(subject, body, { headers: sent, timeoutMs: ACK_MS });
    } catch (error) {
      return error instanceof Fault && error.code === 'UNAVAILABLE' ? 'nobody' : 'lost';
    }
    return ackCode(JSON.parse(decoder.decode(message.data)));
  }

  async #read<T extends z.ZodType>(subject: string, schema: T): Promise<z.output<T> | undefined> {
    const text = await this.#text(subject);
    return text === undefined ? undefined : schema.parse(JSON.parse(text));
  }

  /** The newest message of one subject, by a direct get. */
  async #text(subject: string): Promise<string | undefined> {
    const message = await this.bus.request(`$JS.API.DIRECT.GET.${streams.journal.name}.${subject}`, '', { timeoutMs: ACK_MS });
    return message.headers?.code === 404 ? undefined : decoder.decode(message.data);
  }
}

/** What an acknowledgement says: stored, or the server's error code. */
function ackCode(ack: unknown): 'stored' | number {
  if (!isObject(ack) || !isObject(ack['error'])) return 'stored';
  const { err_code: detailed, code } = ack['error'];
  return typeof detailed === 'number' ? detailed : Number(code);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
