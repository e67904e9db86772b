import {
  InsufficientScopeError,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UnauthorizedError,
} from '@modelcontextprotocol/client';

/** The result object of `tools/call` as the server sent it. */
export type RawResult = Readonly<Record<string, unknown>>;

/**
 * How a call ended, and what that proves.
 * - `completed`, `tool_error`: the server answered; `tool_error` is a result that says `isError`.
 * - `refused`: the server answered with a JSON-RPC error.
 * - `not_dispatched`: the server did not take the call; sending it again is safe.
 * - `uncertain`: the call was sent and its end is unknown; nobody may send it again on their own.
 */
export type CallOutcome =
  | { readonly status: 'completed' | 'tool_error'; readonly result: RawResult }
  | { readonly status: 'refused'; readonly code: number; readonly message: string; readonly data: unknown }
  | {
      readonly status: 'not_dispatched';
      /** `unauthorized`: with other credentials it may be taken; `forbidden`: whoever asks may not. */
      readonly cause: 'session_lost' | 'unreachable' | 'unauthorized' | 'forbidden' | 'stopped' | 'cancelled';
      readonly message: string;
    }
  | {
      readonly status: 'uncertain';
      readonly cause: 'cancelled' | 'timeout' | 'connection_lost' | 'too_large' | 'invalid_result';
      readonly message: string;
      readonly limitBytes?: number;
    };

/** The code of an error of ours that came up before a request left. */
export const NOT_SENT = 'AMBIT_NOT_SENT';

/** Codes of connections that were never made: no byte of the request has left. */
const NEVER_CONNECTED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_HAS_EXPIRED',
  'UND_ERR_CONNECT_TIMEOUT',
  'AMBIT_EGRESS_REFUSED',
  'AMBIT_CONNECT_TIMEOUT',
  NOT_SENT,
]);

/** Every way in which servers say that they do not know the session any more. The specification asks for 404; many answer 400 or an error object. */
const SESSION_LOST =
  /(session|mcp-session-id).{0,40}(not found|unknown|invalid|missing|expired|required|terminated|does not exist|not valid)|(no valid|invalid|unknown|missing|unrecognized|expired|no such|no active) (mcp )?(session|mcp-session-id)|not initialized|before initialization/i;
const SESSION_CODES = new Set([-32000, -32001, -32002, -32600, -32602]);

/** True when the error proves that the server refused the request because it forgot the session. */
export function isSessionLoss(error: unknown): boolean {
  if (error instanceof SdkHttpError) {
    if (error.status === 404) return true;
    return error.status === 400 && SESSION_LOST.test(error.message);
  }
  return error instanceof ProtocolError && SESSION_CODES.has(error.code) && SESSION_LOST.test(error.message);
}

/** The JSON-RPC error code that this package's transports make up when they know that no answer will come. */
export const SYNTHETIC = { connectionLost: -32_099, tooLarge: -32_098 } as const;
const MARK = 'ambit:transport';

/** The `data` that tells an error of our own transport from one that a server made up. */
export function syntheticData(secret: symbol, limitBytes?: number): unknown {
  return Object.assign(Object.create(null), { [MARK]: secret, ...(limitBytes === undefined ? {} : { limitBytes }) });
}

/** More came than may be taken; nothing of it is passed on as if it were whole. */
export class TooLargeError extends Error {
  override readonly name = 'TooLargeError';
  constructor(readonly limitBytes: number) {
    super(`The answer is larger than ${limitBytes} bytes`);
  }
}

/** Only this process holds the symbol, so no server can forge a transport's own error. */
export const TRANSPORT_SECRET = Symbol(MARK);

function synthetic(error: ProtocolError): { readonly limitBytes: number | undefined } | undefined {
  const data: unknown = error.data;
  if (typeof data !== 'object' || data === null || !(MARK in data) || data[MARK] !== TRANSPORT_SECRET) return undefined;
  return { limitBytes: 'limitBytes' in data && typeof data.limitBytes === 'number' ? data.limitBytes : undefined };
}

/** True when a transport of this package made the error up: no server said it. */
export const isOwnError = (error: ProtocolError): boolean => synthetic(error) !== undefined;

/** True when the error or one of its causes has one of these codes. */
function hasCode(error: unknown, codes: ReadonlySet<string>): boolean {
  for (let at: unknown = error, hops = 0; hops < 5 && typeof at === 'object' && at !== null; hops++) {
    if ('code' in at && typeof at.code === 'string' && codes.has(at.code)) return true;
    at = 'cause' in at ? at.cause : undefined;
  }
  return false;
}

