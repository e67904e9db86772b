import type { httpApi, HttpRoute, RouteOutput } from '@ambit/contracts';
import { AmbitError, errorOf, Unreachable } from './ambit-error.js';
import { readAnswer, readPage, type Item } from './answer.js';
import { causeOf } from './cause.js';
import { follow, type FollowOptions } from './follow.js';
import { importSkills, type ImportOptions, type ImportRequest } from './import-skills.js';
import { headersOf, urlOf, type Arguments, type Parts } from './request.js';
import type { FollowedEvent } from './run-event.js';
import { upload, type BlobKind } from './upload.js';

export interface ClientOptions {
  /** Where the API is, as in http://127.0.0.1:4700. */
  readonly url: string;
  readonly token: string;
  /** @default globalThis.fetch */
  readonly fetch?: typeof fetch;
  /** How long an answer may take. @default 120000 */
  readonly timeoutMs?: number;
}

/** Calls the HTTP API of one installation with one token. */
export class AmbitClient {
  readonly url: string;
  readonly #token: string;
  readonly #fetch: typeof fetch;
  readonly #timeoutMs: number;

  constructor(options: ClientOptions) {
    if (!URL.canParse(options.url) || !/^https?:$/.test(new URL(options.url).protocol))
      throw new TypeError(`"${options.url}" is no address of an API; it begins with http:// or https://`);
    if (!/^[\x21-\x7e]+$/.test(options.token)) throw new TypeError('a token is printable characters without blanks');
    this.url = options.url.replace(/\/+$/, '');
    this.#token = options.token;
    this.#fetch = options.fetch ?? fetch;
    this.#timeoutMs = options.timeoutMs ?? 120_000;
  }

  /** Sends one request and gives its answer. Throws {@link AmbitError} when the server refuses, {@link Unreachable} when nobody answers. */
  async request<R extends HttpRoute>(route: R, ...[options]: Arguments<R>): Promise<RouteOutput<R>> {
    return readAnswer(route, await this.#text(route, options ?? {}));
  }

  /** Every item of a route that answers in pages, over all of them. */
  async *pages<R extends HttpRoute>(route: R, ...[options]: Arguments<R>): AsyncGenerator<Item<R>> {
    const parts: Parts = options ?? {};
    for (let cursor: string | undefined; ;) {
      const text = await this.#text(route, { ...parts, query: { ...parts.query, ...(cursor === undefined ? {} : { cursor }) } });
      const page = readPage(route, text);
      yield* page.items;
      if (page.cursor === undefined || page.cursor === cursor) return;
      cursor = page.cursor;
    }
  }

  /** What happens in a run and its resume runs, until the last of them has ended. */
  follow(runId: string, options: FollowOptions = {}): AsyncGenerator<FollowedEvent> {
    return follow(this, runId, options);
  }

  /** Stores bytes for a skill or plugin, in parts; gives their digest. What is there already is not sent again. */
  upload(kind: BlobKind, bytes: Uint8Array, signal?: AbortSignal): Promise<string> {
    return upload(this, { kind, bytes, ...(signal === undefined ? {} : { signal }) });
  }

  /** Imports skills as previewed, and tells how far it is; rejects where nothing was imported at all. */
  importSkills(body: ImportRequest, options: ImportOptions = {}): Promise<RouteOutput<typeof httpApi.executeImport>> {
    return importSkills(this, body, options);
  }

  /** The answer to a request as it comes, for streams; a failure is thrown as {@link request} throws it. */
  async open(route: HttpRoute, parts: Parts): Promise<Response> {
    const address = urlOf(this.url, route, parts);
    let response: Response;
    try {
      response = await this.#fetch(address, {
        method: route.method,
        headers: headersOf(this.#token, parts),
        redirect: 'error',
        ...(parts.body === undefined ? {} : { body: JSON.stringify(parts.body) }),
        ...(parts.signal === undefined ? {} : { signal: parts.signal }),
      });
    } catch (error) {
      if (parts.signal?.aborted === true) throw error;
      throw unreachable(this.url, error);
    }
    if (!response.ok) throw await errorOf(response);
    return response;
  }

  async #text(route: HttpRoute, parts: Parts): Promise<string> {
    const deadline = AbortSignal.timeout(this.#timeoutMs);
    const signal = parts.signal === undefined ? deadline : AbortSignal.any([parts.signal, deadline]);
    try {
      const response = await this.open(route, { ...parts, signal });
      return await response.text();
    } catch (error) {
      parts.signal?.throwIfAborted();
      if (deadline.aborted)
        throw new Unreachable(`${this.url} gave no answer within ${this.#timeoutMs / 1_000} s; the request may have taken effect`);
      throw error instanceof AmbitError || error instanceof Unreachable ? error : unreachable(this.url, error);
    }
  }
}

function unreachable(url: string, error: unknown): Unreachable {
  return new Unreachable(`${url} does not answer (${causeOf(error)}); is Ambit running there?`, { cause: error });
}
