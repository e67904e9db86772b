import { expect, it } from '@jest/globals';
import { AgentSpec } from '@ambit/contracts';
import { nextAgent, takenAlias } from './agent.js';

const now = new Date('2026-01-01T00:00:00.000Z');
const spec = AgentSpec.parse({ id: 'a', policy: { servers: ['files'] } });
const { agent } = nextAgent(undefined, spec, now);

it('the policy’s version moves with the policy alone', () => {
  expect(agent).toMatchObject({ version: 1, policyVersion: 1 });
  expect(nextAgent(agent, { ...spec }, now)).toMatchObject({ isChanged: false, movesAuthority: false });
  expect(nextAgent(agent, { ...spec, instructions: 'more' }, now)).toMatchObject({
    movesAuthority: false,
    agent: { version: 2, policyVersion: 1 },
  });
  expect(nextAgent(agent, { ...spec, enabled: false }, now)).toMatchObject({
    movesAuthority: true,
    agent: { version: 2, policyVersion: 1 },
  });
  expect(nextAgent(agent, { ...spec, policy: { ...spec.policy, servers: [] } }, now)).toMatchObject({
    movesAuthority: true,
    agent: { policyVersion: 2 },
  });
});

it('all, none and a list are three policies', () => {
  const versions = [null, []].map((servers) => nextAgent(agent, { ...spec, policy: { ...spec.policy, servers } }, now).agent.policyVersion);
  expect(versions).toEqual([2, 2]);
});

it('an alias takes no name of the platform and none that looks like a server’s', () => {
  const aliased = (alias: string) => takenAlias({ ...spec.policy, aliases: { [alias]: 'mcp__files__list' } });
  expect(['EXEC', 'tape_anything', 'mcp__x__y'].map(aliased)).toEqual(['EXEC', 'tape_anything', 'mcp__x__y']);
  expect(aliased('list')).toBeUndefined();
});
