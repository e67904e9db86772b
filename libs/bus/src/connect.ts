import { readFile } from 'node:fs/promises';
import { MINIMUM_NATS_SERVER } from '@ambit/contracts';
import type { NatsConnection } from '@nats-io/nats-core';
import { credsAuthenticator } from '@nats-io/transport-node';
import { connectGathering } from './gathering-transport.js';
import { holdRequests } from './presence.js';

export interface ConnectOptions {
  readonly url: string;
  /** Shown in the server's list of connections. */
  readonly name: string;
  /** Path of a NATS credentials file. */
  readonly credentials?: string | undefined;
  /** @default `_INBOX` */
  readonly inboxPrefix?: string | undefined;
}

/** Connects, for as long as the process lives, to a nats-server that is new enough; waits for one that is not up yet. */
export async function connectBus(options: ConnectOptions): Promise<NatsConnection> {
  const authenticator = options.credentials === undefined ? undefined : credsAuthenticator(await readFile(options.credentials));
  const connection = await connectGathering({
    servers: options.url.split(','),
    name: options.name,
    inboxPrefix: options.inboxPrefix ?? '_INBOX',
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    reconnectJitter: 250,
    waitOnFirstConnect: true,
    // A stack trace for every request costs more than the request.
    noAsyncTraces: true,
    ...(authenticator === undefined ? {} : { authenticator }),
  });
  const version = connection.info?.version ?? '0.0.0';
  if (!isAtLeast(version, MINIMUM_NATS_SERVER)) {
    await connection.close();
    throw new Error(`nats-server ${version} is too old: Ambit needs ${MINIMUM_NATS_SERVER} or newer`);
  }
  holdRequests(connection);
  return connection;
}

/** Compares dotted versions by number; what follows a hyphen or plus does not count. */
export function isAtLeast(version: string, minimum: string): boolean {
  const actual = numbers(version);
  for (const [index, wanted] of numbers(minimum).entries()) {
    const found = actual[index] ?? 0;
    if (found !== wanted) return found > wanted;
  }
  return true;
}

function numbers(version: string): number[] {
  return (version.split(/[-+]/)[0] ?? '').split('.').map((part) => Number.parseInt(part, 10) || 0);
}
