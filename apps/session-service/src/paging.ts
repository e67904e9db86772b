import { platformFault } from '@ambit/contracts';
import { cursorOf, placeOf, type Place } from './domain/cursor.js';

/** Reads a page's cursor. Throws INVALID_INPUT for one that no page gave. */
export function placeFrom(cursor: string | undefined): Place | undefined {
  const place = cursor === undefined ? undefined : placeOf(cursor);
  if (cursor !== undefined && place === undefined)
    throw platformFault('INVALID_INPUT', { issues: [{ path: 'cursor', message: 'send back the cursor of the page before, as it was' }] });
  return place;
}

/** A page of things ordered by time, with the cursor of the next where there may be one. */
export function pageOf<T extends { readonly id: string; readonly createdAt: string }>(
  items: T[],
  limit: number,
): { items: T[]; cursor?: string } {
  const last = items.at(-1);
  return { items, ...(items.length === limit && last !== undefined ? { cursor: cursorOf(last.createdAt, last.id) } : {}) };
}
