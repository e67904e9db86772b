import { sha256Hex } from '@ambit/capability';
import { fault, mcpBroker, toolGateway, type Input, type JsonObject, type Parsed, type Payload, type Returns } from '@ambit/contracts';
import { ProtocolError, type Progress } from '@modelcontextprotocol/client';
import { ASK_METHODS, callInProgress, unanswered, withoutCall, type Ask } from './asks.js';
import { notDispatched, STALE, uncertain } from './call-faults.js';
import type { McpInstance } from './instance.js';
import { LiveDefinitions } from './live-definitions.js';
import type { CallOutcome, RawResult } from './outcome.js';

type ExecuteCall = typeof mcpBroker.executeCall;
type ResultPage = typeof mcpBroker.resultPage;

/** What a call must name to be let through: the target as it was pinned in the snapshot. */
export interface Pin {
  readonly serverId: string;
  readonly configGeneration: number;
  readonly bindingHash: string;
}

export interface CallServerOptions {
  readonly instance: McpInstance;
  readonly pin: Pin;
  readonly lease: { readonly revision: number; readonly isHeld: boolean };
  /** Asks the gateway that dispatched a call what a server wants to know within it. */
  readonly ask: (
    gatewayId: string,
    ask: Input<typeof toolGateway.askBack>,
    within: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ) => Promise<JsonObject>;
  readonly tellLog: (gatewayId: string, log: Payload<typeof toolGateway.callLogged>) => void;
  /** Whose credentials the instance carries, where somebody can sign in to its server. */
  readonly credentials?: 'shared' | 'agent' | 'user' | undefined;
  readonly tellProgress: (gatewayId: string, progress: Payload<typeof toolGateway.callProgress>) => void;
}

const INLINE_BYTES = 256 * 1024;
const PAGE_BYTES = 256 * 1024;
const LARGE_KEPT_MS = 60_000;
const LARGE_KEPT_BYTES = 256 * 1024 * 1024;
const OPEN_CALLS = 1_000;
const REMEMBERED = 8_192;
const PROGRESS_EVERY_MS = 100;
/** The first of a call are told however fast they come. */
const PROGRESS_AT_ONCE = 20;
const ASKS_OF_A_CALL = 64;
const ASK_CHARACTERS = 64 * 1024;
const LOGS_OF_A_CALL = 1_000;
const LOG_CHARACTERS = 16 * 1024;

interface OpenCall {
  readonly abort: AbortController;
  readonly done: Promise<Returns<ExecuteCall>>;
  readonly gatewayId: string;
  readonly sessionId: string | undefined;
  /** When its time is up, by the monotonic clock. */
  readonly until: number;
  isCancelled: boolean;
  asks: number;
  logs: number;
}

/**
 * Answers the calls of one instance: the last gate before the effect. One call at most for each operation id, however often the
 * request comes; the pin at the door, the lease immediately before the call leaves.
 */
export class CallServer {
  private readonly open = new Map<string, OpenCall>();
  private readonly ended = new Set<string>();
  private readonly large = new Map<string, { readonly bytes: Buffer; readonly timer: NodeJS.Timeout }>();
  private largeBytes = 0;

  private readonly definitions: LiveDefinitions;

  constructor(private readonly options: CallServerOptions) {
    this.definitions = new LiveDefinitions(options.instance);
  }

