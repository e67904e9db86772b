import type { Target } from '@ambit/contracts';
import { DB, type GatewayDb } from '@ambit/db';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { ArgumentsPolicy } from './arguments.policy.js';
const WRITE_EVERY_MS = 250;
const TOGETHER = 1_000;
const MAX_WAITING = 5_000;

interface Waiting {
  readonly operationId: string;
  readonly target: Target | null;
  readonly input: Readonly<Record<string, unknown>> | string;
}

/** Keeps the arguments of calls for people, as far as their servers let it, written in bunches beside the call's path. The tape has the arguments themselves. */
@Injectable()
export class CallArguments implements OnApplicationShutdown {
  #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #isClosing = false;

  constructor(
    @Inject(DB) private readonly db: GatewayDb,
    @Inject(ArgumentsPolicy) private readonly policy: ArgumentsPolicy,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  /** Takes arguments, or the text that stands for those that cannot be read. Where too much waits they are not kept. */
  keep({ operationId, target }: { readonly operationId: string; readonly target: Target | null }, input: Waiting['input']): void {
    if (this.#waiting.length >= MAX_WAITING) return;
    this.#waiting.push({ operationId, target, input });
    this.#later();
  }

  async onApplicationShutdown(): Promise<void> {
    this.#isClosing = true;
    clearTimeout(this.#timer);
    await this.#writing;
    while (this.#waiting.length > 0) await this.#write();
  }

  /** One statement, however many rows. */
  async #insert(rows: readonly { readonly operationId: string; readonly preview: string }[]): Promise<void> {
    if (rows.length === 0) return;
    await this.db.$executeRaw`
      INSERT INTO "tool_gateway"."call_arguments" ("operation_id", "preview")
      SELECT * FROM json_to_recordset(${JSON.stringify(rows)}::json) AS a("operationId" text, "preview" text) ON CONFLICT DO NOTHING`;
  }

  /** One write at a time: what comes meanwhile waits, and is bounded by that. */
  #later(): void {
    if (this.#isClosing || this.#writing !== undefined) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#writing = this.#write().finally(() => {
        this.#writing = undefined;
        if (this.#waiting.length > 0) this.#later();
      });
    }, WRITE_EVERY_MS);
  }

  async #write(): Promise<void> {
    const waiting = this.#waiting.splice(0, TOGETHER);
    try {
      const rows = await Promise.all(
        waiting.map(async ({ operationId, target, input }) => ({
          operationId,
          preview: typeof input === 'string' ? input : await this.policy.textOf(target, input),
        })),
      );
      await this.#insert(rows.flatMap(({ operationId, preview }) => (preview === undefined ? [] : [{ operationId, preview }])));
    } catch (error) {
      this.log.warn({ error, calls: waiting.length }, 'arguments of calls could not be kept for people');
    }
  }
}
