import {
  isInputRequiredResult,
  ProtocolError,
  type Client,
  type PriorDiscovery,
  type Progress,
  type RequestOptions,
  type StandardSchemaV1,
} from '@modelcontextprotocol/client';
import type { AnswerAsk } from './asks.js';
import { addressesToOpen, answerRound, ROUNDS, type Round } from './input-rounds.js';
import { isOwnError, outcomeOf, type CallOutcome } from './outcome.js';
import type { ToolDefinition } from '@ambit/contracts';
import { listenToResource } from './listen.js';
import { allPages, type AllPages } from './list-pages.js';
import { isRecord } from './records.js';
import { admitTools, type Diagnostic } from './tools.js';

/** Lets every result through untouched: a relay must not drop fields that it does not know. */
const ANY: StandardSchemaV1<unknown, unknown> = { '~standard': { version: 1, vendor: 'ambit', validate: (value) => ({ value }) } };

const LIST_TIMEOUT_MS = 30_000;
const METHOD_NOT_FOUND = -32_601;

export type ListKind = 'tools' | 'prompts' | 'resources';

const SKILLS = 'io.modelcontextprotocol/skills';
const LISTS = {
  tools: { method: 'tools/list', capability: 'tools', noun: 'tools' },
  prompts: { method: 'prompts/list', capability: 'prompts', noun: 'prompts' },
  resources: { method: 'resources/list', capability: 'resources', noun: 'resources' },
  resourceTemplates: { method: 'resources/templates/list', capability: 'resources', noun: 'resource templates' },
} as const satisfies Record<string, { readonly method: string; readonly capability: ListKind; readonly noun: string }>;

/** One complete reading of a server's tools, in name order. */
export interface ToolList {
  readonly tools: readonly ToolDefinition[];
  readonly diagnostics: readonly Diagnostic[];
  /** How long the server says the list holds; absent where it says nothing. */
  readonly ttlMs?: number;
}

export interface CallRequest {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** Any other request that has a result and no effect that counts. */
export interface PlainRequest {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

export interface CallOptions {
  readonly timeoutMs: number;
  /** Bounds the whole call when progress extends `timeoutMs`. */
  readonly maxTotalMs?: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
  /** Each progress notification restarts `timeoutMs`. @default false */
  readonly progressExtends?: boolean;
  /** Answers what the server asks for before it goes on; without it such a call is refused. */
  readonly onAsked?: AnswerAsk;
  /** Stand on the HTTP request of the call, where it is one. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What the server said of itself when the session was opened. */
export interface ServerFacts {
  readonly era: 'legacy' | 'modern';
  readonly protocolVersion: string;
  readonly name: string;
  readonly version: string;
  readonly instructions: string | undefined;
  /** Over HTTP, in the newer era, arguments stand in headers too where their tool says so. */
  readonly mirrors: boolean;
  /** Hand it to the next `connectServer` of the same server to skip the probe. */
  readonly verdict: PriorDiscovery;
}

/** One open connection to one MCP server. */
export class McpSession {
  constructor(
    private readonly client: Client,
    readonly facts: ServerFacts,
    private readonly ended: AbortSignal,
  ) {}

  /** Has the server tell of a resource's updates. The function that comes back ends that; it does not throw. Throws what the server throws. */
  async subscribe(uri: string, onGap: () => void): Promise<() => void> {
    if (this.facts.era === 'modern') {
      const over = new AbortController();
      listenToResource(this.client, uri, { ended: AbortSignal.any([over.signal, this.ended]), onGap });
      return () => over.abort();
    }
    await this.client.subscribeResource({ uri }, { timeout: LIST_TIMEOUT_MS });
    return () => void this.client.unsubscribeResource({ uri }, { timeout: LIST_TIMEOUT_MS }).catch(() => undefined);
  }

  /** True when the server promises to tell about changes of this list. */
  announces(kind: ListKind): boolean {
    return this.client.getServerCapabilities()?.[kind]?.listChanged === true;
  }

  /** Whether the server declared this of itself. */
  offers(kind: ListKind | 'completions' | 'skills'): boolean {
    const declared = this.client.getServerCapabilities();
    return kind === 'skills' ? declared?.extensions?.[SKILLS] !== undefined : declared?.[kind] !== undefined;
  }

  /** Reads every page of the tools; empty where the server offers none. Throws what the transport or server throws. */
  async listTools(signal?: AbortSignal): Promise<ToolList> {
    const { items, notes, ttlMs } = await this.listAll('tools', signal);
    const { tools, diagnostics } = admitTools(items, { mirrors: this.facts.mirrors });
    return { tools, diagnostics: [...notes, ...diagnostics], ...(ttlMs === undefined ? {} : { ttlMs }) };
  }

  /** Reads every page of one list, untouched; nothing is asked of a server that does not declare it. Throws what the transport or server throws. */
  async listAll(list: keyof typeof LISTS, signal?: AbortSignal): Promise<AllPages> {
    const { method, capability, noun } = LISTS[list];
    if (!this.offers(capability)) return { items: [], notes: [] };
    return allPages((cursor) => this.page({ method, cursor }, signal), { field: list, noun });
  }

