import { LOG, Metrics, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnModuleDestroy } from '@nestjs/common';
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

export interface StreamSink {
  /** The list that the client has is old. */
  toolsChanged(): void;
  /** It is over: the token opens nothing any more, or the process ends. */
  close(): void;
}
export interface StreamOf {
  readonly caller: Caller;
  readonly bearer: string;
  readonly naming: Naming;
}

/** Streams to clients that stay open to tell of changes. */
@Injectable()
export class Streams implements OnModuleDestroy {
  readonly #open = new Set<OpenStream>();

  constructor(
    private readonly worlds: Worlds,
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
    const stream = new OpenStream(of, sink, { worlds: this.worlds, tokens: this.tokens, log: this.log });
    this.#open.add(stream);
    return () => {
      this.#open.delete(stream);
      stream.end();
    };
  }

  onModuleDestroy(): void {
    for (const stream of this.#open) stream.sink.close();
  }
}

interface With {
  readonly worlds: Worlds;
  readonly tokens: EdgeTokens;
  readonly log: Logger;
}

class OpenStream {
  readonly #unwatch: () => void;
  readonly #ticker: NodeJS.Timeout;
  #timer: NodeJS.Timeout | undefined;
  #lookedAt = -NEXT_MS;
  #hash: string | undefined;
  #isEnded = false;

  constructor(
    readonly of: StreamOf,
    readonly sink: StreamSink,
    private readonly use: With,
  ) {
    this.#unwatch = use.worlds.watch((change) => this.#heard(change));
    this.#ticker = setInterval(() => void this.#tick(), LOOK_MS);
    void this.#look();
  }

  end(): void {
    this.#isEnded = true;
    this.#unwatch();
    clearInterval(this.#ticker);
    clearTimeout(this.#timer);
  }

  #heard({ projectId, agentId }: Change): void {
    const { token } = this.of.caller;
    if ((projectId ?? token.projectId) !== token.projectId || (agentId ?? token.agentId) !== token.agentId) return;
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined;
        void this.#look();
      },
      Math.max(FIRST_MS, NEXT_MS - (performance.now() - this.#lookedAt)),
    );
  }

  async #look(): Promise<void> {
    this.#lookedAt = performance.now();
    try {
      const { toolsHash } = await this.use.worlds.of(this.of.caller, this.of.naming);
      const isOther = this.#hash !== undefined && this.#hash !== toolsHash;
      this.#hash = toolsHash;
      if (isOther && !this.#isEnded) this.sink.toolsChanged();
    } catch (error) {
      this.use.log.debug({ error }, 'what a stream’s client sees could not be read; it is looked at again');
    }
  }

  async #tick(): Promise<void> {
    const caller = await this.use.tokens.authenticate(this.of.bearer).catch(() => this.of.caller);
    if (caller === undefined) this.sink.close();
    else await this.#look();
  }
}
