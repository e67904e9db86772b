import type { NameList, PermissionMode, Policy } from '@ambit/contracts';
import type { z } from 'zod';
import { byCodeUnit, digestOf } from './canonical.js';

type Names = z.output<typeof NameList>;
type Subagents = Policy['subagents'];

/** The part of a policy that shapes what a run sees; the rest is authority, read at dispatch. */
export type CataloguePolicy = Pick<
  Policy,
  'servers' | 'plugins' | 'skills' | 'disabledTools' | 'aliases' | 'subagents' | 'presets' | 'deferredTools'
>;

const MODES: readonly PermissionMode[] = ['default', 'auto_approve', 'full_access'];

/** The mode that allows less: `default` < `auto_approve` < `full_access`. */
export function narrowerMode(left: PermissionMode, right: PermissionMode): PermissionMode {
  return MODES.indexOf(left) <= MODES.indexOf(right) ? left : right;
}

/** Tells whether a list that may be `null` (all) has at least one of these names. */
export function allows(list: Names, ...names: readonly string[]): boolean {
  return list === null || names.some((name) => list.includes(name));
}

/** What both lists allow; `null` is all, so it only gives way. */
export function intersectLists(left: Names, right: Names): Names {
  if (left === null) return right === null ? null : [...right];
  return right === null ? [...left] : left.filter((name) => right.includes(name));
}

const sorted = (names: readonly string[]) => [...new Set(names)].sort(byCodeUnit);
const sortedList = (names: Names) => (names === null ? null : sorted(names));
const sortedRecord = (subagents: Subagents) =>
  Object.fromEntries(
    Object.entries(subagents).map(([name, slot]) => [
      name,
      { ...slot, servers: slot.servers === undefined ? 'own' : sortedList(slot.servers) },
    ]),
  );

/** The hash of what of a policy shapes the catalogue. Rules, mode and limits do not; `null`, `[]` and a full list give three hashes. */
export function cataloguePolicyHash(policy: CataloguePolicy): string {
  return digestOf({
    servers: sortedList(policy.servers),
    plugins: sortedList(policy.plugins),
    skills: sortedList(policy.skills),
    disabledTools: sorted(policy.disabledTools),
    aliases: policy.aliases,
    subagents: sortedRecord(policy.subagents),
    ...(policy.deferredTools.length === 0 ? {} : { deferredTools: sorted(policy.deferredTools) }),
    ...(Object.keys(policy.presets).length === 0 ? {} : { presets: policy.presets }),
  });
}

/**
 * What a child may see under its parent: never more than either. Lists intersect, disabled tools join; aliases and subagents are the child's own.
 * Rules are not joined here: each policy of the chain is asked by itself, and the strictest answer holds.
 */
export function composeCatalogue(own: CataloguePolicy, ancestors: readonly CataloguePolicy[]): CataloguePolicy {
  return ancestors.reduce<CataloguePolicy>(
    (narrowed, ancestor) => ({
      servers: intersectLists(narrowed.servers, ancestor.servers),
      plugins: intersectLists(narrowed.plugins, ancestor.plugins),
      skills: intersectLists(narrowed.skills, ancestor.skills),
      disabledTools: sorted([...narrowed.disabledTools, ...ancestor.disabledTools]),
      aliases: narrowed.aliases,
      subagents: narrowed.subagents,
      presets: narrowed.presets,
      deferredTools: narrowed.deferredTools,
    }),
    own,
  );
}

/** The policy that allows nothing: what a policy that cannot be read means. */
export const NOTHING_ALLOWED: CataloguePolicy = {
  servers: [],
  plugins: [],
  skills: [],
  disabledTools: [],
  aliases: {},
  subagents: {},
  presets: {},
  deferredTools: [],
};
