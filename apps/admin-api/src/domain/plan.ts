import { canonicalJson, sha256Hex } from '@ambit/capability';
import type { Plan, PlannedChange } from '@ambit/contracts';

type Kind = PlannedChange['kind'];

/** One thing that is wanted, or that is there: `state` is compared by value, `set` says who applied it. */
export interface Item {
  readonly kind: Kind;
  readonly name: string;
  readonly state: Readonly<Record<string, unknown>>;
}
export interface Found extends Item {
  readonly set: string | null;
  readonly version: number;
}

/** Things are made in this order, and taken away in the reverse. */
const ORDER: readonly Kind[] = ['project', 'secret', 'server', 'plugin', 'agent', 'skill', 'access', 'notify'];

/**
 * What has to change so that the set's part of the world is as wanted. What another set or a person made is left alone, and
 * said so. Without `prune` what the set no longer wants is kept, and said so.
 */
export function planChanges(
  wanted: readonly Item[],
  found: readonly Found[],
  about: { readonly set: string; readonly prune: boolean },
): Plan {
  const key = (item: Item) => `${item.kind}\n${item.name}`;
  const there = new Map(found.map((item) => [key(item), item]));
  const keys = new Set(wanted.map(key));
  const changes = wanted.map((item): PlannedChange => {
    const { kind, name } = item;
    const current = there.get(key(item));
    if (current === undefined) return { kind, name, action: 'create', detail: 'new' };
    if (current.set !== about.set && kind !== 'project')
      return {
        kind,
        name,
        action: 'keep',
        detail:
          current.set === null
            ? 'made by hand; this set does not touch it'
            : `belongs to the set ${current.set}; this set does not touch it`,
      };
    const fields = differing(item.state, current.state);
    return fields.length === 0
      ? { kind, name, action: 'unchanged', detail: '' }
      : { kind, name, action: 'update', detail: fields.join(', ') };
  });
  const left = found.filter((item) => item.set === about.set && item.kind !== 'project' && !keys.has(key(item)));
  const gone = left.map(({ kind, name }): PlannedChange => ({
    kind,
    name,
    action: about.prune ? 'delete' : 'keep',
    detail: about.prune ? 'no longer in the set' : 'no longer in the set; --prune would delete it',
  }));
  const all = [...sorted(changes), ...sorted(gone).reverse()];
  const versions = found.map((item) => [item.kind, item.name, item.version, item.set]);
  return {
    set: about.set,
    changes: all,
    digest: sha256Hex(
      canonicalJson({
        wanted: wanted.map(({ kind, name, state }) => [kind, name, sha256Hex(canonicalJson(state))]),
        versions: versions.map(String).sort(),
        ...about,
      }),
    ),
  };
}

function sorted(changes: readonly PlannedChange[]): PlannedChange[] {
  return [...changes].sort(
    (left, right) => ORDER.indexOf(left.kind) - ORDER.indexOf(right.kind) || (left.name < right.name ? -1 : left.name > right.name ? 1 : 0),
  );
}

/** Names of the fields that differ; only what is wanted is compared. */
function differing(wanted: Readonly<Record<string, unknown>>, current: Readonly<Record<string, unknown>>): string[] {
  return Object.keys(wanted).filter((field) => canonicalJson(plain(wanted[field])) !== canonicalJson(plain(current[field])));
}

const plain = (value: unknown): unknown => (value === undefined ? null : JSON.parse(JSON.stringify(value)));
