import type { Skill } from '@ambit/contracts';
import type { EntryWithVersion, Version } from './skill.repository.js';

const UNREADABLE = {
  description: 'unreadable',
  allowedTools: null,
  platforms: null,
  disableModelInvocation: true,
  userInvocable: false,
  metadata: {},
};

/** A stored entry as the management view shows it, invalid ones included. */
export function viewOf({ entry, version, scripts }: EntryWithVersion): Skill {
  return {
    ...(version.facts ?? UNREADABLE),
    name: entry.name,
    agentId: entry.agentId,
    projectId: entry.projectId,
    owner: 'user',
    origin: 'owned',
    enabled: entry.enabled,
    source: entry.source,
    set: entry.set,
    version: entry.version,
    ...sizesOf(version),
    scripts: [...scripts],
    updatedAt: entry.updatedAt.toISOString(),
  };
}

function sizesOf(version: Version) {
  return {
    digest: version.digest,
    valid: version.valid,
    warnings: [...version.warnings],
    files: version.tree.length,
    bytes: version.tree.reduce((sum, file) => sum + file.bytes, 0),
  };
}
