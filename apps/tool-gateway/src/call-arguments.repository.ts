import type { Claim } from '@ambit/contracts';
import { DB, type GatewayDb } from '@ambit/db';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { ArgumentsPolicy } from './arguments.policy.js';
const WRITE_EVERY_MS = 250;
const WRITE_AT = 1_000;
const MAX_WAITING = 5_000;

/** Keeps the arguments of calls for people, as far as their servers let it, written in bunches beside the call's path. The tape has the arguments themselves. */
@Injectable()
export class CallArguments implements OnApplicationShutdown {
  #waiting: { operationId: string; target: Claim['target']; input: Readonly<Record<string, unknown>> }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(
    @Inject(DB) private readonly db: GatewayDb,
    @Inject(ArgumentsPolicy) private readonly policy: ArgumentsPolicy,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  keep({ operationId, target }: Pick<Claim, 'operationId' | 'target'>, input: Readonly<Record<string, unknown>>): void {
    if (this.#waiting.length >= MAX_WAITING) return;
    this.#waiting.push({ operationId, target, input });
    if (this.#waiting.length >= WRITE_AT) this.#write();
    else this.#timer ??= setTimeout(() => this.#write(), WRITE_EVERY_MS);
  }

  async onApplicationShutdown(): Promise<void> {
    this.#write();
    await this.#writing;
  }

  /** One statement, however many rows. */
  async #insert(rows: readonly { readonly operationId: string; readonly preview: string }[]): Promise<void> {
    if (rows.length === 0) return;
    await this.db.$executeRaw`
      INSERT INTO "tool_gateway"."call_arguments" ("operation_id", "preview")
      SELECT * FROM json_to_recordset(${JSON.stringify(rows)}::json) AS a("operationId" text, "preview" text) ON CONFLICT DO NOTHING`;
  }

  #write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const waiting = this.#waiting.splice(0);
    if (waiting.length === 0) return;
    this.#writing = this.#writing
      .then(() =>
        Promise.all(
          waiting.map(async ({ operationId, target, input }) => ({ operationId, preview: await this.policy.textOf(target, input) })),
        ),
      )
      .then((rows) => rows.flatMap(({ operationId, preview }) => (preview === undefined ? [] : [{ operationId, preview }])))
      .then((rows) => this.#insert(rows))
      .then(
        () => undefined,
        (error: unknown) => this.log.warn({ error, calls: waiting.length }, 'arguments of calls could not be kept for people'),
      );
  }
}
