import type { McpSession } from './session.js';
import type { ToolDefinition } from '@ambit/contracts';
import { sentenceOf } from './outcome.js';
import { catalogueHash, type Diagnostic } from './tools.js';

/** The tools of one server as last read whole. Never changed in place. */
export interface Catalogue {
  readonly tools: readonly ToolDefinition[];
  readonly diagnostics: readonly Diagnostic[];
  /** sha256 of the canonical JSON of the tools, lower-case hex: equal exactly when the tools are. */
  readonly hash: string;
}

export interface CatalogueKeeperOptions {
  readonly session: (signal: AbortSignal) => Promise<McpSession>;
  /** A list with other tools than the last one was read whole, or the first one at all. */
  readonly onCatalogue: (catalogue: Catalogue, session: McpSession) => void;
  /** The list could not be read again; the last good one stands. `undefined` = it is fresh once more. */
  readonly onStale: (reason: string | undefined) => void;
  readonly onError?: (error: unknown) => void;
}

const COALESCE_MS = 50;
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 60_000;
const SHORTEST_POLL_MS = 5_000;
const LONGEST_POLL_MS = 600_000;

/**
 * Keeps the last good tool list of one server. Bursts of changes cost one reading; a list that changed while it was read is
 * read again and never published; a failed reading replaces nothing.
 */
export class CatalogueKeeper {
  private generation = 0;
  private good: Catalogue | undefined;
  private staleReason: string | undefined;
  private reading: Promise<Catalogue> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private dueAt = 0;
  private retryMs = FIRST_RETRY_MS;
  private readonly ended = new AbortController();

  constructor(private readonly options: CatalogueKeeperOptions) {}

  /** The last good list, if there ever was one. */
  get current(): Catalogue | undefined {
    return this.good;
  }

  /** The list may have changed: it is read again soon, once for however many such hints come until then. */
  invalidate(): void {
    this.generation++;
    this.readLater(COALESCE_MS);
  }

  /** The last good list, or a first reading that all who ask share. Throws what that reading throws. */
  async get(): Promise<Catalogue> {
    return this.good ?? this.read();
  }

  /** Reads the list now; joins a reading that is under way. */
  read(): Promise<Catalogue> {
    this.reading ??= this.readUntilQuiet().finally(() => {
      this.reading = undefined;
    });
    return this.reading;
  }

  close(): void {
    this.ended.abort();
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  /** One timer: an earlier reading replaces a later one, and a hint that comes while one waits changes nothing. */
  private readLater(ms: number): void {
    const dueAt = performance.now() + ms;
    if (this.ended.signal.aborted || (this.timer !== undefined && this.dueAt <= dueAt)) return;
    clearTimeout(this.timer);
    this.dueAt = dueAt;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.read().catch((error: unknown) => this.options.onError?.(error));
    }, ms);
    this.timer.unref();
  }

  private async readUntilQuiet(): Promise<Catalogue> {
    try {
      for (;;) {
        const { generation } = this;
        const session = await this.options.session(this.ended.signal);
        const list = await session.listTools(this.ended.signal);
        if (generation !== this.generation) continue;
        this.retryMs = FIRST_RETRY_MS;
        this.poll(session, list.ttlMs);
        return this.publish({ tools: list.tools, diagnostics: list.diagnostics, hash: catalogueHash(list.tools) }, session);
      }
    } catch (error) {
      if (!this.ended.signal.aborted) this.failed(sentenceOf(error));
      throw error;
    }
  }

  private publish(catalogue: Catalogue, session: McpSession): Catalogue {
    const isNew = this.good?.hash !== catalogue.hash;
    this.good = catalogue;
    if (isNew) this.options.onCatalogue(catalogue, session);
    this.setStale(undefined);
    return catalogue;
  }

  /** Says that the last good list may be out of date, and why; a reading that succeeds takes it back. */
  setStale(reason: string | undefined): void {
    if (this.staleReason === reason || (reason !== undefined && this.good === undefined)) return;
    this.staleReason = reason;
    this.options.onStale(reason);
  }

  private failed(reason: string): void {
    if (this.good === undefined) return;
    this.setStale(reason);
    this.readLater(this.retryMs);
    this.retryMs = Math.min(this.retryMs * 2, LAST_RETRY_MS);
  }

  /** A server that promises no notices but dates its lists is asked again when the date is over. */
  private poll(session: McpSession, ttlMs: number | undefined): void {
    if (ttlMs === undefined || session.announces('tools')) return;
    this.readLater(Math.min(Math.max(ttlMs, SHORTEST_POLL_MS), LONGEST_POLL_MS));
  }
}
