import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Books, Operation, TapeCall } from './books.js';
import { VICTIMS } from './plan.js';
import { backAfterMs, completions } from './recovery.js';
import { checksOf } from './verdict.js';

const DEMANDS = { leastEach: 2, leastMs: 90_000 };
const START = 1_000_000;
const STEADY_MS = 10_000;
const LOADED_MS = 100_000;
const EVERY_MS = 100;

/** Books of a run in which nothing went wrong: ten calls a second, each in flight for 50 ms, twenty-two kills, no call hit. */
function goodBooks(): Books {
  const operations: Operation[] = [];
  const calls: TapeCall[] = [];
  const effects = new Map<string, number>();
  for (let at = START; at < START + STEADY_MS + LOADED_MS; at += EVERY_MS) {
    const operationId = `operation-${at}`;
    operations.push({
      operationId,
      tool: 'mcp__one__count',
      claims: [at],
      ends: [{ status: 'completed', code: null, message: null, at: at + 50 }],
    });
    calls.push({ operationId, runId: 'one', name: `name-${at}`, results: ['completed'] });
    effects.set(`name-${at}`, 1);
  }
  const kills = [...VICTIMS, ...VICTIMS].map((victim, index) => ({
    victim,
    label: `${victim} ${index}`,
    at: START + STEADY_MS + 70 + index * 4_000,
  }));
  return {
    kills,
    steady: { from: START, to: START + STEADY_MS },
    offered: 10,
    loadedUntil: START + STEADY_MS + LOADED_MS,
    operations,
    calls,
    effects,
    messages: 2,
    callsOfRun: calls.length,
    untaken: [],
    runs: [
      { id: 'one', status: 'completed', attempts: 1, tookMs: 2_000 },
      { id: 'two', status: 'failed', attempts: 3, tookMs: 90_000 },
    ],
    orphans: [],
    fallen: [],
  };
}

const broken = (books: Books): string[] =>
  checksOf(books, DEMANDS)
    .filter(({ held }) => !held)
    .map(({ name }) => name);

const good = goodBooks();
const changed = (index: number, change: (operation: Operation) => Operation): Operation[] =>
  good.operations.map((operation, at) => (at === index ? change(operation) : operation));
const index = fc.nat({ max: good.operations.length - 1 });
const nameAt = (at: number): string => good.calls[at]?.name ?? '';

it('good books hold', () => expect(broken(good)).toEqual([]));

describe('the verdict is red, wherever it happens, for', () => {
  const goesRed = (title: string, spoil: (at: number) => Books, check: RegExp): void =>
    it(title, () => {
      fc.assert(
        fc.property(index, (at) => expect(broken(spoil(at))).toContainEqual(expect.stringMatching(check))),
        { numRuns: 50 },
      );
    });

  goesRed('a doubled effect', (at) => ({ ...good, effects: new Map(good.effects).set(nameAt(at), 2) }), /two effects/);
  goesRed(
    'a completed call without an effect',
    (at) => ({ ...good, effects: new Map([...good.effects].filter(([name]) => name !== nameAt(at))) }),
    /completed had one/,
  );
  goesRed('an effect that nobody asked for', (at) => ({ ...good, effects: new Map(good.effects).set(`else-${at}`, 1) }), /two effects/);
  goesRed(
    'an effect of a call that was never claimed',
    (at) => ({ ...good, operations: good.operations.filter((_, one) => one !== at) }),
    /two effects/,
  );
  goesRed('a claim that stands on no tape', (at) => ({ ...good, calls: good.calls.filter((_, one) => one !== at) }), /two effects/);
  goesRed(
    'an effect of a call that says that nothing was done',
    (at) => ({
      ...good,
      operations: changed(at, (one) => ({ ...one, ends: [{ status: 'failed', code: 'SERVER_UNAVAILABLE', message: null, at: 0 }] })),
    }),
    /two effects/,
  );
  goesRed('a missing end', (at) => ({ ...good, operations: changed(at, (one) => ({ ...one, ends: [] })) }), /one end/);
  goesRed(
    'a second end',
    (at) => ({ ...good, operations: changed(at, (one) => ({ ...one, ends: [...one.ends, ...one.ends] })) }),
    /one end/,
  );
  goesRed('a second claim', (at) => ({ ...good, operations: changed(at, (one) => ({ ...one, claims: [...one.claims, 1] })) }), /one end/);
  goesRed(
    'a call without a result on its tape',
    (at) => ({ ...good, calls: good.calls.map((call, one) => (one === at ? { ...call, results: [] } : call)) }),
    /tape/,
  );
  goesRed(
    'a tape that says something else',
    (at) => ({ ...good, calls: good.calls.map((call, one) => (one === at ? { ...call, results: ['failed'] } : call)) }),
    /tape/,
  );
  goesRed(
    'a call that is completed on its tape alone',
    (at) => ({
      ...good,
      operations: good.operations.filter((_, one) => one !== at),
      effects: new Map([...good.effects].filter(([name]) => name !== nameAt(at))),
    }),
    /tape/,
  );
  goesRed('a call that a completed run never made', (at) => ({ ...good, calls: good.calls.filter((_, one) => one !== at) }), /run ended/);
  goesRed(
    'a call that is parked and was in flight at no kill',
    (at) => ({
      ...good,
      operations: changed(at, (one) => ({
        ...one,
        ends: [{ status: 'indeterminate', code: null, message: null, at: (one.claims[0] ?? 0) + 10 }],
      })),
    }),
    /parked/,
  );
});

