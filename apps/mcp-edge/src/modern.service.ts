import { Injectable } from '@nestjs/common';
import { abilitiesOf } from './domain/client-session.js';
import { failureOf } from './domain/failure.js';
import { CODE, errorMessage, isJson, RpcError, type Json, type Message } from './domain/json-rpc.js';
import { META_KEY, MODERN, readEnvelope } from './domain/protocol.js';
import type { Exchange } from './exchange.js';
import type { Arrival } from './http/arrival.js';
import { Reply } from './http/reply.js';
import { ClientCancelled } from './inflight.js';
import { Methods } from './methods.service.js';
import { capabilities, SERVER_INFO } from './offer.js';
import { Streams } from './streams.service.js';

type Request = Extract<Message, { readonly kind: 'request' }>;

/** A list holds for as long as nothing is heard; who listens hears of a change within a second. */
const TTL_MS = 5_000;
const LISTS: ReadonlySet<string> = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'resources/directory/read',
  'skills/list',
  'skills/get',
]);

/** Clients of the stateless revision: each request says all that there is to know. */
@Injectable()
export class ModernClients {
  constructor(
    private readonly methods: Methods,
    private readonly streams: Streams,
  ) {}

  async post(arrival: Arrival, message: Message, traceId: string): Promise<void> {
    if (message.kind !== 'request') {
      new Reply(arrival.response, false).end(undefined, 202);
      return;
    }
    const { capabilities: client } = readEnvelope(message, arrival.headers);
    if (message.method === 'subscriptions/listen') return this.#listen(arrival, message);
    const reply = new Reply(arrival.response, arrival.takesStream);
    const controller = new AbortController();
    // In this revision a client cancels by going away.
    arrival.response.once('close', () =>
      arrival.response.writableFinished ? undefined : controller.abort(new ClientCancelled('the client went away')),
    );
    const { id, method, params } = message;
    const { caller, naming } = arrival;
    const { signal } = controller;
    const exchange: Exchange = {
      caller,
      naming,
      era: 'modern',
      id,
      method,
      params,
      clientId: null,
      can: abilitiesOf(client),
      signal,
      tell: (told) => reply.tell(told),
    };
    try {
      reply.end({ jsonrpc: '2.0', id, result: complete(method, await this.#result(exchange)) });
    } catch (error) {
      if (signal.aborted) return;
      const failure = failureOf(error, traceId);
      reply.end(errorMessage(id, failure), failure.more.status ?? 200);
      if (failure.code === CODE.internal) throw error;
    } finally {
      controller.abort(new Error('the request has its answer'));
    }
  }

  async #result(exchange: Exchange): Promise<Json> {
    if (exchange.method !== 'server/discover') return this.methods.handle(exchange);
    return { supportedVersions: [MODERN], capabilities: capabilities() };
  }

  /** A stream that tells of the changes that the client asked for, until it goes away. */
  #listen(arrival: Arrival, { id, params }: Request): void {
    const wanted = params['notifications'];
    if (!isJson(wanted)) throw new RpcError(CODE.invalidParams, 'params.notifications says what to tell of', { status: 400 });
    const reply = new Reply(arrival.response, true);
    const _meta = { [META_KEY.subscription]: id };
    const lists = {
      tools: wanted['toolsListChanged'] === true,
      prompts: wanted['promptsListChanged'] === true,
      resources: wanted['resourcesListChanged'] === true,
    };
    const uris = urisIn(wanted['resourceSubscriptions']);
    const honoured = {
      ...(lists.tools ? { toolsListChanged: true } : {}),
      ...(lists.prompts ? { promptsListChanged: true } : {}),
      ...(lists.resources ? { resourcesListChanged: true } : {}),
      ...(uris.length > 0 ? { resourceSubscriptions: uris } : {}),
    };
    const end = (): void => reply.end({ jsonrpc: '2.0', id, result: complete('subscriptions/listen', { _meta }) });
    const tell = (method: string, more: Json = {}): boolean => reply.tell({ jsonrpc: '2.0', method, params: { ...more, _meta } });
    const close = this.streams.open(
      { ...arrival, clientId: null, lists, uris },
      {
        changed: (list) => void tell(`notifications/${list}/list_changed`),
        updated: (uri, more) => void tell('notifications/resources/updated', { ...more, uri }),
        close: end,
      },
    );
    if (close === undefined)
      throw new RpcError(CODE.refused, 'Too many streams are open; close some, or come again later', { status: 429 });
    arrival.response.once('close', close);
    tell('notifications/subscriptions/acknowledged', { notifications: honoured });
    if (Object.keys(honoured).length === 0) end();
  }
}

/** What every result of this revision says beside its own. */
function complete(method: string, result: Json): Json {
  const meta = isJson(result['_meta']) ? result['_meta'] : {};
  return {
    resultType: 'complete',
    ...(LISTS.has(method) ? { ttlMs: TTL_MS, cacheScope: 'private' } : {}),
    ...result,
    _meta: { [META_KEY.serverInfo]: SERVER_INFO, ...meta },
  };
}

/** Resources that one stream tells of. */
const MAX_FOLLOWED = 1_000;

function urisIn(value: unknown): string[] {
  if (!Array.isArray(value)) return [];
  return value.filter((uri): uri is string => typeof uri === 'string' && uri !== '' && uri.length <= 8_192).slice(0, MAX_FOLLOWED);
}
