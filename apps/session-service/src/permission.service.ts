import { argumentsHash } from '@ambit/capability';
import type { Call } from '@ambit/bus';
import { fault, sessionService, type Output, type Parsed } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { createHash } from 'node:crypto';
import { AuthorityService } from './authority.service.js';
import { doerOf } from './doer.js';
import { InteractionService } from './interaction.service.js';
import { interactions } from './interaction.repository.js';
import { Transactions } from './transactions.repository.js';
import { guarded } from './worker-guard.js';

type Ask = Parsed<typeof sessionService.askPermission>;
type Answer = Output<typeof sessionService.askPermission>;

/** Puts to a person what a worker's agent is about to do with a tool of its own. */
@Injectable()
export class PermissionService {
  constructor(
    private readonly transactions: Transactions,
    private readonly interactions: InteractionService,
    private readonly authorities: AuthorityService,
  ) {}

  /** How the question stands, asked now or before. In full access it is allowed, and stands in the audit. */
  async ask(input: Ask, call: Call<typeof sessionService.askPermission>): Promise<Answer> {
    const { run } = await guarded(this.transactions.read, {
      contract: sessionService.askPermission,
      agentId: call.keys.agentId,
      ref: input,
    });
    const operationId = createHash('sha256').update(`permission\0${run.originRunId}\0${input.key}`).digest('hex');
    if (input.withdrawn) await this.interactions.withdraw({ operationId });
    const [known] = await interactions.byOperations(this.transactions.read, [operationId]);
    if (known !== undefined) return { interactionId: known.id, status: known.status };
    if (input.withdrawn) return { interactionId: null, status: 'cancelled' };
    const tool = `acp__${input.action}`;
    // As for calls: a subagent is never freer than whoever delegated to it, and a kill switch holds now.
    const { mode, enabled, ancestors } = await this.authorities.of(run.id);
    if (!enabled || ancestors.some((ancestor) => !ancestor.enabled)) throw fault(sessionService.askPermission, 'AGENT_DISABLED');
    if (mode === 'full_access') {
      await this.transactions.run((unit) => {
        unit.audit(
          { action: 'permission.allowed', target: `run:${run.id}`, projectId: run.projectId, reason: `${tool} in full access` },
          { ...doerOf(call), principal: run.principal },
        );
        return Promise.resolve();
      });
      return { interactionId: null, status: 'allowed' };
    }
    const what = { title: input.title, preview: input.preview };
    const asked = await this.interactions.request({
      runId: run.id,
      step: 0,
      requests: [
        {
          kind: 'permission',
          callId: input.key,
          operationId,
          tool,
          argumentsPreview: input.preview === '' ? input.title : `${input.title}\n${input.preview}`,
          argumentsHash: argumentsHash(what),
          question: null,
          rule: null,
          approvers: [],
          notRequester: false,
          order: 0,
          expiresMs: input.expiresMs,
          target: null,
          isLive: true,
        },
      ],
    });
    const [made] = asked.interactions;
    if (made === undefined) throw new Error('a question was asked and is not there');
    return { interactionId: made.interactionId, status: made.status };
  }
}
