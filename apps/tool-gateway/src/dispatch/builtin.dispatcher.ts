import { Fault } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { BuiltinRegistry } from '../builtins/builtin.registry.js';
import { stopped, type DispatchEnd } from '../domain/call-end.js';
import type { Dispatch, Dispatcher } from './dispatch.js';

/** Runs the gateway's own tools in this process. */
@Injectable()
export class BuiltinDispatcher implements Dispatcher {
  constructor(
    @Inject(BuiltinRegistry) private readonly builtins: BuiltinRegistry,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  async dispatch(dispatch: Dispatch): Promise<DispatchEnd> {
    const { operation, tool, arguments: input, authority, snapshot, signal } = dispatch;
    const builtin = tool.target.kind === 'builtin' ? this.builtins.find(tool.target.id) : undefined;
    if (builtin?.kind === 'command') return builtin.by.dispatch(dispatch);
    if (builtin?.kind !== 'model') return stopped('failed', 'NOT_MODEL_CALLABLE');
    try {
      return {
        kind: 'answered',
        result: await builtin.handler(input, {
          operationId: operation.operationId,
          sessionId: authority.sessionId,
          authority,
          snapshot: snapshot.record,
          signal,
        }),
      };
    } catch (error) {
      if (signal.aborted) return stopped('cancelled', 'CANCELLED');
      if (error instanceof Fault) return stopped('failed', error.code, { data: error.data, message: error.message });
      this.log.error({ error, tool: tool.name, runId: authority.runId }, 'a built-in tool failed');
      return stopped('failed', 'TOOL_FAILED', { data: { reason: 'the tool failed inside the platform' } });
    }
  }
}
