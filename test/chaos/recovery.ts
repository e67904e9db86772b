import type { Books, Kill } from './books.js';

/** Throughput is back when calls complete at this share of the pace before the first kill, over so many milliseconds. */
const BACK = 0.75;
const WINDOW_MS = 2_000;
const STEP_MS = 100;

/** The moments at which calls completed, in order. */
export function completions({ operations }: Pick<Books, 'operations'>): number[] {
  return operations.flatMap(({ ends }) => ends.filter(({ status }) => status === 'completed').map(({ at }) => at)).sort((a, b) => a - b);
}

/** Completed calls a second between two moments. */
export function paceBetween(moments: readonly number[], from: number, to: number): number {
  if (to <= from) return 0;
  return moments.filter((at) => at > from && at <= to).length / ((to - from) / 1_000);
}

/**
 * Milliseconds after a kill until calls completed at their old pace; the window lies behind the kill, so it is never less than its length.
 * Undefined where that was not seen while there was load.
 */
export function backAfterMs(
  kill: Pick<Kill, 'at'>,
  moments: readonly number[],
  world: Pick<Books, 'steady' | 'loadedUntil'>,
): number | undefined {
  const wanted = BACK * paceBetween(moments, world.steady.from, world.steady.to);
  const near = moments.filter((at) => at > kill.at);
  for (let end = kill.at + WINDOW_MS; end <= world.loadedUntil; end += STEP_MS)
    if (paceBetween(near, end - WINDOW_MS, end) >= wanted) return end - kill.at;
  return undefined;
}
