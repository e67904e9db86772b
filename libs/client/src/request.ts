import type { HttpRoute } from '@ambit/contracts';
import type { z } from 'zod';

/** What a route takes: parts that it does not need may be left out. */
export type RequestOptions<R extends HttpRoute> = Part<'params', z.input<R['params']>> &
  Part<'query', z.input<R['query']>> &
  Part<'body', z.input<R['body']>> & {
    readonly headers?: Readonly<Record<string, string>>;
    readonly signal?: AbortSignal;
    /** Change only what has this version. */
    readonly ifVersion?: number;
    readonly idempotencyKey?: string;
  };
type Part<K extends string, T> = {} extends T
  ? { readonly [P in K]?: T }
  : undefined extends T
    ? { readonly [P in K]?: T }
    : { readonly [P in K]: T };

/** Options stand last and may be left out where the route needs none. */
export type Arguments<R extends HttpRoute> = {} extends RequestOptions<R> ? [options?: RequestOptions<R>] : [options: RequestOptions<R>];

/** What a request is made of once its types are checked. */
export interface Parts {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly ifVersion?: number;
  readonly idempotencyKey?: string;
}

/** The address of a route; parameters are escaped, and a query value that is undefined is left out. */
export function urlOf(base: string, route: HttpRoute, parts: Parts): string {
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => {
    const value = parts.params?.[name];
    if (value === undefined) throw new TypeError(`${route.method} ${route.path} needs the parameter ${name}`);
    return encodeURIComponent(String(value));
  });
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parts.query ?? {})) if (value !== undefined) query.set(name, String(value));
  return `${base}${path}${query.size === 0 ? '' : `?${query}`}`;
}

/** Headers of a request, in lower case. */
export function headersOf(token: string, parts: Parts): Record<string, string> {
  return {
    accept: 'application/json',
    authorization: `Bearer ${token}`,
    ...(parts.body === undefined ? {} : { 'content-type': 'application/json' }),
    ...(parts.ifVersion === undefined ? {} : { 'if-match': `"${parts.ifVersion}"` }),
    ...(parts.idempotencyKey === undefined ? {} : { 'idempotency-key': parts.idempotencyKey }),
    ...parts.headers,
  };
}
