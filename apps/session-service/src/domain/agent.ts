import { canonicalJson, looksQualified, reservedNameOf } from '@ambit/capability';
import type { Agent, AgentSpec, Policy } from '@ambit/contracts';

/** What a put makes of an agent, and what of its live runs' authority it moves. */
export interface AgentChange {
  readonly agent: Agent;
  readonly isNew: boolean;
  readonly isChanged: boolean;
  readonly movesAuthority: boolean;
}

/** An alias that would take a name which belongs to something else; undefined where none does. */
export function takenAlias(policy: Policy): string | undefined {
  return Object.keys(policy.aliases).find((alias) => reservedNameOf(alias) !== null || looksQualified(alias));
}

const same = (left: unknown, right: unknown) => canonicalJson(left) === canonicalJson(right);
const specOf = ({ id, projectId, kind, enabled, model, instructions, policy, match, set }: AgentSpec): AgentSpec => ({
  id,
  projectId,
  kind,
  enabled,
  model,
  instructions,
  policy,
  match,
  set,
});

/** The next version of an agent. The policy's version moves only with the policy; saying the same again changes nothing. */
export function nextAgent(current: Agent | undefined, wanted: AgentSpec, now: Date): AgentChange {
  const spec = specOf(wanted);
  const at = now.toISOString();
  if (current === undefined) {
    return {
      agent: { ...spec, version: 1, policyVersion: 1, createdAt: at, updatedAt: at },
      isNew: true,
      isChanged: true,
      movesAuthority: false,
    };
  }
  if (same(specOf(current), spec)) return { agent: current, isNew: false, isChanged: false, movesAuthority: false };
  const hasNewPolicy = !same(current.policy, spec.policy);
  return {
    agent: {
      ...spec,
      version: current.version + 1,
      policyVersion: current.policyVersion + (hasNewPolicy ? 1 : 0),
      createdAt: current.createdAt,
      updatedAt: at,
    },
    isNew: false,
    isChanged: true,
    movesAuthority: hasNewPolicy || current.enabled !== spec.enabled,
  };
}
