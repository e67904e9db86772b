import type { ServerResponse } from 'node:http';
import type { HttpRoute } from '@ambit/contracts';
import type { z } from 'zod';
import type { Caller } from './caller.js';

export interface RequestContext<R extends HttpRoute> {
  readonly params: z.output<R['params']>;
  readonly query: z.output<R['query']>;
  readonly body: z.output<R['body']>;
  readonly caller: Caller;
  /** Of `If-Match`: the version that the caller saw. */
  readonly ifVersion: number | undefined;
  readonly idempotencyKey: string | undefined;
  readonly lastEventId: number | undefined;
  readonly accept: string;
  /** Aborts when the caller is gone. */
  readonly signal: AbortSignal;
  readonly now: Date;
  readonly traceId: string;
}

/** A route and who serves it. A stream writes to the response itself. */
export interface BoundRoute {
  readonly route: HttpRoute;
  /** Actions besides the route's own that let a request in; the handler then checks what is the caller's. */
  readonly alsoWith: readonly HttpRoute['action'][];
  readonly run: (context: RequestContext<HttpRoute>, response: ServerResponse) => Promise<unknown>;
}

/** Binds a route to its handler; the handler must fit the route, or it does not compile. */
export function bind<R extends HttpRoute>(
  route: R,
  run: (context: RequestContext<R>, response: ServerResponse) => Promise<z.input<R['output']> | void>,
  alsoWith: readonly HttpRoute['action'][] = [],
): BoundRoute {
  return { route, alsoWith, run: run };
}
