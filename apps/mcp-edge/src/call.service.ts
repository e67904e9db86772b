import { randomUUID } from 'node:crypto';
import { Bus } from '@ambit/bus';
import { operationId } from '@ambit/capability';
import { Fault, toolGateway, type CallResult, type IntendedCall } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { Approvals } from './approval.service.js';
import { Artifacts } from './artifacts.js';
import { callIdOf } from './call-id.js';
import { Decisions } from './decision.service.js';
import { CODE, isJson, RpcError, type Json } from './domain/json-rpc.js';
import { META_KEY } from './domain/protocol.js';
import { isExcerpt, toolResult } from './domain/tool-result.js';
import { metaOf, type Exchange } from './exchange.js';
import { ClientCancelled, Inflight, type CallListener } from './inflight.js';
import { Worlds, type World } from './worlds.service.js';

/** This process, as those who report progress to it know it. */
const EDGE_ID = randomUUID();
/** A run that stores no steps has one, with this number. */
const STEP = 0;
const ARGUMENTS_CHARACTERS = 256 * 1024;
const CALL_MS = 30 * 60_000;
/** Whoever works on a call may die: after so long another is asked, and attaches to it. */
const ASKED_AGAIN_MS = 20_000;
const CANCEL_TRIES = 5;
/** The run has another snapshot by now, or has ended: nothing was done. */
const MOVED: ReadonlySet<string> = new Set(['TOOL_NOT_IN_SNAPSHOT', 'TURN_ENDED', 'STALE_INSTANCE']);

/** A call on its way: under which id, in which world. */
export interface Calling {
  readonly exchange: Exchange;
  readonly world: World;
  readonly call: IntendedCall;
  readonly operationId: string;
}

/** Calls of tools: one rpc to the gateway each, and what has to be told, asked and cancelled around it. */
@Injectable()
export class Calls {
  constructor(
    private readonly bus: Bus,
    private readonly worlds: Worlds,
    private readonly inflight: Inflight,
    private readonly decisions: Decisions,
    private readonly approvals: Approvals,
    private readonly artifacts: Artifacts,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  async call(exchange: Exchange): Promise<Json> {
    const { params } = exchange;
    const { name } = params;
    if (typeof name !== 'string') throw new RpcError(CODE.invalidParams, 'tools/call names its tool in params.name');
    const text = argumentsIn(params['arguments']);
    const resumed = this.approvals.resumed(exchange);
    const callId = resumed?.callId ?? callIdOf(exchange);
    for (let tries = 0; ; tries++) {
      const world = await this.worlds.of(exchange.caller, exchange.naming);
      const shown = world.byName.get(name);
      if (shown === undefined) throw new RpcError(CODE.invalidParams, `Unknown tool: ${name.slice(0, 200)}`);
      const call = { callId, name: shown.tool.name, arguments: text };
      const calling = { exchange, world, call, operationId: operationId(world.run.originRunId, STEP, callId) };
      try {
        if (resumed !== undefined) await this.approvals.take(calling, resumed);
        return await this.#call(calling);
      } catch (error) {
        if (!(error instanceof Fault) || !MOVED.has(error.code) || tries > 0) throw error;
        this.worlds.forget(exchange.caller);
      }
    }
  }

  async #call(calling: Calling): Promise<Json> {
    const { exchange, operationId: id } = calling;
    const quiet = this.inflight.call(id, teller(exchange));
    const asks = this.decisions.asksOf(calling);
    try {
      const executing = this.#execute(calling);
      const end = await this.approvals.settle(calling, executing, asks);
      return 'result' in end ? toolResult(await this.#whole(calling, end.result)) : end.ask;
    } catch (error) {
      // Its client is gone, or cannot give what the call needs.
      if (exchange.signal.aborted || error instanceof RpcError) void this.#cancel(calling);
      throw error;
    } finally {
      quiet();
      asks.end();
    }
  }

  /** Sends the call, and again where it takes longer than one request may: the same id attaches to it. */
  async #execute({ exchange, world, call }: Calling): Promise<CallResult> {
    const { signal, caller } = exchange;
    const { runId, originRunId, sessionId, agentId, fingerprint } = world.run;
    const input = { runId, originRunId, sessionId, agentId, fingerprint, call, progressTo: EDGE_ID };
    const until = performance.now() + CALL_MS;
    for (;;) {
      const timeoutMs = Math.max(1_000, until - performance.now());
      const { result } = await this.bus.call(toolGateway.executeCall, input, {
        ...caller.identity,
        signal,
        timeoutMs,
        eachMs: ASKED_AGAIN_MS,
      });
      if (result.status !== 'running' || performance.now() >= until) return result;
    }
  }

  async #whole({ exchange, world }: Calling, result: CallResult): Promise<CallResult> {
    if (!isExcerpt(result) || result.artifact === undefined) return result;
    return { ...result, ...(await this.artifacts.read(world.run.sessionId, result.artifact, exchange.caller)) };
  }

  /** Nobody waits any more: the call is stopped. One that is not begun yet is not known yet, and is looked for again. */
  async #cancel({ exchange, operationId: id }: Calling): Promise<void> {
    const { reason }: { reason: unknown } = exchange.signal;
    const words = reason instanceof ClientCancelled ? reason.message : 'the client went away';
    try {
      for (let tries = 0; tries < CANCEL_TRIES; tries++) {
        const { state } = await this.bus.call(
          toolGateway.cancelCall,
          { operationId: id, reason: words.slice(0, 200) },
          exchange.caller.identity,
        );
        if (state !== 'unknown') return;
      }
    } catch (error) {
      this.log.warn({ error, operationId: id }, 'a call that its client cancelled could not be stopped; it ends by its own time');
    }
  }
}

/** Tells the client how far its call is, where it asked for that, and what the server logs. */
function teller(exchange: Exchange): CallListener {
  const { progressToken } = metaOf(exchange);
  const isWatched = typeof progressToken === 'string' || typeof progressToken === 'number';
  return {
    progressed: (progress) => {
      if (isWatched) exchange.tell({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, ...progress } });
    },
    logged: (log) => {
      if (wantsLog(exchange, log.level)) exchange.tell({ jsonrpc: '2.0', method: 'notifications/message', params: { ...log } });
    },
  };
}

/** From the least to the most severe. */
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];

/** In the stateless revision a client says with each request from which level on it wants to hear; one that says nothing hears nothing. */
function wantsLog(exchange: Exchange, level: string): boolean {
  if (exchange.era === 'legacy') return true;
  const wanted = metaOf(exchange)[META_KEY.logLevel];
  return typeof wanted === 'string' && LEVELS.includes(wanted) && LEVELS.indexOf(level) >= LEVELS.indexOf(wanted);
}

/** The arguments as JSON text. */
function argumentsIn(value: unknown): string {
  if (value !== undefined && !isJson(value)) throw new RpcError(CODE.invalidParams, 'params.arguments is an object');
  const text = JSON.stringify(value ?? {});
  if (text.length > ARGUMENTS_CHARACTERS)
    throw new RpcError(CODE.invalidParams, `The arguments have ${text.length} characters; at most ${ARGUMENTS_CHARACTERS} are taken`);
  return text;
}