  private async page(
    { method, cursor }: { readonly method: (typeof LISTS)[keyof typeof LISTS]['method']; readonly cursor: string | undefined },
    signal: AbortSignal | undefined,
  ): Promise<Readonly<Record<string, unknown>> | undefined> {
    try {
      const page = await this.client.request({ method, params: cursor === undefined ? {} : { cursor } }, ANY, {
        timeout: LIST_TIMEOUT_MS,
        ...(signal === undefined ? {} : { signal }),
      });
      if (!isRecord(page)) throw new Error(`The server answered ${method} with something that is no object`);
      return page;
    } catch (error) {
      if (cursor === undefined && isRecord(error) && error['code'] === METHOD_NOT_FOUND) return undefined;
      // Alone, a server's own words ("fetch failed") do not tell who says them, and of what.
      if (error instanceof ProtocolError && !isOwnError(error))
        throw new ProtocolError(error.code, `The server answered ${method} with an error: ${error.message}`, error.data);
      throw error;
    }
  }

  /** Calls a tool, or asks something else; never throws and never sends twice: the outcome says what is known. */
  async call(request: CallRequest | PlainRequest, options: CallOptions): Promise<CallOutcome> {
    const { signal } = options;
    if (signal?.aborted === true)
      return { status: 'not_dispatched', cause: 'cancelled', message: 'The call was cancelled before it was sent' };
    const startedAt = performance.now();
    try {
      let round: Round = {};
      for (let rounds = 1; ; rounds++) {
        const wire = wireRequest(request, round, this.facts.era);
        const result = await this.client.request(wire, ANY, requestOptions(options, startedAt)).catch(async (error: unknown) => {
          // It refused the call until somebody has opened what it names: sent again after that, it is the same call.
          if (rounds > ROUNDS || !(await this.opened(error, options))) throw error;
          return AGAIN;
        });
        if (result === AGAIN) continue;
        if (!isRecord(result))
          return { status: 'uncertain', cause: 'invalid_result', message: 'The server answered with something that is no result object' };
        if ('method' in request || !isInputRequiredResult(result))
          return { status: result['isError'] === true ? 'tool_error' : 'completed', result };
        if (options.onAsked === undefined || rounds > ROUNDS) return askedInVain(rounds);
        // The server has put the call down until it is asked again: nothing of it is under way while people think.
        round = await answerRound(result, {
          answer: options.onAsked,
          signal: AbortSignal.any([...(signal === undefined ? [] : [signal]), this.ended]),
        });
      }
    } catch (error) {
      return outcomeOf(error, signal);
    }
  }

  /** Whether an error is a server's wish that a person opens something first, and the person did. */
  private async opened(error: unknown, { onAsked, signal }: CallOptions): Promise<boolean> {
    const addresses = onAsked === undefined ? [] : addressesToOpen(error);
    for (const params of addresses) {
      const signals = AbortSignal.any([...(signal === undefined ? [] : [signal]), this.ended]);
      const { action } = (await onAsked?.({ method: 'elicitation/create', params, signal: signals })) ?? {};
      if (action !== 'accept') return false;
    }
    return addresses.length > 0;
  }

  /** Ends the connection; what is in flight ends as uncertain. */
  async close(): Promise<void> {
    await this.client.close();
  }
}

const LOG_LEVEL = 'info';
/** In place of a result: the call is to be sent again. */
const AGAIN = Symbol('again');

function wireRequest(
  request: CallRequest | PlainRequest,
  round: Round,
  era: 'legacy' | 'modern',
): { readonly method: string; readonly params: Record<string, unknown> } {
  if ('method' in request) return { method: request.method, params: { ...request.params } };
  // In the stateless revision a server logs what its caller asks for with the call, and nothing otherwise.
  const meta = era === 'modern' ? { _meta: { 'io.modelcontextprotocol/logLevel': LOG_LEVEL } } : {};
  return { method: 'tools/call', params: { name: request.name, arguments: request.arguments, ...round, ...meta } };
}

function askedInVain(rounds: number): CallOutcome {
  const message =
    rounds > ROUNDS
      ? `The server asked for input more than ${ROUNDS} times; the call was given up`
      : 'The server asks for input from a person or model, which this connection does not offer';
  return { status: 'refused', code: -32_021, message, data: undefined };
}

/** The time of a call counts from its beginning, however many rounds it takes. */
function requestOptions(options: CallOptions, startedAt: number): RequestOptions {
  const elapsedMs = performance.now() - startedAt;
  return {
    timeout: Math.max(1, options.timeoutMs - elapsedMs),
    allowInputRequired: true,
    ...(options.maxTotalMs === undefined ? {} : { maxTotalTimeout: Math.max(1, options.maxTotalMs - elapsedMs) }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
    ...(options.headers === undefined ? {} : { headers: options.headers }),
    ...(options.onProgress === undefined
      ? {}
      : { onprogress: options.onProgress, resetTimeoutOnProgress: options.progressExtends === true }),
  };
}
