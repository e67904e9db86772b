import { journalSubject, Outcome, RunState, streams } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { JetStream } from './jetstream.service.js';

const JOURNAL = streams.journal.name;
/** Facts asked for at once. */
const AT_ONCE = 32;

/** Reads the journal's facts; the runs' states are written through the outbox. */
@Injectable()
export class Journal {
  constructor(private readonly jetstream: JetStream) {}

  /** The newest state of a run and its place in the stream, on which claims are fenced. */
  async state(runId: string): Promise<{ readonly sequence: number; readonly version: number } | undefined> {
    const message = await this.jetstream.last(JOURNAL, journalSubject.runState(runId));
    return message === null ? undefined : { sequence: message.seq, version: RunState.parse(message.json()).version };
  }

  /** The outcomes that stand in the journal, by operation id. */
  async outcomes(originRunId: string, operationIds: readonly string[]): Promise<Map<string, Outcome>> {
    const found = new Map<string, Outcome>();
    for (let start = 0; start < operationIds.length; start += AT_ONCE) {
      await Promise.all(
        operationIds.slice(start, start + AT_ONCE).map(async (operationId) => {
          const message = await this.jetstream.last(JOURNAL, journalSubject.outcome(originRunId, operationId));
          if (message !== null) found.set(operationId, Outcome.parse(message.json()));
        }),
      );
    }
    return found;
  }

  /** Which of the operations were claimed: what was dispatched, or may have been. */
  async claimed(originRunId: string, operationIds: readonly string[]): Promise<boolean> {
    for (const operationId of operationIds) {
      if ((await this.jetstream.last(JOURNAL, journalSubject.claim(originRunId, operationId))) !== null) return true;
    }
    return false;
  }
}
