export interface Page<T> {
  readonly items: T[];
  readonly cursor?: string;
}

/** One page of rows in order of their ids: one more is read than is given, to know whether there are more. */
export async function paged<T>(limit: number, idOf: (item: T) => string, read: (limit: number) => Promise<readonly T[]>): Promise<Page<T>> {
  const rows = await read(limit + 1);
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return rows.length > limit && last !== undefined ? { items, cursor: idOf(last) } : { items };
}

/** Walks every page of a bus call. */
export async function allPages<T>(
  read: (cursor: string | undefined) => Promise<{ readonly items: readonly T[]; readonly cursor?: string | undefined }>,
): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await read(cursor);
    items.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return items;
}
