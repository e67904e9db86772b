import { PrismaPg } from '@prisma/adapter-pg';
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
  if (!(error instanceof Prisma.PrismaClientKnownRequestError)) return false;
  const told = error.meta?.['driverAdapterError'];
  const cause = typeof told === 'object' && told !== null && 'cause' in told ? told.cause : undefined;
  return typeof cause === 'object' && cause !== null && 'kind' in cause && cause.kind === 'DatabaseNotReachable';
}

/** One service's Postgres: its client, its outbox relay, and what a module provides of them. */
export class Database {
  readonly client: PrismaClient;
  readonly outbox: OutboxRelay;
  readonly #log: RelayLog;
  readonly providers: readonly { readonly provide: symbol | typeof OutboxRelay | typeof AuditTrail; readonly useValue: unknown }[];

  constructor(options: DatabaseOptions) {
    this.client = new PrismaClient({
      adapter: new PrismaPg({ connectionString: options.url, max: options.poolSize ?? 10, application_name: options.owner }),
    });
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
