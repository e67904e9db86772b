/** What stands in a JSON text, or why it is not taken. */
export type JsonRead = { readonly value: unknown } | { readonly problem: string; readonly isTwice: boolean };

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]/g;

/** Reads JSON in which no object has one key twice, as parsers differ in which of the two they take, and no text is one that nobody can store. */
export function strictJson(text: string): JsonRead {
  const source = text.replace(/^\uFEFF/, '');
  let value: unknown;
  try {
    value = JSON.parse(source);
  } catch {
    return { problem: 'it is not JSON', isTwice: false };
  }
  return problemIn(source) ?? { value };
}

function problemIn(json: string): { readonly problem: string; readonly isTwice: boolean } | undefined {
  /** The keys of each open object, undefined for an array. */
  const open: (Set<string> | undefined)[] = [];
  let isKeyNext = false;
  for (const [token] of json.matchAll(TOKEN)) {
    const keys = open.at(-1);
    if (token === '{' || token === '[') {
      open.push(token === '{' ? new Set() : undefined);
      isKeyNext = token === '{';
    } else if (token === '}' || token === ']') {
      open.pop();
      isKeyNext = false;
    } else if (token === ',') isKeyNext = keys !== undefined;
    else if (token === ':') isKeyNext = false;
    else {
      const text = String(JSON.parse(token));
      if (text.includes('\0') || !text.isWellFormed())
        return { problem: 'a text holds a zero character or half of a surrogate pair', isTwice: false };
      if (!isKeyNext || keys === undefined) continue;
      if (keys.has(text)) return { problem: `the key "${text.slice(0, 100)}" stands twice in one object`, isTwice: true };
      keys.add(text);
    }
  }
  return undefined;
}
