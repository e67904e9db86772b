import { AgentAdjustment, AgentSpec, type Agent } from '@ambit/contracts';
import { describe, expect, it } from '@jest/globals';
import { adjusted } from './adjust-agent.js';

const agent: Agent = {
  ...AgentSpec.parse({
    id: 'writer',
    policy: { mode: 'auto_approve', servers: ['git'], disabledTools: ['exec'], limits: { callsPerRun: 50 } },
  }),
  version: 1,
  policyVersion: 1,
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-01T00:00:00.000Z',
};
const change = (given: object) => adjusted(agent, AgentAdjustment.parse(given));

describe('a change that an agent asks for of its own settings', () => {
  it('may say how the agent works', () => {
    expect(change({ instructions: 'Be brief.', model: 'other', whileBusy: 'steer' })).toMatchObject({
      spec: { instructions: 'Be brief.', model: 'other', policy: { whileBusy: 'steer', servers: ['git'], mode: 'auto_approve' } },
    });
  });

  it('may narrow what it is allowed', () => {
    expect(change({ mode: 'default', limits: { callsPerRun: 10 }, disableTools: ['write', 'exec'] })).toMatchObject({
      spec: { policy: { mode: 'default', limits: { callsPerRun: 10 }, disabledTools: ['exec', 'write'] } },
    });
  });

  it('never widens it', () => {
    expect(change({ mode: 'full_access' })).toEqual({ widens: 'mode full_access allows more than auto_approve' });
    expect(change({ limits: { callsPerRun: 51 } })).toEqual({ widens: 'callsPerRun 51 is more than 50' });
    for (const key of ['rules', 'servers', 'plugins', 'skills', 'aliases', 'disabledTools', 'enabled'])
      expect(() => change({ [key]: [] })).toThrow();
  });
});
