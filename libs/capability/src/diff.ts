import { byCodeUnit, canonicalJson } from './canonical.js';
import type { SnapshotRecord } from './snapshot.js';

export interface Changed {
  readonly name: string;
  /** What is different, in words. */
  readonly changes: readonly string[];
}
export interface ListDiff {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly Changed[];
}
export interface SnapshotDiff {
  readonly tools: ListDiff;
  readonly skills: ListDiff;
  readonly promptCommands: ListDiff;
  readonly plugins: ListDiff;
  readonly servers: ListDiff;
  readonly subagents: ListDiff;
  /** Everything else that differs, in words. */
  readonly other: readonly string[];
  readonly same: boolean;
}

const WORDS: Readonly<Record<string, string>> = {
  bindingHash: 'what the server runs as',
  catalogHash: 'its list',
  configGeneration: 'its configuration',
  digest: 'its content',
  description: 'the description',
  effect: 'the effect',
  exposure: 'the exposure',
  inputSchema: 'the input schema',
  outputSchema: 'the output schema',
  owner: 'the owner',
  origin: 'the origin',
  parallel: 'whether it may overlap',
  qualifiedName: 'the tool behind the name',
  version: 'the version',
  slug: 'the name',
  agent: 'the agent it runs',
  access: 'what it reaches',
};
const LONG = new Set(['description', 'inputSchema', 'outputSchema', 'bindingHash', 'catalogHash', 'digest', 'toolsetDigest']);

type Entry = Readonly<Record<string, unknown>>;

/** What changed from one snapshot to another, by name, in words that a person can act on. */
export function diffSnapshots(before: SnapshotRecord, after: SnapshotRecord): SnapshotDiff {
  const named = <T extends { readonly name: string }>(list: readonly T[]) => list.map((entry): [string, Entry] => [entry.name, entry]);
  const lists = {
    tools: diffLists(named(before.tools), named(after.tools)),
    skills: diffLists(named(before.skills), named(after.skills)),
    promptCommands: diffLists(named(before.promptCommands), named(after.promptCommands)),
    plugins: diffLists(
      before.plugins.map((plugin): [string, Entry] => [plugin.id, plugin]),
      after.plugins.map((plugin): [string, Entry] => [plugin.id, plugin]),
    ),
    servers: diffLists(
      before.servers.map((server): [string, Entry] => [server.slug, server]),
      after.servers.map((server): [string, Entry] => [server.slug, server]),
    ),
    subagents: diffLists(named(before.subagents ?? []), named(after.subagents ?? [])),
  };
  const other = otherChanges(before, after);
  const same =
    other.length === 0 && Object.values(lists).every((list) => list.added.length + list.removed.length + list.changed.length === 0);
  return { ...lists, other, same };
}

function diffLists(before: readonly [string, Entry][], after: readonly [string, Entry][]): ListDiff {
  const old = new Map(before);
  const now = new Map(after);
  const changed = [...now].flatMap(([name, entry]) => {
    const previous = old.get(name);
    const changes = previous === undefined ? [] : changesOf(previous, entry);
    return changes.length === 0 ? [] : [{ name, changes }];
  });
  return {
    added: [...now.keys()].filter((name) => !old.has(name)).sort(byCodeUnit),
    removed: [...old.keys()].filter((name) => !now.has(name)).sort(byCodeUnit),
    changed: changed.sort((left, right) => byCodeUnit(left.name, right.name)),
  };
}

function changesOf(before: Entry, after: Entry): string[] {
  const fields = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort(byCodeUnit);
  return fields.flatMap((field) => {
    const old = before[field];
    const now = after[field];
    if (text(old) === text(now)) return [];
    if (field === 'target') return targetChanges(old, now);
    return [sentence(field, old, now)];
  });
}

function targetChanges(before: unknown, after: unknown): string[] {
  const isEntry = (value: unknown): value is Entry => typeof value === 'object' && value !== null;
  if (!isEntry(before) || !isEntry(after)) return ['the target'];
  if (before.kind !== after.kind) return [`the target: ${String(before.kind)} → ${String(after.kind)}`];
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .sort(byCodeUnit)
    .filter((field) => text(before[field]) !== text(after[field]))
    .map((field) => `the target: ${sentence(field, before[field], after[field])}`);
}

const text = (value: unknown) => (value === undefined ? '' : canonicalJson(value));
const sentence = (field: string, old: unknown, now: unknown) => {
  const words = WORDS[field] ?? field;
  if (LONG.has(field))
    return old === null || old === undefined
      ? `${words} is new`
      : now === null || now === undefined
        ? `${words} is gone`
        : `${words} changed`;
  return `${words}: ${shown(old)} → ${shown(now)}`;
};
const shown = (value: unknown) => (typeof value === 'string' ? value : value === undefined ? 'none' : text(value));

const names = (list: SnapshotRecord['deferred']) => (list ?? []).map(({ name }) => name).join(', ');

function otherChanges(before: SnapshotRecord, after: SnapshotRecord): string[] {
  const changes: string[] = [];
  const note = (words: string, pair: readonly [unknown, unknown]) => {
    if (text(pair[0]) !== text(pair[1])) changes.push(`${words}: ${shown(pair[0])} → ${shown(pair[1])}`);
  };
  note('agent', [before.agentId, after.agentId]);
  note('project', [before.project.id, after.project.id]);
  note('model', [before.model, after.model]);
  note('switches', [before.switches, after.switches]);
  note('tools to load', [names(before.deferred), names(after.deferred)]);
  note('table of built-in names', [before.reservedTableVersion, after.reservedTableVersion]);
  note('record format', [before.schemaVersion, after.schemaVersion]);
  if (before.cataloguePolicyHash !== after.cataloguePolicyHash)
    changes.push('the policy lists other servers, plugins, skills, tools, aliases or subagents');
  if ((before.subagents === null) !== (after.subagents === null))
    changes.push(after.subagents === null ? 'may no longer delegate' : 'may delegate now');
  return changes;
}
