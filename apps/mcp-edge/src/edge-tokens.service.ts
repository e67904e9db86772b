import { BoundedMap } from '@ambit/capability';
import { createHash } from 'node:crypto';
import { Bus } from '@ambit/bus';
import { adminApi, Fault, type EdgeToken, type Principal, type Via } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';

/** A revoked token holds no longer than this. */
const REMEMBER_MS = 2_000;
const REMEMBERED = 5_000;

/** A client's token and for whom its calls are made. */
export interface Caller {
  readonly token: EdgeToken;
  /** Headers of every question that is asked for it. */
  readonly identity: { readonly principal: Principal; readonly actor: Principal; readonly via: Via };
}

/** Turns bearer tokens into callers; their owner is asked, and its word is good for a moment. */
@Injectable()
export class EdgeTokens {
  readonly #remembered = new BoundedMap<string, { readonly until: number; readonly caller: Promise<Caller | undefined> }>(REMEMBERED);

  constructor(private readonly bus: Bus) {}

  /** Undefined where the token opens nothing. Rejects with UNAVAILABLE where nobody can say. */
  authenticate(bearer: string): Promise<Caller | undefined> {
    const hash = createHash('sha256').update(bearer).digest('hex');
    const known = this.#remembered.get(hash);
    if (known !== undefined && known.until > performance.now()) return known.caller;
    const caller = this.#resolve(hash);
    this.#remembered.set(hash, { until: performance.now() + REMEMBER_MS, caller });
    caller.catch(() => this.#remembered.delete(hash));
    return caller;
  }

  async #resolve(hash: string): Promise<Caller | undefined> {
    try {
      const token = await this.bus.call(adminApi.resolveEdgeToken, { hash });
      const principal = principalOf(token.principal);
      return { token, identity: { principal, actor: principal, via: { kind: 'token', id: token.id } } };
    } catch (error) {
      if (error instanceof Fault && error.code === 'EDGE_TOKEN_UNKNOWN') return undefined;
      throw error;
    }
  }
}

const principalOf = (id: string): Principal => ({
  id,
  kind: id.startsWith('user:') ? 'person' : id.startsWith('app:') ? 'application' : id.startsWith('worker:') ? 'worker' : 'system',
  issuer: 'local',
  display: '',
});
