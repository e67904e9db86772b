import { sha256Hex } from '@ambit/capability';
import { Fault } from '@ambit/contracts';
import { stopped, type DispatchEnd, type ToolResult } from '../domain/call-end.js';

/** The largest result that is taken from whoever executed a call. */
const MAX_LARGE_BYTES = 32 * 1024 * 1024;

interface Page {
  readonly data: string;
  readonly next: number | null;
}

/**
 * Ends a call by its large result: fetched page by page, held against its digest, and read as what its executor answers with. The call has happened,
 * whatever becomes of that. Throws when the pages have no end.
 */
export async function answeredInPages(
  { digest, bytes }: { readonly digest: string; readonly bytes: number },
  page: (offset: number) => Promise<Page>,
  read: (value: unknown) => ToolResult | undefined,
): Promise<DispatchEnd> {
  const tooLarge = (message?: string): DispatchEnd =>
    stopped('failed', 'RESULT_TOO_LARGE', {
      data: { limitBytes: MAX_LARGE_BYTES, actualBytes: bytes },
      ...(message === undefined ? {} : { message }),
    });
  if (bytes > MAX_LARGE_BYTES) return tooLarge();
  try {
    const text = await fetchText(page);
    const result = sha256Hex(text) === digest ? read(JSON.parse(text)) : undefined;
    return result === undefined
      ? tooLarge('The call has happened, but its large result did not arrive whole')
      : { kind: 'answered', result };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return tooLarge('The call has happened, but its large result could not be fetched');
  }
}

async function fetchText(page: (offset: number) => Promise<Page>): Promise<string> {
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
  return Buffer.concat(parts).toString('utf8');
}
