import { randomBytes } from 'node:crypto';
import { Bus } from '@ambit/bus';
import { mcpEdge } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { abilitiesOf, CLIENT_SESSION_MS, ClientSession } from './domain/client-session.js';
import { failureOf } from './domain/failure.js';
import { CODE, errorMessage, isJson, RpcError, type Json, type Message } from './domain/json-rpc.js';
import { LEGACY } from './domain/protocol.js';
import type { Exchange } from './exchange.js';
import type { Arrival } from './http/arrival.js';
import { Reply } from './http/reply.js';
import { ClientCancelled, Inflight } from './inflight.js';
import { Methods } from './methods.service.js';
import { capabilities, SERVER_INFO } from './offer.js';
import { Seal } from './seal.js';
import { Streams } from './streams.service.js';
import { Tombstones } from './tombstones.js';
import { Worlds } from './worlds.service.js';

const USE = 'client-session';
/** Of a request whose answer is no stream: there is no way to ask on. */
const NOTHING = { form: false, url: false, sampling: false };
const CLIENT_BYTES = 16;

type Request = Extract<Message, { readonly kind: 'request' }>;

/** Clients of the revisions that begin with `initialize`: what a session is stands in its id, so that any replica serves any request of it. */
@Injectable()
export class LegacyClients {
  constructor(
    private readonly bus: Bus,
    private readonly methods: Methods,
    private readonly inflight: Inflight,
    private readonly streams: Streams,
    private readonly worlds: Worlds,
    private readonly tombstones: Tombstones,
    private readonly seal: Seal,
  ) {}

  async post(arrival: Arrival, message: Message, traceId: string): Promise<void> {
    if (message.kind === 'request' && message.method === 'initialize') return this.#initialize(arrival, message);
    const session = await this.#session(arrival);
    switch (message.kind) {
      case 'request':
        return this.#request(arrival, message, { session, traceId });
      case 'notification':
        this.#noted(session, message);
        break;
      case 'answer': {
        const { id: requestId, result, error } = message;
        const { clientId } = session;
        const answer = {
          clientId,
          requestId,
          ...(result === undefined ? {} : { result }),
          ...(error === undefined ? {} : { error: brief(error) }),
        };
        this.bus.signal(mcpEdge.clientAnswered, answer, { keys: { clientId } });
      }
    }
    new Reply(arrival.response, false).end(undefined, 202);
  }

  /** The stream on which a client hears what belongs to no request. */
  async get(arrival: Arrival): Promise<void> {
    if (arrival.session === undefined || !arrival.takesStream) throw noStream();
    const { clientId } = await this.#session(arrival);
    const reply = new Reply(arrival.response, true);
    const lists = { tools: true, prompts: true, resources: true };
    const close = this.streams.open(
      { ...arrival, clientId, lists, uris: [] },
      {
        changed: (list) => void reply.tell({ jsonrpc: '2.0', method: `notifications/${list}/list_changed` }),
        updated: (uri, more) => void reply.tell({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { ...more, uri } }),
        close: () => reply.end(undefined),
      },
    );
    if (close === undefined)
      throw new RpcError(CODE.refused, 'Too many streams are open; close some, or come again later', { status: 429 });
    arrival.response.once('close', close);
    reply.stream();
  }

  /** The client ends its session: no replica serves it any more. */
  async delete(arrival: Arrival): Promise<void> {
    const { clientId } = await this.#session(arrival);
    await this.tombstones.end(clientId);
    new Reply(arrival.response, false).end(undefined, 204);
  }

  async #initialize(arrival: Arrival, { id, params }: Request): Promise<void> {
    const { caller, naming, response } = arrival;
    // Said at once, not with the first list: whoever may not come in hears it here.
    await this.worlds.of(caller, naming);
    const asked = params['protocolVersion'];
    const version = LEGACY.find((known) => known === asked) ?? LEGACY[0];
    const session: ClientSession = {
      tokenId: caller.token.id,
      clientId: randomBytes(CLIENT_BYTES).toString('hex'),
      version,
      can: abilitiesOf(isJson(params['capabilities']) ? params['capabilities'] : {}),
      at: Date.now(),
    };
    const result = { protocolVersion: version, capabilities: capabilities(), serverInfo: SERVER_INFO };
    new Reply(response, false, { 'mcp-session-id': this.seal.close(USE, session) }).end({ jsonrpc: '2.0', id, result });
  }

  /** The session that a request names. One of another token, forged, too old or ended is none. */
  async #session({ session, caller, headers }: Arrival): Promise<ClientSession> {
    if (session === undefined)
      throw new RpcError(CODE.refused, 'Begin with initialize, and send the Mcp-Session-Id of its answer', { status: 400 });
    if (headers.version !== undefined && !LEGACY.some((known) => known === headers.version))
      throw new RpcError(CODE.refused, `Protocol version ${headers.version.slice(0, 50)} is not served here; ${LEGACY.join(', ')} are`, {
        status: 400,
      });
    const opened = ClientSession.safeParse(this.seal.open(USE, session));
    const isGood = opened.success && opened.data.tokenId === caller.token.id && opened.data.at + CLIENT_SESSION_MS > Date.now();
    if (!isGood || (await this.tombstones.isEnded(opened.data.clientId)))
      throw new RpcError(CODE.refused, 'There is no such session; begin with initialize', { status: 404 });
    return opened.data;
  }

  async #request(
    arrival: Arrival,
    { id, method, params }: Request,
    { session, traceId }: { readonly session: ClientSession; readonly traceId: string },
  ): Promise<void> {
    const reply = new Reply(arrival.response, arrival.takesStream);
    const controller = new AbortController();
    const { clientId } = session;
    const done = this.inflight.request(clientId, id, controller);
    const { caller, naming } = arrival;
    const { signal } = controller;
    const exchange: Exchange = {
      caller,
      naming,
      era: 'legacy',
      id,
      method,
      params,
      clientId,
      can: arrival.takesStream ? session.can : NOTHING,
      signal,
      tell: (message) => reply.tell(message),
    };
    try {
      reply.end({ jsonrpc: '2.0', id, result: await this.#result(exchange) });
    } catch (error) {
      // Whoever cancelled a request gets no answer to it.
      if (signal.aborted && signal.reason instanceof ClientCancelled) reply.stream();
      reply.end(signal.aborted ? undefined : errorMessage(id, failureOf(error, traceId)));
      if (!signal.aborted && failureOf(error, traceId).code === CODE.internal) throw error;
    } finally {
      done();
      controller.abort(new Error('the request has its answer'));
    }
  }

  async #result(exchange: Exchange): Promise<Json> {
    // What a server logs is told with the call that it belongs to, whatever the level.
    const isNothing = exchange.method === 'ping' || exchange.method === 'logging/setLevel';
    return isNothing ? {} : this.methods.handle(exchange);
  }

  #noted({ clientId }: ClientSession, { method, params }: Extract<Message, { readonly kind: 'notification' }>): void {
    const { requestId, reason } = params;
    if (method !== 'notifications/cancelled' || (typeof requestId !== 'string' && typeof requestId !== 'number')) return;
    const words = typeof reason === 'string' ? reason.slice(0, 200) : 'cancelled by the client';
    this.bus.signal(mcpEdge.requestCancelled, { clientId, requestId, reason: words }, { keys: { clientId } });
  }
}

const noStream = () =>
  new RpcError(CODE.refused, 'A stream is opened with Accept: text/event-stream and the Mcp-Session-Id of a session', { status: 405 });

const brief = ({ code, message }: { readonly code: number; readonly message: string }) => ({ code, message: message.slice(0, 2_000) });
