import { buckets, leaseKey } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { JetStream } from './jetstream.service.js';

const LEASES = buckets.leases15s.name;
const AT_ONCE = 250;

/** The leases of runs: a worker that lives renews its run's every five seconds. */
@Injectable()
export class Leases {
  constructor(private readonly jetstream: JetStream) {}

  async renew(runId: string, attempt: number): Promise<void> {
    await this.jetstream.put(LEASES, leaseKey.run(runId), String(attempt));
  }

  async release(runId: string): Promise<void> {
    await this.jetstream.remove(LEASES, leaseKey.run(runId));
  }

  /** Which of these runs nobody holds the named attempt of any more. */
  async lapsed(attempts: readonly { readonly id: string; readonly attempt: number }[]): Promise<string[]> {
    const gone: string[] = [];
    for (let start = 0; start < attempts.length; start += AT_ONCE) {
      const some = attempts.slice(start, start + AT_ONCE);
      const held = await this.jetstream.values(
        LEASES,
        some.map(({ id }) => leaseKey.run(id)),
      );
      gone.push(...some.filter(({ id, attempt }) => held.get(leaseKey.run(id)) !== String(attempt)).map(({ id }) => id));
    }
    return gone;
  }
}
