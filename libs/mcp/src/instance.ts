import type { PriorDiscovery, Progress } from '@modelcontextprotocol/client';
import { callInProgress, type AnswerAsk } from './asks.js';
import { CatalogueKeeper, type Catalogue } from './catalogue.js';
import { connectServer } from './connect.js';
import { ListKeeper } from './list-keeper.js';
import { readOffers, type Offers } from './offers.js';
import { sentenceOf, type CallOutcome } from './outcome.js';
import { mirroredParameters, parameterHeaders } from './parameter-headers.js';
import type { CallRequest, ListKind, McpSession, PlainRequest, ServerFacts } from './session.js';
import type { ServerTarget } from './target.js';

export type OfferedKind = Exclude<ListKind, 'tools'>;

export interface InstanceOptions {
  readonly target: ServerTarget;
  /** What an earlier owner found out about the server's era. */
  readonly verdict?: PriorDiscovery;
  /** @default 300000 */
  readonly connectTimeoutMs?: number;
  readonly onCatalogue?: (catalogue: Catalogue, facts: ServerFacts) => void;
  readonly onStale?: (reason: string | undefined) => void;
  /** Prompts or resources were read whole, after a connection was opened or when they may have changed. */
  readonly onOffers?: (kind: OfferedKind, offers: Offers) => void;
  readonly onListChanged?: (kind: ListKind) => void;
  /** A resource changed that the server was asked to tell of. */
  readonly onResourceUpdated?: (params: Readonly<Record<string, unknown>>) => void;
  /** A connection was opened, the first one or another one. */
  readonly onConnected?: (session: McpSession) => void;
  /** The connection ended without our doing. */
  readonly onDisconnected?: () => void;
  /** Answers what the server asks for while it is connected; in the context of the call that caused it, where that is certain. */
  readonly onAsked?: AnswerAsk;
  readonly onLog?: (params: Readonly<Record<string, unknown>>) => void;
  /** The server may ask for completions of a model. @default false */
  readonly sampling?: boolean;
  readonly onError?: (error: unknown) => void;
  /** What the transport knows of why the server is gone; better than the error of whoever waited for it. */
  readonly explain?: () => string | undefined;
}

export interface InstanceCall {
  readonly request: CallRequest | PlainRequest;
  /** For everything: connecting, waiting, the call. Milliseconds. */
  readonly timeoutMs: number;
  readonly maxTotalMs?: number;
  readonly progressExtends?: boolean;
  readonly onProgress?: (progress: Progress) => void;
  /** Answers what the server asks for before it goes on with this call. */
  readonly onAsked?: AnswerAsk;
  /** Aborting it cancels the call at the server; the instance aborts it when it stops. */
  readonly abort: AbortController;
  /** Asked immediately before the call leaves; a sentence says why it may not. */
  readonly mayDispatch?: () => string | undefined;
}

const HEADER_MISMATCH = -32_020;
const HARD_CONNECT_MS = 300_000;
const FIRST_BACKOFF_MS = 500;
const LAST_BACKOFF_MS = 30_000;

/**
 * One server as its owner holds it: connects when first needed, once for all who ask; heals a lost session once; keeps the
 * catalogue; sends no call twice unless the server proved that it did not take it.
 */
export class McpInstance {
  readonly catalogue: CatalogueKeeper;
  /** What it offers beside tools: read in the background, and empty where the server declares nothing. */
  readonly offers: Readonly<Record<OfferedKind, ListKeeper<Offers>>>;
  private session: McpSession | undefined;
  private connecting: Promise<McpSession> | undefined;
  private verdict: PriorDiscovery | undefined;
  private readonly open = new Set<AbortController>();
  private readonly stopping = new AbortController();
  private lossesSinceSuccess = 0;
  private failures = 0;
  private notBefore = 0;
  private lastError: string | undefined;
  private lastUsed = performance.now();

  constructor(private readonly options: InstanceOptions) {
    this.verdict = options.verdict;
    this.catalogue = new CatalogueKeeper({
      session: () => this.connected(),
      onCatalogue: (catalogue, session) => options.onCatalogue?.(catalogue, session.facts),
      onStale: (reason) => options.onStale?.(reason),
      onError: (error) => options.onError?.(error),
    });
    this.offers = { prompts: this.offered('prompts'), resources: this.offered('resources') };
  }