describe('the verdict is red for', () => {
  it('a call that is parked over kills of processes that are on no call’s way', () => {
    const off = good.kills.find(({ victim }) => victim === 'skill-store');
    const at = good.operations.findIndex(({ claims }) => (claims[0] ?? 0) > (off?.at ?? 0)) - 1;
    const operations = changed(at, (one) => ({
      ...one,
      ends: [{ status: 'indeterminate', code: null, message: null, at: (off?.at ?? 0) + 500 }],
    }));
    expect(broken({ ...good, operations })).toContainEqual(expect.stringMatching(/parked/));
  });

  it('more than one operation in twenty that did not complete', () => {
    const few = (share: number): Books => ({
      ...good,
      operations: good.operations.map((one, at) =>
        at % Math.round(1 / share) === 0
          ? { ...one, ends: [{ status: 'failed', code: 'TOOL_FAILED', message: null, at: one.ends[0]?.at ?? 0 }] }
          : one,
      ),
    });
    expect(broken(few(0.06))).toContainEqual(expect.stringMatching(/95 %/));
    expect(broken(few(0.04))).not.toContainEqual(expect.stringMatching(/95 %/));
  });

  it.each(good.kills)('throughput that is away for more than ten seconds after the kill of $label', ({ at }) => {
    const slow = (ms: number): Books => ({
      ...good,
      operations: good.operations.map((one) => {
        const end = one.ends[0]?.at ?? 0;
        return end > at && end < at + ms ? { ...one, ends: [{ status: 'failed', code: 'TOOL_FAILED', message: null, at: end }] } : one;
      }),
    });
    expect(broken(slow(9_000))).toContainEqual(expect.stringMatching(/10 s/));
    expect(broken(slow(7_500))).not.toContainEqual(expect.stringMatching(/10 s/));
  });

  it('a load that was not carried before the first kill', () => {
    expect(broken({ ...good, offered: 14 })).toEqual([expect.stringMatching(/10 s/)]);
  });

  it('a run that did not end, a message without a run, a message that nobody took', () => {
    for (const status of ['queued', 'running', 'suspended'] as const)
      expect(broken({ ...good, runs: good.runs.map((run) => ({ ...run, status })) })).toEqual([expect.stringMatching(/run ended/)]);
    expect(broken({ ...good, runs: good.runs.slice(1) })).toEqual([expect.stringMatching(/run ended/)]);
    expect(broken({ ...good, untaken: ['503'] })).toEqual([expect.stringMatching(/run ended/)]);
  });

  it('a call without a result, unless its run failed', () => {
    const calls = (runId: string): TapeCall[] => good.calls.map((call, at) => (at === 0 ? { ...call, runId, results: [] } : call));
    expect(broken({ ...good, calls: calls('one') })).toEqual([expect.stringMatching(/tape/)]);
    expect(broken({ ...good, calls: calls('two'), callsOfRun: good.calls.length - 1 })).toEqual([]);
  });

  it('an orphan, and a process that ended by itself', () => {
    expect(broken({ ...good, orphans: ['17 node server.mjs'] })).toEqual([expect.stringMatching(/left over/)]);
    expect(broken({ ...good, fallen: ['mcp-broker'] })).toEqual([expect.stringMatching(/by itself/)]);
  });

  it('too few kills, a kind that was spared, too short a time, and nothing done at all', () => {
    expect(broken({ ...good, kills: good.kills.slice(1) })).toEqual([expect.stringMatching(/enough/)]);
    expect(broken({ ...good, loadedUntil: START + STEADY_MS + 89_000 })).toContainEqual(expect.stringMatching(/enough/));
    const empty = { ...good, operations: [], calls: [], effects: new Map<string, number>() };
    expect(broken(empty)).toEqual([expect.stringMatching(/95 %/), expect.stringMatching(/10 s/), expect.stringMatching(/run ended/)]);
  });
});

it('throughput is back when a window after the kill is as full as before: never sooner than the window', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 60_000 }), fc.integer({ min: 0, max: 20_000 }), (after, awayMs) => {
      const at = START + STEADY_MS + after;
      const moments = completions(good).filter((one) => one <= at || one > at + awayMs);
      const back = backAfterMs({ at }, moments, good);
      expect(back).toBeGreaterThanOrEqual(2_000);
      expect(back).toBeLessThanOrEqual(awayMs + 2_100);
      expect(back).toBeGreaterThanOrEqual(awayMs + 1_300);
    }),
    { numRuns: 200 },
  );
});
