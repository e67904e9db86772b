// The figures of all repetitions, and whether the budget of the design holds.
import { median } from './load.mjs';

export const BUDGET = { latencyRatio: 2.5, rateRatio: 0.3, addedMs: 1.2, factsPerCall: 2 };

/** One row for each cell and number of lanes: medians over the repetitions. */
export function rowsOf(measured) {
  const groups = Map.groupBy(measured, ({ cell, lanes }) => `${cell} ${lanes}`);
  return [...groups.values()].map((all) => ({
    cell: all[0].cell,
    lanes: all[0].lanes,
    p50: median(all.map(({ p50 }) => p50)),
    p99: median(all.map(({ p99 }) => p99)),
    rate: median(all.map(({ rate }) => rate)),
    errors: all.reduce((sum, { errors }) => sum + errors, 0),
    calls: all.reduce((sum, { calls }) => sum + calls, 0),
    repetitions: all.length,
    /** Milliseconds of processor time a call, by process, while calls ran. */
    processor: Object.fromEntries(Object.keys(all[0].processor).map((name) => [name, median(all.map(({ processor }) => processor[name]))])),
  }));
}

/** Each ratio is taken inside one repetition; what is told is their median and range. */
export function comparisonsOf(measured) {
  const at = (repetition, cell, lanes) => measured.find((one) => one.repetition === repetition && one.cell === cell && one.lanes === lanes);
  const repetitions = [...new Set(measured.map(({ repetition }) => repetition))];
  const lanesSeen = [...new Set(measured.map(({ lanes }) => lanes))];
  const compared = [];
  const compare = (name, lanes, value) => {
    const values = repetitions.map((repetition) => value((cell) => at(repetition, cell, lanes)));
    compared.push({ name, lanes, median: median(values), lowest: Math.min(...values), highest: Math.max(...values) });
  };
  for (const lanes of lanesSeen) {
    for (const cell of ['memory', 'stdio']) {
      compare(`p50 ${cell} / floor`, lanes, (of) => of(cell).p50 / of('floor').p50);
      compare(`rate ${cell} / floor`, lanes, (of) => of(cell).rate / of('floor').rate);
    }
    compare('p50 stdio - direct, ms', lanes, (of) => of('stdio').p50 - of('direct').p50);
  }
  return compared;
}

/** One sentence for each thing that is not as the budget says; none where all is well. */
export function complaintsOf(measured, comparisons) {
  const found = [];
  const value = (name, lanes) => comparisons.find((one) => one.name === name && one.lanes === lanes)?.median ?? Number.NaN;
  const errors = measured.reduce((sum, one) => sum + one.errors, 0);
  if (errors > 0) found.push(`${errors} calls failed; there may be none.`);
  for (const { cell, lanes, repetition, calls, facts } of measured) {
    if (facts !== undefined && facts !== calls * BUDGET.factsPerCall)
      found.push(
        `The journal took ${facts} facts for ${calls} calls (${cell}, ${lanes} at once, repetition ${repetition}); it has to take two a call.`,
      );
  }
  const latency = value('p50 memory / floor', 1);
  if (!(latency <= BUDGET.latencyRatio))
    found.push(`One call at a time takes ${latency.toFixed(2)} times the floor; it may take ${BUDGET.latencyRatio}.`);
  const rate = value('rate memory / floor', 64);
  if (!(rate >= BUDGET.rateRatio))
    found.push(`With 64 runs the rate is ${rate.toFixed(2)} of the floor; it has to be ${BUDGET.rateRatio}.`);
  const added = value('p50 stdio - direct, ms', 1);
  if (!(added <= BUDGET.addedMs))
    found.push(`A stdio server costs ${added.toFixed(2)} ms more than with the SDK alone; it may cost ${BUDGET.addedMs}.`);
  return found;
}
