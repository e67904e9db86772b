import type { Books, Demands, Kill, Operation, TapeCall } from './books.js';
import { VICTIMS, type Victim } from './plan.js';
import { backAfterMs, completions, paceBetween } from './recovery.js';

const LEAST_COMPLETED = 0.95;
const BACK_WITHIN_MS = 10_000;
const STEADY_SHARE = 0.75;
const MOST_TOLD = 10;
/** With these a call in flight can get lost; the others are on no call's way. */
const PARKING: ReadonlySet<Victim> = new Set(['tool-gateway', 'mcp-broker', 'mcp-runner', 'stdio-server', 'nats-server', 'worker']);
/** Codes with which a call says that nothing was done. */
const NOTHING_DONE: ReadonlySet<string> = new Set(['SERVER_UNAVAILABLE', 'TARGET_CHANGED', 'TOOL_GONE']);

export interface Check {
  readonly name: string;
  readonly held: boolean;
  /** What is wrong, at most ten of them. */
  readonly says: readonly string[];
}

/** What the books say, each rule by itself. */
export function checksOf(books: Books, demands: Demands): Check[] {
  return [
    check('enough was killed', tooFewKills(books, demands)),
    check('every operation has one end', endsThatAreNotOne(books)),
    check('no operation had two effects, and what completed had one', wrongEffects(books)),
    check('the tape says of each call what the journal says', wrongTapes(books)),
    check('only calls in flight at a kill are parked', wronglyParked(books)),
    check('95 % of the operations completed', tooFewCompleted(books)),
    check('throughput was back within 10 s of each kill', lateRecoveries(books)),
    check('every message was taken and its run ended', stuckRuns(books)),
    check('no process is left over', books.orphans),
    check('no process that served ended by itself', books.fallen),
  ];
}

/** What is sent to a process right after its signal was noted is still taken, and lost. */
const TAKES_EFFECT_MS = 20;

/** In flight at a kill: claimed before it, and not ended yet. */
export function inFlightAt({ at }: Pick<Kill, 'at'>, operations: readonly Operation[]): Operation[] {
  return operations.filter(
    ({ claims, ends }) => claims.some((claimed) => claimed <= at + TAKES_EFFECT_MS) && !ends.some((end) => end.at <= at),
  );
}

export function isParked({ ends }: Operation): boolean {
  return ends.some(({ status }) => status === 'indeterminate');
}

function check(name: string, wrong: readonly string[]): Check {
  const more = wrong.length > MOST_TOLD ? [`and ${wrong.length - MOST_TOLD} more`] : [];
  return { name, held: wrong.length === 0, says: [...wrong.slice(0, MOST_TOLD), ...more] };
}

function tooFewKills({ kills, steady, loadedUntil }: Books, { leastEach, leastMs }: Demands): string[] {
  const rare = VICTIMS.map((victim) => ({ victim, times: kills.filter((kill) => kill.victim === victim).length }));
  const lasted = loadedUntil - steady.to;
  return [
    ...(lasted < leastMs ? [`it took ${Math.round(lasted / 1_000)} s, wanted ${leastMs / 1_000}`] : []),
    ...rare.filter(({ times }) => times < leastEach).map(({ victim, times }) => `${victim} was killed ${times} times, wanted ${leastEach}`),
  ];
}

function endsThatAreNotOne({ operations }: Books): string[] {
  return operations.flatMap(({ operationId, claims, ends }) => [
    ...(claims.length === 1 ? [] : [`${operationId} has ${claims.length} claims`]),
    ...(ends.length === 1 ? [] : [`${operationId} has ${ends.length === 0 ? 'no end' : `${ends.length} ends`}`]),
  ]);
}

function wrongEffects({ operations, calls, effects }: Books): string[] {
  const journal = new Map(operations.map((operation) => [operation.operationId, operation]));
  const named = new Map<string, TapeCall>();
  const wrong: string[] = [];
  for (const call of calls) {
    if (named.has(call.name)) wrong.push(`${call.name} stands on the tape twice`);
    named.set(call.name, call);
    const times = effects.get(call.name) ?? 0;
    const operation = journal.get(call.operationId);
    const [end] = operation?.ends ?? [];
    if (times > 1) wrong.push(`${call.name} was done ${times} times`);
    if (operation === undefined && times > 0) wrong.push(`${call.name} was done and never claimed`);
    if (end?.status === 'completed' && times !== 1) wrong.push(`${call.name} completed and was done ${times} times`);
    if (end?.status === 'failed' && NOTHING_DONE.has(end.code ?? '') && times > 0)
      wrong.push(`${call.name} says ${end.code ?? ''} and was done all the same`);
  }
  for (const name of effects.keys()) if (!named.has(name)) wrong.push(`${name} was done and stands on no tape`);
  const known = new Set(calls.map(({ operationId }) => operationId));
  for (const { operationId } of operations) if (!known.has(operationId)) wrong.push(`${operationId} was claimed and stands on no tape`);
  return wrong;
}

