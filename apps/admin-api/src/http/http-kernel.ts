import type { IncomingMessage, ServerResponse } from 'node:http';
import { continueTrace, traceIdOf } from '@ambit/bus';
import { Fault, httpApi, httpFaults, platformFault, platformFaults, safeParse, type HttpRoute, type Schema } from '@ambit/contracts';
import { isDatabaseAway } from '@ambit/db';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import type { z } from 'zod';
import { isEntitledSomewhere } from '../domain/entitlement.js';
import { AuthService } from '../auth.service.js';
import type { BoundRoute, RequestContext } from './bound-route.js';
import { problemOf } from './problem.js';
import { RouteTable } from './route-table.js';
import { Router } from './router.js';

/** A part of a file is 256 KiB in base64; nothing larger is posted. */
const BODY_BYTES = 1024 * 1024;

/** Serves the routes: finds, authenticates, bounds, parses, authorises, runs, answers. */
@Injectable()
export class HttpKernel {
  private readonly router: Router;

  constructor(
    table: RouteTable,
    private readonly auth: AuthService,
    @Inject(LOG) private readonly log: Logger,
  ) {
    this.router = new Router(table.routes);
    const served = new Set(table.routes.map(({ route }) => route));
    const missing = Object.entries(httpApi).filter(([, route]) => !served.has(route));
    if (missing.length > 0) throw new Error(`no handler is bound to ${missing.map(([name]) => name).join(', ')}`);
  }

  /** Middleware: takes what lies under /v1, passes on the rest. */
  readonly handle = (request: IncomingMessage, response: ServerResponse, next: () => void): void => {
    const url = new URL(request.url ?? '/', 'http://ambit');
    if (!url.pathname.startsWith('/v1/')) return next();
    void this.serve(request, response, url);
  };

  private async serve(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    const traceId = traceIdOf(continueTrace(header(request, 'traceparent')));
    try {
      const found = this.router.find(request.method ?? 'GET', url.pathname);
      if (!('bound' in found)) {
        if (found.allowed.length === 0) throw notFound(url.pathname);
        response.setHeader('allow', found.allowed.join(', '));
        throw methodNotAllowed(found.allowed);
      }
      const caller = await this.auth.authenticate(header(request, 'authorization'));
      const { bound } = found;
      if (![bound.route.action, ...bound.alsoWith].some((action) => isEntitledSomewhere(caller.grants, action)))
        caller.require(bound.route.action);
      const gone = new AbortController();
      response.once('close', () => gone.abort(platformFault('CANCELLED')));
      const context: RequestContext<HttpRoute> = {
        params: parse(bound.route.params, found.params, 'path'),
        query: parse(bound.route.query, Object.fromEntries(url.searchParams), 'query'),
        body: parse(bound.route.body, await readBody(request), 'body'),
        caller,
        ifVersion: versionOf(header(request, 'if-match')),
        idempotencyKey: header(request, 'idempotency-key'),
        lastEventId: integer(header(request, 'last-event-id')),
        accept: header(request, 'accept') ?? '',
        signal: gone.signal,
        now: new Date(),
        traceId,
      };
      const output = await bound.run(context, response);
      if (!response.headersSent && !response.writableEnded) answer(response, bound, output);
    } catch (error) {
      this.fail(response, error, { traceId, path: url.pathname });
    }
  }

  private fail(response: ServerResponse, error: unknown, at: { readonly traceId: string; readonly path: string }): void {
    const fault = faultFor(error, at.traceId);
    if (fault.code === 'INTERNAL' && !(error instanceof Fault)) this.log.error({ error, ...at }, 'a request failed');
    if (response.headersSent || response.writableEnded) {
      response.destroy();
      return;
    }
    if (fault.status === 401) response.setHeader('www-authenticate', 'Bearer');
    if (fault.retry === 'later') response.setHeader('retry-after', '1');
    const status = fault.status === 499 ? 408 : fault.status;
    send(response, { status, type: 'application/problem+json' }, problemOf(fault, at.traceId));
  }
}

function answer(response: ServerResponse, bound: BoundRoute, output: unknown): void {
  const parsed: unknown = bound.route.output.parse(output);
  const version = typeof parsed === 'object' && parsed !== null && 'version' in parsed ? parsed.version : undefined;
  if (typeof version === 'number') response.setHeader('etag', `"${version}"`);
  send(response, { status: bound.route.status, type: 'application/json' }, parsed);
}

function send(response: ServerResponse, { status, type }: { readonly status: number; readonly type: string }, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': `${type}; charset=utf-8`,
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  response.end(text);
}

function parse<T extends Schema>(schema: T, value: unknown, part: string): z.output<T> {
  const parsed = safeParse(schema, value);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues
    .slice(0, 20)
    .map((issue) => ({ path: [part, ...issue.path.map(String)].join('.'), message: issue.message }));
  throw platformFault(
    'INVALID_INPUT',
    { issues },
    `The ${part} is not what this operation takes: ${issues
      .map((issue) => `${issue.path}: ${issue.message}`)
      .join('; ')
      .slice(0, 800)}`,
  );
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const declared = Number(header(request, 'content-length') ?? 0);
  if (declared > BODY_BYTES) throw platformFault('TOO_LARGE', { limitBytes: BODY_BYTES, actualBytes: declared });
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request) {
    // No encoding is set, so there is nothing else.
    if (!Buffer.isBuffer(part)) continue;
    size += part.byteLength;
    if (size > BODY_BYTES) throw platformFault('TOO_LARGE', { limitBytes: BODY_BYTES });
    parts.push(part);
  }
  if (size === 0) return undefined;
  try {
    return JSON.parse(Buffer.concat(parts).toString('utf8'));
  } catch {
    throw platformFault('INVALID_INPUT', { issues: [{ path: 'body', message: 'not JSON' }] }, 'The body must be JSON');
  }
}

function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** `If-Match: "7"`; `*` and weak tags say nothing about a version. */
function versionOf(tag: string | undefined): number | undefined {
  return integer(/^"(\d+)"$/.exec(tag ?? '')?.[1]);
}

function integer(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

const notFound = (path: string) =>
  new Fault(
    'ROUTE_UNKNOWN',
    httpFaults.ROUTE_UNKNOWN,
    undefined,
    `There is no ${path.slice(0, 200)}; /v1/openapi.json lists what there is`,
  );
const methodNotAllowed = (allowed: readonly string[]) =>
  new Fault('METHOD_NOT_ALLOWED', httpFaults.METHOD_NOT_ALLOWED, undefined, `This resource takes ${allowed.join(', ')}`);

function faultFor(error: unknown, traceId: string): Fault {
  if (error instanceof Fault) return error;
  if (isDatabaseAway(error)) return platformFault('UNAVAILABLE', undefined, 'The database cannot be reached just now; nothing was written');
  return new Fault('INTERNAL', platformFaults.INTERNAL, { traceId });
}
