import { keysOf, pattern, type EventContract, type KeysOf, type SignalContract } from '@ambit/contracts';
import type { NatsConnection } from '@nats-io/nats-core';
import type { z } from 'zod';

export interface Collected<C extends EventContract | SignalContract> {
  readonly payload: z.output<C['payload']>;
  readonly keys: KeysOf<C>;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Collector<C extends EventContract | SignalContract> {
  /** Everything heard so far, in order. */
  readonly all: readonly Collected<C>[];
  /** The first that fits, heard already or yet to come; rejects after `timeoutMs` (10000). */
  next(fits?: (one: Collected<C>) => boolean, timeoutMs?: number): Promise<Collected<C>>;
  stop(): void;
}

/** Listens to an event or signal from now on. Resolves once the server knows of the subscription. */
export async function collect<C extends EventContract | SignalContract>(connection: NatsConnection, contract: C): Promise<Collector<C>> {
  const all: Collected<C>[] = [];
  const watchers = new Set<() => void>();
  const subscription = connection.subscribe(pattern(contract), {
    callback: (error, message) => {
      if (error !== null) return;
      const headers = Object.fromEntries([...(message.headers ?? [])].map(([name, values]) => [name, values[0] ?? '']));
      all.push({
        payload: contract.payload.parse(message.json()) as z.output<C['payload']>,
        keys: keysOf<C['subject']>(contract, message.subject),
        headers,
      });
      for (const watch of [...watchers]) watch();
    },
  });
  await connection.flush();
  return {
    all,
    stop: () => subscription.unsubscribe(),
    next: (fits = () => true, timeoutMs = 10_000) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          watchers.delete(watch);
          reject(new Error(`no fitting ${contract.subject} within ${timeoutMs} ms; ${all.length} others were heard`));
        }, timeoutMs);
        const watch = (): void => {
          const found = all.find(fits);
          if (found === undefined) return;
          clearTimeout(timer);
          watchers.delete(watch);
          resolve(found);
        };
        watchers.add(watch);
        watch();
      }),
  };
}
