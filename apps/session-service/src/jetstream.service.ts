import { Bus } from '@ambit/bus';
import { jetstream, jetstreamManager, type JetStreamClient, type JetStreamManager, type StoredMsg } from '@nats-io/jetstream';
import { headers } from '@nats-io/nats-core';
import { Inject, Injectable } from '@nestjs/common';

/** Newest messages of streams and values of buckets, read directly: no consumer is made for a look. */
@Injectable()
export class JetStream {
  readonly #client: JetStreamClient;
  #manager: Promise<JetStreamManager> | undefined;

  constructor(@Inject(Bus) private readonly bus: Bus) {
    this.#client = jetstream(bus.connection);
  }

  /** Without asking the server whether it may: the first use says so. */
  manager(): Promise<JetStreamManager> {
    return (this.#manager ??= jetstreamManager(this.bus.connection, { checkAPI: false }));
  }

  /** The newest message of a subject; null where there is none. */
  async last(stream: string, subject: string): Promise<StoredMsg | null> {
    const manager = await this.manager();
    return manager.direct.getMessage(stream, { last_by_subj: subject });
  }

  /** The live values of a bucket whose keys fit any filter, by key; at most 1,000 are asked for. */
  async values(bucket: string, filters: readonly string[]): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    if (filters.length === 0) return found;
    const prefix = `$KV.${bucket}.`;
    const manager = await this.manager();
    const messages = await manager.direct.getLastMessagesFor(`KV_${bucket}`, {
      multi_last: filters.map((filter) => `${prefix}${filter}`),
      batch: 1_000,
    });
    for await (const message of messages) {
      // What marks a deletion or an expiry is no value.
      if (message.header.has('KV-Operation') || message.header.has('Nats-Marker-Reason')) continue;
      found.set(message.subject.slice(prefix.length), message.string());
    }
    return found;
  }

  async put(bucket: string, key: string, value: string | Uint8Array): Promise<void> {
    await this.#client.publish(`$KV.${bucket}.${key}`, value);
  }

  /** Takes every key that fits the filter out of a bucket that is wholly ours; unlike a deletion, it leaves no mark under the key. Gives how many it took. */
  async drop(bucket: string, filter: string): Promise<number> {
    return this.purge(`KV_${bucket}`, `$KV.${bucket}.${filter}`);
  }

  /** Takes the messages of one subject, or of all that fit a filter, out of a stream. Gives how many it took. */
  async purge(stream: string, filter: string): Promise<number> {
    const manager = await this.manager();
    return (await manager.streams.purge(stream, { filter })).purged;
  }

  /** The subjects that hold a message now. */
  async subjects(stream: string, filter: string): Promise<string[]> {
    const manager = await this.manager();
    return Object.keys((await manager.streams.info(stream, { subjects_filter: filter })).state.subjects ?? {});
  }

  /** When a stream was made, in the server's own words: a stream that was lost and made again has another moment. */
  async createdAt(stream: string): Promise<string> {
    const manager = await this.manager();
    return String((await manager.streams.info(stream)).created);
  }

  async remove(bucket: string, key: string): Promise<void> {
    const purge = headers();
    purge.set('KV-Operation', 'PURGE');
    purge.set('Nats-Rollup', 'sub');
    await this.#client.publish(`$KV.${bucket}.${key}`, new Uint8Array(), { headers: purge });
  }
}
