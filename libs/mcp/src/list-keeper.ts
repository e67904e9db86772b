import { sentenceOf } from './outcome.js';
import type { ListKind, McpSession } from './session.js';

/** A list of one server, read whole. `hash` is equal exactly when the lists are. */
export interface Listed {
  readonly hash: string;
}

export interface ListKeeperOptions<L extends Listed> {
  readonly kind: ListKind;
  readonly session: (signal: AbortSignal) => Promise<McpSession>;
  /** Reads the list whole. `ttlMs` is how long the server says that it holds; absent where it says nothing. */
  readonly read: (session: McpSession, signal: AbortSignal) => Promise<{ readonly list: L; readonly ttlMs?: number | undefined }>;
  /** Another list than the last one was read whole, or the first one at all. */
  readonly onList: (list: L, session: McpSession) => void;
  /** The list was read whole, changed or not. */
  readonly onRead?: (list: L) => void;
  /** The list could not be read again; the last good one stands. `undefined` = it is fresh once more. */
  readonly onStale: (reason: string | undefined) => void;
  /** A first reading that fails is tried again too. @default false */
  readonly retriesFirst?: boolean;
  readonly onError?: (error: unknown) => void;
}

const COALESCE_MS = 50;
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 60_000;
const SHORTEST_POLL_MS = 5_000;
const LONGEST_POLL_MS = 600_000;

/**
 * Keeps the last good list of one kind of one server. Bursts of changes cost one reading; a list that changed while it was read is
 * read again and never published; a failed reading replaces nothing.
 */
export class ListKeeper<L extends Listed> {
  private generation = 0;
  private readGeneration = -1;
  private good: L | undefined;
  private staleReason: string | undefined;
  private reading: Promise<L> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private dueAt = 0;
  private retryMs = FIRST_RETRY_MS;
  private readonly ended = new AbortController();

  constructor(private readonly options: ListKeeperOptions<L>) {}

  /** The last good list, if there ever was one. */
  get current(): L | undefined {
    return this.good;
  }

  /** Nothing says that the list changed since it was read. */
  get isFresh(): boolean {
    return this.readGeneration === this.generation;
  }

  /** The list may have changed: it is read again soon, once for however many such hints come until then. */
  invalidate(): void {
    this.generation++;
    this.readLater(COALESCE_MS);
  }

  /** The last good list, or a first reading that all who ask share. Throws what that reading throws. */
  async get(): Promise<L> {
    return this.good ?? this.read();
  }

  /** Reads the list now; joins a reading that is under way. */
  read(): Promise<L> {
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

  private async readUntilQuiet(): Promise<L> {
    try {
      for (;;) {
        const { generation } = this;
        const session = await this.options.session(this.ended.signal);
        const { list, ttlMs } = await this.options.read(session, this.ended.signal);
        if (generation !== this.generation) continue;
        this.retryMs = FIRST_RETRY_MS;
        this.readGeneration = generation;
        this.poll(session, ttlMs);
        return this.publish(list, session);
      }
    } catch (error) {
      if (!this.ended.signal.aborted) this.failed(sentenceOf(error));
      throw error;
    }
  }

  private publish(list: L, session: McpSession): L {
    const isNew = this.good?.hash !== list.hash;
    this.good = list;
    if (isNew) this.options.onList(list, session);
    this.options.onRead?.(list);
    this.setStale(undefined);
    return list;
  }

  /** Says that the last good list may be out of date, and why; a reading that succeeds takes it back. */
  setStale(reason: string | undefined): void {
    if (this.staleReason === reason || (reason !== undefined && this.good === undefined)) return;
    this.staleReason = reason;
    this.options.onStale(reason);
  }

  private failed(reason: string): void {
    if (this.good === undefined && this.options.retriesFirst !== true) return;
    this.setStale(reason);
    this.readLater(this.retryMs);
    this.retryMs = Math.min(this.retryMs * 2, LAST_RETRY_MS);
  }

  /** A server that promises no notices but dates its lists is asked again when the date is over. */
  private poll(session: McpSession, ttlMs: number | undefined): void {
    if (ttlMs === undefined || session.announces(this.options.kind)) return;
    this.readLater(Math.min(Math.max(ttlMs, SHORTEST_POLL_MS), LONGEST_POLL_MS));
  }
}
