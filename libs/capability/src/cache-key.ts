import { byCodeUnit, canonicalJson, RECORD_BOUNDS } from './canonical.js';
import type { CompositionInput } from './compose-input.js';
import type { Subject, SubjectField } from './filters.js';
import { RESERVED_TABLE_VERSION } from './reserved.js';
import { SNAPSHOT_SCHEMA_VERSION } from './snapshot.js';

/** Every version that a composition depends on: two equal lists of versions describe the same world. */
export interface CompositionVersions extends Pick<CompositionInput, 'agent' | 'project' | 'model' | 'switches' | 'session'> {
  /** (agent, version) of the agent's own policy, then of each ancestor's. */
  readonly policies: readonly { readonly agentId: string; readonly version: number }[];
  /** Epoch of each service, owner and feature that was asked, by `<service>.<owner>.<feature>`. */
  readonly epochs: Readonly<Record<string, number>>;
  /** Moves when agents come, go, or are switched on or off. */
  readonly agentsVersion: number;
  /** Sources that could not be read: their absence is not a world to remember under the same key. */
  readonly failed: readonly string[];
}

/** The key of a world, without the subject: under it a cache keeps which fields of the subject that world's filters read. */
export function worldKey(versions: CompositionVersions): string {
  const session = {
    ...versions.session,
    activeSkills: [...versions.session.activeSkills].sort(byCodeUnit),
    selectedSkills: sortedOrNull(versions.session.selectedSkills),
    ...(versions.session.loadedTools === undefined ? {} : { loadedTools: [...versions.session.loadedTools].sort(byCodeUnit) }),
  };
  return canonicalJson(
    {
      ...versions,
      failed: [...versions.failed].sort(byCodeUnit),
      session,
      reservedTableVersion: RESERVED_TABLE_VERSION,
      schemaVersion: SNAPSHOT_SCHEMA_VERSION,
    },
    RECORD_BOUNDS,
  );
}

/** The key of one projection: the world, and of the subject exactly what the world's filters read. */
export function cacheKey(versions: CompositionVersions, subject: Subject | null, consulted: readonly SubjectField[]): string {
  const read = subject === null ? null : Object.fromEntries([...consulted].map((field) => [field, part(subject, field)]));
  return canonicalJson([worldKey(versions), consulted.length === 0 ? 'any' : read], RECORD_BOUNDS);
}

function part(subject: Subject, field: SubjectField): unknown {
  const value = subject[field];
  return typeof value === 'string' ? value : [...new Set(value)].sort(byCodeUnit);
}

function sortedOrNull(names: readonly string[] | null): readonly string[] | null {
  return names === null ? null : [...new Set(names)].sort(byCodeUnit);
}
