import { expect, it } from '@jest/globals';
import { assert, array, boolean, integer, property, record, string } from 'fast-check';
import type { StoredEntry } from './tape.js';
import { utf8Length } from './tape.js';
import { tapeView } from './tape-view.js';

const ORIGIN = '01890000-0000-7000-8000-000000000001';
const at = '2026-01-01T00:00:00.000Z';
const of = (id: number, more: Partial<StoredEntry>): StoredEntry => ({
  id,
  at,
  runId: ORIGIN,
  originRunId: ORIGIN,
  kind: 'message',
  step: null,
  callId: null,
  role: 'user',
  content: { content: [] },
  ...more,
});
const text = (value: string) => ({ content: [{ type: 'text', text: value }] });
const call = (id: number, step: number, callId: string) =>
  of(id, { kind: 'tool_call', step, callId, role: 'assistant', content: { callId, name: 'x', arguments: '{}' } });
const result = (id: number, [step, callId]: readonly [number, string], value = 'done') =>
  of(id, { kind: 'tool_result', step, callId, role: 'tool', content: { callId, status: 'completed', ...text(value) } });
const wide = { budgetBytes: 400 * 1024, openStep: null, hasOlder: false };

it('results stand right behind the message that asked for them, in call order, whatever came between', () => {
  const entries = [
    of(1, { content: text('go') }),
    of(2, { role: 'assistant', step: 0, content: text('I call') }),
    call(3, 0, 'a'),
    call(4, 0, 'b'),
    of(5, { content: text('and mind this') }),
    result(6, [0, 'b']),
    result(7, [0, 'a']),
  ];
  expect(tapeView(entries, wide).messages).toMatchObject([
    { role: 'user' },
    { role: 'assistant' },
    { role: 'tool', results: [{ callId: 'a' }, { callId: 'b' }] },
    { role: 'user', content: [{ text: 'and mind this' }] },
  ]);
});

it('a call of the open step has no result yet; one of an earlier step is told as never made', () => {
  const entries = [
    of(1, { role: 'assistant', step: 0, content: text('one') }),
    call(2, 0, 'a'),
    of(3, { role: 'assistant', step: 1, content: text('two') }),
    call(4, 1, 'b'),
  ];
  const { messages } = tapeView(entries, { ...wide, openStep: { originRunId: ORIGIN, step: 1 } });
  expect(messages).toMatchObject([
    { role: 'assistant' },
    { role: 'tool', results: [{ callId: 'a', status: 'cancelled' }] },
    { role: 'assistant' },
  ]);
  expect(messages).toHaveLength(3);
});

it('results that do not fit are shortened from the last backwards', () => {
  const entries = [
    of(1, { role: 'assistant', step: 0, content: text('big') }),
    call(2, 0, 'a'),
    call(3, 0, 'b'),
    result(4, [0, 'a'], 'x'.repeat(1_000)),
    result(5, [0, 'b'], 'y'.repeat(1_000)),
  ];
  const { messages } = tapeView(entries, { ...wide, budgetBytes: 1_600 });
  expect(messages[1]).toMatchObject({
    results: [{ content: [{ text: 'x'.repeat(1_000) }] }, { content: [{ text: expect.stringContaining('does not fit') }] }],
  });
});

it('for any tape and budget: what is shown fits, is the newest, and says whether older messages stand before it', () => {
  const step = record({ words: string({ maxLength: 300, unit: 'binary' }), calls: integer({ min: 0, max: 4 }), answered: boolean() });
  assert(
    property(array(step, { maxLength: 12 }), integer({ min: 0, max: 4_000 }), (steps, budgetBytes) => {
      let id = 0;
      const entries = steps.flatMap(({ words, calls, answered }, number) => {
        const ids = Array.from({ length: calls }, (_unused, index) => `c${index}`);
        const message = of(++id, { role: 'assistant', step: number, content: text(words) });
        return [
          message,
          ...ids.map((callId) => call(++id, number, callId)),
          ...(answered ? ids.map((callId) => result(++id, [number, callId], words)) : []),
        ];
      });
      const view = tapeView(entries, { ...wide, budgetBytes });
      const bytes = view.messages.reduce((sum, message) => sum + utf8Length(JSON.stringify(message)), 0);
      expect(bytes).toBeLessThanOrEqual(budgetBytes);
      const shown = view.messages.filter((message) => !('results' in message)).length;
      expect(view.more).toBe(shown < steps.length);
      expect(view.before === null).toBe(!view.more);
    }),
  );
});

it('counts bytes as UTF-8 does', () => {
  assert(property(string({ unit: 'binary' }), (value) => void expect(utf8Length(value)).toBe(Buffer.byteLength(value))));
});
