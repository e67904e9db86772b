import { BoundedMap } from '@ambit/capability';
import { Bus } from '@ambit/bus';
import { buckets } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';

const BUCKET = buckets.tombstones.name;
const ASK_MS = 2_000;
/** A session that was ended on another replica is served here no longer than this. */
const GOOD_MS = 2_000;
const KEPT = 20_000;

/** Sessions that their clients ended. What a client carries cannot be taken from it, so that its end is written down. */
@Injectable()
export class Tombstones {
  readonly #seen = new BoundedMap<string, { readonly isEnded: boolean; readonly at: number }>(KEPT);

  constructor(private readonly bus: Bus) {}

  async end(clientId: string): Promise<void> {
    await this.bus.request(`$KV.${BUCKET}.${clientId}`, '1', { timeoutMs: ASK_MS });
    this.#seen.set(clientId, { isEnded: true, at: performance.now() });
  }

  async isEnded(clientId: string): Promise<boolean> {
    const seen = this.#seen.get(clientId);
    if (seen !== undefined && (seen.isEnded || performance.now() - seen.at < GOOD_MS)) return seen.isEnded;
    const found = await this.bus.request(`$JS.API.DIRECT.GET.KV_${BUCKET}.$KV.${BUCKET}.${clientId}`, '', { timeoutMs: ASK_MS });
    const isEnded = found.headers?.code !== 404 && found.headers?.code !== 408 && (found.headers?.get('KV-Operation') ?? '') === '';
    this.#seen.set(clientId, { isEnded, at: performance.now() });
    return isEnded;
  }
}
