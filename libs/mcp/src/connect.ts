import {
  Client,
  type ClientCapabilities,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  StreamableHTTPClientTransport,
  type PriorDiscovery,
  type Transport,
} from '@modelcontextprotocol/client';
import type { AnswerAsk } from './asks.js';
import { listenToChanges } from './listen.js';
import { ANY_OBJECT } from './records.js';
import { McpSession, type ListKind } from './session.js';
import type { ServerTarget } from './target.js';

export interface ConnectOptions {
  /** What an earlier session found out about the server's era. */
  readonly verdict?: PriorDiscovery;
  /** Ends the attempt and everything it opened. */
  readonly signal?: AbortSignal;
  /** For each step of the handshake. @default 45000 */
  readonly timeoutMs?: number;
  /** How long a server may stay silent on the version probe before it counts as legacy. @default 8000 */
  readonly probeTimeoutMs?: number;
  /** The server says that a list changed; called for every notification, so coalesce. */
  readonly onListChanged?: (kind: ListKind) => void;
  /** A resource changed that the server was asked to tell of. */
  readonly onResourceUpdated?: (params: Readonly<Record<string, unknown>>) => void;
  /** Answers what the server asks for; without it, it is told that nothing may be asked. */
  readonly onAsked?: AnswerAsk;
  /** The server may ask for completions of a model. @default false */
  readonly sampling?: boolean;
  /** The server logs something. */
  readonly onLog?: (params: Readonly<Record<string, unknown>>) => void;
  /** The connection ended, by either side. Called once. */
  readonly onClosed?: () => void;
  /** Something went wrong beside the requests; for logs. */
  readonly onError?: (error: Error) => void;
}

const CLIENT = { name: 'ambit', title: 'Ambit', version: '0.1.0' };

/** Opens a session with a server of either era. Throws the last transport's error when none works; nothing stays open then. */
export async function connectServer(target: ServerTarget, options: ConnectOptions = {}): Promise<McpSession> {
  const legacy: PriorDiscovery = { kind: 'legacy' };
  const known = target.era === 'legacy' ? legacy : options.verdict;
  const [first, ...others] = target.transports;
  try {
    return await open(first, options, known);
  } catch (error) {
    options.signal?.throwIfAborted();
    // A server that dies of the unknown probe, or one that stopped being modern, is asked once more in the other way.
    if (target.kind === 'stdio' && known === undefined && isNegotiationFailure(error)) return open(first, options, legacy);
    if (known?.kind === 'modern' && isNegotiationFailure(error)) return open(first, options, undefined);
    const [fallback] = others;
    if (fallback === undefined || !isOtherTransport(error)) throw error;
    try {
      return await open(fallback, options, legacy);
    } catch {
      // The first transport's answer tells the reader more: the fall-back was only a guess.
      throw error;
    }
  }
}

async function open(make: () => Transport, options: ConnectOptions, prior: PriorDiscovery | undefined): Promise<McpSession> {
  options.signal?.throwIfAborted();
  const client = new Client(CLIENT, {
    capabilities: capabilitiesOf(options),
    versionNegotiation: { mode: 'auto', probe: { timeoutMs: options.probeTimeoutMs ?? 8_000, maxRetries: 0 } },
  });
  client.onerror = (error) => options.onError?.(error);
  for (const kind of ['tools', 'prompts', 'resources'] as const)
    client.setNotificationHandler(`notifications/${kind}/list_changed`, () => {
      // A server that did not promise to tell of a list's changes is not believed when it does.
      if (client.getServerCapabilities()?.[kind]?.listChanged === true) options.onListChanged?.(kind);
    });
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => options.onResourceUpdated?.(params));
  client.setNotificationHandler('notifications/message', ({ params }) => options.onLog?.(params));
  const { onAsked } = options;
  if (onAsked !== undefined)
    for (const method of [
      'elicitation/create',
      'roots/list',
      ...(options.sampling === true ? (['sampling/createMessage'] as const) : []),
    ] as const)
      client.setRequestHandler(method, { params: ANY_OBJECT }, (params, context) =>
        onAsked({ method, params, signal: context.mcpReq.signal }),
      );
  const transport = make();
  const abort = (): void => void transport.close().catch(() => undefined);
  options.signal?.addEventListener('abort', abort, { once: true });
  try {
    await client.connect(transport, {
      timeout: options.timeoutMs ?? 45_000,
      ...(prior === undefined ? {} : { prior }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    options.signal?.throwIfAborted();
  } catch (error) {
    await transport.close().catch(() => undefined);
    throw options.signal?.aborted === true ? options.signal.reason : error;
  } finally {
    options.signal?.removeEventListener('abort', abort);
  }
  const ended = new AbortController();
  client.onclose = () => {
    if (ended.signal.aborted) return;
    ended.abort();
    options.onClosed?.();
  };
  if (client.getProtocolEra() === 'modern') listenToChanges(client, ended.signal, (kind) => options.onListChanged?.(kind));
  const facts = factsOf(client);
  return new McpSession(
    client,
    { ...facts, mirrors: facts.era === 'modern' && transport instanceof StreamableHTTPClientTransport },
    ended.signal,
  );
}

/** Roots are offered because they may be empty; completions only to servers that an administrator lets ask for them. */
function capabilitiesOf({ onAsked, sampling }: ConnectOptions): ClientCapabilities {
  if (onAsked === undefined) return {};
  return { elicitation: { form: {}, url: {} }, roots: {}, ...(sampling === true ? { sampling: {} } : {}) };
}

function factsOf(client: Client): Omit<McpSession['facts'], 'mirrors'> {
  const discover = client.getDiscoverResult();
  const server = client.getServerVersion();
  return {
    era: client.getProtocolEra() ?? 'legacy',
    protocolVersion: client.getNegotiatedProtocolVersion() ?? 'unknown',
    name: server?.name ?? 'unknown',
    version: server?.version ?? 'unknown',
    instructions: client.getInstructions(),
    verdict: discover === undefined ? { kind: 'legacy' } : { kind: 'modern', discover },
  };
}

function isNegotiationFailure(error: unknown): boolean {
  return error instanceof SdkError && (error.code === SdkErrorCode.EraNegotiationFailed || error.code === SdkErrorCode.ConnectionClosed);
}

/** A legacy SSE endpoint answers a POST with 404, 405 or 400; authorization and server errors say nothing about the transport. */
function isOtherTransport(error: unknown): boolean {
  return error instanceof SdkHttpError && (error.status === 404 || error.status === 405 || error.status === 400);
}
