import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';

const random = (): string => randomBytes(24).toString('base64url');
const REDIRECT = 'http://127.0.0.1:8080/oauth/callback';
export { REDIRECT };

/** An HTTP server on a free port. */
abstract class Listening {
  private server: Server | undefined;
  origin = '';

  async listen(): Promise<this> {
    this.server = createServer((request, response) => {
      void this.read(request)
        .then((body) => this.answer(request, response, body))
        .catch((error: unknown) => response.writeHead(500).end(String(error)));
    });
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    const address = this.server.address();
    this.origin = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
    return this;
  }
  async close(): Promise<void> {
    this.server?.closeAllConnections();
    this.server?.close();
    await Promise.resolve();
  }
  private async read(request: IncomingMessage): Promise<string> {
    let text = '';
    for await (const part of request) text += String(part);
    return text;
  }
  protected abstract answer(request: IncomingMessage, response: ServerResponse, body: string): void | Promise<void>;
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function challenge(response: ServerResponse, status: number, words: string): void {
  response.writeHead(status, { 'content-type': 'application/json', 'www-authenticate': words }).end('{}');
}

interface Code {
  readonly clientId: string;
  readonly challenge: string;
  readonly redirectUri: string;
  readonly scope: string;
  readonly resource: string;
}
export interface Given {
  readonly scope: string;
  readonly resource: string;
  isGood: boolean;
}

/** A small authorization server: consents at once, checks PKCE, redirect, client and resource, rotates refresh tokens. */
export class AuthorizationServer extends Listening {
  readonly codes = new Map<string, Code>();
  readonly access = new Map<string, Given>();
  readonly refreshes = new Map<string, Given & { readonly clientId: string }>();
  readonly clients = new Map<string, string | undefined>();
  readonly asked: URLSearchParams[] = [];
  registrations = 0;
  /** Seconds; undefined = it does not say. */
  expiresIn: number | undefined = 3_600;
  takesDocuments = false;
  takesRegistrations = true;
  givesRefresh = true;
  /** What it says in the answer of a sign-in; undefined = itself. */
  saysIssuer: string | undefined;
  /** Refreshes wait until it is resolved. */
  hold: Promise<void> = Promise.resolve();
  onRefresh: () => void = () => undefined;

  protected async answer(request: IncomingMessage, response: ServerResponse, body: string): Promise<void> {
    const url = new URL(request.url ?? '/', this.origin);
    if (url.pathname === '/.well-known/oauth-authorization-server') return json(response, 200, this.document());
    if (url.pathname === '/authorize') return this.authorize(url.searchParams, response);
    if (url.pathname === '/token') return this.token(request, new URLSearchParams(body), response);
    if (url.pathname === '/register' && this.takesRegistrations) {
      this.registrations++;
      const client = `registered-${this.registrations}`;
      this.clients.set(client, undefined);
      return json(response, 201, { ...JSON.parse(body), client_id: client });
    }
    json(response, 404, {});
  }

  private document(): unknown {
    return {
      issuer: this.origin,
      authorization_endpoint: `${this.origin}/authorize`,
      token_endpoint: `${this.origin}/token`,
      ...(this.takesRegistrations ? { registration_endpoint: `${this.origin}/register` } : {}),
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none', 'client_secret_basic'],
      client_id_metadata_document_supported: this.takesDocuments,
      authorization_response_iss_parameter_supported: true,
    };
  }

  private authorize(query: URLSearchParams, response: ServerResponse): void {
    const clientId = query.get('client_id') ?? '';
    const isKnown = this.clients.has(clientId) || (this.takesDocuments && clientId.startsWith('https://'));
    if (!isKnown || query.get('code_challenge_method') !== 'S256') return json(response, 400, { error: 'invalid_request' });
    this.asked.push(query);
    const code = random();
    const redirectUri = query.get('redirect_uri') ?? '';
    this.codes.set(code, {
      clientId,
      challenge: query.get('code_challenge') ?? '',
      redirectUri,
      scope: query.get('scope') ?? '',
      resource: query.get('resource') ?? '',
    });
    const back = new URL(redirectUri);
    back.search = new URLSearchParams({ code, state: query.get('state') ?? '', iss: this.saysIssuer ?? this.origin }).toString();
    response.writeHead(302, { location: back.href }).end();
  }

