import { fitResults } from '@ambit/capability';
import type { CallResult } from '@ambit/contracts';
import { stubText, textOf } from './call-end.js';

/** What the results of one answer may weigh together, in bytes of JSON. */
const REPLY_BYTES = 400 * 1024;

const sizeOf = (result: CallResult): number => new TextEncoder().encode(JSON.stringify(result)).length;

/** Shortens results from the last backwards until the answer fits; order and number stay, and nothing is run again. */
export function fitReply(results: readonly CallResult[], budget: number = REPLY_BYTES): CallResult[] {
  const weighed = results.map((result) => sizeOf(result));
  if (weighed.reduce((sum, size) => sum + size, 0) <= budget) return [...results];
  const forms = results.map((result) => ({ whole: result, excerpt: excerpt(result), line: line(result) }));
  const sizes = forms.map(({ whole, excerpt: short, line: shortest }, index) => ({
    callId: whole.callId,
    whole: weighed[index] ?? 0,
    excerpt: sizeOf(short),
    line: sizeOf(shortest),
  }));
  const fit = fitResults(sizes, { budget });
  // What is left then is the faults' own words: the codes stay.
  if (!fit.fits) return forms.map(({ whole, line: shortest }, index) => withoutWords(isShorter(sizes[index]) ? shortest : whole));
  return forms.map((form, index) => form[fit.results[index]?.as ?? 'line']);
}

/** Whether saying that a result was left out is shorter than the result. */
function isShorter(sizes: { readonly whole: number; readonly line: number } | undefined): boolean {
  return sizes !== undefined && sizes.line < sizes.whole;
}

function excerpt(result: CallResult): CallResult {
  if (result.content === undefined) return result;
  const { structuredContent: _left, ...rest } = result;
  return {
    ...rest,
    content: [
      {
        type: 'text',
        text: stubText(
          textOf({ content: result.content, structuredContent: result.structuredContent }),
          sizeOf(result),
          result.artifact?.digest,
        ),
      },
    ],
  };
}

const WORDS = 200;

/** A result whose fault says its code, and little more: as many as a batch can have fit an answer. */
function withoutWords(result: CallResult): CallResult {
  if (result.fault === undefined) return result;
  const { code, message } = result.fault;
  return { ...result, fault: { code, message: message.slice(0, WORDS) } };
}

function line(result: CallResult): CallResult {
  if (result.content === undefined) return result;
  const { structuredContent: _left, ...rest } = result;
  return { ...rest, content: [{ type: 'text', text: `(${sizeOf(result)} bytes, left out for size)` }] };
}
