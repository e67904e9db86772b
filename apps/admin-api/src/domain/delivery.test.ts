import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { delayAfter, verdictOf } from './delivery.js';

const HOUR_MS = 3_600_000;
const chance = fc.double({ min: 0, max: 1, noNaN: true });

it('waits from 5 seconds to an hour, never less after more attempts', () => {
  expect([1, 2, 3, 10, 11, 500].map((attempts) => delayAfter(attempts, 0))).toEqual([
    5_000, 10_000, 20_000, 2_560_000, 2_880_000, 2_880_000,
  ]);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2_000 }), chance, (attempts, drawn) => {
      const delay = delayAfter(attempts, drawn);
      expect(delay).toBeGreaterThanOrEqual(5_000);
      expect(delay).toBeLessThanOrEqual(HOUR_MS);
      expect(delayAfter(attempts + 1, drawn)).toBeGreaterThanOrEqual(delay);
    }),
  );
});

it('tries again for a day and no longer, and remembers why', () => {
  const refused = { kind: 'refused', error: 'it answered 500' } as const;
  expect(verdictOf(refused, { attempts: 1, ageMs: 0, chance: 0 })).toEqual({ status: 'pending', error: 'it answered 500', delayMs: 5_000 });
  expect(verdictOf(refused, { attempts: 40, ageMs: 23.5 * HOUR_MS, chance: 0 })).toEqual({ status: 'failed', error: 'it answered 500' });
  expect(verdictOf({ ...refused, error: 'x'.repeat(9_000) }, { attempts: 1, ageMs: 0, chance: 0 }).error).toHaveLength(500);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 200 }), fc.integer({ min: 0, max: 48 * HOUR_MS }), chance, (attempts, ageMs, drawn) => {
      const verdict = verdictOf(refused, { attempts, ageMs, chance: drawn });
      expect(verdict.status === 'pending' ? ageMs + verdict.delayMs <= 24 * HOUR_MS : ageMs > 22.9 * HOUR_MS).toBe(true);
    }),
  );
});

it('ends with what was taken, and with what nobody waits for', () => {
  const about = { attempts: 3, ageMs: 25 * HOUR_MS, chance: 0 };
  expect(verdictOf({ kind: 'taken' }, about)).toEqual({ status: 'delivered', error: null });
  expect(verdictOf({ kind: 'obsolete', reason: 'decided' }, about)).toEqual({ status: 'obsolete', error: 'decided' });
});