  get facts(): ServerFacts | undefined {
    return this.session?.facts;
  }
  get openCalls(): number {
    return this.open.size;
  }
  /** Milliseconds since the last call ended, 0 while one runs. */
  get idleMs(): number {
    return this.open.size > 0 ? 0 : performance.now() - this.lastUsed;
  }
  /** Why the last connection failed or ended, as one sentence; undefined while all is well. */
  get problem(): string | undefined {
    return this.lastError;
  }
  get state(): 'idle' | 'connecting' | 'connected' | 'failed' | 'stopped' {
    if (this.stopping.signal.aborted) return 'stopped';
    if (this.session !== undefined) return 'connected';
    if (this.connecting !== undefined) return 'connecting';
    return this.lastError === undefined ? 'idle' : 'failed';
  }

  /** Calls a tool; never throws. */
  async call(call: InstanceCall): Promise<CallOutcome> {
    this.open.add(call.abort);
    try {
      return await this.send(call, performance.now());
    } finally {
      this.open.delete(call.abort);
      this.lastUsed = performance.now();
    }
  }

  /** Ends the connection for good; open calls are cancelled at the server and end as uncertain. */
  async stop(): Promise<void> {
    if (this.stopping.signal.aborted) return;
    for (const abort of this.open) abort.abort();
    for (const keeper of [this.catalogue, this.offers.prompts, this.offers.resources]) keeper.close();
    this.stopping.abort(new Error('This instance was stopped'));
    const { session } = this;
    this.session = undefined;
    await session?.close().catch((error: unknown) => this.options.onError?.(error));
  }

  /** The open session; connects where there is none. Throws what connecting throws, at once while it waits after failures. */
  async connected(): Promise<McpSession> {
    if (this.session !== undefined) return this.session;
    this.stopping.signal.throwIfAborted();
    if (this.connecting === undefined) {
      if (performance.now() < this.notBefore) throw new Error(this.lastError ?? 'The server failed to start');
      // Whoever needs it first does not cause what comes over it later.
      this.connecting = callInProgress.run(undefined, () =>
        this.connect().finally(() => {
          this.connecting = undefined;
        }),
      );
    }
    return this.connecting;
  }

  private async send(call: InstanceCall, startedAt: number): Promise<CallOutcome> {
    for (let attempt = 1; ; attempt++) {
      let session: McpSession;
      const isOld = this.session !== undefined;
      try {
        session = this.session ?? (await this.inTime(call, startedAt));
      } catch (error) {
        if (call.abort.signal.aborted)
          return { status: 'not_dispatched', cause: 'cancelled', message: 'The call was cancelled before it was sent' };
        return { status: 'not_dispatched', cause: this.stopping.signal.aborted ? 'stopped' : 'unreachable', message: sentenceOf(error) };
      }
      const objection = call.mayDispatch?.();
      if (objection !== undefined) return { status: 'not_dispatched', cause: 'stopped', message: objection };
      const outcome = await session.call(call.request, {
        timeoutMs: Math.max(1, call.timeoutMs - (performance.now() - startedAt)),
        signal: call.abort.signal,
        ...(call.maxTotalMs === undefined ? {} : { maxTotalMs: call.maxTotalMs }),
        ...(call.onAsked === undefined ? {} : { onAsked: call.onAsked }),
        ...(session.facts.mirrors ? { headers: this.headersOf(call.request) } : {}),
        ...(call.onProgress === undefined ? {} : { onProgress: call.onProgress, progressExtends: call.progressExtends === true }),
      });
      // A dead connection may not have been noticed yet; nothing was sent, so a new one may be tried, once.
      if (outcome.status === 'not_dispatched' && outcome.cause === 'unreachable' && isOld && attempt === 1) {
        this.drop(session, outcome.message);
        continue;
      }
      // It declares other headers than when it was listed.
      if (outcome.status === 'refused' && outcome.code === HEADER_MISMATCH) this.catalogue.invalidate();
      if (outcome.status !== 'not_dispatched' || outcome.cause !== 'session_lost') {
        if (outcome.status !== 'uncertain' && outcome.status !== 'not_dispatched') this.lossesSinceSuccess = 0;
        return outcome;
      }
      this.lose(session, outcome.message);
      if (attempt > 1 || this.lossesSinceSuccess > 1) return outcome;
    }
  }

  /** What of a call's arguments stands in headers too, as its tool declared when it was listed last. */
  private headersOf(request: InstanceCall['request']): Readonly<Record<string, string>> {
    if ('method' in request) return {};
    const tool = this.catalogue.current?.tools.find(({ name }) => name === request.name);
    const parameters = tool === undefined ? [] : mirroredParameters(tool.inputSchema);
    return typeof parameters === 'string' ? {} : parameterHeaders(parameters, request.arguments);
  }

