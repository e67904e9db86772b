import { journalSubject, platformFault, streams } from '@ambit/contracts';
import type { MsgHdrs } from '@nats-io/nats-core';

const EXPECTED = 'Nats-Expected-Last-Subject-Sequence';
const WRONG_LAST_SEQUENCE = 10071;
const SUBJECT_IS_TAKEN = 10077;
const CONTENTION = 10164;
const encoder = new TextEncoder();

interface Answer {
  readonly data: Uint8Array;
  readonly headers: { readonly code: number } | undefined;
}

/** AMBIT_JOURNAL as JetStream keeps it: one message a subject, refused where it is taken, and fenced on another subject where the writer says so. */
export class JournalStream {
  readonly #messages = new Map<string, { readonly sequence: number; readonly body: string }>();
  #last = 0;

  /** A state takes the place of the one before it. */
  move(runId: string): number {
    this.#messages.set(journalSubject.runState(runId), { sequence: ++this.#last, body: '{}' });
    return this.#last;
  }
  stateOf(runId: string): number {
    return this.#messages.get(journalSubject.runState(runId))?.sequence ?? 0;
  }
  subjects(): string[] {
    return [...this.#messages.keys()];
  }
  read(subject: string): string | undefined {
    return this.#messages.get(subject)?.body;
  }

  /** What the server does with one request; `isBusy`: others write to the same subject just now. */
  answer(to: string, request: { readonly body: string; readonly headers: MsgHdrs | undefined; readonly isBusy: boolean }): Answer {
    const direct = `$JS.API.DIRECT.GET.${streams.journal.name}.`;
    if (to.startsWith(direct)) {
      const body = this.read(to.slice(direct.length));
      return { data: encoder.encode(body ?? ''), headers: body === undefined ? { code: 404 } : undefined };
    }
    return { data: encoder.encode(JSON.stringify(this.#publish(to, request))), headers: undefined };
  }

  #publish(subject: string, { body, headers, isBusy }: Parameters<JournalStream['answer']>[1]): object {
    const refused = (detailed: number) => ({ error: { code: 400, err_code: detailed } });
    if (isBusy) return refused(CONTENTION);
    const fence = headers?.get(`${EXPECTED}-Subject`) ?? '';
    if (fence !== '' && String(this.#messages.get(fence)?.sequence ?? 0) !== headers?.get(EXPECTED)) return refused(WRONG_LAST_SEQUENCE);
    if (this.#messages.has(subject)) return refused(SUBJECT_IS_TAKEN);
    this.#messages.set(subject, { sequence: ++this.#last, body });
    return { stream: streams.journal.name, seq: this.#last };
  }
}

export const noAnswer = (): Error => platformFault('TIMEOUT');
