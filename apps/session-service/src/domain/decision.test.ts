import { expect, it } from '@jest/globals';
import type { Interaction } from '@ambit/contracts';
import fc from 'fast-check';
import { decisionVerdict } from './decision.js';

const AT = new Date('2026-01-01T00:00:00.000Z');
const bob = { id: 'user:bob', kind: 'person' as const, issuer: 'local', display: '' };
const uuid = (last: number): string => `01890000-0000-7000-8000-${String(last).padStart(12, '0')}`;

const asked = (order: number): Interaction => ({
  id: uuid(order),
  projectId: 'default',
  sessionId: uuid(100),
  runId: uuid(101),
  originRunId: uuid(101),
  agentId: 'a',
  step: 0,
  callId: `c${order}`,
  operationId: String(order).padStart(64, '0'),
  tool: 'send',
  argumentsPreview: '{}',
  argumentsHash: '0'.repeat(64),
  question: null,
  rule: null,
  approvers: [],
  isLive: false,
  notRequester: false,
  order,
  kind: 'permission',
  status: 'pending',
  principal: { id: 'user:alice', kind: 'person', issuer: 'local', display: '' },
  blockedBy: null,
  decidedBy: null,
  decidedAt: null,
  answer: null,
  createdAt: AT.toISOString(),
  expiresAt: new Date(AT.getTime() + 60_000).toISOString(),
});
it('under any schedule of answers decisions are taken in call order, each once, and all of them in the end', () => {
  const attempt = fc.record({ which: fc.nat(9), decision: fc.constantFrom('allow' as const, 'deny' as const), seconds: fc.nat(20) });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10 }), fc.array(attempt, { maxLength: 60 }), (count, schedule) => {
      const queue = Array.from({ length: count }, (_unused, order) => asked(order));
      const taken: number[] = [];
      let now = AT.getTime();
      const answer = (which: number, decision: 'allow' | 'deny'): void => {
        const interaction = queue[which];
        if (interaction === undefined) return;
        const first = queue.find(({ status }) => status === 'pending')?.id ?? interaction.id;
        const before = interaction.status;
        const verdict = decisionVerdict(interaction, { decision, by: bob, groups: [] }, { at: new Date(now), first });
        // Only what is pending, first and in time is taken; of everything else nothing moves.
        const isLate = now >= Date.parse(interaction.expiresAt);
        const isFirst = first === interaction.id;
        const expected = before !== 'pending' ? 'refuse' : isLate ? 'expired' : isFirst ? 'accept' : 'order';
        expect(verdict.kind).toBe(expected);
        if (verdict.kind === 'accept') {
          taken.push(which);
          queue[which] = { ...interaction, status: decision === 'allow' ? 'allowed' : 'denied' };
        }
        if (verdict.kind === 'expired') queue[which] = { ...interaction, status: 'expired' };
        if (verdict.kind === 'order') expect(verdict.first).toBe(first);
      };
      for (const { which, decision, seconds } of schedule) {
        answer(which, decision);
        now += seconds * 100;
      }
      expect(taken).toEqual([...taken].sort((left, right) => left - right));
      expect(new Set(taken).size).toBe(taken.length);
      // Whoever goes through them from the first is through.
      for (const order of queue.keys()) answer(order, 'allow');
      expect(queue.filter(({ status }) => status === 'pending')).toEqual([]);
    }),
    { numRuns: 1_000 },
  );
});
