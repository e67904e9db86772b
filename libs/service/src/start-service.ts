import { Bus, BusServer, connectBus, isRefusedByStream, Responder, verifyStreams, Workers, type StorageDecl } from '@ambit/bus';
import { buckets, objectStores, platformFault, services, streams, type ServiceName, type ServiceUse } from '@ambit/contracts';
import type { DynamicModule, INestApplicationContext, Provider, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NatsConnection } from '@nats-io/nats-core';
import type { DestinationStream, Logger } from 'pino';
import type { z } from 'zod';
import { BadConfiguration, readConfig, ServiceConfig } from './config.js';
import { createLogger, NestLog } from './logger.js';
import { Drain } from './drain.js';
import { Metrics } from './metrics.js';
import { startOpsServer } from './ops-server.js';
import { Readiness } from './readiness.js';
import { CONFIG, LOG, type ServiceDatabase, type ServiceOptions } from './service-options.js';

export interface StartOptions<S extends z.ZodObject> extends ServiceOptions<S> {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly logTo?: DestinationStream | undefined;
}

export interface RunningService {
  readonly app: INestApplicationContext;
  readonly bus: Bus;
  readonly log: Logger;
  readonly opsPort: number;
  /** Stops taking work, answers what was taken, then lets go of everything. Idempotent. */
  close(): Promise<void>;
}

