import type { StoredMessage } from '@ambit/contracts';
import type { INestApplication, Provider } from '@nestjs/common';
import type { Logger } from 'pino';
import type { z } from 'zod';

/** Injection token of the app's parsed configuration. */
export const CONFIG = Symbol('ambit:config');
/** Injection token of the process's log. */
export const LOG = Symbol('ambit:log');

export type { Logger };

/** What a database needs of the process; `openDatabase` of libs/db takes it. */
export interface DatabaseContext {
  readonly url: string;
  readonly owner: string;
  readonly log: Logger;
  readonly publish: (message: StoredMessage) => Promise<{ readonly sequence: number }>;
  readonly isRefusal: (error: unknown) => boolean;
  /** 0 = for ever. */
  readonly keepAuditDays: number;
}

export interface ServiceDatabase {
  readonly providers: readonly Provider[];
  readonly outbox: { lag(): Promise<{ readonly rows: number; readonly oldestMs: number } | undefined> };
  /** Resolves once the database is usable, or known to be away. */
  start(): Promise<void>;
  ping(): Promise<void>;
  /** Whether an error of a query says that the database could not be reached, so that nothing was done. */
  isAway(error: unknown): boolean;
  close(): Promise<void>;
}

export interface HttpOptions<C> {
  readonly port: (config: C) => number;
  /** Called before the port is opened. */
  readonly configure?: (app: INestApplication) => void | Promise<void>;
}

export interface ServiceOptions<S extends z.ZodObject = z.ZodObject> {
  /** The app's own environment variables. */
  readonly config?: S;
  /** `openDatabase`, for a service that owns tables. */
  readonly database?: (context: DatabaseContext) => ServiceDatabase;
  /** For the apps that speak HTTP beside the bus. */
  readonly http?: HttpOptions<Readonly<z.output<S>>>;
  /** Signals that are listened to key by key, not by a decorated method. */
  readonly dynamic?: readonly { readonly subject: string }[];
}
