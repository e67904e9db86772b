import type { EffectiveSkill, Skill, SkillFacts } from '@ambit/contracts';
import type { z } from 'zod';

export interface StoredEntry {
  readonly facts: z.output<typeof SkillFacts> | null;
  readonly digest: string;
  readonly enabled: boolean;
  /** Scripts of this version that may be run. */
  readonly scripts: readonly string[];
}
export interface StoredContribution {
  readonly owner: Skill['owner'];
  readonly facts: z.output<typeof SkillFacts> | null;
  readonly digest: string;
  readonly scripts: readonly string[];
}

/**
 * The skills an agent could have: its own valid, enabled entries, and contributions of the plugins it may use. An owned skill wins
 * over a contribution of its name, and says so; a disabled owned skill shadows too, since a person switched that name off.
 */
export function effectiveSkills(
  agentId: string,
  own: readonly StoredEntry[],
  contributions: readonly StoredContribution[],
): EffectiveSkill[] {
  const byName = new Map(contributions.flatMap((one) => (one.facts === null ? [] : [[one.facts.name, one] as const])));
  const owned = own.flatMap(({ facts, digest, enabled, scripts }) =>
    facts === null || !enabled
      ? []
      : [
          {
            ...facts,
            agentId,
            owner: 'user',
            origin: 'owned' as const,
            digest,
            scripts: [...scripts],
            shadows: byName.get(facts.name)?.owner ?? null,
          },
        ],
  );
  const taken = new Set(own.flatMap(({ facts }) => (facts === null ? [] : [facts.name])));
  const given = [...byName.values()].flatMap(({ facts, digest, owner, scripts }) =>
    facts === null || taken.has(facts.name)
      ? []
      : [
          {
            ...facts,
            agentId,
            owner,
            origin: owner === 'builtin' ? ('builtin' as const) : ('plugin' as const),
            digest,
            scripts: [...scripts],
            shadows: null,
          },
        ],
  );
  return [...owned, ...given].sort((left, right) => (left.name < right.name ? -1 : 1));
}