function wrongTapes({ operations, calls, runs }: Books): string[] {
  const journal = new Map(operations.map((operation) => [operation.operationId, operation]));
  // A run that failed says nothing more: its last calls may have no result, and the journal has their ends.
  const failed = new Set(runs.filter(({ status }) => status === 'failed').map(({ id }) => id));
  return calls.flatMap(({ operationId, runId, name, results }) => {
    if (results.length === 0 && failed.has(runId)) return [];
    if (results.length !== 1) return [`${name} has ${results.length} results on its tape`];
    const operation = journal.get(operationId);
    // What was never claimed was refused; what has no end yet is another rule's.
    const end = operation === undefined ? 'refused' : operation.ends[0]?.status;
    return end === undefined || end === results[0] ? [] : [`${name} is ${results[0] ?? ''} on its tape and ${end} in the journal`];
  });
}

function wronglyParked({ operations, kills }: Books): string[] {
  const inFlight = new Set(kills.filter(({ victim }) => PARKING.has(victim)).flatMap((kill) => inFlightAt(kill, operations)));
  const parked = operations.filter((operation) => isParked(operation) && !inFlight.has(operation));
  return parked.map(({ operationId, tool, claims, ends }) => {
    const claimed = claims[0] ?? 0;
    const before = kills.findLast(({ at }) => at <= claimed);
    const since = before === undefined ? 'before all kills' : `${seconds(claimed - before.at)} after the kill of ${before.label}`;
    const [end] = ends;
    return `${operationId} of ${tool}, claimed ${since}, is parked ${seconds((end?.at ?? claimed) - claimed)} later (${end?.message ?? 'without a word'}) and no kill explains it`;
  });
}

function tooFewCompleted({ operations }: Books): string[] {
  const completed = operations.filter(({ ends }) => ends[0]?.status === 'completed').length;
  if (operations.length === 0) return ['nothing was called'];
  const share = completed / operations.length;
  return share >= LEAST_COMPLETED ? [] : [`${completed} of ${operations.length} operations completed (${(share * 100).toFixed(1)} %)`];
}

function lateRecoveries(books: Books): string[] {
  const moments = completions(books);
  const steady = paceBetween(moments, books.steady.from, books.steady.to);
  // Coming back to a crawl would be no recovery.
  if (steady < STEADY_SHARE * books.offered)
    return [
      `${steady.toFixed(1)} of ${books.offered} calls a second completed before the first kill: this machine does not carry the load`,
    ];
  return books.kills.flatMap((kill) => {
    const back = backAfterMs(kill, moments, books);
    if (back !== undefined && back <= BACK_WITHIN_MS) return [];
    return [`after the kill of ${kill.label} it took ${back === undefined ? 'for ever' : `${(back / 1_000).toFixed(1)} s`}`];
  });
}

function stuckRuns({ messages, untaken, runs, calls, callsOfRun }: Books): string[] {
  const made = new Map<string, number>();
  for (const { runId } of calls) made.set(runId, (made.get(runId) ?? 0) + 1);
  return [
    ...untaken.map((reason) => `a message was not taken: ${reason}`),
    ...(runs.length === messages ? [] : [`${messages} messages were taken and there are ${runs.length} runs`]),
    ...runs.filter(({ status }) => OPEN.has(status)).map(({ id, status }) => `run ${id} is still ${status}`),
    ...runs
      .filter(({ id, status }) => status === 'completed' && made.get(id) !== callsOfRun)
      .map(({ id }) => `run ${id} completed with ${made.get(id) ?? 0} of its ${callsOfRun} calls`),
  ];
}
const seconds = (ms: number): string => `${(ms / 1_000).toFixed(2)} s`;
const OPEN: ReadonlySet<string> = new Set(['queued', 'running', 'suspended']);
