import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { AuditTrail } from './audit.js';
import { Prisma, PrismaClient } from './generated/client.js';
import { OutboxRelay, type OutboxRelayOptions, type RelayLog } from './outbox-relay.js';

/** Injection token of the service's view of the database: `@Inject(DB) private readonly db: SkillDb`. */
export const DB = Symbol('ambit:db');

export interface DatabaseOptions extends OutboxRelayOptions {
  /** @default 10 */
  readonly poolSize?: number | undefined;
}

/** Whether an error says that Postgres could not be reached at all, so that nothing was read or written; a connection lost in the middle is no such case. */
export function isDatabaseAway(error: unknown): boolean {
  // Said by a connection that was lost before this query: it was not sent, and what stood before it in its transaction is undone.
  if (error instanceof Error && error.message === 'Client has encountered a connection error and is not queryable') return true;
  // No connection became free in time: the transaction was not begun.
  if (
    error instanceof Prisma.PrismaClientKnownRequestError &&
    error.code === 'P2028' &&
    /Unable to start a transaction/.test(error.message)
  )
    return true;
  const cause = causeOf(error);
  if (typeof cause !== 'object' || cause === null) return false;
  if ('kind' in cause && cause.kind === 'DatabaseNotReachable') return true;
  return 'originalCode' in cause && cause.originalCode === CANNOT_CONNECT_NOW;
}

/** Whether an error is the database's: its text has statements and paths, and is for logs alone. */
export function isDatabaseError(error: unknown): boolean {
  return isDatabaseAway(error) || (error instanceof Error && error.name.startsWith('PrismaClient'));
}

/** It is there, and still reads its log after a crash, or shuts down: it took no connection. */
const CANNOT_CONNECT_NOW = '57P03';

/** What the driver said, which stands in the error itself or in one that wraps it. */
function causeOf(error: unknown): unknown {
  const told = error instanceof Prisma.PrismaClientKnownRequestError ? error.meta?.['driverAdapterError'] : error;
  return typeof told === 'object' && told !== null && 'cause' in told ? told.cause : undefined;
}

/** One service's Postgres: its client, its outbox relay, and what a module provides of them. */
export class Database {
  readonly client: PrismaClient;
  readonly outbox: OutboxRelay;
  readonly #log: RelayLog;
  readonly providers: readonly { readonly provide: symbol | typeof OutboxRelay | typeof AuditTrail; readonly useValue: unknown }[];

  constructor(options: DatabaseOptions) {
    const pool = new pg.Pool({ connectionString: options.url, max: options.poolSize ?? 10, application_name: options.owner });
    // Whoever uses a connection hears of its loss by its query; between two queries nobody listens, and an error that nobody hears ends the process.
    pool.on('connect', (client) => client.on('error', () => undefined));
    this.client = new PrismaClient({ adapter: new PrismaPg(pool, { disposeExternalPool: true }) });
    this.#log = options.log;
    this.outbox = new OutboxRelay(options);
    this.providers = [
      { provide: DB, useValue: this.client },
      { provide: OutboxRelay, useValue: this.outbox },
      { provide: AuditTrail, useValue: new AuditTrail(this.client, options.owner) },
    ];
  }

  /** Starts the relay and warms the client up: its first query takes longest. Resolves also while Postgres is away. */
  async start(): Promise<void> {
    this.outbox.start();
    await this.ping().catch((error: unknown) => this.#log.warn({ error }, 'Postgres is away; waiting for it'));
  }

  /** Rejects while Postgres is away. */
  async ping(): Promise<void> {
    await this.client.$queryRawUnsafe('SELECT 1');
  }

  /** Whether an error of its queries says that Postgres could not be reached. */
  isAway(error: unknown): boolean {
    return isDatabaseAway(error);
  }

  async close(): Promise<void> {
    await this.outbox.close();
    await this.client.$disconnect();
  }
}

/** What runService() is handed by services that own tables. */
export const openDatabase = (options: DatabaseOptions): Database => new Database(options);
