import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Bus, connectBus, ensureStreams } from '@ambit/bus';
import { buckets, objectStores, streams } from '@ambit/contracts';
import { throwAwayNats } from '@ambit/embedded';
import type { NatsConnection } from '@nats-io/nats-core';
import { inContainerOr } from './docker.js';
import { searchStored } from './leaks.js';
import { watchWire } from './wire.js';

export interface TestNats {
  readonly url: string;
  /** A connection with all rights. */
  readonly connection: NatsConnection;
  /** A caller with all rights. */
  readonly bus: Bus;
  stop(): Promise<void>;
}

export interface TestNatsOptions {
  /** Makes every declared stream and bucket. @default true */
  readonly streams?: boolean;
}

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..');
const IMAGE = 'nats:2.15-alpine';
const MAX_PAYLOAD = 'max_payload: 1MB';

/** A nats-server with JetStream for one test file, in a container where an engine answers, as a local process elsewhere. */
export async function startNats(options: TestNatsOptions = {}): Promise<TestNats> {
  watchWire();
  const server = await inContainerOr<{ readonly url: string; stop(): Promise<void> }>(IMAGE, natsContainer, () =>
    throwAwayNats({ cacheDir: join(root, '.ambit', 'bin') }),
  );
  const connection = await connectBus({ url: server.url, name: 'test' });
  if (options.streams !== false)
    await ensureStreams(connection, [...Object.values(streams), ...Object.values(buckets), ...Object.values(objectStores)]);
  const bus = new Bus(connection);
  return {
    url: server.url,
    connection,
    bus,
    stop: async () => {
      try {
        await searchStored(connection);
      } finally {
        bus.close();
        await connection.close();
        await server.stop();
      }
    },
  };
}

async function natsContainer(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const { GenericContainer, Wait } = await import('testcontainers');
  const container = await new GenericContainer(IMAGE)
    .withExposedPorts(4222)
    .withCopyContentToContainer([{ content: `${MAX_PAYLOAD}\njetstream { store_dir: /tmp/jetstream }\n`, target: '/tmp/ambit.conf' }])
    .withCommand(['-c', '/tmp/ambit.conf'])
    .withWaitStrategy(Wait.forLogMessage(/Server is ready/))
    .start();
  return { url: `nats://${container.getHost()}:${container.getMappedPort(4222)}`, stop: async () => void (await container.stop()) };
}
