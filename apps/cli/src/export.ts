import { formatDuration } from '@ambit/capability';
import type { NotifySink, Plugin, RoleGrant, Secret, Server, Skill, WrittenAgent } from '@ambit/contracts';

/** What a set applied, as the API lists it. */
export interface SetContent {
  readonly set: string;
  readonly project: string;
  readonly agents: readonly WrittenAgent[];
  readonly servers: readonly Server[];
  readonly secrets: readonly Secret[];
  readonly plugins: readonly Plugin[];
  readonly skills: readonly Skill[];
  readonly access: readonly RoleGrant[];
  readonly notify: readonly NotifySink[];
}

/** The manifest that says what is there. Files (instructions, skills, plugins) are named where the manifest expects them, not contained. */
export function manifestOf(content: SetContent): Readonly<Record<string, unknown>> {
  const sections = {
    secrets: record(content.secrets, ({ name, from, key }) => [
      name,
      from === 'env' ? { from, key } : from === 'file' ? { from, path: key } : { from },
    ]),
    servers: record(content.servers, (server) => [server.slug, serverEntry(server)]),
    plugins: record(content.plugins, (plugin) => [plugin.id, pluginEntry(plugin)]),
    skills: record(content.skills, ({ name, scripts }) => [
      name,
      { source: `./skills/${name}`, ...(scripts.length === 0 ? {} : { scripts }) },
    ]),
    agents: record(content.agents, (agent) => [agent.id, agentEntry(agent)]),
  };
  const access = content.access.map(({ who, role, agents, onBehalfOf }) => ({
    who,
    role,
    ...(agents === null ? {} : { agents }),
    ...(onBehalfOf.length === 0 ? {} : { onBehalfOf }),
  }));
  return {
    apiVersion: 'ambit/v1',
    set: content.set,
    project: content.project,
    ...Object.fromEntries(Object.entries(sections).filter(([, section]) => Object.keys(section).length > 0)),
    ...(access.length === 0 ? {} : { access }),
    ...(content.notify.length === 0
      ? {}
      : { notify: content.notify.map(({ events, webhook }) => ({ events, webhook: literal(webhook) })) }),
  };
}

/** Where an agent's instructions stand, from the manifest's folder. */
export const instructionsPath = (agentId: string): string => `./agents/${agentId}.md`;

function agentEntry({ id, kind, enabled, model, instructions, policy, match }: WrittenAgent): unknown {
  return {
    kind,
    enabled,
    ...(model === '' ? {} : { model }),
    ...(instructions === '' ? {} : { instructions: instructionsPath(id) }),
    ...literal(policy),
    ...(match.length === 0 ? {} : { match: literal(match) }),
  };
}

function serverEntry({ transport, display, enabled, readOnly, argumentsKept, instances, timeouts, ...more }: Server): unknown {
  const { platforms, scopes, permissions } = more;
  const reach =
    transport.type === 'stdio'
      ? { command: transport.command, args: transport.args, env: transport.env }
      : transport.type === 'inmemory'
        ? {}
        : { url: transport.url, type: transport.type, headers: transport.headers };
  const { idleStopMs, memoryBytes, ...bounds } = instances;
  return {
    ...literal(reach),
    ...(display === '' ? {} : { display }),
    enabled,
    readOnly,
    argumentsKept,
    ...(platforms === undefined ? {} : { platforms }),
    ...(scopes === undefined ? {} : { scopes }),
    ...(permissions === undefined ? {} : { permissions }),
    instances: {
      ...bounds,
      idleStop: formatDuration(idleStopMs),
      ...(memoryBytes === undefined ? {} : { memory: `${Math.ceil(memoryBytes / 1024 ** 2)}Mi` }),
    },
    timeouts: { start: formatDuration(timeouts.startMs), call: formatDuration(timeouts.callMs), onProgress: timeouts.onProgress },
  };
}

function pluginEntry({ id, version, signedBy, wanted }: Plugin): unknown {
  const trust = signedBy === null ? { unsigned: 'allow' } : { publisher: signedBy, unsigned: 'refuse' };
  return { source: `./plugins/${id}`, version, ...trust, enabled: wanted === 'enabled' };
}

/** Texts as they are: a reader of the manifest would otherwise put variables in. */
function literal<T>(value: T): T;
function literal(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll('${', '$${');
  if (Array.isArray(value)) return value.map(literal);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, literal(entry)]));
}

function record<T>(items: readonly T[], entry: (item: T) => [string, unknown]): Record<string, unknown> {
  return Object.fromEntries(items.map(entry));
}
