import type { BoundRoute } from './bound-route.js';

export interface Matched {
  readonly bound: BoundRoute;
  readonly params: Readonly<Record<string, string>>;
}

/** Finds the route of a method and path; literal parts win over parameters. */
export class Router {
  private readonly routes: readonly { readonly bound: BoundRoute; readonly parts: readonly string[] }[];

  constructor(bound: readonly BoundRoute[]) {
    this.routes = bound
      .map((one) => ({ bound: one, parts: one.route.path.split('/').slice(1) }))
      .sort((left, right) => parameters(left.parts) - parameters(right.parts));
  }

  find(method: string, path: string): Matched | { readonly allowed: readonly string[] } {
    const parts = path.split('/').slice(1);
    const here = this.routes.flatMap(({ bound, parts: wanted }) => {
      const params = match(wanted, parts);
      return params === undefined ? [] : [{ bound, params }];
    });
    return here.find(({ bound }) => bound.route.method === method) ?? { allowed: here.map(({ bound }) => bound.route.method) };
  }
}

const parameters = (parts: readonly string[]) => parts.filter((part) => part.startsWith('{')).length;

function match(wanted: readonly string[], parts: readonly string[]): Record<string, string> | undefined {
  if (wanted.length !== parts.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const given = parts[index] ?? '';
    if (!part.startsWith('{')) {
      if (part !== given) return undefined;
      continue;
    }
    try {
      params[part.slice(1, -1)] = decodeURIComponent(given);
    } catch {
      return undefined;
    }
  }
  return params;
}
