import type { z } from 'zod';
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
  /** `stream`: server-sent events; `lines`: also as NDJSON when asked for. */
  readonly answers: 'json' | 'stream' | 'lines';
}

export type RouteInput<R extends HttpRoute> = {
  readonly params: z.input<R['params']>;
  readonly query?: z.input<R['query']>;
  readonly body?: z.input<R['body']>;
};
export type RouteOutput<R extends HttpRoute> = z.output<R['output']>;
