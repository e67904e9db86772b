import type { HttpRoute, RouteOutput } from '@ambit/contracts';
import { z } from 'zod';
import { Unreachable } from './ambit-error.js';

/** What the items of a route's pages are. */
export type Item<R extends HttpRoute> = RouteOutput<R> extends { items: readonly (infer T)[] } ? T : never;
export interface Page<R extends HttpRoute> {
  readonly items: readonly Item<R>[];
  readonly cursor?: string;
}

const AnyPage = z.looseObject({ items: z.array(z.unknown()), cursor: z.string().optional() });

/** The answer of a route, parsed by its own schema. */
export function readAnswer<R extends HttpRoute>(route: R, text: string): RouteOutput<R> {
  const parsed = route.output.safeParse(readJson(text));
  // The schema is the route's own: a generic R cannot say so by itself.
  if (parsed.success) return parsed.data as RouteOutput<R>;
  const issue = parsed.error.issues[0];
  throw new Unreachable(
    `${route.method} ${route.path} answered in a form that this client does not know (${issue?.path.map(String).join('.') ?? ''}: ${issue?.message ?? ''}); is the server of another version?`,
  );
}

/** One page of a route that answers in pages. */
export function readPage<R extends HttpRoute>(route: R, text: string): Page<R> {
  const { items, cursor } = AnyPage.parse(readAnswer(route, text));
  return { items: items as readonly Item<R>[], ...(cursor === undefined ? {} : { cursor }) };
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
