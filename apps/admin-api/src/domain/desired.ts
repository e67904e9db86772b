import { AgentSpec, ServerSpec, type DesiredState, type FileEntry, type Policy } from '@ambit/contracts';
import { notifyState } from './notify.js';
import type { Item } from './plan.js';

function pick(record: unknown, fields: readonly string[]): Record<string, unknown> {
  const known = new Map<string, unknown>(Object.entries(Object(record)));
  return Object.fromEntries(fields.map((field) => [field, known.get(field)]));
}

const SERVER_FIELDS = [
  ...(['display', 'enabled', 'transport', 'instances', 'timeouts', 'readOnly', 'holdChanges', 'argumentsKept'] as const),
  ...(['platforms', 'scopes', 'permissions'] as const),
];
const AGENT_FIELDS = ['kind', 'enabled', 'model', 'instructions', 'policy', 'match'] as const;

interface Known {
  /** As stored, so that two spellings of one policy are the same. */
  readonly policies: ReadonlyMap<string, Policy>;
  readonly treeDigest: (files: readonly FileEntry[]) => string;
}

/** The desired state as items. */
export function desiredItems(desired: DesiredState, { policies, treeDigest }: Known): Item[] {
  return [
    { kind: 'project', name: desired.project, state: {} },
    ...Object.entries(desired.secrets).map(([name, secret]): Item => ({ kind: 'secret', name, state: { ...secret } })),
    ...Object.entries(desired.servers).map(([name, server]): Item => ({
      kind: 'server',
      name,
      state: serverState({ ...server, slug: name }),
    })),
    ...Object.entries(desired.plugins).map(([name, plugin]): Item => ({
      kind: 'plugin',
      name,
      state: {
        ...{ digest: treeDigest(plugin.files), wanted: plugin.enabled ? 'enabled' : 'disabled' },
        ...(plugin.publisher === undefined ? {} : { publisher: plugin.publisher }),
      },
    })),
    ...Object.entries(desired.agents).map(([name, agent]): Item => ({
      kind: 'agent',
      name,
      state: agentState({ ...agent, id: name, policy: policies.get(name) }),
    })),
    ...Object.entries(desired.agentSkills).flatMap(([agentId, names]) =>
      names.map((name): Item => ({
        kind: 'skill',
        name: `${agentId}/${name}`,
        state: { digest: treeDigest(desired.skills[name]?.files ?? []), scripts: [...new Set(desired.skills[name]?.scripts)].sort() },
      })),
    ),
    ...desired.access.map((grant): Item => ({ kind: 'access', name: accessName(grant), state: {} })),
    ...desired.notify.map((entry): Item => ({ kind: 'notify', name: entry.webhook.url, state: notifyState(entry) })),
  ];
}

export const serverState = (server: unknown) => pick(ServerSpec.parse(pick(server, ['slug', ...SERVER_FIELDS])), SERVER_FIELDS);
export const agentState = (agent: unknown) => pick(AgentSpec.parse(pick(agent, ['id', ...AGENT_FIELDS])), AGENT_FIELDS);

/** A grant has no name of its own: it is what it says. */
export function accessName(grant: {
  readonly who: string;
  readonly role: string;
  readonly agents: readonly string[] | null;
  readonly onBehalfOf: readonly string[];
}): string {
  const agents = grant.agents === null ? '' : ` on ${[...grant.agents].sort().join(',')}`;
  const behalf = grant.onBehalfOf.length === 0 ? '' : ` for ${[...grant.onBehalfOf].sort().join(',')}`;
  return `${grant.who} ${grant.role}${agents}${behalf}`;
}
