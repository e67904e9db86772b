import { Bus } from '@ambit/bus';
import { Fault, sessionService, type CallResult, type Interaction } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import type { Decided } from './domain/ask-client.js';
import type { Caller } from './edge-tokens.service.js';

/** Events are hints: a decision is looked for at least so often. */
const LOOK_MS = 2_000;
/** Questions of one call that its client is asked; the rest is for whoever may decide elsewhere. */
const QUESTIONS = 20;
/** How long an answer waits for those that have to be given before it. */
const IN_ORDER_MS = 10 * 60_000;

interface Asking {
  readonly world: { readonly run: { readonly runId: string } };
  readonly call: { readonly callId: string };
}

const keyOf = (runId: string, callId: string): string => `${runId} ${callId}`;

/** What one call asks for, in order, each once. */
export class Asks {
  readonly #known = new Set<string>();
  readonly #waiting: Interaction[] = [];
  #wake: () => void = () => undefined;
  #more: Promise<void> | undefined;

  constructor(readonly end: () => void) {}

  add(interaction: Interaction): void {
    if (this.#known.has(interaction.id) || this.#known.size >= QUESTIONS) return;
    this.#known.add(interaction.id);
    this.#waiting.push(interaction);
    this.#more = undefined;
    this.#wake();
  }

  /** Settles while there is one to take. */
  async some(): Promise<'asked'> {
    while (this.#waiting.length === 0) {
      this.#more ??= new Promise((resolve) => (this.#wake = resolve));
      await this.#more;
    }
    return 'asked';
  }

  take(): Interaction | undefined {
    return this.#waiting.shift();
  }
}

/** Decisions that calls wait for: found, taken for the client's person, waited for. */
@Injectable()
export class Decisions {
  /** By interaction: who waits for its end. */
  readonly #waiting = new Map<string, Set<() => void>>();
  /** By run and call: who is told that it asks. */
  readonly #asking = new Map<string, Asks>();

  constructor(private readonly bus: Bus) {}

  /** The decision that a call waits for: the newest pending one, else the newest. */
  async of(calling: Asking, caller: Caller): Promise<Interaction | undefined> {
    return (await this.pendingOf(calling, caller)).at(-1) ?? (await this.#all(calling, caller, undefined)).at(-1);
  }

  /** What a call asks for and nobody has decided, in order. */
  pendingOf(calling: Asking, caller: Caller): Promise<Interaction[]> {
    return this.#all(calling, caller, 'pending');
  }

  async #all({ world, call }: Asking, { identity }: Caller, status: 'pending' | undefined): Promise<Interaction[]> {
    const { items } = await this.bus.call(sessionService.listInteractions, { runId: world.run.runId, status, limit: 200 }, identity);
    return items.filter(({ callId }) => callId === call.callId);
  }

  async get(
    id: string,
    { identity }: Caller,
  ): Promise<(Interaction & { readonly url: string | null; readonly result: CallResult | null }) | undefined> {
    try {
      return await this.bus.call(sessionService.getInteraction, { id }, identity);
    } catch (error) {
      if (error instanceof Fault && error.code === 'NO_INTERACTION') return undefined;
      throw error;
    }
  }

  /** Takes a decision as the client's principal, after those of its session that come first. False where it may not, or somebody was faster. */
  async decide(
    { id, sessionId, operationId }: Pick<Interaction, 'id' | 'sessionId' | 'operationId'>,
    decided: NonNullable<Decided>,
    { caller, signal }: { readonly caller: Caller; readonly signal: AbortSignal },
  ): Promise<boolean> {
    if (decided.decision === 'withdraw') {
      await this.bus.call(sessionService.withdrawInteraction, { operationId }, caller.identity);
      return true;
    }
    const until = performance.now() + IN_ORDER_MS;
    for (;;) {
      try {
        const by = caller.identity.principal;
        await this.bus.call(sessionService.decideInteraction, { id, sessionId, ...decided, by }, caller.identity);
        return true;
      } catch (error) {
        if (!(error instanceof Fault) || error.status >= 500) throw error;
        // Not entitled, expired, decided by somebody else, or not an answer: the call goes on waiting, or has its end.
        if (error.code !== 'INTERACTION_ORDER' || performance.now() > until) return false;
        await this.#settled(firstIn(error.data) ?? id, signal, LOOK_MS);
        signal.throwIfAborted();
      }
    }
  }

  /** The result of the call that asked, once it has one; undefined where that takes longer. Rejects with the signal's reason. */
  async result(
    id: string,
    caller: Caller,
    { withinMs, signal }: { readonly withinMs: number; readonly signal: AbortSignal },
  ): Promise<CallResult | undefined> {
    const until = performance.now() + withinMs;
    for (;;) {
      const settled = this.#settled(id, signal, Math.max(1, Math.min(LOOK_MS, until - performance.now())));
      const interaction = await this.get(id, caller);
      if (interaction === undefined)
        return { callId: '', status: 'cancelled', fault: { code: 'CANCELLED', message: 'The decision is gone, and the call with it' } };
      if (interaction.result !== null) return interaction.result;
      if (performance.now() >= until) return undefined;
      await settled;
      signal.throwIfAborted();
    }
  }

  /** Settles once somebody decided, or nobody can any more. Rejects with the signal's reason. */
  async decided(id: string, caller: Caller, signal: AbortSignal): Promise<undefined> {
    for (;;) {
      const settled = this.#settled(id, signal, LOOK_MS);
      const interaction = await this.get(id, caller);
      if (interaction?.status !== 'pending') return undefined;
      await settled;
      signal.throwIfAborted();
    }
  }

  settled(interactionId: string): void {
    for (const wake of this.#waiting.get(interactionId) ?? []) wake();
  }

  /** What a call asks for from now on, until it is ended. */
  asksOf(calling: Asking): Asks {
    const key = keyOf(calling.world.run.runId, calling.call.callId);
    const asks = new Asks(() => {
      if (this.#asking.get(key) === asks) this.#asking.delete(key);
    });
    this.#asking.set(key, asks);
    return asks;
  }
  requested(interaction: Interaction): void {
    this.#asking.get(keyOf(interaction.runId, interaction.callId))?.add(interaction);
  }

  /** Settles when the interaction is said to be settled, the time is up, or the request has ended; never rejects. */
  #settled(id: string, signal: AbortSignal, withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(id) ?? new Set();
      const wake = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', wake);
        waiting.delete(wake);
        if (waiting.size === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id);
        resolve();
      };
      const timer = setTimeout(wake, withinMs);
      waiting.add(wake);
      this.#waiting.set(id, waiting);
      signal.addEventListener('abort', wake, { once: true });
      if (signal.aborted) wake();
    });
  }
}

function firstIn(data: unknown): string | undefined {
  return typeof data === 'object' && data !== null && 'first' in data && typeof data.first === 'string' ? data.first : undefined;
}
