import { toolGateway, type EndedCall } from '@ambit/contracts';
import type { NatsConnection } from '@nats-io/nats-core';
import { collect, type Collected } from './collect.js';

export interface HeardEnd {
  readonly payload: EndedCall;
  readonly headers: Readonly<Record<string, string>>;
}

/** Listens from now on to calls that end; those that are told together are heard one by one. Like `collect` otherwise. */
export async function collectEndedCalls(connection: NatsConnection): Promise<{
  readonly all: readonly HeardEnd[];
  next(fits?: (one: HeardEnd) => boolean, timeoutMs?: number): Promise<HeardEnd>;
  stop(): void;
}> {
  const heard = await collect(connection, toolGateway.callEnded);
  return {
    get all() {
      return heard.all.flatMap(apart);
    },
    next: async (fits = () => true, timeoutMs = 10_000) => {
      const together = await heard.next((one) => apart(one).some(fits), timeoutMs);
      const found = apart(together).find(fits);
      if (found === undefined) throw new Error('what fitted a moment ago fits no more');
      return found;
    },
    stop: () => heard.stop(),
  };
}

function apart({ payload: { calls, ...names }, headers }: Collected<typeof toolGateway.callEnded>): HeardEnd[] {
  return calls.map((call) => ({ payload: { ...names, ...call }, headers }));
}
