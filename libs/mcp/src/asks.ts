import { Fault, type JsonObject, type toolGateway, type Input } from '@ambit/contracts';
import { ProtocolError } from '@modelcontextprotocol/client';
import { AsyncLocalStorage } from 'node:async_hooks';

export type AskKind = Input<typeof toolGateway.askBack>['kind'];

/** What a server may ask of its client, and what each is. */
export const ASK_METHODS: Readonly<Record<string, AskKind>> = {
  'elicitation/create': 'elicitation',
  'sampling/createMessage': 'sampling',
  'roots/list': 'roots',
};

/** A question of a server. */
export interface Ask {
  readonly method: string;
  readonly params: JsonObject;
  /** What its server calls it, where it asks for several things at once. */
  readonly key?: string;
  /** Aborts when the server takes it back, or its connection ends. */
  readonly signal?: AbortSignal | undefined;
}

/** Answers a server's question with the result that MCP defines for it; throws a {@link ProtocolError} to refuse. */
export type AnswerAsk = (ask: Ask) => Promise<JsonObject>;

/**
 * The operation id of the call in whose course something happens. What arrives on the stream of a call's own request is caused by that call, and
 * runs in its context; what arrives on a connection that calls share has none.
 */
export const callInProgress = new AsyncLocalStorage<string | undefined>();

const NO_CALL = -32_600;
const REFUSED = -1;
const INTERNAL = -32_603;

/** The refusal of a question that no call in progress can have caused. */
export function withoutCall(kind: AskKind): ProtocolError {
  return new ProtocolError(
    NO_CALL,
    `${kind} may be asked for only while this server works on a call, and whose call it is must be certain`,
  );
}

/** How a server is told that nobody answers: a question is cancelled, everything else refused. */
export function unanswered(kind: AskKind, error: unknown): JsonObject {
  const isRefused = error instanceof Fault && error.code === 'ASK_REFUSED';
  if (kind === 'elicitation') return { action: isRefused ? 'decline' : 'cancel' };
  if (kind === 'roots') return { roots: [] };
  throw new ProtocolError(isRefused ? REFUSED : INTERNAL, isRefused ? reasonOf(error) : 'Nobody could answer');
}

function reasonOf({ data, message }: Fault): string {
  return typeof data === 'object' && data !== null && 'reason' in data && typeof data.reason === 'string' ? data.reason : message;
}
