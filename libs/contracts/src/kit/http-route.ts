import { z } from 'zod';
import type { FaultMap } from './fault.js';
import type { Schema } from './schema.js';

/** What a caller has to be entitled to; roles are sets of these. */
export type Action = 'read' | 'operate' | 'decide' | 'send' | 'administer' | 'audit';
export type Method = 'GET' | 'PUT' | 'POST' | 'DELETE';

/** One HTTP operation as a value: server, client and OpenAPI are read off it. */
export interface HttpRoute<
  P extends z.ZodObject = z.ZodObject,
  Q extends z.ZodObject = z.ZodObject,
  B extends Schema = Schema,
  O extends Schema = Schema,
  E extends FaultMap = FaultMap,
> {
  readonly method: Method;
  /** `/v1/<singular noun>/{param}` */
  readonly path: string;
  readonly summary: string;
  readonly action: Action;
  readonly params: P;
  readonly query: Q;
  /** z.undefined() where there is none. */
  readonly body: B;
  readonly output: O;
  readonly errors: E;
  /** @default 200 */
  readonly status: number;
  /** `stream`: server-sent events; `lines`: also as NDJSON when asked for; `progress`: also at the end of server-sent events when asked for. */
  readonly answers: 'json' | 'stream' | 'lines' | 'progress';
}

export type RouteInput<R extends HttpRoute> = {
  readonly params: z.input<R['params']>;
  readonly query?: z.input<R['query']>;
  readonly body?: z.input<R['body']>;
};
export type RouteOutput<R extends HttpRoute> = z.output<R['output']>;

const none = z.object({});
interface Def<P extends z.ZodObject, Q extends z.ZodObject, B extends Schema, O extends Schema, E extends FaultMap> {
  readonly summary: string;
  readonly action: Action;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  readonly output: O;
  readonly errors?: E;
  readonly status?: number;
  readonly answers?: HttpRoute['answers'];
}

/** Makes a route of `METHOD /v1/path` and what it takes and answers. */
export function route<
  O extends Schema,
  P extends z.ZodObject = typeof none,
  Q extends z.ZodObject = typeof none,
  B extends Schema = z.ZodUndefined,
  const E extends FaultMap = {},
>(at: `${Method} /v1/${string}`, def: Def<P, Q, B, O, E>): HttpRoute<P, Q, B, O, E> {
  const [method, path] = at.split(' ') as [Method, string];
  return {
    method,
    path,
    summary: def.summary,
    action: def.action,
    params: def.params ?? (none as unknown as P),
    query: def.query ?? (none as unknown as Q),
    body: def.body ?? (z.undefined() as unknown as B),
    output: def.output,
    errors: def.errors ?? ({} as E),
    status: def.status ?? 200,
    answers: def.answers ?? 'json',
  };
}
