import { Policy, type Agent } from '@ambit/contracts';

/** A policy that cannot be read allows nothing: neither a server nor, by this rule, any tool. */
export const UNREADABLE: Policy = Policy.parse({ rules: [{ decision: 'deny', tool: '*' }] });

/** The agent's policy for whoever decides by it; null where the stored one cannot be read. */
export function readablePolicy({ policy }: Pick<Agent, 'policy'>): Policy | null {
  return policy === UNREADABLE ? null : policy;
}
