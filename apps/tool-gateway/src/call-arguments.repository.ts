import { previewArguments } from '@ambit/capability';
import { DB, type GatewayDb } from '@ambit/db';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';

const WRITE_EVERY_MS = 250;
const WRITE_AT = 200;
const MAX_WAITING = 5_000;

/** Keeps the redacted arguments of calls for people, written in bunches beside the call's path. The tape has the arguments themselves. */
@Injectable()
export class CallArguments implements OnApplicationShutdown {
  #waiting: { operationId: string; input: Readonly<Record<string, unknown>> }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(
    @Inject(DB) private readonly db: GatewayDb,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  keep(operationId: string, input: Readonly<Record<string, unknown>>): void {
    if (this.#waiting.length >= MAX_WAITING) return;
    this.#waiting.push({ operationId, input });
    if (this.#waiting.length >= WRITE_AT) this.#write();
    else this.#timer ??= setTimeout(() => this.#write(), WRITE_EVERY_MS);
  }

  async onApplicationShutdown(): Promise<void> {
    this.#write();
    await this.#writing;
  }

  #write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const rows = this.#waiting.splice(0).map(({ operationId, input }) => ({ operationId, preview: previewArguments(input).text }));
    if (rows.length === 0) return;
    this.#writing = this.#writing
      .then(() => this.db.gatewayArguments.createMany({ data: rows, skipDuplicates: true }))
      .then(
        () => undefined,
        (error: unknown) => this.log.warn({ error, calls: rows.length }, 'arguments of calls could not be kept for people'),
      );
  }
}
