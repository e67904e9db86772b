import type { Schema } from './schema.js';

/** `later`: the same request may succeed after a while. `never`: repeating it unchanged cannot help, or may do harm. */
export type Retry = 'never' | 'later';

/** What a contract declares of one failure. `status` is HTTP-like; admin-api answers with it. */
export interface FaultDef {
  readonly status: number;
  readonly retry: Retry;
  /** For a person: what was wrong and what would be right. The API is `code` and `data`, never this text. */
  readonly message: string;
  readonly data?: Schema;
}

export type FaultMap = Readonly<Record<string, FaultDef>>;

/** The body of a failed answer, beside the `Nats-Service-Error-Code` and `Nats-Service-Error` headers (ADR-32). */
export interface FaultBody {
  readonly code: string;
  readonly message: string;
  readonly data?: unknown;
}

/** A failure that may cross a process boundary. Nothing else does. Never extended: the code tells them apart. */
export class Fault extends Error {
  override readonly name = 'Fault';
  constructor(
    readonly code: string,
    readonly def: FaultDef,
    readonly data?: unknown,
    message: string = def.message,
  ) {
    super(message);
  }
  get status(): number {
    return this.def.status;
  }
  get retry(): Retry {
    return this.def.retry;
  }
  toBody(): FaultBody {
    return this.data === undefined
      ? { code: this.code, message: this.message }
      : { code: this.code, message: this.message, data: this.data };
  }
}
