/** JSON with the members of every object in code-unit order (RFC 8785 for what JSON.parse gives, where no name is a number). */
export function canonicalJson(value: unknown): string {
  // The engine writes a whole value many times faster than it is written piece by piece.
  return JSON.stringify(ordered(value)) ?? 'null';
}

function ordered(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(ordered);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, ordered(member)]));
}