/** True when the error, or one of its causes, is a server's refusal of our credentials. */
export function isUnauthorized(error: unknown): boolean {
  for (let at: unknown = error, hops = 0; hops < 5 && typeof at === 'object' && at !== null; hops++) {
    if (
      at instanceof UnauthorizedError ||
      at instanceof InsufficientScopeError ||
      (at instanceof SdkHttpError && (at.status === 401 || at.status === 403))
    )
      return true;
    at = 'cause' in at ? at.cause : undefined;
  }
  return false;
}

/** True when the error, or one of its causes, says that other credentials, or wider ones, would be taken. */
export function wantsSignIn(error: unknown): boolean {
  for (let at: unknown = error, hops = 0; hops < 5 && typeof at === 'object' && at !== null; hops++) {
    if (at instanceof UnauthorizedError || at instanceof InsufficientScopeError || (at instanceof SdkHttpError && at.status === 401))
      return true;
    at = 'cause' in at ? at.cause : undefined;
  }
  return false;
}

/** One line of a server's or platform's error text, bounded and without control characters. */
export function sentenceOf(error: unknown, limit = 500): string {
  const text =
    error instanceof Error
      ? error.cause instanceof Error && error.message === 'fetch failed'
        ? error.cause.message
        : error.message
      : String(error);
  // eslint-disable-next-line no-control-regex -- control characters are what is taken out
  const line = text.replace(/[\u0000-\u001f\u007f]+/g, ' ').trim();
  return line.length > limit ? `${line.slice(0, limit - 1)}…` : line;
}

/** Reads off an error of `tools/call` what it proves. `signal` is the caller's own: an error named AbortError proves nothing. */
export function outcomeOf(error: unknown, signal: AbortSignal | undefined): CallOutcome {
  if (signal?.aborted === true) return { status: 'uncertain', cause: 'cancelled', message: 'The call was cancelled after it was sent' };
  const message = sentenceOf(error);
  if (isSessionLoss(error)) return { status: 'not_dispatched', cause: 'session_lost', message };
  if (error instanceof ProtocolError) {
    const own = synthetic(error);
    if (own === undefined) return { status: 'refused', code: error.code, message, data: error.data };
    if (error.code !== SYNTHETIC.tooLarge) return { status: 'uncertain', cause: 'connection_lost', message };
    return { status: 'uncertain', cause: 'too_large', message, ...(own.limitBytes === undefined ? {} : { limitBytes: own.limitBytes }) };
  }
  if (error instanceof TooLargeError) return { status: 'uncertain', cause: 'too_large', message, limitBytes: error.limitBytes };
  if (error instanceof UnauthorizedError || error instanceof InsufficientScopeError)
    return { status: 'not_dispatched', cause: 'unauthorized', message };
  if (error instanceof SdkHttpError) return ofHttp(error.status, message);
  if (hasCode(error, NEVER_CONNECTED)) return { status: 'not_dispatched', cause: 'unreachable', message };
  if (error instanceof SdkError) return ofSdk(error.code, message);
  return error instanceof Error && error.message === 'Not connected'
    ? { status: 'not_dispatched', cause: 'unreachable', message }
    : { status: 'uncertain', cause: 'connection_lost', message };
}

/** A 4xx is the server's refusal to take the request; a 5xx may come from a proxy that had passed it on. */
function ofHttp(status: number | undefined, message: string): CallOutcome {
  if (status === 401) return { status: 'not_dispatched', cause: 'unauthorized', message };
  if (status === 403) return { status: 'not_dispatched', cause: 'forbidden', message };
  if (status !== undefined && status >= 400 && status < 500 && status !== 408 && status !== 499)
    return { status: 'not_dispatched', cause: 'unreachable', message };
  return { status: 'uncertain', cause: 'connection_lost', message };
}

function ofSdk(code: string, message: string): CallOutcome {
  switch (code) {
    case SdkErrorCode.RequestTimeout:
      return { status: 'uncertain', cause: 'timeout', message };
    case SdkErrorCode.NotConnected:
      return { status: 'not_dispatched', cause: 'unreachable', message };
    case SdkErrorCode.InvalidResult:
    case SdkErrorCode.UnsupportedResultType:
    case SdkErrorCode.ClientHttpUnexpectedContent:
      return { status: 'uncertain', cause: 'invalid_result', message };
    default:
      return { status: 'uncertain', cause: 'connection_lost', message };
  }
}
