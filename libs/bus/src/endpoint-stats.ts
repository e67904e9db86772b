import type { Rpc } from '@ambit/contracts';

/** What one endpoint did since the process started; counts what async handlers threw, too. */
export class EndpointStats {
  requests = 0;
  errors = 0;
  processingMs = 0;
  lastError = '';
  /** Requests dropped because their reply was no inbox. */
  refusedReplies = 0;

  constructor(
    readonly contract: Rpc,
    readonly subject: string,
  ) {}

  count(elapsedMs: number, code: string | undefined): void {
    this.requests++;
    this.processingMs += elapsedMs;
    if (code === undefined) return;
    this.errors++;
    this.lastError = code;
  }
}
