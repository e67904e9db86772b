import { sentenceOf } from './outcome.js';
import type { McpSession } from './session.js';

/** How long a subscription holds that nobody asks for again. */
const SUBSCRIPTION_MS = 120_000;
/** Addresses that one instance's sessions may follow. */
export const SUBSCRIPTIONS = 1_000;

interface Followed {
  /** Until when each session wants to be told, by the monotonic clock. */
  readonly sessions: Map<string, number>;
  end: (() => void) | undefined;
}

export interface SubscriptionsOptions {
  readonly session: () => Promise<McpSession>;
  readonly tell: (sessionId: string, uri: string, params: Readonly<Record<string, unknown>>) => void;
  readonly onError?: (error: unknown) => void;
}

/** Which sessions follow which resources of one instance. Lapses by itself, and is made good on every new connection. */
export class Subscriptions {
  private readonly followed = new Map<string, Followed>();
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly options: SubscriptionsOptions) {}

  get size(): number {
    return this.followed.size;
  }

  /** True when the session did not follow it until now; undefined where there are too many. Throws what the server throws. */
  async follow(sessionId: string, uri: string): Promise<boolean | undefined> {
    const known = this.followed.get(uri);
    if (known === undefined && this.followed.size >= SUBSCRIPTIONS) return undefined;
    const followed: Followed = known ?? { sessions: new Map(), end: undefined };
    if (followed.sessions.size >= SUBSCRIPTIONS && !followed.sessions.has(sessionId)) return undefined;
    this.followed.set(uri, followed);
    const isNew = !followed.sessions.has(sessionId);
    followed.sessions.set(sessionId, performance.now() + SUBSCRIPTION_MS);
    this.timer ??= setInterval(() => this.sweep(), SUBSCRIPTION_MS / 4).unref();
    if (known !== undefined) return isNew;
    try {
      await this.open(uri, followed, await this.options.session());
    } catch (error) {
      if (this.followed.get(uri) === followed) this.followed.delete(uri);
      throw error;
    }
    return isNew;
  }

  unfollow(sessionId: string, uri: string): boolean {
    const followed = this.followed.get(uri);
    if (followed?.sessions.delete(sessionId) !== true) return false;
    if (followed.sessions.size === 0) this.end(uri, followed);
    return true;
  }

  /** The server says that a resource changed. */
  updated(params: Readonly<Record<string, unknown>>): void {
    const { uri } = params;
    if (typeof uri !== 'string') return;
    // A server may name a part of what is followed.
    for (const [followed, { sessions }] of this.followed)
      if (uri === followed || uri.startsWith(followed.endsWith('/') ? followed : `${followed}/`))
        for (const sessionId of sessions.keys()) this.options.tell(sessionId, followed, params);
  }

  /** A new connection knows nothing of what the one before was told. */
  connected(session: McpSession): void {
    for (const [uri, followed] of this.followed) {
      if (followed.end === undefined) continue;
      followed.end = undefined;
      this.open(uri, followed, session).then(
        () => this.missed(uri),
        (error: unknown) => {
          this.options.onError?.(new Error(`The server was not told again that ${uri.slice(0, 200)} is followed: ${sentenceOf(error)}`));
          this.followed.delete(uri);
        },
      );
    }
  }

  close(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    this.followed.clear();
  }

  private async open(uri: string, followed: Followed, session: McpSession): Promise<void> {
    const end = await session.subscribe(uri, () => this.missed(uri));
    if (this.followed.get(uri) === followed) followed.end = end;
    else end();
  }

  /** Updates may have been missed: whoever follows looks for itself. */
  private missed(uri: string): void {
    this.updated({ uri });
  }

  private sweep(): void {
    const now = performance.now();
    for (const [uri, { sessions }] of [...this.followed])
      for (const [sessionId, until] of [...sessions]) if (until <= now) this.unfollow(sessionId, uri);
    if (this.followed.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private end(uri: string, followed: Followed): void {
    this.followed.delete(uri);
    followed.end?.();
  }
}
