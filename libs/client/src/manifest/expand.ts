import type { Problem } from './problem.js';

type Environment = Readonly<Record<string, string | undefined>>;
const REFERENCE = /\$(\$(?=\{)|\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})/g;

/** Puts `${NAME}` and `${NAME:-default}` of every text in; `$${` stays as `${`. Names of fields are left as they are. */
export function expandAll(value: unknown, environment: Environment): { readonly value: unknown; readonly problems: readonly Problem[] } {
  const problems: Problem[] = [];
  const walk = (at: unknown, path: readonly PropertyKey[]): unknown => {
    if (typeof at === 'string') return expand(at, environment, (text) => problems.push({ path, text }));
    if (Array.isArray(at)) return at.map((item, index) => walk(item, [...path, index]));
    if (typeof at !== 'object' || at === null) return at;
    return Object.fromEntries(Object.entries(at).map(([key, item]) => [key, walk(item, [...path, key])]));
  };
  return { value: walk(value, []), problems };
}

function expand(text: string, environment: Environment, complain: (text: string) => void): string {
  return text.replaceAll(REFERENCE, (...[, form, name, fallback]: (string | undefined)[]) => {
    if (form === '$' || name === undefined) return '$';
    const found = environment[name];
    // As a shell has it: an empty variable is as good as none where a default stands.
    if (found !== undefined && (found !== '' || fallback === undefined)) return found;
    if (fallback === undefined) complain(`the environment has no ${name}; set it, or write \${${name}:-a default}`);
    return fallback ?? '';
  });
}
