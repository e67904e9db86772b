import { Bus, Responder, type Call, type Listening } from '@ambit/bus';
import { argumentsHash, askedBackId, askedBackOf, maySample, previewArguments, rootsFor } from '@ambit/capability';
import {
  Fault,
  fault,
  sessionService,
  toolGateway,
  type Authority,
  type Interaction,
  type JsonObject,
  type Parsed,
  type Returns,
} from '@ambit/contracts';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { AuthorityCache } from './authority.cache.js';
import { workspaceOf } from './dispatch/worker.dispatcher.js';
import { GatewayLease } from './gateway.lease.js';
import { InteractionWaits } from './interaction.waits.js';
import { OpenCalls, type OpenCall } from './open-calls.js';
import { SnapshotCache } from './snapshot.cache.js';

type AskBack = typeof toolGateway.askBack;

/** A person's answer is worth nothing after its call: what is left of the call's time is what there is. */
const SHORTEST_MS = 1_000;

/** Answers what servers ask for within the calls that this gateway dispatched: by the policy, or by having a person asked. */
@Injectable()
export class AskBackService implements OnApplicationBootstrap, OnApplicationShutdown {
  #listening: Listening | undefined;

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(Responder) private readonly responder: Responder,
    @Inject(GatewayLease) private readonly lease: GatewayLease,
    @Inject(OpenCalls) private readonly calls: OpenCalls,
    @Inject(AuthorityCache) private readonly authorities: AuthorityCache,
    @Inject(SnapshotCache) private readonly snapshots: SnapshotCache,
    @Inject(InteractionWaits) private readonly waits: InteractionWaits,
  ) {}

  onApplicationBootstrap(): void {
    this.#listening = this.responder.answer(toolGateway.askBack, (input, call) => this.answer(input, call), {
      keys: { gatewayId: this.lease.id },
    });
  }
  async onApplicationShutdown(): Promise<void> {
    await this.#listening?.close();
  }

  async answer(input: Parsed<AskBack>, call: Call<AskBack>): Promise<Returns<AskBack>> {
    const open = this.calls.find(input.operationId);
    const target = open?.claim.target;
    if (open === undefined || open.signal.aborted || target?.kind !== 'mcp' || target.serverId !== input.serverId)
      throw fault(toolGateway.askBack, 'NO_CALL');
    const { runId } = open.claim;
    const held = this.authorities.held(runId) ?? (await this.authorities.fetch(runId));
    if (held === undefined) throw fault(toolGateway.askBack, 'NO_CALL');
    const { authority } = held;
    const policies = [authority.policy, ...authority.ancestors.map(({ policy }) => policy)];
    if (input.kind === 'roots') return { result: { roots: rootsFor(policies, workspaceOf(authority.pool)) } };
    if (input.kind === 'sampling' && !maySample(policies))
      throw refused('the agent’s policy lets no server ask for completions: serverRequests.sampling is not ask');
    return { result: await this.#ask(input, { open, authority, call }) };
  }

  async #ask(
    { operationId, number, kind, key, params }: Parsed<AskBack>,
    { open, authority, call }: { readonly open: OpenCall; readonly authority: Authority; readonly call: Call<AskBack> },
  ): Promise<JsonObject> {
    const { claim } = open;
    const asked = askedBackOf(kind === 'sampling' ? kind : 'elicitation', params, await this.#slugOf(open));
    if (typeof asked === 'string') throw refused(asked);
    const { runId } = authority;
    const id = askedBackId(operationId, number);
    const request = {
      kind: kind === 'sampling' ? kind : ('elicitation' as const),
      callId: claim.callId,
      operationId: id,
      tool: claim.tool,
      argumentsPreview: previewArguments(params).text,
      argumentsHash: argumentsHash(params),
      question: null,
      askedBack: key === undefined ? asked : { ...asked, key },
      rule: null,
      approvers: [],
      notRequester: false,
      order: 0,
      expiresMs: Math.max(SHORTEST_MS, Math.floor(call.remainingMs())),
      target: null,
      isLive: true,
    };
    const { interactions } = await this.bus
      .call(sessionService.requestInteractions, { runId, step: claim.step, requests: [request] })
      .catch((error: unknown) => {
        throw error instanceof Fault && error.code === 'APPROVAL_CAPACITY' ? refused(error.message) : error;
      });
    const [interaction] = interactions;
    if (interaction === undefined) throw fault(toolGateway.askBack, 'NO_CALL');
    try {
      return resultOf(await this.waits.decided(interaction.interactionId, AbortSignal.any([open.signal, call.signal])));
    } catch (error) {
      // The call ended, or whoever asked waits no more: what comes now would answer nobody.
      if (!open.signal.aborted && !call.signal.aborted) throw error;
      await this.bus.call(sessionService.withdrawInteraction, { operationId: id });
      throw fault(toolGateway.askBack, 'NO_CALL');
    }
  }

  async #slugOf({ claim }: OpenCall): Promise<string> {
    const { slugs } = await this.snapshots.get(claim.agentId, claim.fingerprint);
    return (claim.target.kind === 'mcp' ? slugs.get(claim.target.serverId) : undefined) ?? 'a server';
  }
}

/** A decision as MCP has it. */
function resultOf({ kind, status, answer }: Interaction): JsonObject {
  if (kind === 'sampling') {
    if (status !== 'answered') throw refused(status === 'denied' ? 'a person refused it' : 'nobody answered in time');
    return answer?.content ?? {};
  }
  switch (status) {
    case 'answered':
      return { action: 'accept', content: answer?.content ?? {} };
    case 'allowed':
      return { action: 'accept' };
    case 'denied':
      return { action: 'decline' };
    default:
      return { action: 'cancel' };
  }
}

function refused(reason: string): Fault {
  return fault(toolGateway.askBack, 'ASK_REFUSED', { reason: reason.slice(0, 500) });
}
