import {
  isInputRequiredResult,
  type Client,
  type PriorDiscovery,
  type Progress,
  type RequestOptions,
  type StandardSchemaV1,
} from '@modelcontextprotocol/client';
import { outcomeOf, type CallOutcome } from './outcome.js';
import type { ToolDefinition } from '@ambit/contracts';
import { admitTools, type Diagnostic } from './tools.js';

/** Lets every result through untouched: a relay must not drop fields that it does not know. */
const ANY: StandardSchemaV1<unknown, unknown> = { '~standard': { version: 1, vendor: 'ambit', validate: (value) => ({ value }) } };

const MAX_PAGES = 64;
const MAX_TOOLS = 10_000;
const LIST_TIMEOUT_MS = 30_000;
const METHOD_NOT_FOUND = -32_601;

export type ListKind = 'tools' | 'prompts' | 'resources';

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

export interface CallOptions {
  readonly timeoutMs: number;
  /** Bounds the whole call when progress extends `timeoutMs`. */
  readonly maxTotalMs?: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
  /** Each progress notification restarts `timeoutMs`. @default false */
  readonly progressExtends?: boolean;
}

/** What the server said of itself when the session was opened. */
export interface ServerFacts {
  readonly era: 'legacy' | 'modern';
  readonly protocolVersion: string;
  readonly name: string;
  readonly version: string;
  readonly instructions: string | undefined;
  /** Hand it to the next `connectServer` of the same server to skip the probe. */
  readonly verdict: PriorDiscovery;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** One open connection to one MCP server. */
export class McpSession {
  constructor(
    private readonly client: Client,
    readonly facts: ServerFacts,
  ) {}

  /** True when the server promises to tell about changes of this list. */
  announces(kind: ListKind): boolean {
    return this.client.getServerCapabilities()?.[kind]?.listChanged === true;
  }

  /** Reads every page of the tools; empty where the server offers none. Throws what the transport or server throws. */
  async listTools(signal?: AbortSignal): Promise<ToolList> {
    if (this.client.getServerCapabilities()?.tools === undefined) return { tools: [], diagnostics: [] };
    const listed: unknown[] = [];
    const notes: Diagnostic[] = [];
    const seen = new Set<string>();
    let cursor: string | undefined;
    let ttlMs: number | undefined;
    for (let pages = 1; ; pages++) {
      const page = await this.page(cursor, signal);
      if (page === undefined) return { tools: [], diagnostics: [] };
      if (Array.isArray(page['tools'])) listed.push(...page['tools'].slice(0, MAX_TOOLS - listed.length));
      if (typeof page['ttlMs'] === 'number') ttlMs = page['ttlMs'];
      const next = page['nextCursor'];
      // An empty string is a cursor like any other; only absence ends the list.
      if (typeof next !== 'string') break;
      if (seen.has(next)) {
        notes.push({ tool: '', message: 'The tool list repeats a cursor; reading stopped there' });
        break;
      }
      if (pages >= MAX_PAGES || listed.length >= MAX_TOOLS) {
        notes.push({ tool: '', message: `The tool list goes on after ${MAX_PAGES} pages or ${MAX_TOOLS} tools; the rest is left out` });
        break;
      }
      seen.add(next);
      cursor = next;
    }
    const { tools, diagnostics } = admitTools(listed);
    return { tools, diagnostics: [...notes, ...diagnostics], ...(ttlMs === undefined ? {} : { ttlMs }) };
  }

  private async page(cursor: string | undefined, signal: AbortSignal | undefined): Promise<Readonly<Record<string, unknown>> | undefined> {
    try {
      const page = await this.client.request({ method: 'tools/list', params: cursor === undefined ? {} : { cursor } }, ANY, {
        timeout: LIST_TIMEOUT_MS,
        ...(signal === undefined ? {} : { signal }),
      });
      if (!isRecord(page)) throw new Error('The server answered tools/list with something that is no object');
      return page;
    } catch (error) {
      if (cursor === undefined && isRecord(error) && error['code'] === METHOD_NOT_FOUND) return undefined;
      throw error;
    }
  }

  /** Calls a tool; never throws and never sends twice: the outcome says what is known. */
  async call(request: CallRequest, options: CallOptions): Promise<CallOutcome> {
    const { signal } = options;
    if (signal?.aborted === true)
      return { status: 'not_dispatched', cause: 'cancelled', message: 'The call was cancelled before it was sent' };
    try {
      const result = await this.client.request(
        { method: 'tools/call', params: { name: request.name, arguments: request.arguments } },
        ANY,
        requestOptions(options),
      );
      if (!isRecord(result))
        return { status: 'uncertain', cause: 'invalid_result', message: 'The server answered with something that is no result object' };
      if (isInputRequiredResult(result))
        return {
          status: 'refused',
          code: -32_021,
          message: 'The server asks for input from a person or model, which this connection does not offer',
          data: undefined,
        };
      return { status: result['isError'] === true ? 'tool_error' : 'completed', result };
    } catch (error) {
      return outcomeOf(error, signal);
    }
  }

  /** Ends the connection; what is in flight ends as uncertain. */
  async close(): Promise<void> {
    await this.client.close();
  }
}

function requestOptions(options: CallOptions): RequestOptions {
  return {
    timeout: options.timeoutMs,
    allowInputRequired: true,
    ...(options.maxTotalMs === undefined ? {} : { maxTotalTimeout: options.maxTotalMs }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
    ...(options.onProgress === undefined
      ? {}
      : { onprogress: options.onProgress, resetTimeoutOnProgress: options.progressExtends === true }),
  };
}
