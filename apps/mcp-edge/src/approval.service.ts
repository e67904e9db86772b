import { platformFault, type CallResult, type Interaction } from '@ambit/contracts';
import { CONFIG } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';
import type { Calling } from './call.service.js';
import type { EdgeConfig } from './config.js';
import { Decisions, type Asks } from './decision.service.js';
import { askingOf, decidedBy, type Asking } from './domain/ask-client.js';
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
const State = z.object({ tokenId: z.uuid(), callId: z.string(), interactionId: z.uuid(), until: z.number() });
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
  async take({ exchange, world }: Calling, { interactionId }: State): Promise<void> {
    const responses = exchange.params['inputResponses'];
    const response = isJson(responses) ? responses[interactionId] : undefined;
    const { caller, signal } = exchange;
    const interaction = await this.decisions.get(interactionId, caller);
    if (interaction?.status !== 'pending' || interaction.sessionId !== world.run.sessionId) return;
    const decided = decidedBy(interaction, response);
    if (decided !== undefined) await this.decisions.decide(interaction, decided, { caller, signal });
  }

  /** The call's result, waited for where a person has to decide; or the question that the client is to answer first. */
  async settle(calling: Calling, executing: Promise<CallResult>, asks: Asks): Promise<End> {
    const { exchange } = calling;
    const ended = executing.then((result) => ({ result }));
    // Whoever leaves before its end hears nothing of it.
    ended.catch(() => undefined);
    // What was asked while nobody of this client listened.
    if (this.#resumes(calling)) await this.#pending(calling, asks);
    for (;;) {
      const first = await Promise.race([ended, asks.next().then((interaction) => ({ interaction }))]);
      if ('result' in first && first.result.status !== 'waiting') return first;
      const asked = 'interaction' in first ? first.interaction : await this.decisions.of(calling, exchange.caller);
      if (asked === undefined)
        throw platformFault('UNAVAILABLE', undefined, 'The decision that the call waits for is not to be found; send it again');
      if (!asked.isLive) return this.#decided(calling, asked);
      // Its server goes on once it is answered, by whomever.
      const asking = askingOf(asked, exchange);
      if (asking === undefined) continue;
      if (exchange.era === 'modern') return { ask: this.#question(calling, asked, asking) };
      await this.#ask(calling, asked, { asking, ended });
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
    const asking = isPending ? askingOf(asked, exchange) : undefined;
    if (asking !== undefined && exchange.era === 'modern' && !this.#resumes(calling))
      return { ask: this.#question(calling, asked, asking) };
    const isTold = asking !== undefined && exchange.era === 'legacy';
    const isDecided = !isPending || (isTold && (await this.#ask(calling, asked, { asking, ended: undefined })));
    const withinMs = isDecided ? EXECUTION_MS : this.config.AMBIT_EDGE_WAIT_MS;
    const result = await this.decisions.result(asked.id, caller, { withinMs, signal });
    return { result: result ?? undecided(call.callId, asked, now?.url ?? null) };
  }

  #question({ exchange, call }: Calling, { id }: Interaction, asking: Asking): Json {
    const state: State = { tokenId: exchange.caller.token.id, callId: call.callId, interactionId: id, until: Date.now() + STATE_MS };
    return { resultType: 'input_required', inputRequests: { [id]: asking }, requestState: this.seal.close(USE, state) };
  }

  /** Asks the client on the stream of its request, until it answers, somebody else decides, or the call has ended. False where nobody decided. */
  async #ask(
    { exchange }: Calling,
    interaction: Interaction,
    { asking, ended }: { readonly asking: Asking; readonly ended: Promise<unknown> | undefined },
  ): Promise<boolean> {
    const { clientId, caller, signal } = exchange;
    if (clientId === null) return false;
    const stop = new AbortController();
    const over = AbortSignal.any([signal, stop.signal]);
    const answer = this.inflight.answer(clientId, interaction.id, over);
    const elsewhere = this.decisions.decided(interaction.id, caller, over);
    answer.catch(() => undefined);
    elsewhere.catch(() => undefined);
    try {
      if (!exchange.tell({ jsonrpc: '2.0', id: interaction.id, ...asking })) return false;
      const first = await Promise.race([answer, elsewhere, ...(ended === undefined ? [] : [ended.then(() => undefined)])]);
      if (first === undefined) return true;
      const decided = decidedBy(interaction, first.result);
      return decided !== undefined && (await this.decisions.decide(interaction, decided, { caller, signal: over }));
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
