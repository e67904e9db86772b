import { setTimeout as pause } from 'node:timers/promises';

const PAUSE_MS = 20;

/** Resolves once it holds, looked at every 20 ms; rejects with an Error when it does not within so many ms. */
export async function until(holds: () => boolean | Promise<boolean>, withinMs = 10_000): Promise<void> {
  const end = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`it did not happen within ${withinMs} ms: ${String(holds)}`);
    await pause(PAUSE_MS);
  }
}
