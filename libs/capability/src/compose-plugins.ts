import { byCodeUnit } from './canonical.js';
import type { PluginState, ReasonCode } from './compose-input.js';
import type { Ledger } from './ledger.js';
import { allows, type CataloguePolicy } from './policy.js';
import type { SnapshotRecord } from './snapshot.js';

export interface Plugins {
  readonly records: SnapshotRecord['plugins'];
  /** Why what an owner contributes is out; null where it may be in. Owners that are no plugin are always in. */
  readonly refusal: (owner: string) => { readonly code: ReasonCode; readonly detail: string } | null;
}

interface Context {
  readonly policy: CataloguePolicy;
  readonly ledger: Ledger;
  readonly failed: boolean;
}

/** Which plugins a run may use at all. What a plugin contributes is asked about here, whichever feature it stands in. */
export function composePlugins(plugins: readonly PluginState[], { policy, ledger, failed }: Context): Plugins {
  const refusals = new Map<string, { readonly code: ReasonCode; readonly detail: string } | null>();
  const records: SnapshotRecord['plugins'] = [];
  for (const plugin of plugins) {
    const owner = `plugin:${plugin.id}`;
    const candidate = { kind: 'plugin' as const, name: plugin.id, owner, slot: `${owner}/plugins/${plugin.id}` };
    const refuse = (code: ReasonCode, detail: string) => {
      ledger.out(candidate, code, detail);
      refusals.set(owner, { code, detail });
    };
    if (refusals.has(owner)) {
      ledger.out(candidate, 'DUPLICATE_NAME', 'the plugin is listed twice');
      continue;
    }
    if (plugin.state === 'disabled') refuse('PLUGIN_DISABLED', 'a person disabled it');
    else if (plugin.state === 'unavailable') refuse('PLUGIN_UNAVAILABLE', 'its package is not there now');
    else if (!allows(policy.plugins, plugin.id)) refuse('PLUGIN_NOT_ALLOWED', 'not in the policy’s plugins');
    else {
      const filters = ledger.filter(candidate, plugin);
      refusals.set(owner, filters === null ? { code: 'PLUGIN_NOT_ALLOWED', detail: 'the plugin’s filters refuse this message' } : null);
      if (filters === null) continue;
      ledger.in(candidate, `version ${plugin.version}`, filters);
      records.push({ id: plugin.id, version: plugin.version });
    }
  }
  const missing = {
    code: 'PLUGIN_UNAVAILABLE' as const,
    detail: failed ? 'what is installed could not be read' : 'the plugin is not installed',
  };
  return {
    records: records.sort((left, right) => byCodeUnit(left.id, right.id)),
    refusal: (owner) => {
      if (!owner.startsWith('plugin:')) return null;
      const found = refusals.get(owner);
      return found === undefined ? missing : found;
    },
  };
}
