import { AmbitClient } from '@ambit/client';
import type { Command } from 'commander';
import pc from 'picocolors';
import { findConnection } from './connection.js';
import type { Io } from './io.js';
import { table, type Column } from './table.js';

interface GlobalOptions {
  readonly url?: string;
  readonly token?: string;
  readonly json?: boolean;
}

/** What every command works with: the API, and a way to answer in words or in JSON. */
export class Context {
  readonly io: Io;
  readonly paint: ReturnType<typeof pc.createColors>;
  readonly #program: Command;

  constructor(io: Io, program: Command) {
    this.io = io;
    this.paint = pc.createColors(io.isTerminal && io.env['NO_COLOR'] === undefined);
    this.#program = program;
  }

  get wantsJson(): boolean {
    return this.#options.json === true;
  }

  async client(): Promise<AmbitClient> {
    return new AmbitClient(await findConnection(this.#options, this.io));
  }

  /** Answers once: one JSON document, or words. */
  show(value: unknown, words: () => string): void {
    this.io.write(this.wantsJson ? `${JSON.stringify(value, null, 2)}\n` : words());
  }

  /** Answers one of many: a line of JSON, or words. */
  tell(value: unknown, words: () => string): void {
    this.io.write(this.wantsJson ? `${JSON.stringify(value)}\n` : words());
  }

  /** Answers with a list: one JSON document, or a table. */
  list(items: readonly unknown[], columns: readonly Column[], none: string): void {
    this.show({ items }, () => (items.length === 0 ? `${none}\n` : table(columns, items, this.paint.bold)));
  }

  get #options(): GlobalOptions {
    return this.#program.opts<GlobalOptions>();
  }
}

/** At most so many of a sequence. */
export async function take<T>(items: AsyncIterable<T>, most: number): Promise<T[]> {
  const taken: T[] = [];
  if (most <= 0) return taken;
  for await (const item of items) if (taken.push(item) >= most) break;
  return taken;
}