  /** Waits for the connection as long as the call may last; the connection itself goes on for whoever asks next. */
  private async inTime(call: InstanceCall, startedAt: number): Promise<McpSession> {
    const { signal } = call.abort;
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const leave = (error: Error): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
        reject(error);
      };
      const onAbort = (): void => leave(new Error('cancelled'));
      const timer = setTimeout(
        () => leave(new Error('The server did not become ready within the time of this call')),
        Math.max(1, call.timeoutMs - (performance.now() - startedAt)),
      );
      signal.addEventListener('abort', onAbort, { once: true });
      this.connected().then(
        (session) => {
          clearTimeout(timer);
          signal.removeEventListener('abort', onAbort);
          resolve(session);
        },
        (error: unknown) => leave(error instanceof Error ? error : new Error(String(error))),
      );
    });
  }

  /** The server forgot this session. Several calls may find out at once; it is counted once. */
  private lose(session: McpSession, reason: string): void {
    if (this.session !== session) return;
    this.lossesSinceSuccess++;
    this.drop(session, `The server forgot its session: ${reason}`);
    if (this.lossesSinceSuccess > 1) this.backOff();
  }

  private drop(session: McpSession, reason: string): void {
    if (this.session !== session) return;
    this.session = undefined;
    this.lastError = reason;
    session.close().catch((error: unknown) => this.options.onError?.(error));
  }

  private async connect(): Promise<McpSession> {
    const limitMs = this.options.connectTimeoutMs ?? HARD_CONNECT_MS;
    const late = AbortSignal.timeout(limitMs);
    const signal = AbortSignal.any([this.stopping.signal, late]);
    let isClosed = false;
    let opened: McpSession | undefined;
    try {
      const session = await connectServer(this.options.target, {
        signal,
        ...(this.verdict === undefined ? {} : { verdict: this.verdict }),
        onListChanged: (kind) => {
          if (kind === 'tools') this.catalogue.invalidate();
          else this.offers[kind].invalidate();
          // A server's skills are among its resources, and its prompts are told together with them.
          if (kind === 'resources' && this.session?.offers('prompts') === true) this.offers.prompts.invalidate();
          this.options.onListChanged?.(kind);
        },
        onResourceUpdated: (params) => this.options.onResourceUpdated?.(params),
        onLog: (params) => this.options.onLog?.(params),
        ...(this.options.onAsked === undefined ? {} : { onAsked: this.options.onAsked }),
        ...(this.options.sampling === undefined ? {} : { sampling: this.options.sampling }),
        onClosed: () => {
          isClosed = true;
          if (opened !== undefined) this.closed(opened);
        },
        onError: (error) => this.options.onError?.(error),
      });
      if (this.stopping.signal.aborted) await session.close();
      this.stopping.signal.throwIfAborted();
      if (isClosed) throw new Error('The server ended the connection as soon as it was ready');
      opened = session;
      this.session = session;
      // A server that was started anew may offer other tools than before.
      if (this.catalogue.current !== undefined) this.catalogue.invalidate();
      for (const kind of ['prompts', 'resources'] as const) if (session.offers(kind)) this.offers[kind].invalidate();
      this.options.onConnected?.(session);
      this.verdict = session.facts.verdict;
      this.failures = 0;
      this.lastError = undefined;
      return session;
    } catch (error) {
      this.lastError = late.aborted
        ? `The server did not become ready within ${limitMs} ms`
        : (this.options.explain?.() ?? sentenceOf(error));
      this.backOff();
      throw new Error(this.lastError, { cause: error });
    }
  }

  private offered(kind: OfferedKind): ListKeeper<Offers> {
    const { options } = this;
    return new ListKeeper<Offers>({
      kind,
      retriesFirst: true,
      session: () => this.connected(),
      read: (session, signal) => readOffers(session, kind, signal),
      onList: () => undefined,
      onRead: (list) => options.onOffers?.(kind, list),
      // What stands is the last good list; that tools are stale is what people are told.
      onStale: () => undefined,
      onError: (error) => options.onError?.(error),
    });
  }

  private closed(session: McpSession): void {
    if (this.session !== session) return;
    this.session = undefined;
    this.lastError = this.options.explain?.() ?? 'The server ended the connection';
    this.catalogue.setStale(this.lastError);
    this.options.onDisconnected?.();
  }

  private backOff(): void {
    this.notBefore = performance.now() + Math.min(FIRST_BACKOFF_MS * 2 ** this.failures, LAST_BACKOFF_MS);
    this.failures++;
  }
}
