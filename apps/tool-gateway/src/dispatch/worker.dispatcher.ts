import { Bus } from '@ambit/bus';
import { Fault, worker } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import { stopped, type DispatchEnd } from '../domain/call-end.js';
import { afterGrace, type Dispatch, type Dispatcher } from './dispatch.js';

const CERTAIN: ReadonlySet<string> = new Set(['BAD_ARGUMENTS', 'TOOL_GONE', 'TARGET_CHANGED', 'TOOL_FAILED', 'TOO_LARGE', 'INVALID_INPUT']);

/** Sends calls of workers' tools to one worker process, with the target it prepared. */
@Injectable()
export class WorkerDispatcher implements Dispatcher {
  constructor(@Inject(Bus) private readonly bus: Bus) {}

  async dispatch({
    operation,
    tool,
    arguments: input,
    authority,
    signal,
    remainingMs,
    prepared,
    workerId,
  }: Dispatch): Promise<DispatchEnd> {
    const { target } = tool;
    if (target.kind !== 'worker' || workerId === null) return stopped('failed', 'TOOL_GONE');
    const keys = { agentId: target.agentId, workerId };
    const grace = afterGrace(signal, () =>
      this.bus.signal(worker.cancelCall, { operationId: operation.operationId, reason: 'the call was cancelled' }, { keys }),
    );
    try {
      const result = await this.bus.call(
        worker.callTool,
        {
          operationId: operation.operationId,
          sessionId: authority.sessionId,
          runId: authority.runId,
          workspaceId: workspaceOf(authority.pool),
          toolsetDigest: target.toolsetDigest,
          tool: target.tool,
          arguments: { ...input },
          ...(prepared === undefined ? {} : { prepared }),
        },
        {
          keys,
          timeoutMs: Math.max(1, remainingMs),
          within: {
            traceparent: operation.traceparent,
            principal: authority.principal,
            actor: undefined,
            via: undefined,
            signal: grace.signal,
          },
        },
      );
      return { kind: 'answered', result };
    } catch (error) {
      return ended(error);
    } finally {
      grace.end();
    }
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
