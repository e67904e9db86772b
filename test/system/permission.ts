import { PermissionViolationError, type NatsConnection } from '@nats-io/nats-core';

/** Subjects that the server refused, by connection; a connection is watched from its first question on. */
const refusals = new WeakMap<NatsConnection, Set<string>>();

function refusedOn(connection: NatsConnection): Set<string> {
  const known = refusals.get(connection);
  if (known !== undefined) return known;
  const refused = new Set<string>();
  refusals.set(connection, refused);
  void (async () => {
    for await (const status of connection.status()) {
      if (status.type === 'error' && status.error instanceof PermissionViolationError)
        refused.add(`${status.error.operation} ${status.error.subject}`);
    }
  })();
  return refused;
}

/** The server answers in order: when the second ping is back, a refusal has been heard. */
async function settled(connection: NatsConnection): Promise<void> {
  await connection.flush();
  await connection.flush();
}

/** Whether the server lets this connection publish there. */
export async function mayPublish(connection: NatsConnection, subject: string): Promise<boolean> {
  const refused = refusedOn(connection);
  connection.publish(subject, '{}');
  await settled(connection);
  return !refused.delete(`publish ${subject}`);
}

/** Whether the server lets this connection hear there. */
export async function mayHear(connection: NatsConnection, subject: string): Promise<boolean> {
  let isRefused = false;
  const subscription = connection.subscribe(subject, {
    callback: (error) => {
      if (error instanceof PermissionViolationError) isRefused = true;
    },
  });
  await settled(connection);
  if (!isRefused) subscription.unsubscribe();
  return !isRefused;
}
