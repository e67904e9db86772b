import { utf8ToBytes } from '@noble/hashes/utils.js';

/** One result and the size of each form that it could be shown in, in the unit of the budget. An absent form cannot be had. */
export interface Fittable {
  readonly callId: string;
  readonly whole: number;
  /** The beginning, and a reference to the artifact that has all of it. */
  readonly excerpt?: number;
  /** One line that says that the result was left out, and where it is. */
  readonly line: number;
}

export interface Fitted {
  readonly callId: string;
  readonly as: 'whole' | 'excerpt' | 'line';
  readonly size: number;
}

export type Fit =
  | { readonly fits: true; readonly results: readonly Fitted[]; readonly total: number }
  /** Not even the shortest forms fit; what has happened stays recorded in full, and whoever answers leaves out more. */
  | { readonly fits: false; readonly smallest: number };

export interface FitOptions {
  readonly budget: number;
  /** A result above this is shown as an excerpt even where there is room. @default no limit */
  readonly wholeLimit?: number;
}

/**
 * Chooses how each result is shown so that all fit the budget: shortened from the last backwards, each through excerpt and line before the one before it
 * is touched. Order stays, every call keeps exactly one result, and nothing is run again.
 */
export function fitResults(results: readonly Fittable[], { budget, wholeLimit = Number.POSITIVE_INFINITY }: FitOptions): Fit {
  const fitted = results.map((result): Fitted => {
    const excerpt = result.whole > wholeLimit ? shorter(result, 'excerpt') : null;
    return excerpt ?? { callId: result.callId, as: 'whole', size: result.whole };
  });
  let total = fitted.reduce((sum, result) => sum + result.size, 0);
  for (let index = results.length - 1; index >= 0 && total > budget; index--) {
    const result = results[index];
    if (result === undefined) continue;
    for (const form of ['excerpt', 'line'] as const) {
      const current = fitted[index];
      const next = shorter(result, form);
      if (total <= budget || current === undefined || next === null || next.size >= current.size) continue;
      total += next.size - current.size;
      fitted[index] = next;
    }
  }
  return total <= budget ? { fits: true, results: fitted, total } : { fits: false, smallest: total };
}

function shorter(result: Fittable, form: 'excerpt' | 'line'): Fitted | null {
  const size = result[form];
  return size === undefined || size >= result.whole ? null : { callId: result.callId, as: form, size };
}

/** The beginning of a text, at most so many bytes of UTF-8, never half a character. */
export function excerptOf(text: string, maxBytes: number): string {
  const bytes = utf8ToBytes(text.slice(0, maxBytes));
  let end = Math.min(maxBytes, bytes.length);
  // Bytes of the form 10xxxxxx continue a character: cut before the one that begins it.
  while (end > 0 && end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return new TextDecoder().decode(bytes.slice(0, end));
}
