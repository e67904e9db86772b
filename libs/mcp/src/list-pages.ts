import type { Diagnostic } from './tools.js';

const MAX_PAGES = 64;
const MAX_ITEMS = 10_000;

/** Everything that a server lists of one kind. */
export interface AllPages {
  readonly items: readonly unknown[];
  readonly notes: readonly Diagnostic[];
  readonly ttlMs?: number;
}

/**
 * Reads page after page until there is no cursor. `page` answers one page, undefined where the server does not know the method; `field` names the list
 * in it, `noun` the list for a person.
 */
export async function allPages(
  page: (cursor: string | undefined) => Promise<Readonly<Record<string, unknown>> | undefined>,
  { field, noun }: { readonly field: string; readonly noun: string },
): Promise<AllPages> {
  const items: unknown[] = [];
  const notes: Diagnostic[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  let ttlMs: number | undefined;
  for (let pages = 1; ; pages++) {
    const answer = await page(cursor);
    if (answer === undefined) return { items: [], notes: [] };
    const listed = answer[field];
    if (Array.isArray(listed)) items.push(...listed.slice(0, MAX_ITEMS - items.length));
    if (typeof answer['ttlMs'] === 'number') ttlMs = answer['ttlMs'];
    const next = answer['nextCursor'];
    // An empty string is a cursor like any other; only absence ends the list.
    if (typeof next !== 'string') break;
    if (seen.has(next)) {
      notes.push({ tool: '', message: `The list of ${noun} repeats a cursor; reading stopped there` });
      break;
    }
    if (pages >= MAX_PAGES || items.length >= MAX_ITEMS) {
      notes.push({
        tool: '',
        message: `The list of ${noun} goes on after ${MAX_PAGES} pages or ${MAX_ITEMS} entries; the rest is left out`,
      });
      break;
    }
    seen.add(next);
    cursor = next;
  }
  return { items, notes, ...(ttlMs === undefined ? {} : { ttlMs }) };
}
