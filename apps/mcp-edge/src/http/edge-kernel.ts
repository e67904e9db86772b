import type { IncomingMessage, ServerResponse } from 'node:http';
import { continueTrace, traceIdOf } from '@ambit/bus';
import { EdgeNames, Slug } from '@ambit/contracts';
import { CONFIG, LOG, Metrics, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import type { EdgeConfig } from '../config.js';
import { failureOf } from '../domain/failure.js';
import { isOurHost, isOurOrigin } from '../domain/hosts.js';
import { CODE, errorMessage, isJson, readMessage, RpcError, type RequestId } from '../domain/json-rpc.js';
import { isModern } from '../domain/protocol.js';
import { EdgeTokens } from '../edge-tokens.service.js';
import { LegacyClients } from '../legacy.service.js';
import { ModernClients } from '../modern.service.js';
import { header, type Arrival } from './arrival.js';
import { readBody } from './read-body.js';
import { Reply } from './reply.js';

const PATH = '/mcp';
const METADATA = '/.well-known/oauth-protected-resource';
const MAX_REQUESTS = 5_000;
const MAX_OF_TOKEN = 500;

/** Takes what MCP clients send: whose name it is sent to, who sends it, how much, of which revision. */
@Injectable()
export class EdgeKernel {
  readonly #open = new Map<string, number>();
  #all = 0;

  constructor(
    private readonly tokens: EdgeTokens,
    private readonly legacy: LegacyClients,
    private readonly modern: ModernClients,
    @Inject(CONFIG) private readonly config: EdgeConfig,
    @Inject(LOG) private readonly log: Logger,
    metrics: Metrics,
  ) {
    metrics.gauge({ name: 'ambit_edge_requests', help: 'Requests of MCP clients that are being worked on', read: () => this.#all });
  }

  /** Middleware: takes the endpoint and its metadata, passes on the rest. */
  readonly handle = (request: IncomingMessage, response: ServerResponse, next: () => void): void => {
    const url = new URL(request.url ?? '/', 'http://ambit');
    if (url.pathname === METADATA || url.pathname === `${METADATA}${PATH}`) this.#metadata(request, response);
    else if (url.pathname === PATH) void this.#serve(request, response, url);
    else next();
  };

  async #serve(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    const traceId = traceIdOf(continueTrace(header(request, 'traceparent')));
    let id: RequestId | null = null;
    try {
      const arrival = await this.#arrival(request, response, url);
      if (arrival === undefined) return;
      const leave = this.#enter(arrival.caller.token.id);
      response.once('close', leave);
      if (request.method === 'GET') return await this.legacy.get(arrival);
      if (request.method === 'DELETE') return await this.legacy.delete(arrival);
      const body = await readBody(request);
      id = isJson(body) && (typeof body['id'] === 'string' || typeof body['id'] === 'number') ? body['id'] : null;
      const message = readMessage(body);
      if (message === undefined) throw new RpcError(CODE.invalidRequest, 'Send one message of JSON-RPC 2.0', { status: 400 });
      const isStateless = message.kind !== 'answer' && isModern(message, arrival.headers);
      await (isStateless ? this.modern.post(arrival, message, traceId) : this.legacy.post(arrival, message, traceId));
    } catch (error) {
      this.#fail(response, error, { id, traceId });
    }
  }

  /** The request as it is let in; undefined where it was answered already. */
  async #arrival(request: IncomingMessage, response: ServerResponse, url: URL): Promise<Arrival | undefined> {
    this.#requireOurs(request);
    if (!['POST', 'GET', 'DELETE'].includes(request.method ?? '')) {
      response.setHeader('allow', 'GET, POST, DELETE');
      throw new RpcError(CODE.refused, 'This endpoint takes GET, POST and DELETE', { status: 405 });
    }
    const bearer = /^Bearer ([\x21-\x7e]{16,300})$/i.exec(header(request, 'authorization') ?? '')?.[1];
    const caller = bearer === undefined ? undefined : await this.tokens.authenticate(bearer);
    if (bearer === undefined || caller === undefined) {
      this.#challenge(request, response, bearer !== undefined);
      return undefined;
    }
    const accept = header(request, 'accept') ?? '*/*';
    return {
      request,
      response,
      caller,
      bearer,
      naming: namingOf(url, caller.token.names),
      headers: {
        version: header(request, 'mcp-protocol-version')?.trim(),
        method: header(request, 'mcp-method')?.trim(),
        name: header(request, 'mcp-name'),
      },
      session: header(request, 'mcp-session-id'),
      takesStream: accept.includes('text/event-stream'),
    };
  }

  #requireOurs(request: IncomingMessage): void {
    const { AMBIT_EDGE_HOSTS: hosts, AMBIT_EDGE_ORIGINS: origins } = this.config;
    if (!isOurHost(header(request, 'host'), hosts))
      throw new RpcError(CODE.refused, 'This Host is none of the endpoint’s names; AMBIT_EDGE_HOSTS lists them', { status: 403 });
    if (!isOurOrigin(header(request, 'origin'), origins ?? hosts))
      throw new RpcError(CODE.refused, 'Pages of this Origin may not use the endpoint; AMBIT_EDGE_ORIGINS lists those that may', {
        status: 403,
      });
  }

  #enter(tokenId: string): () => void {
    const own = this.#open.get(tokenId) ?? 0;
    if (this.#all >= MAX_REQUESTS || own >= MAX_OF_TOKEN)
      throw new RpcError(CODE.refused, 'Too many requests are open; wait for the answers of some', { status: 429 });
    this.#all++;
    this.#open.set(tokenId, own + 1);
    return () => {
      this.#all--;
      const left = (this.#open.get(tokenId) ?? 1) - 1;
      if (left === 0) this.#open.delete(tokenId);
      else this.#open.set(tokenId, left);
    };
  }

  /** Says where a token is to be had, as RFC 9728 and RFC 6750 have it. */
  #challenge(request: IncomingMessage, response: ServerResponse, wasSent: boolean): void {
    const metadata = new URL(`${METADATA}${PATH}`, this.#address(request)).href;
    const error = wasSent ? ', error="invalid_token", error_description="The token is unknown, expired or revoked"' : '';
    response.setHeader('www-authenticate', `Bearer resource_metadata="${metadata}"${error}`);
    const message = wasSent ? 'The token is unknown, expired or revoked' : 'Send "Authorization: Bearer <edge token>"';
    new Reply(response, false).end(errorMessage(null, new RpcError(CODE.refused, message)), 401);
  }

  #metadata(request: IncomingMessage, response: ServerResponse): void {
    try {
      this.#requireOurs(request);
      const { AMBIT_EDGE_AUTHORIZATION_SERVERS: servers } = this.config;
      new Reply(response, false).end({
        resource: new URL(PATH, this.#address(request)).href,
        resource_name: 'Ambit',
        bearer_methods_supported: ['header'],
        ...(servers === undefined ? {} : { authorization_servers: servers }),
      });
    } catch (error) {
      this.#fail(response, error, { id: null, traceId: '' });
    }
  }

  #address(request: IncomingMessage): string {
    return this.config.AMBIT_EDGE_URL ?? `http://${header(request, 'host') ?? 'localhost'}`;
  }

  #fail(response: ServerResponse, error: unknown, { id, traceId }: { readonly id: RequestId | null; readonly traceId: string }): void {
    const failure = failureOf(error, traceId);
    if (failure.code === CODE.internal) this.log.error({ error, traceId }, 'a request of an MCP client failed');
    if (response.headersSent || response.writableEnded) return;
    const status = failure.more.status ?? 400;
    if (status === 429 || status === 503) response.setHeader('retry-after', '1');
    new Reply(response, false).end(errorMessage(id, failure), status);
  }
}

/** Which names the client wants: `?names=plain`, and whose come first with `&first=<server>`; the token says it otherwise. */
function namingOf(url: URL, ofToken: EdgeNames): Arrival['naming'] {
  const names = EdgeNames.optional().safeParse(url.searchParams.get('names') ?? undefined);
  const first = Slug.optional().safeParse(url.searchParams.get('first') ?? undefined);
  if (!names.success || !first.success)
    throw new RpcError(CODE.invalidParams, '?names is qualified or plain, and &first the slug of a server', { status: 400 });
  return { names: names.data ?? ofToken, first: first.data };
}
