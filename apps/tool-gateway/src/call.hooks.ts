import { Bus } from '@ambit/bus';
import { toolGateway, type Claim } from '@ambit/contracts';
import { CONFIG, LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import type { ToolGatewayConfig } from './config.js';

/** Tells of calls before their dispatch, for hooks: once for each claim, and so for each real attempt. Nobody waits for who listens. */
@Injectable()
export class CallHooks {
  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(CONFIG) private readonly config: ToolGatewayConfig,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  started({ runId, sessionId, agentId, operationId, callId, tool, rule, at }: Claim): void {
    if (this.config.AMBIT_CALL_HOOKS !== '1') return;
    const payload = { runId, sessionId, agentId, operationId, callId, tool, rule, at };
    try {
      this.bus.hint(toolGateway.callStarted, payload, { keys: { runId }, id: `${operationId}.started` });
    } catch (error) {
      // The call is claimed: it is executed, whoever could be told of it.
      this.log.warn({ error, operationId }, 'a hook could not be told of a call');
    }
  }
}
