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
/** How long the next question of a call is waited for, and how many are asked at once. */
const GATHER_MS = 250;
const TOGETHER = 16;

/** What a client of the stateless revision carries from a question to its answer. */
const State = z.object({
  tokenId: z.uuid(),
  callId: z.string(),
  asked: z.array(z.tuple([z.string().max(200), z.uuid()])).max(100),
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

  /** Takes the decisions that a request brings along, in the order in which they were asked for. */
  async take({ exchange, world }: Calling, { asked }: State): Promise<void> {
    const responses = exchange.params['inputResponses'];
    const { caller, signal } = exchange;
    for (const [key, id] of asked) {
      const response = isJson(responses) ? responses[key] : undefined;
      const interaction = response === undefined ? undefined : await this.decisions.get(id, caller);
      if (interaction?.status !== 'pending' || interaction.sessionId !== world.run.sessionId) continue;
      const decided = decidedBy(interaction, response);
      if (decided !== undefined) await this.decisions.decide(interaction, decided, { caller, signal });
    }
  }

  /** The call's result, waited for where a person has to decide; or the questions that the client is to answer first. */
  async settle(calling: Calling, executing: Promise<CallResult>, asks: Asks): Promise<End> {
    const { exchange } = calling;
    const ended = executing.then((result) => ({ result }));
    // Whoever leaves before its end hears nothing of it.
    ended.catch(() => undefined);
    // What was asked while nobody of this client listened.
    if (this.#resumes(calling)) await this.#pending(calling, asks);
    let forOthers: Interaction | undefined;
    let patience: Promise<'nobody'> | undefined;
    for (;;) {
      const first = await Promise.race([ended, asks.some(), ...(patience === undefined ? [] : [patience])]);
      if (first === 'nobody') throw notAsked(exchange, forOthers);
      if (first !== 'asked' && first.result.status !== 'waiting') return first;
      const asked = first === 'asked' ? asks.take() : await this.decisions.of(calling, exchange.caller);
      if (asked === undefined)
        throw platformFault('UNAVAILABLE', undefined, 'The decision that the call waits for is not to be found; send it again');
      if (!asked.isLive) return this.#decided(calling, asked);
      // Its server goes on once it is answered, by whomever.
      const asking = askingOf(asked, exchange);
      if (asking === undefined) {
        forOthers = asked;
        patience ??= after(this.config.AMBIT_EDGE_WAIT_MS, exchange.signal);
      } else if (exchange.era === 'legacy') await this.#ask(calling, asked, { asking, ended });
      else return { ask: this.#question(calling, await this.#together([asked], asks)) };
    }
  }

  /** What else the call asks for at the same time: a server that asks for several things does so at once. */
  async #together(asked: Interaction[], asks: Asks): Promise<Interaction[]> {
    while (asked.length < TOGETHER) {
      if ((await Promise.race([asks.some(), after(GATHER_MS, new AbortController().signal)])) === 'nobody') break;
      const next = asks.take();
      if (next !== undefined) asked.push(next);
    }
    return asked.sort((left, right) => (left.id < right.id ? -1 : 1));
  }

  #resumes({ exchange }: Calling): boolean {
    return exchange.params['requestState'] !== undefined;
  }

  async #pending(calling: Calling, asks: Asks): Promise<void> {
    for (const pending of await this.decisions.pendingOf(calling, calling.exchange.caller)) asks.add(pending);
  }

  /** A call that is executed once it is allowed. */
  async #decided(calling: Calling, asked: Interaction): Promise<End> {
    const { exchange, call } = calling;
    const { caller, signal } = exchange;
    const now = await this.decisions.get(asked.id, caller);
    if (now !== undefined && now.result !== null) return { result: now.result };
    const isPending = (now ?? asked).status === 'pending';
    const asking = isPending ? askingOf(asked, exchange) : undefined;
    if (asking !== undefined && exchange.era === 'modern' && !this.#resumes(calling)) return { ask: this.#question(calling, [asked]) };
    const isTold = asking !== undefined && exchange.era === 'legacy';
    const isDecided = !isPending || (isTold && (await this.#ask(calling, asked, { asking, ended: undefined })));
    const withinMs = isDecided ? EXECUTION_MS : this.config.AMBIT_EDGE_WAIT_MS;
    const result = await this.decisions.result(asked.id, caller, { withinMs, signal });
    return { result: result ?? undecided(call.callId, asked, now?.url ?? null) };
  }

  #question({ exchange, call }: Calling, asked: readonly Interaction[]): Json {
    const questions = asked.flatMap((one) => {
      const asking = askingOf(one, exchange);
      return asking === undefined ? [] : [{ key: one.askedBack?.key ?? one.id, id: one.id, asking }];
    });
    const state: State = {
      tokenId: exchange.caller.token.id,
      callId: call.callId,
      asked: questions.map(({ key, id }): [string, string] => [key, id]),
      until: Date.now() + STATE_MS,
    };
    const inputRequests = Object.fromEntries(questions.map(({ key, asking }) => [key, asking]));
    return { resultType: 'input_required', inputRequests, requestState: this.seal.close(USE, state) };
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

/** Settles with `nobody` when the time is up; sooner where the request has ended. */
function after(ms: number, signal: AbortSignal): Promise<'nobody'> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve('nobody');
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end, { once: true });
  });
}

/** A server asks for what this client cannot give, and nobody else has given it. */
function notAsked({ era }: Pick<Exchange, 'era'>, asked: Interaction | undefined): RpcError {
  const needs =
    asked?.askedBack?.kind === 'sampling'
      ? { sampling: {} }
      : { elicitation: asked?.askedBack?.kind === 'url' ? { url: {} } : { form: {} } };
  return new RpcError(
    CODE.missingCapability,
    `A server asks for ${Object.keys(needs).join('')} within the call (interaction ${asked?.id ?? 'unknown'}), which this client did not declare and nobody else has answered`,
    { data: { requiredCapabilities: needs }, ...(era === 'modern' ? { status: 400 } : {}) },
  );
}

/** A call that nobody has decided about says so, and where that is done. */
function undecided(callId: string, { id }: Interaction, url: string | null): CallResult {
  const where = url === null ? `ambit approve ${id}` : url;
  const message = `Nobody has decided about this call yet (interaction ${id}; ${where}). It runs once it is allowed; send it again with the same _meta["${META_KEY.idempotencyKey}"] for its result`;
  return { callId, status: 'refused', fault: { code: 'DECISION_PENDING', message, data: { interactionId: id, url } } };
}