  execute(input: Parsed<ExecuteCall>, remainingMs: number): Promise<Returns<ExecuteCall>> {
    const { pin, lease } = this.options;
    if (input.serverId !== pin.serverId || input.configGeneration !== pin.configGeneration || input.bindingHash !== pin.bindingHash)
      throw fault(mcpBroker.executeCall, 'TARGET_CHANGED');
    if (input.leaseRevision !== lease.revision || !lease.isHeld) throw fault(mcpBroker.executeCall, 'STALE_LEASE');
    const running = this.open.get(input.operationId);
    if (running !== undefined) return running.done;
    if (this.ended.has(input.operationId)) throw fault(mcpBroker.executeCall, 'INDETERMINATE');
    if (this.open.size >= OPEN_CALLS)
      throw fault(mcpBroker.executeCall, 'SERVER_UNAVAILABLE', { reason: `${OPEN_CALLS} calls run on this instance already` });
    const abort = new AbortController();
    const { operationId } = input;
    const done = callInProgress
      .run(operationId, () =>
        this.definitions.checked(input, {
          request: { name: input.tool, arguments: input.arguments },
          timeoutMs: Math.min(input.callTimeoutMs, remainingMs),
          maxTotalMs: remainingMs,
          progressExtends: input.onProgress === 'extend',
          onProgress: this.progressOf(input),
          onAsked: (ask) => this.asked(ask, operationId),
          abort,
          mayDispatch: () => (lease.isHeld ? undefined : STALE),
        }),
      )
      .then((outcome) => this.answer(input, outcome))
      .finally(() => this.end(input.operationId));
    const until = performance.now() + (input.onProgress === 'extend' ? remainingMs : Math.min(input.callTimeoutMs, remainingMs));
    const { gatewayId, sessionId } = input;
    this.open.set(operationId, { abort, done, gatewayId, sessionId, until, isCancelled: false, asks: 0, logs: 0 });
    return done;
  }

  /** Answers what the server asks for within a call in progress; outside of one it is refused, and whose call it is must be certain. */
  async asked({ method, params, signal, key }: Ask, operationId = this.cause()): Promise<JsonObject> {
    const kind = ASK_METHODS[method];
    if (kind === undefined) throw new ProtocolError(-32_601, `${method.slice(0, 100)} is nothing that a server may ask for`);
    const call = operationId === undefined ? undefined : this.open.get(operationId);
    if (call === undefined || operationId === undefined) {
      if (kind === 'roots') return { roots: [] };
      throw withoutCall(kind);
    }
    if (++call.asks > ASKS_OF_A_CALL) throw new ProtocolError(-32_600, `A call may ask for ${ASKS_OF_A_CALL} things`);
    if (JSON.stringify(params).length > ASK_CHARACTERS)
      throw new ProtocolError(-32_602, `What is asked for may have ${ASK_CHARACTERS} characters`);
    const signals = AbortSignal.any([call.abort.signal, ...(signal === undefined ? [] : [signal])]);
    try {
      const timeoutMs = Math.max(1, call.until - performance.now());
      const ask = {
        operationId,
        serverId: this.options.pin.serverId,
        number: call.asks,
        kind,
        params,
        ...(key === undefined ? {} : { key: key.slice(0, 200) }),
      };
      return await this.options.ask(call.gatewayId, ask, { timeoutMs, signal: signals });
    } catch (error) {
      return unanswered(kind, error);
    }
  }

  /** The server logs something while it works on a call. */
  logged({ level, logger, data }: Readonly<Record<string, unknown>>): void {
    const operationId = this.cause();
    const call = operationId === undefined ? undefined : this.open.get(operationId);
    if (call === undefined || operationId === undefined || ++call.logs > LOGS_OF_A_CALL) return;
    this.options.tellLog(call.gatewayId, {
      operationId,
      level: String(level).slice(0, 20),
      ...(typeof logger === 'string' ? { logger: logger.slice(0, 200) } : {}),
      data: JSON.stringify(data ?? null).length <= LOG_CHARACTERS ? (data ?? null) : `(more than ${LOG_CHARACTERS} characters)`,
    });
  }

  /** The call that what arrives now belongs to: by the stream that it came on, or because all calls in progress are one session's. */
  private cause(): string | undefined {
    const own = callInProgress.getStore();
    if (own !== undefined && this.open.has(own)) return own;
    let newest: string | undefined;
    let sessionId: string | undefined;
    for (const [operationId, call] of this.open) {
      if (call.sessionId === undefined || (newest !== undefined && call.sessionId !== sessionId)) return undefined;
      newest = operationId;
      ({ sessionId } = call);
    }
    return newest;
  }

