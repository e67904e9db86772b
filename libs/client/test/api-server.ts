import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { HttpRoute } from '@ambit/contracts';

export interface Received {
  readonly route: HttpRoute;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: IncomingMessage['headers'];
  readonly body: unknown;
}
/** Answers a request: what it gives is sent as JSON; undefined says that it wrote the response itself. */
export type Answer = (received: Received, response: ServerResponse) => unknown;

/** A failure in the form that the API has. */
export class ProblemAnswer {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly more: { readonly detail?: string; readonly data?: unknown; readonly retry?: 'never' | 'later' } = {},
  ) {}
}

/** A small HTTP server that serves routes of the API's own table, each as a test says. */
export class ApiServer {
  readonly received: Received[] = [];
  readonly #server: Server;
  readonly #answers = new Map<HttpRoute, Answer>();

  #url = '';

  private constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async start(): Promise<ApiServer> {
    const api = new ApiServer();
    await new Promise<void>((resolve) => api.#server.listen(0, '127.0.0.1', resolve));
    api.#url = `http://127.0.0.1:${(api.#server.address() as AddressInfo).port}`;
    return api;
  }

  get url(): string {
    return this.#url;
  }

  on(route: HttpRoute, answer: Answer): void {
    this.#answers.set(route, answer);
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url);
    let text = '';
    for await (const part of request) text += String(part);
    for (const [route, answer] of this.#answers) {
      const params = paramsOf(route, url.pathname);
      if (route.method !== request.method || params === undefined) continue;
      const received = {
        route,
        params,
        query: Object.fromEntries(url.searchParams),
        headers: request.headers,
        body: text === '' ? undefined : JSON.parse(text),
      };
      this.received.push(received);
      const output = await answer(received, response);
      if (output === undefined) return;
      if (output instanceof ProblemAnswer)
        send(response, output.status, {
          title: output.code,
          status: output.status,
          code: output.code,
          retry: 'never',
          traceId: 'trace',
          ...output.more,
        });
      else send(response, route.status, output);
      return;
    }
    send(response, 404, { title: 'no route', status: 404, code: 'ROUTE_UNKNOWN', detail: `There is no ${url.pathname}` });
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': status < 400 ? 'application/json' : 'application/problem+json' }).end(JSON.stringify(body));
}

function paramsOf(route: HttpRoute, path: string): Record<string, string> | undefined {
  const names: string[] = [];
  const pattern = route.path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => (names.push(name), '([^/]+)'));
  const match = new RegExp(`^${pattern}$`).exec(path);
  return match === null ? undefined : Object.fromEntries(names.map((name, index) => [name, decodeURIComponent(match[index + 1] ?? '')]));
}
