import type { Composition, CompositionInput, Source } from './compose-input.js';
import { Ledger } from './ledger.js';
import { composePlugins } from './compose-plugins.js';
import { composeServers } from './compose-servers.js';
import { composeSkills } from './compose-skills.js';
import { composeSubagents } from './compose-subagents.js';
import { builtinCandidates, ofPreset, workerCandidates } from './compose-tools.js';
import { settleTools } from './settle-tools.js';
import { cataloguePolicyHash, composeCatalogue, NOTHING_ALLOWED, type CataloguePolicy } from './policy.js';
import { RESERVED_TABLE_VERSION } from './reserved.js';
import { SNAPSHOT_FORMAT, SNAPSHOT_SCHEMA_VERSION } from './snapshot.js';

/**
 * Puts together what one run may see: the record that is hashed and stored, and for every candidate the reason why it is in or out. Pure: the order of
 * the inputs does not matter, nothing is dropped without a reason, and a source that failed takes nothing from the others.
 */
export function compose(input: CompositionInput): Composition {
  const ledger = new Ledger(input.subject);
  const policy = policyOf(input, ledger);
  const plugins = composePlugins(itemsOf('plugins', input.plugins, ledger), { policy, ledger, failed: input.plugins.state === 'failed' });
  const servers = composeServers(itemsOf('servers', input.servers, ledger), { policy, ledger, plugins, switches: input.switches });
  const skills = composeSkills(itemsOf('skills', input.skills, ledger), { policy, ledger, plugins, servers: servers.records, input });
  const subagents = composeSubagents(input, { policy, ledger, plugins });
  const builtins = builtinCandidates(itemsOf('builtins', input.builtins, ledger), { input, policy, ledger, skills, subagents });
  const workers = workerCandidates(itemsOf('toolsets', input.toolsets, ledger), { input, policy, ledger });
  const candidates = ofPreset([...builtins, ...workers, ...servers.tools], { only: input.session.onlyTools, ledger });
  const { tools, deferred } = settleTools(candidates, { policy, ledger, input });
  return {
    record: {
      format: SNAPSHOT_FORMAT,
      schemaVersion: SNAPSHOT_SCHEMA_VERSION,
      agentId: input.agent.id,
      cataloguePolicyHash: cataloguePolicyHash(policy),
      project: { id: input.project.id, workspaceId: input.project.workspaceId },
      model: { name: input.model.name, vision: input.model.vision },
      tools,
      ...(deferred.length === 0 ? {} : { deferred }),
      skills,
      promptCommands: servers.prompts,
      plugins: plugins.records,
      servers: servers.records,
      subagents: subagents.reason === null ? subagents.slots : null,
      switches: { skills: input.switches.skills, mcp: input.switches.mcp, mcpSkills: input.switches.mcpSkills },
      reservedTableVersion: RESERVED_TABLE_VERSION,
    },
    reasons: ledger.reasons(),
    consulted: ledger.fields(),
  };
}

function itemsOf<T>(name: string, source: Source<T>, ledger: Ledger): readonly T[] {
  const failed =
    source.state === 'ok'
      ? (source.missing ?? []).map((part) => ({ ...part, name: `${name}/${part.name}` }))
      : [{ name, detail: source.detail }];
  for (const part of failed)
    ledger.out({ kind: 'source', name: part.name, owner: 'builtin', slot: part.name }, 'SOURCE_FAILED', part.detail);
  return source.state === 'ok' ? source.items : [];
}

function policyOf(input: CompositionInput, ledger: Ledger): CataloguePolicy {
  const [own, ...ancestors] = input.policies;
  if (own !== undefined && own !== null && ancestors.every((ancestor) => ancestor !== null)) return composeCatalogue(own, ancestors);
  ledger.out(
    { kind: 'source', name: 'policy', owner: 'builtin', slot: 'policy' },
    'POLICY_UNREADABLE',
    'a policy that cannot be read allows nothing',
  );
  return NOTHING_ALLOWED;
}
