import { sha256Hex } from '@ambit/capability';
import { fault, mcpBroker, platformFault, toolGateway, type Fault, type Parsed, type Payload, type Returns } from '@ambit/contracts';
import type { Progress } from '@modelcontextprotocol/client';
import type { McpInstance } from './instance.js';
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
  readonly tellProgress: (gatewayId: string, progress: Payload<typeof toolGateway.callProgress>) => void;
}

const INLINE_BYTES = 256 * 1024;
const PAGE_BYTES = 256 * 1024;
const LARGE_KEPT_MS = 60_000;
const LARGE_KEPT_BYTES = 256 * 1024 * 1024;
const OPEN_CALLS = 1_000;
const REMEMBERED = 8_192;
const PROGRESS_EVERY_MS = 100;

interface OpenCall {
  readonly abort: AbortController;
  readonly done: Promise<Returns<ExecuteCall>>;
  isCancelled: boolean;
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

  constructor(private readonly options: CallServerOptions) {}

  execute(input: Parsed<ExecuteCall>, remainingMs: number): Promise<Returns<ExecuteCall>> {
    const { pin, lease, instance } = this.options;
    if (input.serverId !== pin.serverId || input.configGeneration !== pin.configGeneration || input.bindingHash !== pin.bindingHash)
      throw fault(mcpBroker.executeCall, 'TARGET_CHANGED');
    if (input.leaseRevision !== lease.revision || !lease.isHeld) throw fault(mcpBroker.executeCall, 'STALE_LEASE');
    const running = this.open.get(input.operationId);
    if (running !== undefined) return running.done;
    if (this.ended.has(input.operationId)) throw fault(mcpBroker.executeCall, 'INDETERMINATE');
    if (this.open.size >= OPEN_CALLS)
      throw fault(mcpBroker.executeCall, 'SERVER_UNAVAILABLE', { reason: `${OPEN_CALLS} calls run on this instance already` });
    const abort = new AbortController();
    const done = instance
      .call({
        request: { name: input.tool, arguments: input.arguments },
        timeoutMs: Math.min(input.callTimeoutMs, remainingMs),
        maxTotalMs: remainingMs,
        progressExtends: input.onProgress === 'extend',
        onProgress: this.progressOf(input),
        abort,
        mayDispatch: () => (lease.isHeld ? undefined : STALE),
      })
      .then((outcome) => this.answer(input.operationId, outcome))
      .finally(() => this.end(input.operationId));
    this.open.set(input.operationId, { abort, done, isCancelled: false });
    return done;
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
    return ({ progress, total, message }) => {
      const now = performance.now();
      // Progress is a level, not a sum: what comes too fast may be left out.
      if (now < nextAt) return;
      nextAt = now + PROGRESS_EVERY_MS;
      this.options.tellProgress(input.gatewayId, {
        operationId: input.operationId,
        progress,
        ...(total === undefined ? {} : { total }),
        ...(message === undefined ? {} : { message: message.slice(0, 1_000) }),
      });
    };
  }

  private answer(operationId: string, outcome: CallOutcome): Returns<ExecuteCall> {
    switch (outcome.status) {
      case 'completed':
      case 'tool_error':
        return this.fitted(operationId, outcome.result);
      case 'refused':
        throw fault(mcpBroker.executeCall, 'TOOL_FAILED', { reason: `${outcome.message} (${outcome.code})` });
      case 'not_dispatched':
        throw notDispatched(outcome.cause, outcome.message);
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

const STALE = 'The lease of this instance is not certainly held any more';

function notDispatched(cause: string, message: string): Fault {
  if (message === STALE) return fault(mcpBroker.executeCall, 'STALE_LEASE');
  if (cause === 'cancelled') return platformFault('CANCELLED', undefined, 'The call was cancelled before it was sent');
  return fault(mcpBroker.executeCall, 'SERVER_UNAVAILABLE', { reason: message });
}

function uncertain(outcome: CallOutcome & { readonly status: 'uncertain' }, isCancelled: boolean): Fault {
  switch (outcome.cause) {
    case 'timeout':
      return fault(mcpBroker.executeCall, 'CALL_TIMEOUT');
    case 'cancelled':
      // Only whoever asked for the cancel is told that it was one: a call that an instance's end cut short has an unknown end.
      return isCancelled
        ? platformFault('CANCELLED', undefined, 'The call was cancelled after it was sent; what it did until then stands')
        : fault(mcpBroker.executeCall, 'INDETERMINATE', undefined, 'The instance was stopped during the call');
    case 'too_large':
      return fault(mcpBroker.executeCall, 'RESULT_TOO_LARGE', { limitBytes: outcome.limitBytes ?? 0 });
    case 'invalid_result':
      return fault(mcpBroker.executeCall, 'TOOL_FAILED', { reason: outcome.message });
    case 'connection_lost':
      return fault(
        mcpBroker.executeCall,
        'INDETERMINATE',
        undefined,
        `The connection to the server ended during the call; ${outcome.message}`,
      );
  }
}
