import type { ToolDefinition } from '@ambit/contracts';
import { byCodeUnit } from './canonical.js';
import type { ReasonCode, ServerCatalogue, ServerTool } from './compose-input.js';
import type { Plugins } from './compose-plugins.js';
import type { ToolCandidate } from './compose-tools.js';
import type { Ledger } from './ledger.js';
import { allows, type CataloguePolicy } from './policy.js';
import type { SnapshotRecord, Switches } from './snapshot.js';
import { qualifiedToolName, refusedNames } from './tool-name.js';

interface Context {
  readonly policy: CataloguePolicy;
  readonly ledger: Ledger;
  readonly plugins: Plugins;
  readonly switches: Switches;
}

export interface Servers {
  readonly records: SnapshotRecord['servers'];
  readonly prompts: SnapshotRecord['promptCommands'];
  readonly tools: readonly ToolCandidate[];
}

const slotOf = (server: ServerCatalogue, feature: string, name: string) => `${server.owner}/${feature}/${server.serverId}/${name}`;

/** Which servers a run may use, and the tools and prompts of their last good catalogues. A plugin's server obeys the policy's servers and plugins both. */
export function composeServers(servers: readonly ServerCatalogue[], context: Context): Servers {
  const { ledger } = context;
  const slugs = new Map<string, number>();
  for (const server of servers) slugs.set(server.slug, (slugs.get(server.slug) ?? 0) + 1);
  const result: { records: SnapshotRecord['servers']; prompts: SnapshotRecord['promptCommands']; tools: ToolCandidate[] } = {
    records: [],
    prompts: [],
    tools: [],
  };
  for (const server of servers) {
    const candidate = { kind: 'server' as const, name: server.slug, owner: server.owner, slot: slotOf(server, 'mcp-servers', server.slug) };
    const twice = (slugs.get(server.slug) ?? 0) > 1;
    const refusal = twice ? { code: 'DUPLICATE_NAME' as const, detail: 'two servers have this slug' } : refusalOf(server, context);
    if (refusal !== null) {
      ledger.out(candidate, refusal.code, refusal.detail);
      allOut(server, refusal, ledger);
      continue;
    }
    const filters = ledger.filter(candidate, server);
    if (filters === null) {
      allOut(server, { code: 'SERVER_NOT_ALLOWED', detail: 'the server’s filters refuse this message' }, ledger);
      continue;
    }
    ledger.in(
      candidate,
      server.state === 'connected' && !server.stale ? 'listed' : `its last good list; the server is ${server.state}`,
      filters,
    );
    result.records.push({
      serverId: server.serverId,
      slug: server.slug,
      owner: server.owner,
      configGeneration: server.configGeneration,
      catalogHash: server.catalogHash ?? '',
    });
    result.tools.push(...server.tools.flatMap((tool) => toolCandidate(server, tool, ledger) ?? []));
    result.prompts.push(...promptsOf(server, ledger));
  }
  result.records.sort((left, right) => byCodeUnit(left.serverId, right.serverId));
  result.prompts.sort((left, right) => byCodeUnit(left.name, right.name));
  return result;
}

function refusalOf(
  server: ServerCatalogue,
  { policy, plugins, switches }: Context,
): { readonly code: ReasonCode; readonly detail: string } | null {
  if (!switches.mcp) return { code: 'SWITCHED_OFF', detail: 'MCP is switched off' };
  const plugin = plugins.refusal(server.owner);
  if (plugin !== null) return plugin;
  if (!allows(policy.servers, server.serverId, server.slug)) return { code: 'SERVER_NOT_ALLOWED', detail: 'not in the policy’s servers' };
  if (!server.enabled || server.state === 'disabled') return { code: 'SERVER_DISABLED', detail: 'a person disabled it' };
  if (server.catalogHash !== null) return null;
  return server.state === 'needs-auth'
    ? { code: 'SERVER_NEEDS_AUTH', detail: 'nobody has signed in to it yet' }
    : { code: 'SERVER_DEGRADED', detail: 'it was never listed with success' };
}

function allOut(server: ServerCatalogue, refusal: { readonly code: ReasonCode; readonly detail: string }, ledger: Ledger): void {
  for (const { definition } of server.tools) ledger.out(toolIdentity(server, definition), refusal.code, refusal.detail);
  for (const prompt of server.prompts) ledger.out(promptIdentity(server, prompt.name), refusal.code, refusal.detail);
}

const toolIdentity = (server: ServerCatalogue, definition: ToolDefinition) => ({
  kind: 'tool' as const,
  name: qualifiedToolName(server.slug, definition.name),
  owner: server.owner,
  slot: slotOf(server, 'tools', definition.name),
});
const promptIdentity = (server: ServerCatalogue, name: string) => ({
  kind: 'prompt' as const,
  name: qualifiedToolName(server.slug, name),
  owner: server.owner,
  slot: slotOf(server, 'prompts', name),
});

function toolCandidate(server: ServerCatalogue, tool: ServerTool, ledger: Ledger): ToolCandidate | null {
  const { definition } = tool;
  const candidate = toolIdentity(server, definition);
  const declared =
    server.toolPolicy === null
      ? 'allow'
      : Object.hasOwn(server.toolPolicy, definition.name)
        ? server.toolPolicy[definition.name]
        : undefined;
  if (declared === undefined || declared === 'deny') {
    ledger.out(candidate, 'PLUGIN_POLICY_DENIED', declared === undefined ? 'the plugin declares no such tool' : 'the plugin denies it');
    return null;
  }
  const filters = ledger.filter(candidate, tool);
  if (filters === null) return null;
  for (const { name, reason } of refusedNames(server.slug, definition.name))
    ledger.out({ kind: 'tool', name, owner: server.owner, slot: slotOf(server, 'names', name) }, 'NAME_RESERVED', reason);
  return {
    candidate,
    filters,
    rank: 0,
    tool: {
      name: candidate.name,
      qualifiedName: candidate.name,
      exposure: 'user-configurable',
      description: definition.description,
      inputSchema: definition.inputSchema,
      outputSchema: definition.outputSchema ?? null,
      effect: tool.readOnly ? 'read' : 'write',
      access: 'mcp',
      parallel: false,
      owner: server.owner,
      target: {
        kind: 'mcp',
        serverId: server.serverId,
        configGeneration: server.configGeneration,
        bindingHash: server.bindingHash,
        tool: definition.name,
      },
      ...(declared === 'ask' ? { pluginVerdict: declared } : {}),
    },
  };
}

function promptsOf(server: ServerCatalogue, ledger: Ledger): SnapshotRecord['promptCommands'] {
  const seen = new Set<string>();
  return server.prompts.flatMap((prompt) => {
    const candidate = promptIdentity(server, prompt.name);
    if (seen.has(prompt.name)) {
      ledger.out(candidate, 'DUPLICATE_NAME', 'the server lists it twice; the first is taken');
      return [];
    }
    seen.add(prompt.name);
    ledger.in(candidate, `of ${server.slug}`);
    const { serverId, configGeneration, bindingHash, owner } = server;
    return [{ name: candidate.name, description: prompt.description, owner, serverId, configGeneration, bindingHash, prompt: prompt.name }];
  });
}
