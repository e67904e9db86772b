// What is promised of every call, tried in whatever cases can be made up: a call of another session, an approval of another call.
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Grant } from '../src/gate-input.js';
import { GRANT_MS, policyStamp } from '../src/gate-state.js';
import { evaluateGates } from '../src/gates.js';
import { argumentsHash, operationId, targetHash } from '../src/operation-id.js';
import { authority, facts, gateInput, hex, mcpTool, openPolicy, uuid } from './fixtures.js';
import { check } from './property.js';

const ids = fc.constantFrom(1, 2, 3);
const agents = fc.constantFrom('support', 'support-2', 'sup', 'sales');

describe('a call', () => {
  it('is executed for the agent, session, run, token and fingerprint that it belongs to, and refused in one shape for every other', () => {
    const named = fc.record({
      agent: agents,
      session: ids,
      run: fc.boolean(),
      fingerprint: ids,
      token: fc.constantFrom('current', 'unknown'),
      tool: fc.boolean(),
    });
    const owned = fc.record({ agent: agents, session: ids, fingerprint: ids });
    check(
      fc.property(named, owned, (says, is) => {
        const input = gateInput({
          agentId: says.agent,
          sessionId: uuid(says.session),
          fingerprint: hex(says.fingerprint),
          run: says.run
            ? authority({
                agentId: is.agent,
                sessionId: uuid(is.session),
                fingerprint: hex(is.fingerprint),
                token: says.token === 'current' ? 'current' : 'unknown',
              })
            : null,
          ...(says.tool ? {} : { tool: null, current: null }),
        });
        const isOwn =
          says.run &&
          says.tool &&
          says.token === 'current' &&
          says.agent === is.agent &&
          says.session === is.session &&
          says.fingerprint === is.fingerprint;
        const { decision, ...more } = evaluateGates(input);
        if (isOwn) return expect(decision).toBe('allow');
        expect({ decision, code: 'code' in more ? more.code : null, data: 'data' in more ? more.data : undefined }).toEqual({
          decision: 'refuse',
          code: 'TOOL_NOT_IN_SNAPSHOT',
          data: undefined,
        });
      }),
      3_000,
    );
  });

  it('passes by an approval exactly where it is the approved one, in time', () => {
    const chain = (version: number) => [
      {
        agentId: 'support',
        version,
        enabled: true,
        policy: openPolicy({
          mode: 'full_access' as const,
          rules: [{ decision: 'ask' as const, tool: '*', when: {}, approvers: [], not: null, expiresMs: null }],
        }),
      },
    ];
    const one = fc.record({ run: ids, step: ids, call: ids, argument: ids, generation: ids, version: ids });
    check(
      fc.property(one, one, fc.option(fc.nat(2 * GRANT_MS), { nil: undefined }), fc.boolean(), (...[approved, other, age, isSame]) => {
        const called = isSame ? approved : other;
        const of = ({ run, step, call, argument, generation }: typeof approved) => ({
          operationId: operationId(uuid(run), step, `call-${call}`),
          arguments: `{"id":"${argument}"}`,
          tool: mcpTool({ target: { kind: 'mcp', serverId: uuid(1), configGeneration: generation, bindingHash: hex(1), tool: 'merge' } }),
        });
        const before = of(approved);
        const now = of(called);
        const grant: Grant = {
          operationId: before.operationId,
          targetHash: targetHash(before.tool.target),
          argumentsHash: argumentsHash(before.arguments),
          policyStamp: policyStamp(chain(approved.version)),
          decidedAt: 1_000_000,
        };
        const decision = evaluateGates(
          gateInput({
            run: authority({ chain: chain(called.version) }),
            tool: now.tool,
            current: facts(now.tool),
            call: { operationId: now.operationId, callId: `call-${called.call}`, name: now.tool.name, arguments: now.arguments },
            now: 1_000_000 + (age ?? 0),
            grant,
          }),
        );
        const isExact = JSON.stringify(called) === JSON.stringify(approved);
        const expected = !isExact ? 'ask' : (age ?? 0) > GRANT_MS ? 'refuse' : 'allow';
        expect(decision.decision).toBe(expected);
        if (expected === 'refuse') expect(decision).toMatchObject({ code: 'APPROVAL_EXPIRED' });
      }),
      3_000,
    );
  });

  it('of an owner that was taken away is refused, whatever else was heard and in whatever order', () => {
    const owners = ['plugin:kit', 'plugin:box', 'worker:support', 'user', 'builtin'];
    check(
      fc.property(
        fc.constantFrom(...owners),
        fc.subarray(owners),
        fc.record({ fence: fc.nat(9), mapped: fc.nat(9), read: fc.nat(9) }),
        (owner, revokedOwners, { fence, mapped, read }) => {
          const tool = mcpTool({ owner });
          const decision = evaluateGates(
            gateInput({
              tool,
              run: authority({ fences: Object.fromEntries(owners.map((one) => [one, mapped])), revokedOwners }),
              // No event says anything here: what holds is what the fence says now, and what was read of it.
              current: facts(tool, { ownerFence: fence, readAtFence: read }),
            }),
          );
          const isShared = owner === 'user' || owner === 'builtin';
          const isGone = revokedOwners.includes(owner) || (fence > mapped && !(isShared && read >= fence));
          expect(decision).toMatchObject(isGone ? { decision: 'refuse', code: 'TOOL_GONE' } : { decision: 'allow' });
        },
      ),
    );
  });
});
