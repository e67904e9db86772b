/** What the bus needs of a logger; pino's loggers fit. Fields first, then one sentence. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const nothing = (): void => undefined;

/** Drops every line; for tools and tests that do not look at logs. */
export const silentLog: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
