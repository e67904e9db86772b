import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { planKills, VICTIMS } from './plan.js';

const options = fc.record({
  seed: fc.nat(),
  spanMs: fc.integer({ min: 10_000, max: 300_000 }),
  everyMs: fc.integer({ min: 1_000, max: 20_000 }),
  leastEach: fc.integer({ min: 0, max: 4 }),
});

it('a plan kills each kind as often as it must, in order, within its time, and the same with the same seed', () => {
  fc.assert(
    fc.property(options, (given) => {
      const plan = planKills(given);
      expect(planKills(given)).toEqual(plan);
      for (const victim of VICTIMS) expect(plan.filter((kill) => kill.victim === victim).length).toBeGreaterThanOrEqual(given.leastEach);
      expect(plan.map(({ atMs }) => atMs)).toEqual(plan.map(({ atMs }) => atMs).sort((a, b) => a - b));
      expect(plan.length).toBeGreaterThanOrEqual(Math.floor(given.spanMs / given.everyMs));
      expect(plan.every(({ atMs, which }) => atMs >= 0 && atMs <= given.spanMs && which >= 0 && which < 1)).toBe(true);
    }),
    { numRuns: 1_000 },
  );
});

it('another seed makes another plan', () => {
  const of = (seed: number): string => JSON.stringify(planKills({ seed, spanMs: 90_000, everyMs: 4_000, leastEach: 2 }));
  expect(new Set([1, 2, 3, 4, 5].map(of)).size).toBe(5);
});
