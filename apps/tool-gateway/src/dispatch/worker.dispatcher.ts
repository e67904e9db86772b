import { Bus } from '@ambit/bus';
import { Fault, worker, type Input, type Output } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import { askedTooLate, stopped, type DispatchEnd } from '../domain/call-end.js';
import { Toolsets } from '../toolsets.js';
import { afterGrace, type Dispatch, type Dispatcher } from './dispatch.js';
import { answeredInPages } from './result-pages.js';

const CERTAIN: ReadonlySet<string> = new Set([
  'BAD_ARGUMENTS',
  'TOOL_GONE',
  'TARGET_CHANGED',
  'OUTSIDE_WORKSPACE',
  'TOOL_FAILED',
  'TOO_LARGE',
  'INVALID_INPUT',
]);

type Called = Output<typeof worker.callTool>;
const Whole = worker.callTool.output.pick({ content: true, structuredContent: true, isError: true });

/** Which tool of which worker, with what. */
interface WorkerCall {
  readonly keys: { readonly agentId: string; readonly workerId: string };
  readonly toolsetDigest: string;
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly skill?: Input<typeof worker.callTool>['skill'];
}

/** Sends calls of workers' tools to one worker process, with the target it prepared. */
@Injectable()
export class WorkerDispatcher implements Dispatcher {
  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(Toolsets) private readonly toolsets: Toolsets,
  ) {}

  async dispatch(dispatch: Dispatch): Promise<DispatchEnd> {
    const { workerId } = dispatch;
    const { target } = dispatch.tool;
    if (target.kind !== 'worker' || workerId === null) return stopped('failed', 'TOOL_GONE');
    const { agentId, toolsetDigest, tool } = target;
    return this.call(dispatch, { keys: { agentId, workerId }, toolsetDigest, tool, arguments: dispatch.arguments });
  }

  /** Has a worker's tool run for a call: its own, or one that another call is carried out by. */
  async call(dispatch: Dispatch, what: WorkerCall): Promise<DispatchEnd> {
    const { operation, authority, signal } = dispatch;
    const { keys, toolsetDigest, tool, skill } = what;
    const grace = afterGrace(signal, () =>
      this.bus.signal(worker.cancelCall, { operationId: operation.operationId, reason: 'the call was cancelled' }, { keys }),
    );
    // A worker that is gone answers nobody: its call ends when its lease does, not with the run's time.
    const gone = this.toolsets.whenGone(keys);
    const within = {
      traceparent: operation.traceparent,
      principal: authority.principal,
      actor: undefined,
      via: undefined,
      signal: AbortSignal.any([grace.signal, gone.signal]),
    };
    try {
      const called = await this.bus.call(
        worker.callTool,
        {
          operationId: operation.operationId,
          sessionId: authority.sessionId,
          runId: authority.runId,
          workspaceId: workspaceOf(authority.pool),
          toolsetDigest,
          tool,
          arguments: { ...what.arguments },
          ...(skill === undefined ? {} : { skill }),
          granted: dispatch.granted,
          ...(dispatch.prepared === undefined ? {} : { prepared: dispatch.prepared, bounds: dispatch.bounds }),
        },
        { keys, timeoutMs: Math.max(1, dispatch.remainingMs), within },
      );
      return await this.#answer(called, operation.operationId, keys);
    } catch (error) {
      return ended(error);
    } finally {
      gone.end();
      grace.end();
    }
  }

  async #answer(called: Called, operationId: string, keys: { agentId: string; workerId: string }): Promise<DispatchEnd> {
    const { large, asks, ...result } = called;
    // Only one that has done nothing may still be told no.
    if (asks !== undefined) return asks.nothingDone ? { kind: 'asked', reason: asks.reason } : askedTooLate(asks.reason);
    if (large === undefined) return { kind: 'answered', result };
    return answeredInPages(
      large,
      (offset) => this.bus.call(worker.resultPage, { operationId, offset }, { keys }),
      (value) => Whole.safeParse(value).data,
    );
  }
}

/** The workspace that a pool stands for; the shared pool has none. */
export function workspaceOf(pool: string): string | null {
  return pool === 'shared' ? null : pool;
}

function ended(error: unknown): DispatchEnd {
  if (!(error instanceof Fault)) return stopped('indeterminate', 'INDETERMINATE');
  if (error.code === 'CANCELLED') return stopped('cancelled', 'CANCELLED');
  if (error.code === 'UNAVAILABLE')
    return stopped('failed', 'TOOL_GONE', { message: 'The worker that brings this tool is gone; nothing was done' });
  if (CERTAIN.has(error.code)) return stopped('failed', error.code, { data: error.data, message: error.message });
  return stopped('indeterminate', 'INDETERMINATE');
}
