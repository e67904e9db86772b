import { TimeoutError, type NatsConnection } from '@nats-io/nats-core';

/** Whether a connection is there. What is sent while it is away is dropped by the client at its next try to connect, and nobody is told. */
class Presence {
  #back: Promise<void> | undefined;
  #resolve: () => void = () => undefined;

  constructor(connection: NatsConnection) {
    void this.#follow(connection);
  }

  /** Settles when the connection is back; undefined while it is there. */
  get back(): Promise<void> | undefined {
    return this.#back;
  }

  async #follow(connection: NatsConnection): Promise<void> {
    for await (const { type } of connection.status()) {
      if (type === 'disconnect') this.#back ??= new Promise((resolve) => (this.#resolve = resolve));
      if (type !== 'reconnect') continue;
      this.#back = undefined;
      this.#resolve();
    }
    // Closed for good: whoever waits sends, and is told so.
    this.#back = undefined;
    this.#resolve();
  }
}

const presences = new WeakMap<NatsConnection, Presence>();

/** The one that follows a connection, for whoever asks. */
export function presenceOf(connection: NatsConnection): Presence {
  const known = presences.get(connection);
  if (known !== undefined) return known;
  const presence = new Presence(connection);
  presences.set(connection, presence);
  return presence;
}

/** Has requests of the client itself, as JetStream's are, wait for a connection that is away; each at most its own time. */
export function holdRequests(connection: NatsConnection): void {
  const presence = presenceOf(connection);
  const request = connection.request.bind(connection);
  connection.request = async (subject, payload, options) => {
    const { back } = presence;
    if (back !== undefined && !(await settles(back, options?.timeout ?? 1_000))) throw new TimeoutError();
    return request(subject, payload, options);
  };
}

function settles(work: Promise<void>, withinMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), withinMs);
    void work.then(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}
