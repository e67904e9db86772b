import type { LoggerService } from '@nestjs/common';
import { pino, type DestinationStream, type Logger } from 'pino';
import { redact } from './redact.js';

export interface LoggerOptions {
  readonly name: string;
  readonly level: string;
  /** @default standard output */
  readonly destination?: DestinationStream | undefined;
}

/** JSON lines, one an event; what looks like a secret is blotted out. */
export function createLogger(options: LoggerOptions): Logger {
  return pino(
    {
      name: options.name,
      level: options.level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      messageKey: 'message',
      formatters: { level: (label) => ({ level: label }), log: (line) => Object(redact(line)) },
      serializers: { error: pino.stdSerializers.err },
    },
    ...(options.destination === undefined ? [] : [options.destination]),
  );
}

/** Hands Nest's own lines to the same log; its tale of the start is for debugging. */
export class NestLog implements LoggerService {
  readonly #log: Logger;
  constructor(log: Logger) {
    this.#log = log;
  }
  log(message: unknown, ...rest: unknown[]): void {
    this.#log.debug({ context: rest.at(-1) }, String(message));
  }
  error(message: unknown, ...rest: unknown[]): void {
    this.#log.error({ error: message instanceof Error ? message : undefined, context: rest.at(-1) }, String(message));
  }
  warn(message: unknown, ...rest: unknown[]): void {
    this.#log.warn({ context: rest.at(-1) }, String(message));
  }
  debug(message: unknown, ...rest: unknown[]): void {
    this.#log.debug({ context: rest.at(-1) }, String(message));
  }
  verbose(message: unknown, ...rest: unknown[]): void {
    this.#log.debug({ context: rest.at(-1) }, String(message));
  }
}
