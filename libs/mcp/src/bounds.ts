/** What one tool of a server's list may weigh. Budgets are per tool: one fat tool never costs the others their place. */
export interface ToolBounds {
  readonly bytes: number;
  readonly depth: number;
  readonly keys: number;
}

export const TOOL_BOUNDS: ToolBounds = { bytes: 1024 * 1024, depth: 64, keys: 10_000 };

/**
 * Says in one sentence which bound a JSON value breaks, or undefined when it keeps them all.
 * Depth and keys are counted without recursion, so a hostile value cannot exhaust the stack; bytes are of its JSON in UTF-8.
 */
export function excessOf(value: unknown, bounds: ToolBounds = TOOL_BOUNDS): string | undefined {
  const open: { readonly value: object; readonly depth: number }[] = [];
  let keys = 0;
  const visit = (item: unknown, depth: number): boolean => {
    if (typeof item !== 'object' || item === null) return true;
    if (depth > bounds.depth) return false;
    open.push({ value: item, depth });
    return true;
  };
  if (!visit(value, 1)) return `is nested deeper than ${bounds.depth} levels`;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const items: unknown[] = Object.values(next.value);
    keys += items.length;
    if (keys > bounds.keys) return `has more than ${bounds.keys} keys`;
    for (const item of items) if (!visit(item, next.depth + 1)) return `is nested deeper than ${bounds.depth} levels`;
  }
  const bytes = Buffer.byteLength(JSON.stringify(value) ?? '', 'utf8');
  return bytes > bounds.bytes ? `is ${bytes} bytes of JSON, more than ${bounds.bytes}` : undefined;
}
