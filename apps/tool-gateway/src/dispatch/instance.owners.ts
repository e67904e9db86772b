import { Bus } from '@ambit/bus';
import { buckets, leaseKey, type mcpBroker, type Output } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { Kvm, type KV } from '@nats-io/kv';
import { z } from 'zod';

const LOOK_MS = 1_000;
/** An owner that gives its lease back may still be about to answer. */
const MISSED_BEFORE_LOST = 2;
const Held = z.object({ since: z.int().nullable() });

type Owned = Pick<Output<typeof mcpBroker.ensureInstance>, 'instanceId' | 'leaseRevision'>;

/** The process that a call was sent to is gone: nobody will say how the call ended. */
class OwnerLost extends Error {
  override readonly name = 'OwnerLost';
}

interface Waiting {
  readonly owned: Owned;
  readonly onLost: (reason: Error) => void;
  missed: number;
}

/** Looks after the leases of instances that calls are with: an owner that died never answers, and its lease lapses within 5 s. */
@Injectable()
export class InstanceOwners implements OnApplicationShutdown {
  readonly #waiting = new Set<Waiting>();
  #bucket: Promise<KV> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  onApplicationShutdown(): void {
    clearTimeout(this.#timer);
    this.#waiting.clear();
  }

  /** Says when the owner is gone. Call `end` when it has answered. */
  follow(owned: Owned, onLost: (reason: Error) => void): { end(): void } {
    const waiting: Waiting = { owned, onLost, missed: 0 };
    this.#waiting.add(waiting);
    this.#timer ??= setTimeout(() => void this.#look(), LOOK_MS);
    return { end: () => void this.#waiting.delete(waiting) };
  }

  /** Once for each instance, however many calls are with it. */
  async #look(): Promise<void> {
    const open = [...this.#waiting];
    const ids = [...new Set(open.map(({ owned }) => owned.instanceId))];
    try {
      const holders = new Map(await Promise.all(ids.map(async (id) => [id, await this.#holder(id)] as const)));
      for (const waiting of open) {
        waiting.missed = holders.get(waiting.owned.instanceId) === waiting.owned.leaseRevision ? 0 : waiting.missed + 1;
        if (waiting.missed >= MISSED_BEFORE_LOST && this.#waiting.delete(waiting))
          waiting.onLost(new OwnerLost('the process that ran this call is gone'));
      }
    } catch (error) {
      this.log.warn({ error }, 'the leases of instances could not be read; calls on them are waited for');
    }
    this.#timer = this.#waiting.size === 0 ? undefined : setTimeout(() => void this.#look(), LOOK_MS);
  }

  /** The revision under which an instance is held; undefined where nobody holds it. */
  async #holder(instanceId: string): Promise<number | undefined> {
    const entry = await (await this.#leases()).get(leaseKey.instance(instanceId));
    if (entry === null || entry.operation !== 'PUT') return undefined;
    return Held.parse(entry.json()).since ?? entry.revision;
  }

  /** Opened by the first look that it can be opened for. */
  #leases(): Promise<KV> {
    if (this.#bucket === undefined) {
      const opening = new Kvm(this.bus.connection).open(buckets.leases5s.name, { allow_direct: true });
      this.#bucket = opening;
      opening.catch(() => (this.#bucket = undefined));
    }
    return this.#bucket;
  }
}
