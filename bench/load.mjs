// A closed loop: each lane has one call open at a time, and begins the next when it ends.

/**
 * Runs `calls` calls over `lanes` lanes, in waves that are prepared outside the measured time.
 * `prepare(lanes, perLane)` gives `call(lane, index)`, which says whether the answer was right. `sample` tells what each process has
 * used of the processor so far, in milliseconds; what it tells of the measured time comes back by call.
 */
export async function load(cell, { lanes, calls, sample }) {
  const latencies = [];
  let elapsedMs = 0;
  let errors = 0;
  const used = new Map();
  for (let left = Math.ceil(calls / lanes); left > 0;) {
    const perLane = Math.min(left, cell.callsAtOnce ?? left);
    left -= perLane;
    const call = await cell.prepare(lanes, perLane);
    await cell.settle?.();
    const before = sample?.();
    const began = performance.now();
    await Promise.all(
      Array.from({ length: lanes }, async (_, lane) => {
        for (let index = 0; index < perLane; index++) {
          const sent = performance.now();
          const isRight = await call(lane, index).catch((error) => {
            cell.lastError = error;
            return false;
          });
          if (isRight) latencies.push(performance.now() - sent);
          else errors++;
        }
      }),
    );
    elapsedMs += performance.now() - began;
    for (const [name, ms] of sample?.() ?? []) used.set(name, (used.get(name) ?? 0) + ms - (before.get(name) ?? ms));
  }
  latencies.sort((a, b) => a - b);
  return {
    calls: latencies.length + errors,
    errors,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    rate: latencies.length / (elapsedMs / 1_000),
    processor: Object.fromEntries([...used].map(([name, ms]) => [name, ms / (latencies.length + errors)])),
  };
}

function percentile(sorted, share) {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
