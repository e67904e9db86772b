/** Shorter values are words like `1` or `info` that say nothing and stand everywhere. */
const SHORTEST = 6;

/** The text without the values it may have been told: what a server prints at its end can hold what it was started with. */
export function withoutValues(text: string | undefined, values: readonly string[]): string | undefined {
  let clean = text;
  for (const value of values) if (value.length >= SHORTEST) clean = clean?.replaceAll(value, '•••');
  return clean;
}
