import { Rule, type Policy, type ToolEffect } from '@ambit/contracts';
import { byCodeUnit } from './canonical.js';
import { matchesGlob } from './glob.js';
import { intersectLists } from './policy.js';
import type { SnapshotPreset, SnapshotRecord } from './snapshot.js';

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
  /** Of plugins, as far as the policy allows them and none of its own slots has the name. @default none */
  readonly presets?: readonly { readonly name: string; readonly description: string; readonly preset?: SnapshotPreset }[];
  /** Whether what a slot demands of the message is there, where that is not settled already. @default all are */
  readonly accepts?: (name: string, slot: Policy['subagents'][string]) => boolean;
}

export interface SubagentSlotProblem {
  readonly name: string;
  readonly isPreset?: boolean;
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
  const presets = [...(question.presets ?? [])].sort((left, right) => byCodeUnit(left.name, right.name));
  if (declared.length === 0 && presets.length === 0) return { reason: 'policy_disabled', slots: [], problems: [] };
  const slots: Slots = [];
  const problems: SubagentSlotProblem[] = [];
  for (const [name, slot] of declared) {
    const agent = slot.agent === 'self' ? question.agent.id : slot.agent;
    if (agent !== question.agent.id && !question.knownAgents.includes(agent)) problems.push({ name, detail: `there is no agent ${agent}` });
    else if (question.accepts?.(name, slot) === false) continue;
    else if (slots.length >= SUBAGENT_SLOTS_MAX) problems.push({ name, detail: `only the first ${SUBAGENT_SLOTS_MAX} slots count` });
    else slots.push({ name, agent, description: slot.description });
  }
  for (const preset of presets) {
    if (slots.length >= SUBAGENT_SLOTS_MAX)
      problems.push({ name: preset.name, detail: `only the first ${SUBAGENT_SLOTS_MAX} slots count`, isPreset: true });
    else slots.push({ ...preset, agent: question.agent.id });
  }
  return { reason: slots.length === 0 ? 'no_valid_slots' : null, slots, problems };
}

/** Whether a policy lets its agent start a preset of this name: denying beats allowing, and what none names is denied. */
export function allowsPreset(presets: Policy['presets'], name: string): boolean {
  const verdicts = Object.entries(presets).flatMap(([glob, verdict]) => (matchesGlob(glob, name) ? [verdict] : []));
  return verdicts.includes('allow') && !verdicts.includes('deny');
}

/** The presets that a call may mean, as far as the policy alone can tell: which there are, its run's snapshot says. */
export function presetsMeant(
  policy: Policy,
  input: Readonly<Record<string, unknown>>,
): { readonly name: string; readonly description: string }[] {
  const named = slotsNamed(input).filter((name) => !Object.hasOwn(policy.subagents, name) && allowsPreset(policy.presets, name));
  // A call that starts none is there for whoever may start any.
  const mayStart = slotsNamed(input).length === 0 && Object.values(policy.presets).includes('allow');
  return [...new Set(mayStart ? ['any'] : named)].map((name) => ({ name, description: '' }));
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
  // What a preset narrows is in its session's own catalogue.
  if (slot === undefined && allowsPreset(policy.presets, slotName)) return policy;
  if (slot === undefined) return { ...policy, rules: [...policy.rules, Rule.parse({ decision: 'deny', tool: '*' })] };
  return slot.servers === undefined ? policy : { ...policy, servers: intersectLists(policy.servers, slot.servers) };
}
