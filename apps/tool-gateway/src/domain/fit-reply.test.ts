import { expect, it } from '@jest/globals';
import type { CallResult } from '@ambit/contracts';
import fc from 'fast-check';
import { fitReply } from './fit-reply.js';

const bytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));
const total = (results: readonly CallResult[]): number => results.reduce((sum, result) => sum + bytes(result), 0);

const text = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.nat(6_000).map((length) => 'žluť🐎"\\'.repeat(length).slice(0, length)),
);
const result: fc.Arbitrary<Omit<CallResult, 'callId'>> = fc.oneof(
  fc.record({
    status: fc.constantFrom('completed', 'failed'),
    content: fc.array(
      text.map((said) => ({ type: 'text', text: said })),
      { maxLength: 3 },
    ),
    structuredContent: fc.option(fc.record({ said: text }), { nil: undefined }),
    artifact: fc.option(fc.constant({ digest: 'd'.repeat(64), bytes: 9_000 }), { nil: undefined }),
  }),
  fc.record({
    status: fc.constantFrom('refused', 'failed', 'cancelled', 'indeterminate'),
    fault: fc.record({ code: fc.constantFrom('TOOL_FAILED', 'POLICY_DENIED'), message: fc.string({ maxLength: 2_000 }) }),
  }),
  fc.record({ status: fc.constantFrom('running', 'waiting') }),
);
const results = fc
  .array(result, { maxLength: 12 })
  .map((all) => all.map((one, index): CallResult => JSON.parse(JSON.stringify({ callId: `call-${index}`, ...one }))));

it('keeps every result in its place with its status and code, shortens from the last backwards, and only what does not fit', () => {
  fc.assert(
    fc.property(results, fc.integer({ min: 1, max: 20_000 }), (whole, budget) => {
      const before = JSON.stringify(whole);
      const fitted = fitReply(whole, budget);
      expect(JSON.stringify(whole)).toBe(before);
      const named = (all: readonly CallResult[]) =>
        all.map(({ callId, status, fault, artifact }) => [callId, status, fault?.code, artifact]);
      expect(named(fitted)).toEqual(named(whole));
      if (total(whole) <= budget) return void expect(fitted).toEqual(whole);
      // The same again is the same: whoever asks twice reads the same answer.
      expect(fitReply(whole, budget)).toEqual(fitted);
      expect(total(fitted)).toBeLessThanOrEqual(total(whole));
      // Nothing of a failure's words is shown differently, nor a result that was the first to have room, where the rest could give way.
      const shortened = fitted.map((one, index) => JSON.stringify(one) !== JSON.stringify(whole[index]));
      const first = shortened.indexOf(true);
      if (total(fitted) > budget || first < 0) return;
      for (const [index, one] of fitted.entries()) if (index < first) expect(one).toEqual(whole[index]);
      // What comes after the first that was shortened is as short as it can be.
      for (const [index, one] of fitted.entries()) {
        const original = whole[index];
        if (index <= first || original?.content === undefined) continue;
        const alone = fitReply([original], 1)[0];
        expect(bytes(one)).toBeLessThanOrEqual(Math.min(bytes(original), alone === undefined ? Number.POSITIVE_INFINITY : bytes(alone)));
      }
    }),
    { numRuns: 2_000 },
  );
});

it('fits a full batch of failures with long words into an answer', () => {
  const fault = { code: 'TOOL_FAILED', message: 'm'.repeat(2_000), data: { reason: 'r'.repeat(4_000) } };
  const all = Array.from({ length: 128 }, (_, index): CallResult => ({ callId: `${index}`, status: 'failed', fault }));
  const fitted = fitReply(all);
  expect(total(fitted)).toBeLessThanOrEqual(400 * 1024);
  expect(new Set(fitted.map(({ fault: one }) => one?.code))).toEqual(new Set(['TOOL_FAILED']));
});
