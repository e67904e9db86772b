import type { AgentPreset } from '@ambit/contracts';
import { byCodeUnit } from './canonical.js';
import type { CompositionInput } from './compose-input.js';
import type { Plugins } from './compose-plugins.js';
import type { FilterVerdict } from './filters.js';
import type { Ledger } from './ledger.js';
import type { CataloguePolicy } from './policy.js';
import { allowsPreset, resolveSubagents } from './subagents.js';

interface Context {
  readonly policy: CataloguePolicy;
  readonly ledger: Ledger;
  readonly plugins: Plugins;
}
interface Offered {
  readonly owner: string;
  readonly preset: AgentPreset;
  readonly filters: FilterVerdict[];
}

const own = (name: string) => ({ kind: 'subagent' as const, name, owner: 'user', slot: `user/subagents/${name}` });
const brought = (owner: string, name: string) => ({ kind: 'subagent' as const, name, owner, slot: `${owner}/agents/${name}` });

/** Whom a run may start: the slots of its agent's policy, and of plugins' presets those that the policy allows by name. */
export function composeSubagents(input: CompositionInput, context: Context): ReturnType<typeof resolveSubagents> {
  const { policy, ledger } = context;
  const passed = new Map<string, FilterVerdict[]>();
  const presets = presetsOf(input, context);
  const resolved = resolveSubagents({
    agent: input.agent,
    sessionKind: input.session.kind,
    subagents: policy.subagents,
    knownAgents: input.knownAgents,
    presets: presets.map(({ owner, preset: { name, description, instructions, tools } }) => ({
      name,
      description,
      preset: { owner, instructions, tools },
    })),
    accepts: (name, slot) => {
      const verdicts = ledger.filter(own(name), slot);
      if (verdicts !== null) passed.set(name, verdicts);
      return verdicts !== null;
    },
  });
  const ownerOf = (name: string) => presets.find(({ preset }) => preset.name === name)?.owner ?? 'user';
  for (const { name, agent, preset } of resolved.slots) {
    const filters = preset === undefined ? passed.get(name) : presets.find((one) => one.preset.name === name)?.filters;
    ledger.in(preset === undefined ? own(name) : brought(preset.owner, name), `runs ${agent}`, filters);
  }
  for (const { name, detail, isPreset } of resolved.problems)
    ledger.out(isPreset === true ? brought(ownerOf(name), name) : own(name), 'SLOT_INVALID', detail);
  if (resolved.reason === 'unsupported_session') {
    for (const name of Object.keys(policy.subagents).sort(byCodeUnit)) ledger.out(own(name), 'SUBAGENT_UNAVAILABLE', resolved.reason);
    for (const { owner, preset } of presets) ledger.out(brought(owner, preset.name), 'SUBAGENT_UNAVAILABLE', resolved.reason);
  }
  return resolved;
}

/** The presets that are left once plugins, policy, names and filters have had their say. */
function presetsOf(input: CompositionInput, { policy, ledger, plugins }: Context): Offered[] {
  const all = (input.plugins.state === 'ok' ? input.plugins.items : []).flatMap(({ id, agents = [] }) =>
    agents.map((preset) => ({ owner: `plugin:${id}`, preset })),
  );
  const times = (name: string) => all.filter(({ owner, preset }) => preset.name === name && plugins.refusal(owner) === null).length;
  return all.flatMap(({ owner, preset }): Offered[] => {
    const candidate = brought(owner, preset.name);
    const refusal = plugins.refusal(owner);
    if (refusal !== null) ledger.out(candidate, refusal.code, refusal.detail);
    else if (!allowsPreset(policy.presets, preset.name))
      ledger.out(candidate, 'PRESET_NOT_ALLOWED', 'the policy’s presets do not allow it');
    else if (Object.hasOwn(policy.subagents, preset.name)) ledger.out(candidate, 'DUPLICATE_NAME', 'the policy has a slot of this name');
    else if (times(preset.name) > 1)
      ledger.out(candidate, 'DUPLICATE_NAME', 'several plugins bring a preset of this name, and none of them wins');
    else {
      const filters = ledger.filter(candidate, preset);
      return filters === null ? [] : [{ owner, preset, filters }];
    }
    return [];
  });
}