  /** A range of a large result, base64. */
  resultPage({ operationId, offset }: Parsed<ResultPage>): Returns<ResultPage> {
    const bytes = this.large.get(operationId)?.bytes;
    if (bytes === undefined || offset > bytes.length) throw fault(mcpBroker.resultPage, 'RESULT_GONE');
    const end = Math.min(offset + PAGE_BYTES, bytes.length);
    return { data: bytes.subarray(offset, end).toString('base64'), next: end < bytes.length ? end : null };
  }

  /** Stops one call at the server; its own answer says how it ended. */
  cancel(operationId: string): void {
    const call = this.open.get(operationId);
    if (call === undefined) return;
    call.isCancelled = true;
    call.abort.abort();
  }

  /** Lets go of what is kept. Open calls are the instance's to end. */
  close(): void {
    for (const { timer } of this.large.values()) clearTimeout(timer);
    this.large.clear();
    this.largeBytes = 0;
  }

  private progressOf(input: Parsed<ExecuteCall>): (progress: Progress) => void {
    let nextAt = 0;
    let told = 0;
    return ({ progress, total, message }) => {
      const now = performance.now();
      // Progress is a level, not a sum: of many, what comes too fast may be left out.
      if (now < nextAt && told >= PROGRESS_AT_ONCE) return;
      told++;
      nextAt = now + PROGRESS_EVERY_MS;
      this.options.tellProgress(input.gatewayId, {
        operationId: input.operationId,
        progress,
        ...(total === undefined ? {} : { total }),
        ...(message === undefined ? {} : { message: message.slice(0, 1_000) }),
      });
    };
  }

  private answer({ operationId, tool }: Parsed<ExecuteCall>, outcome: CallOutcome): Returns<ExecuteCall> {
    switch (outcome.status) {
      case 'completed':
      case 'tool_error':
        return this.fitted(operationId, outcome.result);
      case 'refused':
        throw fault(mcpBroker.executeCall, 'TOOL_FAILED', { reason: `${outcome.message} (${outcome.code})` });
      case 'not_dispatched': {
        const { credentials, pin } = this.options;
        throw notDispatched(outcome, { tool, credentials, serverId: pin.serverId });
      }
      case 'uncertain':
        throw uncertain(outcome, this.open.get(operationId)?.isCancelled === true);
    }
  }

  /** A result as it may travel: a large one is kept here, to be read by pages under this id. */
  fitted(operationId: string, result: RawResult): Returns<ExecuteCall> {
    const text = JSON.stringify(result);
    if (text.length * 3 <= INLINE_BYTES) return { result };
    const bytes = Buffer.from(text, 'utf8');
    if (bytes.length <= INLINE_BYTES) return { result };
    this.keep(operationId, bytes);
    return { large: { digest: sha256Hex(bytes), bytes: bytes.length, isError: result['isError'] === true } };
  }

  private keep(operationId: string, bytes: Buffer): void {
    this.largeBytes += bytes.length;
    this.large.set(operationId, { bytes, timer: setTimeout(() => this.drop(operationId), LARGE_KEPT_MS).unref() });
    for (const oldest of this.large.keys()) {
      if (this.largeBytes <= LARGE_KEPT_BYTES) return;
      this.drop(oldest);
    }
  }

  private drop(operationId: string): void {
    const kept = this.large.get(operationId);
    if (kept === undefined) return;
    clearTimeout(kept.timer);
    this.largeBytes -= kept.bytes.length;
    this.large.delete(operationId);
  }

  private end(operationId: string): void {
    this.open.delete(operationId);
    this.ended.add(operationId);
    if (this.ended.size <= REMEMBERED) return;
    const [oldest] = this.ended;
    if (oldest !== undefined) this.ended.delete(oldest);
  }
}
