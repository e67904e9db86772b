import { Plugin } from '@ambit/contracts';
import type { Installation, Package } from './plugin.repository.js';

/** An installation and its package as others see them. */
export function viewOf(installation: Installation, found: Package): Plugin {
  const { manifest } = found;
  return Plugin.parse({
    id: installation.id,
    projectId: installation.projectId,
    version: manifest.version,
    display: manifest.display,
    description: manifest.description,
    publisher: manifest.publisher,
    sourceFormat: manifest.sourceFormat,
    digest: found.digest,
    signed: installation.signedBy === null ? 'unsigned' : 'verified',
    signedBy: installation.signedBy,
    state: installation.state,
    wanted: installation.wanted,
    reason: installation.reason,
    quarantined: installation.quarantined === installation.digest,
    contributes: {
      ...installation.contributes,
      tools: [],
      agents: installation.state === 'enabled' ? manifest.agents.map(({ name }) => name) : [],
    },
    settings: manifest.settings,
    inert: manifest.inert,
    warnings: manifest.warnings,
    epoch: installation.epoch,
    fence: installation.fence,
    set: installation.set,
    revision: installation.revision,
    installedAt: installation.installedAt.toISOString(),
    updatedAt: installation.updatedAt.toISOString(),
  });
}
