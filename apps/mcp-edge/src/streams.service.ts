import { LOG, Metrics, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnModuleDestroy } from '@nestjs/common';
import { Contents } from './content.service.js';
import type { Json } from './domain/json-rpc.js';
import { serverIn } from './domain/shown-offers.js';
import type { Naming } from './domain/shown-tools.js';
import { EdgeTokens, type Caller } from './edge-tokens.service.js';
import { Worlds, type Change } from './worlds.service.js';

const MAX_STREAMS = 5_000;
const MAX_OF_TOKEN = 100;
/** A list that flaps is told of at most so often; the first change is not kept waiting. */
const FIRST_MS = 250;
const NEXT_MS = 900;
/** Events are hints: the list is compared this often whatever was heard, and the token asked about. */
const LOOK_MS = 20_000;
const RENEWED_TICKS = 3;
const MAX_FOLLOWED = 1_000;

type List = 'tools' | 'prompts' | 'resources';

export interface StreamSink {
  /** A list that the client has is old. */
  changed(list: List): void;
  /** A resource that it follows changed, as its server said. */
  updated(uri: string, params: Json): void;
  /** It is over: the token opens nothing any more, or the process ends. */
  close(): void;
}
export interface StreamOf {
  readonly caller: Caller;
  readonly bearer: string;
  readonly naming: Naming;
  /** Of the revisions with sessions: whose stream it is. */
  readonly clientId: string | null;
  readonly lists: Readonly<Record<List, boolean>>;
  /** Resources that it follows from the beginning. */
  readonly uris: readonly string[];
}

/** Streams to clients that stay open to tell of changes. */
@Injectable()
export class Streams implements OnModuleDestroy {
  readonly #open = new Set<OpenStream>();

  constructor(
    private readonly worlds: Worlds,
    private readonly contents: Contents,
    private readonly tokens: EdgeTokens,
    metrics: Metrics,
    @Inject(LOG) private readonly log: Logger,
  ) {
    metrics.gauge({ name: 'ambit_edge_streams', help: 'Streams that MCP clients hold open', read: () => this.#open.size });
  }

  /** Opens a stream; undefined where there are too many. Call the function that it gives when the client is gone. */
  open(of: StreamOf, sink: StreamSink): (() => void) | undefined {
    const own = [...this.#open].filter((stream) => stream.of.caller.token.id === of.caller.token.id).length;
    if (this.#open.size >= MAX_STREAMS || own >= MAX_OF_TOKEN) return undefined;
    const stream = new OpenStream(of, sink, { worlds: this.worlds, contents: this.contents, tokens: this.tokens, log: this.log });
    this.#open.add(stream);
    return () => {
      this.#open.delete(stream);
      stream.end();
    };
  }

  /** A client with a session follows a resource, or no more. */
  follow(clientId: string, uri: string, isOn: boolean): void {
    for (const stream of this.#open) if (stream.of.clientId === clientId) stream.follow(uri, isOn);
  }
  updated(sessionId: string, uri: string, params: Json): void {
    for (const stream of this.#open) stream.updated(sessionId, uri, params);
  }

  onModuleDestroy(): void {
    for (const stream of this.#open) stream.sink.close();
  }
}

interface With {
  readonly worlds: Worlds;
  readonly contents: Contents;
  readonly tokens: EdgeTokens;
  readonly log: Logger;
}

class OpenStream {
  readonly #unwatch: () => void;
  readonly #ticker: NodeJS.Timeout;
  readonly #versions = new Map<List, string>();
  readonly #uris: Set<string>;
  #sessionId: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #toldAt = -NEXT_MS;
  #ticks = 0;
  #isEnded = false;

  constructor(
    readonly of: StreamOf,
    readonly sink: StreamSink,
    private readonly use: With,
  ) {
    this.#uris = new Set(of.uris);
    this.#unwatch = use.worlds.watch((change) => this.#heard(change));
    this.#ticker = setInterval(() => void this.#tick(), LOOK_MS);
    void this.#look();
    void this.#subscribe();
  }

  end(): void {
    this.#isEnded = true;
    this.#unwatch();
    clearInterval(this.#ticker);
    clearTimeout(this.#timer);
  }

  follow(uri: string, isOn: boolean): void {
    if (!isOn) this.#uris.delete(uri);
    else if (this.#uris.size < MAX_FOLLOWED) this.#uris.add(uri);
  }

  updated(sessionId: string, uri: string, params: Json): void {
    if (sessionId !== this.#sessionId || this.#isEnded) return;
    // A server may tell of an address below one that is followed.
    if ([...this.#uris].some((followed) => followed === uri || serverIn(followed)?.uri === uri)) this.sink.updated(uri, params);
  }

  #heard({ projectId, agentId }: Change): void {
    const { token } = this.of.caller;
    if ((projectId ?? token.projectId) !== token.projectId || (agentId ?? token.agentId) !== token.agentId) return;
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined;
        void this.#look();
      },
      Math.max(FIRST_MS, NEXT_MS - (performance.now() - this.#toldAt)),
    );
  }

  async #look(): Promise<void> {
    const { caller, naming, lists } = this.of;
    try {
      const { toolsHash, run } = await this.use.worlds.of(caller, naming);
      this.#sessionId = run.sessionId;
      if (lists.tools) this.#compare('tools', toolsHash);
      for (const list of ['prompts', 'resources'] as const)
        if (lists[list]) this.#compare(list, await this.use.contents.version(list, this.of));
    } catch (error) {
      this.use.log.debug({ error }, 'what a stream’s client sees could not be read; it is looked at again');
    }
  }

  #compare(list: List, version: string): void {
    const before = this.#versions.get(list);
    this.#versions.set(list, version);
    if (before === undefined || before === version || this.#isEnded) return;
    this.#toldAt = performance.now();
    this.sink.changed(list);
  }

  async #tick(): Promise<void> {
    const caller = await this.use.tokens.authenticate(this.of.bearer).catch(() => this.of.caller);
    if (caller === undefined) return this.sink.close();
    await this.#look();
    if (++this.#ticks % RENEWED_TICKS === 0) await this.#subscribe();
  }

  /** Subscriptions end by themselves where nobody asks for them again. */
  async #subscribe(): Promise<void> {
    for (const uri of this.#uris) {
      if (this.#isEnded) return;
      await this.use.contents
        .subscribe(this.of, uri)
        .catch((error: unknown) => this.use.log.debug({ error }, 'a resource could not be followed; it is tried again'));
    }
  }
}
