import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from './generated/client.js';
import { OutboxRelay, type OutboxRelayOptions, type RelayLog } from './outbox-relay.js';

/** Injection token of the service's view of the database: `@Inject(DB) private readonly db: SkillDb`. */
export const DB = Symbol('ambit:db');

export interface DatabaseOptions extends OutboxRelayOptions {
  /** @default 10 */
  readonly poolSize?: number | undefined;
}

/** One service's Postgres: its client, its outbox relay, and what a module provides of them. */
export class Database {
  readonly client: PrismaClient;
  readonly outbox: OutboxRelay;
  readonly #log: RelayLog;
  readonly providers: readonly { readonly provide: symbol | typeof OutboxRelay; readonly useValue: unknown }[];

  constructor(options: DatabaseOptions) {
    this.client = new PrismaClient({
      adapter: new PrismaPg({ connectionString: options.url, max: options.poolSize ?? 10, application_name: options.owner }),
    });
    this.#log = options.log;
    this.outbox = new OutboxRelay(options);
    this.providers = [
      { provide: DB, useValue: this.client },
      { provide: OutboxRelay, useValue: this.outbox },
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

  async close(): Promise<void> {
    await this.outbox.close();
    await this.client.$disconnect();
  }
}

/** What runService() is handed by services that own tables. */
export const openDatabase = (options: DatabaseOptions): Database => new Database(options);
