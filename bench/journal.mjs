// What the journal says of a measurement: how many facts of operations it took, and whether everybody who reads it has caught up.
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { journalSubject, streams } from '@ambit/contracts';
import { AckPolicy, DeliverPolicy, jetstreamManager } from '@nats-io/jetstream';

const { name } = streams.journal;
const QUIET_MS = 20_000;

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

  /** Waits until nobody has facts left to read: what one cell leaves behind is not to be paid by the next. */
  async quiet() {
    for (const until = performance.now() + QUIET_MS; performance.now() < until;) {
      let open = 0;
      for await (const { num_pending: unread, num_ack_pending: unsettled } of this.#manager.consumers.list(name)) open += unread + unsettled;
      if (open === 0) return;
      await pause(50);
    }
  }
}
