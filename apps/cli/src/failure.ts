import { AmbitError, Unreachable } from '@ambit/client';
import { ManifestInvalid } from '@ambit/client/manifest';
import type { Context } from './context.js';
import { UsageError } from './usage-error.js';
import { cell, printable } from './table.js';

/** Tells what went wrong in a sentence or two, and gives the exit code. */
export function tellFailure(context: Context, error: unknown): number {
  if (context.wantsJson) context.io.complain(`${JSON.stringify({ error: asJson(error) })}\n`);
  else context.io.complain(`${context.paint.red('ambit:')} ${wordsOf(error)}\n`);
  return error instanceof UsageError ? 2 : 1;
}

function wordsOf(error: unknown): string {
  if (error instanceof ManifestInvalid)
    return `the file cannot be taken:\n${error.problems.map((problem) => `  ${printable(problem, 1_000)}`).join('\n')}`;
  if (error instanceof AmbitError) {
    const again = error.retry === 'later' ? ' Trying again later may help.' : '';
    const trace = error.code === 'INTERNAL' && error.traceId !== null ? ` (trace ${error.traceId})` : '';
    return `${printable(error.message, 2_000)}${/[.!?]$/.test(error.message) ? '' : '.'}${dataWords(error.data)}${again} [${error.code}]${trace}`;
  }
  return printable(error instanceof Error ? error.message : String(error), 2_000);
}

/** What the server says more than the sentence, where it fits on a line. */
function dataWords(data: unknown): string {
  if (typeof data !== 'object' || data === null || 'issues' in data || 'traceId' in data) return '';
  return ` (${Object.entries(data)
    .map(([name, value]) => `${name}: ${cell(value)}`)
    .join(', ')})`;
}

function asJson(error: unknown): unknown {
  if (error instanceof AmbitError)
    return {
      code: error.code,
      status: error.status,
      message: error.message,
      retry: error.retry,
      data: error.data ?? null,
      traceId: error.traceId,
    };
  if (error instanceof ManifestInvalid) return { code: 'MANIFEST_INVALID', message: 'The file cannot be taken', problems: error.problems };
  const code = error instanceof UsageError ? 'USAGE' : error instanceof Unreachable ? 'UNREACHABLE' : 'FAILED';
  return { code, message: error instanceof Error ? error.message : String(error) };
}
