// What the journal says of a measurement: how many facts of operations it took, and whether everybody who reads it has caught up.
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { journalSubject, streams } from '@ambit/contracts';
import { AckPolicy, DeliverPolicy, jetstreamManager } from '@nats-io/jetstream';

const { name } = streams.journal;
const QUIET_MS = 15_000;
/** The gateway gathers facts for 250 ms, outboxes are looked into when they are told to be. */
const STILL_MS = 300;

export class JournalView {
  #manager;

  static async open(connection) {
    const view = new JournalView();
    view.#manager = await jetstreamManager(connection);
    return view;
  }

  async lastSequence() {
    return (await this.#manager.streams.info(name)).state.last_seq;
  }

  /** The facts of these runs' operations stored after `sequence`. */
  async factsSince(sequence, originRunIds) {
    const consumer = `bench-${randomUUID()}`;
    const { num_pending: facts } = await this.#manager.consumers.add(name, {
      name: consumer,
      ack_policy: AckPolicy.None,
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: sequence + 1,
      filter_subjects: originRunIds.map((id) => journalSubject.operationsOf(id)),
      mem_storage: true,
    });
    await this.#manager.consumers.delete(name, consumer);
    return facts;
  }

  /** Waits until nothing that was stored is still to be read, and nothing more is stored: what one cell leaves behind is not to be paid by the next. */
  async quiet() {
    let before = -1;
    for (const until = performance.now() + QUIET_MS; performance.now() < until;) {
      const { open, last } = await this.#unsettled();
      if (open === 0 && last === before) return;
      before = last;
      await pause(STILL_MS);
    }
  }

  async #unsettled() {
    let open = 0;
    let last = 0;
    for (const stream of [streams.journal.name, streams.events.name]) {
      last += (await this.#manager.streams.info(stream)).state.last_seq;
      for await (const { num_pending: unread, num_ack_pending: unsettled } of this.#manager.consumers.list(stream))
        open += unread + unsettled;
    }
    return { open, last };
  }
}
