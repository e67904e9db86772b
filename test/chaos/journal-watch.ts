import { Claim, Outcome, journalSubject, streams } from '@ambit/contracts';
import { jetstreamManager, type StoredMsg } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import type { End, Operation } from './books.js';

const AT_ONCE = 500;
const EVERY_MS = 500;
const NOTHING_MORE = 404;

interface Facts {
  tool: string;
  readonly claims: number[];
  readonly ends: End[];
}

/** Reads every fact of every operation off the journal as it comes, before it is emptied, and keeps where it is while nats-server is away. */
export class JournalWatch {
  readonly #facts = new Map<string, Facts>();
  #last = 0;
  #reading: Promise<void> = Promise.resolve();
  readonly #timer: NodeJS.Timeout;

  constructor(private readonly connection: NatsConnection) {
    this.#timer = setInterval(() => {
      this.#reading = this.#reading.then(() => this.#read()).catch(() => undefined); // away: the next time reads on
    }, EVERY_MS);
  }

  get operations(): Operation[] {
    return [...this.#facts].map(([operationId, facts]) => ({ operationId, ...facts }));
  }

  /** Reads to the end, and stops. */
  async finish(): Promise<void> {
    clearInterval(this.#timer);
    await this.#reading;
    await this.#read();
  }

  async #read(): Promise<void> {
    const manager = await jetstreamManager(this.connection, { checkAPI: false });
    for (;;) {
      let read = 0;
      const batch = { seq: this.#last + 1, batch: AT_ONCE, next_by_subj: journalSubject.allOperations };
      try {
        for await (const message of await manager.direct.getBatch(streams.journal.name, batch)) {
          read++;
          this.#note(message);
          this.#last = message.seq;
        }
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === NOTHING_MORE) return;
        throw error;
      }
      if (read < AT_ONCE) return;
    }
  }

  #note(message: StoredMsg): void {
    const [operationId = '', kind = ''] = message.subject.split('.').slice(-2);
    const facts = this.#facts.get(operationId) ?? { tool: '', claims: [], ends: [] };
    this.#facts.set(operationId, facts);
    const at = message.time.getTime();
    if (kind === 'claim') {
      facts.tool = Claim.parse(message.json()).tool;
      facts.claims.push(at);
    }
    if (kind !== 'outcome') return;
    const { status, fault } = Outcome.parse(message.json());
    facts.ends.push({ status, code: fault?.code ?? null, message: fault?.message ?? null, at });
  }
}
