import { previewArguments, ruleBasedReviewer } from '@ambit/capability';
import { Bus } from '@ambit/bus';
import { reviewer, sessionService, type Review, type ReviewRequest, type TapeEntry } from '@ambit/contracts';
import { CONFIG, LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import type { BatchStart } from './batch.runner.js';
import { CallGates, type Reviewable } from './call.gates.js';
import type { CallRequest } from './call.runner.js';
import type { ToolGatewayConfig } from './config.js';

const MESSAGES = 8;
const MESSAGE_CHARACTERS = 2_000;
const AT_ONCE = 8;

interface Asked {
  readonly request: CallRequest;
  readonly about: Reviewable;
}

/** Asks a program of the deployment's own about calls that the mode auto_approve would let pass. It proposes; what is done with that the gates decide. */
@Injectable()
export class Reviews {
  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(CallGates) private readonly gates: CallGates,
    @Inject(CONFIG) private readonly config: ToolGatewayConfig,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  /** The same requests, with what was proposed of those that need it. */
  async of(start: BatchStart, requests: readonly CallRequest[]): Promise<readonly CallRequest[]> {
    if (this.config.AMBIT_REVIEWER !== 'bus') return requests;
    const asked = requests.flatMap((request): Asked[] => {
      const { caller, operation, preparation } = request;
      const { held, snapshot } = start;
      const about = this.gates.reviewable({ caller, operation, held, snapshot, isAborted: false, prepared: preparation?.facts });
      return about === undefined ? [] : [{ request, about }];
    });
    if (asked.length === 0) return requests;
    const messages = await this.#messages(start);
    const reviews = new Map<CallRequest, Review | null>();
    for (let index = 0; index < asked.length; index += AT_ONCE)
      await Promise.all(
        asked.slice(index, index + AT_ONCE).map(async (one) => reviews.set(one.request, await this.#review(start, one, messages))),
      );
    return requests.map((request) => (reviews.has(request) ? { ...request, review: reviews.get(request) } : request));
  }

  /** Null where no proposal came: a person is asked then, whatever the reason. */
  async #review({ held, snapshot }: BatchStart, { request, about }: Asked, messages: ReviewRequest['messages']): Promise<Review | null> {
    const { operation } = request;
    const target = snapshot.tools.get(operation.call.name)?.target;
    const timeoutMs = Math.max(1, Math.min(reviewer.reviewCall.timeoutMs, held.endsAt - performance.now()));
    try {
      return await this.bus.call(
        reviewer.reviewCall,
        {
          actionHash: about.action,
          agentId: operation.agentId,
          sessionId: operation.sessionId,
          runId: operation.runId,
          callId: operation.call.callId,
          principal: held.authority.principal,
          tool: operation.call.name,
          access: about.facts.access,
          effect: about.facts.effect,
          serverId: target?.kind === 'mcp' ? target.serverId : null,
          argumentsPreview: previewArguments(about.facts.arguments).text,
          ruleRisk: ruleBasedReviewer(about.facts),
          messages,
        },
        { timeoutMs },
      );
    } catch (error) {
      this.log.warn({ error, operationId: operation.operationId }, 'no reviewer rated this call; a person is asked');
      return null;
    }
  }

  async #messages({ held }: BatchStart): Promise<ReviewRequest['messages']> {
    try {
      const { items } = await this.bus.call(sessionService.listTape, {
        sessionId: held.authority.sessionId,
        newest: true,
        limit: MESSAGES,
      });
      return items.map((entry) => ({ role: entry.role ?? entry.kind, text: textOf(entry) }));
    } catch (error) {
      this.log.warn({ error, runId: held.authority.runId }, 'a reviewer is asked without the conversation');
      return [];
    }
  }
}

const textOf = ({ content }: TapeEntry): string => (JSON.stringify(content) ?? '').slice(0, MESSAGE_CHARACTERS);
