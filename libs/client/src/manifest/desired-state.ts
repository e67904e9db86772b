import { listFromDocument, PolicyDocument } from '@ambit/capability';
import { DesiredState, type Authorization, type FileEntry } from '@ambit/contracts';
import type { z } from 'zod';
import type { AgentEntry, ManifestDocument, ServerEntry } from './document.js';

/** What stands in files beside the manifest, by the names that the manifest gives it. */
export interface ManifestFiles {
  readonly plugins: ReadonlyMap<string, readonly FileEntry[]>;
  readonly skills: ReadonlyMap<string, readonly FileEntry[]>;
  readonly instructions: ReadonlyMap<string, string>;
}
type Input = z.input<typeof DesiredState>;
type Server = NonNullable<Input['servers']>[string];

/** The desired state that a manifest and its files mean. */
export function desiredStateOf(manifest: ManifestDocument, files: ManifestFiles): DesiredState {
  const { apiVersion, set, project, secrets, servers, plugins, skills, agents, access, notify } = manifest;
  return DesiredState.parse({
    apiVersion,
    set,
    project,
    secrets: mapValues(secrets, (source) => ({
      from: source.from,
      key: source.from === 'env' ? source.key : source.from === 'file' ? source.path : null,
    })),
    servers: mapValues(servers, serverOf),
    plugins: mapValues(plugins, ({ source: _source, ...plugin }, id) => ({ ...plugin, files: [...(files.plugins.get(id) ?? [])] })),
    skills: mapValues(skills, ({ scripts }, name) => ({ files: [...(files.skills.get(name) ?? [])], scripts })),
    agents: mapValues(agents, (agent, id) => agentOf(agent, files.instructions.get(id) ?? '')),
    agentSkills: Object.fromEntries(
      Object.entries(agents)
        .map(([id, agent]): [string, string[]] => [id, skillsOf(agent, Object.keys(skills))])
        .filter(([, names]) => names.length > 0),
    ),
    access,
    notify,
  } satisfies Input);
}

function serverOf(server: ServerEntry): Server {
  const { url, type, headers, auth, command, args, env, instances, timeouts, ...same } = server;
  const { idleStop, memory, ...bounds } = instances ?? {};
  const { start, call, ...progress } = timeouts ?? {};
  return {
    ...same,
    transport:
      command === undefined
        ? { type: type ?? 'http', url: url ?? '', headers, ...authorizationOf(auth) }
        : { type: 'stdio', command, args, env },
    instances: {
      ...bounds,
      ...(idleStop === undefined ? {} : { idleStopMs: idleStop }),
      ...(memory === undefined ? {} : { memoryBytes: memory }),
    },
    timeouts: { ...progress, ...(start === undefined ? {} : { startMs: start }), ...(call === undefined ? {} : { callMs: call }) },
  };
}

/** Left out where the file says nothing of it. */
function authorizationOf(auth: ServerEntry['auth']): { authorization?: Authorization } {
  if (auth === undefined) return {};
  return { authorization: auth.type === 'oauth' ? { ...auth, type: 'interactive' } : auth };
}

function agentOf(agent: AgentEntry, instructions: string): NonNullable<Input['agents']>[string] {
  const { kind, enabled, model, match, instructions: _path, ...policy } = agent;
  return { kind, enabled, model, match, instructions, policy: PolicyDocument.parse(policy) };
}

/** The skills of this file that an agent gets into its scope; a name of its policy that stands elsewhere is none of them. */
function skillsOf(agent: AgentEntry, here: readonly string[]): string[] {
  const listed = listFromDocument(agent.skills);
  return listed === null ? [...here] : listed.filter((name) => here.includes(name));
}

function mapValues<V, W>(record: Readonly<Record<string, V>>, change: (value: V, key: string) => W): Record<string, W> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]));
}
