import type { Msg, NatsConnection } from '@nats-io/nats-core';

/** Hears everything that passes in the account of a connection, in the order in which the server passes it on. */
export async function wiretap(connection: NatsConnection): Promise<{ stop(): Promise<readonly Msg[]> }> {
  const seen: Msg[] = [];
  const subscription = connection.subscribe('>', { callback: (_error, message) => void seen.push(message) });
  await connection.flush();
  return {
    stop: async () => {
      // What was sent before this answer has been heard when it is back.
      await connection.flush();
      subscription.unsubscribe();
      return seen;
    },
  };
}
