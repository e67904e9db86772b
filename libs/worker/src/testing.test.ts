import { randomUUID } from 'node:crypto';
import { expect, it } from '@jest/globals';
import type { Run } from './run.js';
import { testRun } from './testing.js';

/** A model that calls `add` once and then says what it got; fresh random call ids on every sampling. */
async function adder(run: Run): Promise<void> {
  for await (const turn of run.turns()) {
    const last = turn.messages.at(-1);
    if (last?.role !== 'tool') await turn.say({ content: [], calls: [{ callId: randomUUID(), name: 'add', arguments: '{"a":2,"b":3}' }] });
    else await turn.say({ content: [{ type: 'text', text: `${last.results[0]?.status}` }] });
  }
}
const add = {
  name: 'add',
  run: (input: Readonly<Record<string, unknown>>) => [{ type: 'text', text: String(Number(input.a) + Number(input.b)) }],
};
const said = (messages: readonly unknown[]) => JSON.stringify(messages.at(-1));

it('runs to the end', async () => {
  const result = await testRun(adder, { tools: [add] });
  expect(result).toMatchObject({ status: 'completed', attempts: 1, executed: [{ name: 'add', arguments: { a: 2, b: 3 } }] });
  expect(said(result.messages)).toContain('completed');
});

it.each(['step', 'outcome'] as const)('a worker killed after the %s goes on without sampling again', async (crashAfter) => {
  const result = await testRun(adder, { tools: [add], crashAfter });
  expect(result.status).toBe('completed');
  expect(result.attempts).toBe(2);
  expect(result.executed).toHaveLength(1);
});

it('a denial is fed back and the tool never runs', async () => {
  const result = await testRun(adder, { tools: [{ ...add, asks: true }], answers: ['deny'] });
  expect(result.executed).toEqual([]);
  expect(said(result.messages)).toContain('refused');
});

it('an approved call runs once, and the resumed run gets its result', async () => {
  const result = await testRun(adder, { tools: [{ ...add, asks: true }], answers: ['allow'] });
  expect(result.executed).toHaveLength(1);
  expect(said(result.messages)).toContain('completed');
});
