import { InteractionKind, platformFault, type CallResult, type Interaction } from '@ambit/contracts';
import { CONFIG } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';
import type { Calling } from './call.service.js';
import type { EdgeConfig } from './config.js';
import { Decisions, type Asks } from './decision.service.js';
import { decidedBy, formOf } from './domain/ask-client.js';
import { CODE, isJson, RpcError, type Json } from './domain/json-rpc.js';
import { META_KEY } from './domain/protocol.js';
import type { Exchange } from './exchange.js';
import { Inflight } from './inflight.js';
import { Seal } from './seal.js';

/** After a decision its call runs; longer than any call may. */
const EXECUTION_MS = 30 * 60_000;
/** How long a client may carry the state of a question around. */
const STATE_MS = 60 * 60_000;
const USE = 'request-state';

/** What a client of the stateless revision carries from a question to its answer. */
const State = z.object({
  tokenId: z.uuid(),
  callId: z.string(),
  interactionId: z.uuid(),
  sessionId: z.uuid(),
  kind: InteractionKind,
  until: z.number(),
});
type State = z.output<typeof State>;

type End = { readonly result: CallResult } | { readonly ask: Json };

/** Calls that a person has to decide about: the client's person where it can ask one, anybody who may where it cannot. */
@Injectable()
export class Approvals {
  constructor(
    private readonly decisions: Decisions,
    private readonly inflight: Inflight,
    private readonly seal: Seal,
    @Inject(CONFIG) private readonly config: EdgeConfig,
  ) {}

  /** What a request says of a question that was asked in answer to the one before it. Throws where it is not what we gave out. */
  resumed({ params, caller }: Exchange): State | undefined {
    const { requestState } = params;
    if (requestState === undefined) return undefined;
    const state = typeof requestState === 'string' ? State.safeParse(this.seal.open(USE, requestState)) : undefined;
    if (state?.success !== true || state.data.tokenId !== caller.token.id || state.data.until < Date.now())
      throw new RpcError(
        CODE.invalidParams,
        'params.requestState is not one that was given out here for this token, or it is too old; make the call anew',
      );
    return state.data;
  }

  /** Takes the decision that a request brings along. */
  async take({ exchange }: Calling, { interactionId, sessionId, kind }: State): Promise<void> {
    const responses = exchange.params['inputResponses'];
    const response = isJson(responses) ? responses[interactionId] : undefined;
    const decided = decidedBy({ kind }, response);
    const { caller, signal } = exchange;
    if (decided !== undefined) await this.decisions.decide({ id: interactionId, sessionId }, decided, { caller, signal });
  }

  /** The call's result, waited for where a person has to decide; or the question that the client is to answer first. */
  async settle(calling: Calling, executing: Promise<CallResult>, asks: Asks): Promise<End> {
    // Whoever leaves before its end hears nothing of it.
    executing.catch(() => undefined);
    const ended = executing.then((result) => ({ result }));
    // What was asked while nobody of this client listened.
    if (this.#resumes(calling)) await this.#pending(calling, asks);
    for (;;) {
      const first = await Promise.race([ended, asks.next().then((interaction) => ({ interaction }))]);
      if ('result' in first && first.result.status !== 'waiting') return first;
      const asked = 'interaction' in first ? first.interaction : await this.decisions.of(calling, calling.exchange.caller);
      if (asked === undefined)
        throw platformFault('UNAVAILABLE', undefined, 'The decision that the call waits for is not to be found; send it again');
      const { exchange } = calling;
      const isModern = exchange.era === 'modern';
      if (!asked.isLive) return this.#decided(calling, asked);
      if (!exchange.canAsk) continue;
      if (isModern) return { ask: this.#question(calling, asked) };
      // Whoever asked goes on once it is answered.
      await this.#ask(calling, asked);
    }
  }

  #resumes({ exchange }: Calling): boolean {
    return exchange.params['requestState'] !== undefined;
  }

  async #pending(calling: Calling, asks: Asks): Promise<void> {
    const pending = await this.decisions.of(calling, calling.exchange.caller);
    if (pending?.status === 'pending') asks.add(pending);
  }

  /** A call that is executed once it is allowed. */
  async #decided(calling: Calling, asked: Interaction): Promise<End> {
    const { exchange, call } = calling;
    const { caller, signal } = exchange;
    const now = await this.decisions.get(asked.id, caller);
    if (now !== undefined && now.result !== null) return { result: now.result };
    const isPending = (now ?? asked).status === 'pending';
    if (isPending && exchange.canAsk && exchange.era === 'modern' && !this.#resumes(calling))
      return { ask: this.#question(calling, asked) };
    const isDecided = !isPending || (exchange.canAsk && exchange.era === 'legacy' && (await this.#ask(calling, asked)));
    const withinMs = isDecided ? EXECUTION_MS : this.config.AMBIT_EDGE_WAIT_MS;
    const result = await this.decisions.result(asked.id, caller, { withinMs, signal });
    return { result: result ?? undecided(call.callId, asked, now?.url ?? null) };
  }

  #question({ exchange, call }: Calling, { id, sessionId, kind, ...interaction }: Interaction): Json {
    const state: State = {
      tokenId: exchange.caller.token.id,
      callId: call.callId,
      interactionId: id,
      sessionId,
      kind,
      until: Date.now() + STATE_MS,
    };
    return {
      resultType: 'input_required',
      inputRequests: { [id]: { method: 'elicitation/create', params: formOf({ ...interaction, id, sessionId, kind }) } },
      requestState: this.seal.close(USE, state),
    };
  }

  /** Asks the client on the stream of its request. False where nobody decided. */
  async #ask({ exchange }: Calling, interaction: Interaction): Promise<boolean> {
    const { clientId, caller, signal } = exchange;
    if (clientId === null) return false;
    const stop = new AbortController();
    const ended = AbortSignal.any([signal, stop.signal]);
    const answer = this.inflight.answer(clientId, interaction.id, ended);
    answer.catch(() => undefined);
    try {
      if (!exchange.tell({ jsonrpc: '2.0', id: interaction.id, method: 'elicitation/create', params: formOf(interaction) })) return false;
      // Somebody else may decide meanwhile, or its time may be up.
      const elsewhere = this.decisions.result(interaction.id, caller, { withinMs: EXECUTION_MS, signal: ended }).then(() => undefined);
      elsewhere.catch(() => undefined);
      const first = await Promise.race([answer, elsewhere]);
      if (first === undefined) return true;
      const decided = decidedBy(interaction, first.result);
      return decided !== undefined && (await this.decisions.decide(interaction, decided, { caller, signal: ended }));
    } finally {
      stop.abort();
    }
  }
}

/** A call that nobody has decided about says so, and where that is done. */
function undecided(callId: string, { id }: Interaction, url: string | null): CallResult {
  const where = url === null ? `ambit approve ${id}` : url;
  const message = `Nobody has decided about this call yet (interaction ${id}; ${where}). It runs once it is allowed; send it again with the same _meta["${META_KEY.idempotencyKey}"] for its result`;
  return { callId, status: 'refused', fault: { code: 'DECISION_PENDING', message, data: { interactionId: id, url } } };
}
