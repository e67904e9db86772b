import { buckets, epochKey, services, toToken } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { JetStream } from './jetstream.service.js';
import { ownerFences } from './owner.repository.js';
import { Transactions } from './transactions.repository.js';

const EPOCHS = buckets.epochs.name;
const FILTERS_AT_ONCE = 200;

export type Fences = ReadonlyMap<string, number>;

/** Reads the fences of owners: what every service says was taken away, in the bucket and in our own memory of it. */
@Injectable()
export class FenceReader {
  constructor(
    private readonly jetstream: JetStream,
    private readonly transactions: Transactions,
  ) {}

  /** Writes what we were told of owners that were taken away into our own part of the bucket; a number there never goes back. */
  async restore(): Promise<void> {
    for (const [owner, fence] of await ownerFences.all(this.transactions.read)) {
      const key = epochKey.fence('session-service', owner);
      const standing = (await this.jetstream.values(EPOCHS, [key])).get(key);
      if (standing === undefined || numberOf(standing) < fence) await this.jetstream.put(EPOCHS, key, String(fence));
    }
  }

  /** The newest fence of each of these owners; an owner of whom nothing was ever taken away has none. */
  async of(owners: readonly string[]): Promise<Fences> {
    const filters = owners.map((owner) => `*.${toToken(owner)}._fence`);
    const newest = new Map(await ownerFences.of(this.transactions.read, owners));
    for (let start = 0; start < filters.length; start += FILTERS_AT_ONCE) {
      raise(newest, owners, await this.jetstream.values(EPOCHS, filters.slice(start, start + FILTERS_AT_ONCE)));
    }
    return newest;
  }

  /** Every fence there is, by owner's token; read before what it is compared with, so that nothing taken away since is missed. */
  async all(): Promise<Fences> {
    const writers = Object.entries(services).filter(([, use]) => Object.hasOwn(use.stores.writes, EPOCHS));
    const values = await Promise.all(writers.map(([service]) => this.jetstream.values(EPOCHS, [`${toToken(service)}.*._fence`])));
    // A fence that stands in our rows and not in the bucket is one that the bucket lost.
    const rows = await ownerFences.all(this.transactions.read);
    const newest = new Map([...rows].map(([owner, fence]) => [toToken(owner), fence]));
    for (const [key, value] of values.flatMap((found) => [...found])) {
      const token = key.split('.')[1] ?? '';
      newest.set(token, Math.max(newest.get(token) ?? 0, numberOf(value)));
    }
    return newest;
  }
}

/** Picks the owners of a record out of {@link FenceReader.all}. */
export function fencesOf(owners: readonly string[], all: Fences): Record<string, number> {
  return Object.fromEntries(owners.map((owner) => [owner, all.get(toToken(owner)) ?? 0]));
}

function raise(newest: Map<string, number>, owners: readonly string[], values: ReadonlyMap<string, string>): void {
  for (const owner of owners) {
    const suffix = epochKey.fence('x', owner).slice(1);
    for (const [key, value] of values) if (key.endsWith(suffix)) newest.set(owner, Math.max(newest.get(owner) ?? 0, numberOf(value)));
  }
}

function numberOf(text: string): number {
  const fence = Number(text);
  // What cannot be read counts as the newest there could be: nothing of this owner is trusted.
  return Number.isSafeInteger(fence) ? fence : Number.MAX_SAFE_INTEGER;
}
