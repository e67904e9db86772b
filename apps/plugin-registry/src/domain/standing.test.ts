import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { nextStep, restingState, UNFINISHED_MAX, type StandingNow } from './standing.js';

const standing: fc.Arbitrary<StandingNow> = fc.record({
  state: fc.constantFrom('enabled', 'disabled', 'unavailable'),
  wanted: fc.constantFrom('enabled', 'disabled'),
  problem: fc.option(fc.constant('it has lost a file')),
  isQuarantined: fc.boolean(),
  isOwed: fc.boolean(),
  unfinished: fc.nat(UNFINISHED_MAX + 1),
});
const check = (property: (now: StandingNow) => void) => fc.assert(fc.property(standing, property), { numRuns: 1_000 });

it('nothing is brought in that a person does not want, that cannot work, that failed before, or of which something is left', () => {
  check((now) => {
    if (nextStep(now) !== 'activate') return;
    expect(now).toMatchObject({ wanted: 'enabled', problem: null, isQuarantined: false, isOwed: false });
    expect(now.unfinished).toBeLessThan(UNFINISHED_MAX);
  });
});

it('what cannot work is taken away, and whatever is done comes to an end in the state that people are told', () => {
  check((start) => {
    let now = start;
    for (let steps = 0; ; steps++) {
      expect(steps).toBeLessThan(6);
      const step = nextStep(now);
      if (step === 'nothing') break;
      now = after(now, step);
    }
    const isThere = now.state === 'enabled';
    expect(isThere && now.problem !== null).toBe(false);
    if (!isThere) expect(now.state).toBe(restingState(now));
    if (!isThere) expect(now.state === 'disabled').toBe(start.wanted === 'disabled' && start.problem === null && !now.isQuarantined);
    expect(now.wanted).toBe(start.wanted);
  });
});

/** As the registry carries a step out, where everybody answers. */
function after(now: StandingNow, step: ReturnType<typeof nextStep>): StandingNow {
  switch (step) {
    case 'nothing':
      return now;
    case 'take-away':
      return { ...now, state: 'unavailable', isOwed: false };
    case 'settle':
      return { ...now, isOwed: false };
    case 'activate':
      return { ...now, state: 'enabled', unfinished: 0 };
    case 'quarantine':
      return { ...now, state: 'unavailable', isQuarantined: true, unfinished: 0 };
    case 'rest':
      return { ...now, state: restingState(now), unfinished: 0 };
  }
}