/** Starts a service in this process: configuration, log, health, bus, database, then the module. Undoes what it did when a step fails. */
export async function startService<S extends z.ZodObject>(
  name: ServiceName,
  module: Type,
  options: StartOptions<S>,
): Promise<RunningService> {
  const base = readConfig(ServiceConfig, options.environment);
  const config = options.config === undefined ? {} : readConfig(options.config, options.environment);
  const log = createLogger({ name, level: base.AMBIT_LOG_LEVEL, destination: options.logTo });
  const closers: (() => Promise<void>)[] = [];
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= closeAll(closers));
  try {
    const metrics = new Metrics(name);
    const readiness = new Readiness();
    const ops = await startOpsServer({ host: base.AMBIT_LISTEN, port: base.OPS_PORT }, readiness, metrics);
    closers.push(() => ops.close());

    const inboxPrefix = `_INBOX.${name}`;
    const connection = await connectBus({ url: base.NATS_URL, name, credentials: base.NATS_CREDS, inboxPrefix });
    closers.push(() => leave(connection));
    void tellStatus(connection, log);
    readiness.add('nats', () => connection.rtt());
    const use: ServiceUse = services[name];
    await verifyStreams(connection, storesOf(use));

    const bus = new Bus(connection, { inboxPrefix });
    closers.push(async () => bus.close());
    const database = openDatabase(name, base, { options, bus, log });
    if (database !== undefined) {
      closers.push(() => database.close());
      readiness.add('postgres', () => database.ping());
      metrics.gauge({
        name: 'ambit_outbox_rows',
        help: 'Messages that wait in the outbox',
        read: async () => (await database.outbox.lag())?.rows,
      });
      metrics.gauge({
        name: 'ambit_outbox_oldest_seconds',
        help: 'Age of the oldest message in the outbox',
        read: async () => oldestSeconds(await database.outbox.lag()),
      });
    }

    const server = new BusServer({
      connection,
      name,
      version: VERSION,
      use,
      log,
      dynamic: options.dynamic,
      meaningOf: (error) =>
        database?.isAway(error) === true
          ? platformFault('UNAVAILABLE', undefined, 'The database cannot be reached just now; nothing was written')
          : undefined,
      onAnswered: (contract, elapsedMs, code) => metrics.answered(contract, elapsedMs, code),
    });
    const drain = new Drain();
    const root = rootModule(module, [
      { provide: CONFIG, useValue: config },
      { provide: LOG, useValue: log },
      { provide: Metrics, useValue: metrics },
      { provide: Readiness, useValue: readiness },
      { provide: Bus, useValue: bus },
      { provide: Responder, useValue: server.responder },
      { provide: Workers, useValue: server.workers },
      ...(database?.providers ?? []),
    ]);
    await database?.start();
    const app = await startNest(root, server, {
      log,
      closers,
      http:
        options.http === undefined
          ? undefined
          : // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- without a schema there is nothing that `port` could read
            { host: base.AMBIT_LISTEN, port: options.http.port(config as Readonly<z.output<S>>), configure: options.http.configure },
      drain,
    });
    closers.push(() => drain.begin(options.http === undefined ? 0 : base.AMBIT_DRAIN_MS));
    closers.push(async () => readiness.open(false));
    readiness.open(true);
    log.info({ opsPort: ops.port }, 'ready');
    return { app, bus, log, opsPort: ops.port, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The version of Ambit: one for the whole tree until packages are published apart. */
export const VERSION = '0.1.0';

class Root {}

/** Everything an app may inject from the process, visible in all its modules. */
function rootModule(module: Type, providers: Provider[]): DynamicModule {
  const shared: DynamicModule = { module: class Shared {}, global: true, providers, exports: providers };
  return { module: Root, imports: [shared, module] };
}

interface NestContext {
  readonly log: Logger;
  readonly closers: (() => Promise<void>)[];
  readonly drain: Drain;
  readonly http:
    | {
        readonly host: string;
        readonly port: number;
        readonly configure: ServiceOptions['http'] extends infer H
          ? H extends { readonly configure?: infer F }
            ? F | undefined
            : never
          : never;
      }
    | undefined;
}

async function startNest(root: DynamicModule, server: BusServer, context: NestContext): Promise<INestApplicationContext> {
  const logger = new NestLog(context.log);
  if (context.http === undefined) {
    const app = await NestFactory.createMicroservice(root, { strategy: server, logger, abortOnError: false });
    server.bindTo(app);
    context.closers.push(() => app.close());
    await app.listen();
    return app;
  }
  const app = await NestFactory.create(root, { logger, abortOnError: false });
  context.closers.push(() => app.close());
  app.connectMicroservice({ strategy: server }, { inheritAppConfig: false });
  server.bindTo(app);
  app.use(context.drain.handle);
  await context.http.configure?.(app);
  await app.startAllMicroservices();
  await app.listen(context.http.port, context.http.host);
  return app;
}

function openDatabase<S extends z.ZodObject>(
  owner: string,
  base: ServiceConfig,
  context: { options: ServiceOptions<S>; bus: Bus; log: Logger },
): ServiceDatabase | undefined {
  const { options, bus, log } = context;
  if (options.database === undefined) return undefined;
  if (base.DATABASE_URL === undefined)
    throw new BadConfiguration(
      `The configuration is wrong; set these environment variables:\n- DATABASE_URL: ${owner} keeps its state in Postgres; a postgresql:// URL`,
    );
  return options.database({
    url: base.DATABASE_URL,
    owner,
    log,
    publish: (message) => bus.store(message),
    isRefusal: isRefusedByStream,
    keepAuditDays: base.AMBIT_KEEP_AUDIT_DAYS,
  });
}

/** The declarations of what a service reads, writes, consumes, emits or hands out. */
function storesOf(use: ServiceUse): StorageDecl[] {
  const names = new Set([
    ...use.stores.reads,
    ...Object.keys(use.stores.writes),
    ...use.stores.consumes,
    ...use.works.map(({ stream }) => stream),
    ...use.enqueues.map(({ stream }) => stream),
  ]);
  if (use.emits.length + use.hears.length > 0) names.add(streams.events.name);
  if (use.stores.journal.length > 0) names.add(streams.journal.name);
  const all: readonly StorageDecl[] = [...Object.values(streams), ...Object.values(buckets), ...Object.values(objectStores)];
  return all.filter(({ name }) => names.has(name));
}

async function closeAll(closers: (() => Promise<void>)[]): Promise<void> {
  // What was opened last may need what was opened before it.
  for (const close of closers.splice(0).reverse()) await close();
}

async function leave(connection: NatsConnection): Promise<void> {
  if (!connection.isClosed()) await connection.drain().catch(() => connection.close());
}

async function tellStatus(connection: NatsConnection, log: Logger): Promise<void> {
  for await (const status of connection.status()) {
    if (status.type === 'disconnect') log.warn({}, 'lost the connection to NATS; connecting again');
    else if (status.type === 'reconnect') log.info({}, 'connected to NATS again');
    else if (status.type === 'error') log.error({ error: status.error }, 'NATS told of an error');
  }
}

function oldestSeconds(lag: { readonly oldestMs: number } | undefined): number | undefined {
  return lag === undefined ? undefined : lag.oldestMs / 1_000;
}
