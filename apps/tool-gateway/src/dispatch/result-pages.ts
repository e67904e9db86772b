import { sha256Hex } from '@ambit/capability';

/** The largest result that is taken from whoever executed a call. */
export const MAX_LARGE_BYTES = 32 * 1024 * 1024;

interface Page {
  readonly data: string;
  readonly next: number | null;
}

/** Fetches the text of a large result page by page; undefined where it is not the one that was announced. Throws when it has no end. */
export async function largeResult(
  { digest }: { readonly digest: string },
  page: (offset: number) => Promise<Page>,
): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let size = 0;
  for (let offset: number | null = 0; offset !== null;) {
    const { data, next }: Page = await page(offset);
    const part = Buffer.from(data, 'base64');
    size += part.length;
    if (size > MAX_LARGE_BYTES || (part.length === 0 && next !== null)) throw new Error('a large result has no end');
    parts.push(part);
    offset = next;
  }
  const text = Buffer.concat(parts).toString('utf8');
  return sha256Hex(text) === digest ? text : undefined;
}
