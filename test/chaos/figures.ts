import type { Books, EndedRun } from './books.js';
import { VICTIMS } from './plan.js';
import { backAfterMs, completions, paceBetween } from './recovery.js';
import { inFlightAt, isParked } from './verdict.js';

const SLOWEST = 10;

/** The numbers of a run, for people and for `--json`. */
export interface Figures {
  readonly killed: Readonly<Record<string, number>>;
  readonly messages: number;
  readonly runs: Readonly<Record<string, number>>;
  /** Of how many runs a worker took each up so often. */
  readonly attempts: Readonly<Record<string, number>>;
  readonly medianRunMs: number;
  readonly slowestRuns: readonly EndedRun[];
  readonly operations: number;
  readonly ends: Readonly<Record<string, number>>;
  /** Calls that were refused, which have no operation. */
  readonly unclaimed: Readonly<Record<string, number>>;
  readonly faults: Readonly<Record<string, number>>;
  readonly completedShare: number;
  readonly effects: number;
  readonly parked: number;
  readonly inFlightAtKills: number;
  /** Completed calls a second: before the first kill, and while processes were killed. */
  readonly steadyPace: number;
  readonly pace: number;
  /** Completed calls in each second from the first of the steady pace on. */
  readonly completedBySecond: readonly number[];
  /** Milliseconds until throughput was back, by kind of process: the longest. */
  readonly longestBackMs: Readonly<Record<string, number | null>>;
}

export function figuresOf(books: Books): Figures {
  const { kills, operations, calls, runs, effects, steady, loadedUntil } = books;
  const moments = completions(books);
  const known = new Set(operations.map(({ operationId }) => operationId));
  const bySlowness = [...runs].sort((a, b) => b.tookMs - a.tookMs);
  const ends = count(operations.map((one) => one.ends[0]?.status ?? 'none'));
  return {
    killed: count(kills.map(({ victim }) => victim)),
    messages: books.messages,
    runs: count(runs.map(({ status }) => status)),
    attempts: count(runs.map(({ attempts }) => String(attempts))),
    medianRunMs: bySlowness[bySlowness.length >> 1]?.tookMs ?? 0,
    slowestRuns: bySlowness.slice(0, SLOWEST),
    operations: operations.length,
    ends,
    unclaimed: count(calls.filter(({ operationId }) => !known.has(operationId)).map(({ results }) => results[0] ?? 'none')),
    faults: count(operations.flatMap((one) => one.ends.flatMap(({ code }) => code ?? []))),
    completedShare: operations.length === 0 ? 0 : (ends['completed'] ?? 0) / operations.length,
    effects: [...effects.values()].reduce((sum, times) => sum + times, 0),
    parked: operations.filter(isParked).length,
    inFlightAtKills: new Set(kills.flatMap((kill) => inFlightAt(kill, operations))).size,
    steadyPace: paceBetween(moments, steady.from, steady.to),
    pace: paceBetween(moments, steady.to, loadedUntil),
    completedBySecond: Array.from({ length: Math.ceil((loadedUntil - steady.from) / 1_000) }, (_, second) =>
      paceBetween(moments, steady.from + second * 1_000, steady.from + (second + 1) * 1_000),
    ),
    longestBackMs: Object.fromEntries(
      VICTIMS.flatMap((victim) => {
        const backs = kills.filter((kill) => kill.victim === victim).map((kill) => backAfterMs(kill, moments, books) ?? null);
        return backs.length === 0 ? [] : [[victim, backs.includes(null) ? null : Math.max(...backs.map(Number))]];
      }),
    ),
  };
}

function count(values: readonly string[]): Readonly<Record<string, number>> {
  const found = new Map<string, number>();
  for (const value of values) found.set(value, (found.get(value) ?? 0) + 1);
  return Object.fromEntries([...found].sort());
}
