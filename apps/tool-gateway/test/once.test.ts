// At most one effect of each operation, whatever ends between which two steps: the gateway's own code on a machine whose order is drawn.
import { expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import type { CallEnd } from '../src/domain/call-end.js';
import { Gateways, type Doing } from './model/gateways.js';
import { drawing, Machine, type Fate } from './model/machine.js';

jest.setTimeout(300_000);
const CALLS = 3;
const NUMBERS = [0, 1] as const;

type Event =
  | { readonly kind: 'deliver' | 'sweep' | 'crash' | 'hold up'; readonly gateway: number; readonly run: number; readonly call: number }
  | { readonly kind: 'move' | 'end'; readonly gateway: number; readonly run: number; readonly call: number };

function follow(gateways: Gateways, { kind, gateway, run, call }: Event): void {
  switch (kind) {
    case 'deliver':
      return gateways.deliver(gateway, run, call);
    case 'sweep':
      return gateways.sweep(gateway);
    case 'crash':
      return gateways.crash(gateway);
    case 'hold up':
      return gateways.holdUp(gateway);
    case 'move':
      return gateways.move(run);
    case 'end':
      return gateways.move(run, 'cancelled');
  }
}

/** Answers arrive again, and what was left is parked: by the processes as they are, or by others after all of them ended. */
async function settle(machine: Machine, gateways: Gateways, allEnd: boolean): Promise<void> {
  if (allEnd) for (const number of NUMBERS) gateways.crash(number);
  machine.calm();
  await machine.run();
  machine.pass(6_000);
  for (const number of NUMBERS) gateways.sweep(number);
  await machine.run();
  // What was claimed has its one end, and nothing else has, whether anybody asks again or not.
  const ended = gateways.outcomes().map(({ operationId }) => operationId);
  expect(ended.sort()).toEqual(
    gateways
      .claims()
      .map(({ operationId }) => operationId)
      .sort(),
  );
}

/** Every call is asked for again, one after another, of both gateways and by the resumed run too. */
async function askAgain(machine: Machine, gateways: Gateways): Promise<void> {
  for (const number of NUMBERS)
    for (const run of [0, 1])
      for (let call = 0; call < CALLS; call++) {
        gateways.deliver(number, run, call);
        await machine.run();
      }
}

const outcomeOf = (end: CallEnd) => (end.kind === 'outcome' ? end.outcome : undefined);

/** What holds of every operation in the end. Gives how each of them ended. */
function check(gateways: Gateways): string[] {
  const outcomes = new Map(gateways.outcomes().map((outcome) => [outcome.operationId, outcome]));
  return Array.from({ length: CALLS }, (_, call) => {
    const { operationId } = gateways.operation(0, call);
    expect(gateways.operation(1, call).operationId).toBe(operationId);
    const ends = gateways.ends.get(operationId) ?? [];
    const last = ends.at(-1);
    if (last === undefined) throw new Error('nobody was told how the call stands');
    const effects = gateways.effects.get(operationId) ?? 0;
    const outcome = outcomes.get(operationId);
    expect(effects).toBeLessThanOrEqual(1);
    // Whoever was told how it ended was told the same, before and after any crash.
    for (const told of ends.flatMap((end) => outcomeOf(end) ?? [])) expect(told).toEqual(outcome);
    if (outcome === undefined) {
      expect({ kind: last.kind, effects }).toEqual({ kind: 'refused', effects: 0 });
      return 'refused';
    }
    expect(last).toMatchObject({ kind: 'outcome', outcome: { status: outcome.status } });
    if (outcome.status === 'completed') expect(effects).toBe(1);
    if (outcome.status === 'cancelled') expect(effects).toBe(0);
    return outcome.status;
  });
}

const FATES: readonly Fate[] = [...Array<Fate>(12).fill('answered'), 'lost before', 'lost after'];

it('holds under any order of deliveries, crashes, lost answers, stalls and moves, on two replicas, in a thousand cases', async () => {
  const event = fc.record({
    kind: fc.constantFrom('deliver', 'deliver', 'deliver', 'deliver', 'sweep', 'crash', 'hold up', 'move', 'end'),
    gateway: fc.constantFrom(...NUMBERS),
    run: fc.constantFrom(0, 0, 0, 1),
    call: fc.nat(CALLS - 1),
    steps: fc.nat(14),
  });
  const doing = fc.constantFrom<Doing>('small', 'small', 'large', 'fails', 'not there', 'unsure');
  const seen = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        seed: fc.nat(),
        doings: fc.array(doing, { minLength: CALLS, maxLength: CALLS }),
        allEnd: fc.boolean(),
        events: fc.array(event, { minLength: 3, maxLength: 16 }),
      }),
      async ({ seed, doings, allEnd, events }) => {
        const machine = new Machine(drawing(seed), FATES);
        const gateways = new Gateways(machine, doings);
        const give = machine.take();
        try {
          for (const { steps, ...one } of events) {
            follow(gateways, one);
            await machine.run(steps);
          }
          await settle(machine, gateways, allEnd);
          await askAgain(machine, gateways);
          for (const status of check(gateways)) seen.set(status, (seen.get(status) ?? 0) + 1);
        } finally {
          give();
        }
      },
    ),
    { numRuns: 1_000 },
  );
  // The cases are not all of one kind.
  for (const status of ['completed', 'failed', 'indeterminate', 'refused'])
    expect([status, (seen.get(status) ?? 0) > 20]).toEqual([status, true]);
});

it.each<[string, Doing, Fate]>([
  ['a call', 'small', 'answered'],
  ['a call with a large result', 'large', 'answered'],
  ['a call whose every answer is lost', 'small', 'lost after'],
])('holds for %s whose gateway ends after each of its steps', async (_name, what, fate) => {
  const statuses = new Set<string>();
  for (let steps = 0, isDone = false; !isDone; steps++) {
    const machine = new Machine(drawing(steps), [fate === 'answered' ? fate : 'answered', fate]);
    const gateways = new Gateways(machine, [what]);
    const give = machine.take();
    try {
      gateways.deliver(0, 0, 0);
      isDone = (await machine.run(steps)) < steps;
      gateways.crash(0);
      gateways.deliver(1, 1, 0);
      await settle(machine, gateways, false);
      await askAgain(machine, gateways);
      statuses.add(check(gateways)[0] ?? '');
    } finally {
      give();
    }
  }
  expect([...statuses].sort()).toEqual(['completed', 'indeterminate']);
});
