import { Rule, type Policy, type ToolEffect } from '@ambit/contracts';
import { byCodeUnit } from './canonical.js';
import { intersectLists } from './policy.js';
import type { SnapshotRecord } from './snapshot.js';

export const SUBAGENT_TOOL = 'subagent_orchestrator';
export const SUBAGENT_SLOTS_MAX = 5;

export type SubagentReason = 'unsupported_session' | 'policy_disabled' | 'no_valid_slots';
export type SessionKind = 'regular' | 'subagent';
type Slots = NonNullable<SnapshotRecord['subagents']>;

export interface SubagentQuestion {
  readonly agent: { readonly id: string; readonly kind: 'sdk' | 'acp' };
  readonly sessionKind: SessionKind;
  readonly subagents: Policy['subagents'];
  /** Agents that exist and are enabled now. */
  readonly knownAgents: readonly string[];
  /** Whether what a slot demands of the message is there, where that is not settled already. @default all are */
  readonly accepts?: (name: string, slot: Policy['subagents'][string]) => boolean;
}

export interface SubagentSlotProblem {
  readonly name: string;
  readonly detail: string;
}

/** Whether a session may delegate, and to whom: a subagent's own session never may. Slots are taken in order of their names, at most five. */
export function resolveSubagents(question: SubagentQuestion): {
  readonly reason: SubagentReason | null;
  readonly slots: Slots;
  readonly problems: readonly SubagentSlotProblem[];
} {
  if (question.agent.kind !== 'sdk' || question.sessionKind !== 'regular')
    return { reason: 'unsupported_session', slots: [], problems: [] };
  const declared = Object.entries(question.subagents).sort(([left], [right]) => byCodeUnit(left, right));
  if (declared.length === 0) return { reason: 'policy_disabled', slots: [], problems: [] };
  const slots: Slots = [];
  const problems: SubagentSlotProblem[] = [];
  for (const [name, slot] of declared) {
    const agent = slot.agent === 'self' ? question.agent.id : slot.agent;
    if (agent !== question.agent.id && !question.knownAgents.includes(agent)) problems.push({ name, detail: `there is no agent ${agent}` });
    else if (question.accepts?.(name, slot) === false) continue;
    else if (slots.length >= SUBAGENT_SLOTS_MAX) problems.push({ name, detail: `only the first ${SUBAGENT_SLOTS_MAX} slots count` });
    else slots.push({ name, agent, description: slot.description });
  }
  return { reason: slots.length === 0 ? 'no_valid_slots' : null, slots, problems };
}

/** Starting subagents is an act; looking at them, waiting for them and ending them touches nobody else. */
export function delegationEffect(input: Readonly<Record<string, unknown>>): ToolEffect {
  return input['operation'] === 'run' ? 'write' : 'read';
}

/** The slots that a call of the orchestrator names, as far as it has the shape of one. */
export function slotsNamed(input: Readonly<Record<string, unknown>>): string[] {
  const { tasks } = input;
  if (input['operation'] !== 'run' || !Array.isArray(tasks)) return [];
  return tasks.flatMap((task: unknown) =>
    typeof task === 'object' && task !== null && 'slotId' in task && typeof task.slotId === 'string' ? [task.slotId] : [],
  );
}

/** What a parent's policy leaves to the subagent in one of its slots: a slot may narrow the servers, and one that is gone allows nothing. */
export function policyInSlot(policy: Policy, slotName: string | null): Policy {
  if (slotName === null) return policy;
  const slot = Object.hasOwn(policy.subagents, slotName) ? policy.subagents[slotName] : undefined;
  if (slot === undefined) return { ...policy, rules: [...policy.rules, Rule.parse({ decision: 'deny', tool: '*' })] };
  return slot.servers === undefined ? policy : { ...policy, servers: intersectLists(policy.servers, slot.servers) };
}
