import { Bus } from '@ambit/bus';
import { buckets, epochKey } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { JetStreamApiError } from '@nats-io/jetstream';
import { Kvm, type KV } from '@nats-io/kv';
import { Inject, Injectable } from '@nestjs/common';
import type { Moved } from './server.repository.js';

const SERVICE = 'mcp-broker';
const FEATURE = 'servers';
const TRIES = 10;

/** Copies epochs and fences from Postgres into their bucket; a number there never goes back. */
@Injectable()
export class Epochs {
  private bucket: Promise<KV> | undefined;
  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  /** Without NATS the copy is left out: it is made again at the next change and at the next start. */
  async publish({ owner, epoch, fence }: Moved): Promise<void> {
    try {
      await this.raise(epochKey.epoch(SERVICE, owner, FEATURE), epoch);
      if (fence > 0) await this.raise(epochKey.fence(SERVICE, owner), fence);
    } catch (error) {
      this.log.warn({ error, owner }, 'an epoch could not be copied to its bucket');
    }
  }

  private async raise(key: string, value: number): Promise<void> {
    this.bucket ??= new Kvm(this.bus.connection).open(buckets.epochs.name, { allow_direct: true });
    const kv = await this.bucket;
    for (let tries = 0; tries < TRIES; tries++) {
      const entry = await kv.get(key);
      if (entry !== null && entry.operation === 'PUT' && Number(entry.string()) >= value) return;
      try {
        if (entry === null) await kv.create(key, String(value));
        else await kv.update(key, String(value), entry.revision);
        return;
      } catch (error) {
        // Another replica was quicker; its number may be the higher one.
        if (!(error instanceof JetStreamApiError)) throw error;
      }
    }
    throw new Error(`the key ${key} changes too often`);
  }
}