  private async token(request: IncomingMessage, form: URLSearchParams, response: ServerResponse): Promise<void> {
    const basic = Buffer.from(request.headers.authorization?.replace('Basic ', '') ?? '', 'base64')
      .toString('utf8')
      .split(':');
    const clientId = form.get('client_id') ?? basic[0] ?? '';
    const secret = this.clients.get(clientId);
    if (secret !== undefined && basic[1] !== secret) return json(response, 401, { error: 'invalid_client' });
    switch (form.get('grant_type')) {
      case 'authorization_code': {
        const code = this.codes.get(form.get('code') ?? '');
        this.codes.delete(form.get('code') ?? '');
        const challenge = createHash('sha256')
          .update(form.get('code_verifier') ?? '')
          .digest('base64url');
        const isGood =
          code?.challenge === challenge &&
          code.clientId === clientId &&
          code.redirectUri === form.get('redirect_uri') &&
          code.resource === form.get('resource');
        return code !== undefined && isGood ? this.give(response, { ...code, clientId }) : json(response, 400, { error: 'invalid_grant' });
      }
      case 'refresh_token': {
        this.onRefresh();
        await this.hold;
        const held = this.refreshes.get(form.get('refresh_token') ?? '');
        if (held === undefined || !held.isGood || held.clientId !== clientId) return json(response, 400, { error: 'invalid_grant' });
        held.isGood = false;
        return this.give(response, held);
      }
      case 'client_credentials':
        return this.give(response, { scope: form.get('scope') ?? '', resource: form.get('resource') ?? '', clientId });
      default:
        return json(response, 400, { error: 'unsupported_grant_type' });
    }
  }

  private give(
    response: ServerResponse,
    { scope, resource, clientId }: { readonly scope: string; readonly resource: string; readonly clientId: string },
  ): void {
    const [access, refresh] = [random(), random()];
    this.access.set(access, { scope, resource, isGood: true });
    this.refreshes.set(refresh, { scope, resource, clientId, isGood: true });
    json(response, 200, {
      access_token: access,
      token_type: 'Bearer',
      scope,
      ...(this.expiresIn === undefined ? {} : { expires_in: this.expiresIn }),
      ...(this.givesRefresh ? { refresh_token: refresh } : {}),
    });
  }
}

const TOOLS: readonly unknown[] = [
  { name: 'whoami', description: 'Who asks', inputSchema: { type: 'object' } },
  { name: 'write', description: 'Needs the scope write', inputSchema: { type: 'object' } },
];

/** An MCP server that takes tokens of one authorization server, made for itself. */
export class ProtectedServer extends Listening {
  /** Authorization headers, in the order they came. */
  readonly seen: (string | undefined)[] = [];
  executed = 0;
  /** Only calls want a token. */
  isOpen = false;
  publishes = true;
  redirectsTo: string | undefined;
  tools = TOOLS;
  /** What it says of who issues its tokens; undefined = the truth. */
  namesIssuer: string | undefined;
  asks = 0;

  constructor(public issuer: AuthorizationServer) {
    super();
  }
  get url(): string {
    return `${this.origin}/mcp`;
  }

  protected answer(request: IncomingMessage, response: ServerResponse, body: string): void {
    if (request.url?.startsWith('/.well-known/') === true) {
      this.asks++;
      if (!this.publishes || !request.url.startsWith('/.well-known/oauth-protected-resource')) return json(response, 404, {});
      return json(response, 200, {
        resource: this.url,
        authorization_servers: [this.namesIssuer ?? this.issuer.origin],
        scopes_supported: ['read'],
      });
    }
    const { authorization } = request.headers;
    this.seen.push(authorization);
    if (this.redirectsTo !== undefined) return void response.writeHead(307, { location: this.redirectsTo }).end();
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const message = JSON.parse(body) as { id?: number; method: string; params?: { name?: string } };
    const given = this.issuer.access.get(authorization?.replace('Bearer ', '') ?? '');
    const isIn = given?.isGood === true && given.resource === this.url;
    if (!isIn && (!this.isOpen || message.method === 'tools/call'))
      return challenge(
        response,
        401,
        this.publishes ? `Bearer resource_metadata="${this.origin}/.well-known/oauth-protected-resource/mcp"` : 'Bearer',
      );
    if (message.params?.name === 'write' && given?.scope.split(' ').includes('write') !== true)
      return challenge(response, 403, 'Bearer error="insufficient_scope", scope="write"');
    if (message.id === undefined) return void response.writeHead(202).end();
    const result = this.resultOf(message.method, authorization);
    json(response, 200, {
      jsonrpc: '2.0',
      id: message.id,
      ...(result === undefined ? { error: { code: -32601, message: 'Method not found' } } : { result }),
    });
  }

  private resultOf(method: string, authorization: string | undefined): unknown {
    switch (method) {
      case 'initialize':
        return { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'protected', version: '1' } };
      case 'tools/list':
        return { tools: this.tools };
      case 'tools/call':
        this.executed++;
        return { content: [{ type: 'text', text: authorization ?? 'nobody' }] };
      default:
        return undefined;
    }
  }
}

/** What a person's browser does: follows the sign-in to its end, and gives what the issuer sent back with it. */
export async function browse(url: string): Promise<{ state: string; code: string; iss: string }> {
  const answer = await fetch(url, { redirect: 'manual' });
  const back = new URL(answer.headers.get('location') ?? 'about:blank');
  return {
    state: back.searchParams.get('state') ?? '',
    code: back.searchParams.get('code') ?? '',
    iss: back.searchParams.get('iss') ?? '',
  };
}
