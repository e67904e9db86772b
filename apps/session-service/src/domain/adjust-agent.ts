import { narrowerMode } from '@ambit/capability';
import type { Agent, AgentAdjustment, AgentSpec, Limits } from '@ambit/contracts';

const LIMITS = ['runsAtOnce', 'callsPerRun', 'callsPerMinute'] as const satisfies readonly (keyof Limits)[];

/**
 * The agent with the change that it asked for, or what of the change would allow it more than it has. Whoever approves a call need not be an
 * administrator: an approval may say how an agent works, and may narrow what it is allowed, never widen it.
 */
export function adjusted(agent: Agent, change: AgentAdjustment): { readonly spec: AgentSpec } | { readonly widens: string } {
  const { policy } = agent;
  const { instructions = agent.instructions, model = agent.model, mode = policy.mode, whileBusy = policy.whileBusy } = change;
  if (narrowerMode(policy.mode, mode) !== mode) return { widens: `mode ${mode} allows more than ${policy.mode}` };
  const limits = { ...policy.limits };
  for (const name of LIMITS) {
    const wanted = change.limits?.[name] ?? limits[name];
    if (wanted > limits[name]) return { widens: `${name} ${wanted} is more than ${limits[name]}` };
    limits[name] = wanted;
  }
  const disabledTools = [...new Set([...policy.disabledTools, ...(change.disableTools ?? [])])];
  return { spec: { ...agent, instructions, model, policy: { ...policy, mode, whileBusy, limits, disabledTools } } };
}
