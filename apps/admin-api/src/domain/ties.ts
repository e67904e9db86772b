import { findTies } from '@ambit/capability';
import { MatchRule } from '@ambit/contracts';
import type { Found, Item } from './plan.js';

const rulesOf = ({ name, state }: Item) => ({ id: name, match: MatchRule.array().parse(state['match']) });

/**
 * Names of agents of which one message would match two when the set stands as wanted; none where each message has one agent at most. Only those
 * that the set brings are asked about: what others have among themselves is not for it to mend.
 */
export function tiedAgents(
  wanted: readonly Item[],
  found: readonly Found[],
  about: { readonly set: string; readonly prune: boolean },
): string[] {
  const there = found.filter(({ kind }) => kind === 'agent');
  const isOthers = (name: string) => there.some((agent) => agent.name === name && agent.set !== about.set);
  const ours = wanted.filter(({ kind, name }) => kind === 'agent' && !isOthers(name));
  const names = new Set(ours.map(({ name }) => name));
  const kept = there.filter(({ name, set }) => !names.has(name) && !(about.prune && set === about.set));
  const ties = findTies([...ours, ...kept].map(rulesOf)).filter(({ agents }) => agents.some((name) => names.has(name)));
  return [...new Set(ties.flatMap(({ agents }) => agents))].sort();
}
