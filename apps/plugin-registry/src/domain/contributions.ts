import { sha256Hex } from '@ambit/capability';
import type { Input } from '@ambit/contracts';
import { mcpBroker, type FileEntry } from '@ambit/contracts';
import type { Manifest } from './manifest.js';
import type { PluginServer } from './server-transport.js';

const SLUG_MAX = 63;
const SUFFIX = 8;

/** The slug of a plugin's server: plugin and server joined; where that lost something, a piece of the hash keeps two apart. */
function serverSlug(pluginId: string, serverId: string): string {
  const plain = `${pluginId}-${serverId}`
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');
  if (plain === `${pluginId}-${serverId}` && plain.length <= SLUG_MAX) return plain;
  return `${plain.slice(0, SLUG_MAX - SUFFIX - 1).replace(/-+$/, '')}-${sha256Hex(JSON.stringify([pluginId, serverId])).slice(0, SUFFIX)}`;
}

/** A plugin's server as the broker configures it: owned by the plugin, run from its package. */
export function serverSpec(
  manifest: Manifest,
  server: PluginServer,
  place: { readonly projectId: string; readonly digest: string; readonly set: string | null },
): Input<typeof mcpBroker.putServer> {
  const { transport } = server;
  const spec = {
    slug: serverSlug(manifest.id, server.id),
    projectId: place.projectId,
    display: `${manifest.display}: ${server.id}`.slice(0, 200),
    enabled: true,
    owner: `plugin:${manifest.id}`,
    set: place.set,
    toolPolicy: manifest.toolPolicies.find((policy) => policy.server === server.id)?.tools ?? null,
  };
  if (transport.type === 'stdio')
    return {
      ...spec,
      transport: {
        type: 'stdio',
        command: transport.command,
        args: transport.args,
        env: transport.env,
        package: { pluginId: manifest.id, digest: place.digest },
      },
    };
  return { ...spec, transport: { type: transport.type === 'sse' ? 'sse' : 'http', url: transport.url, headers: transport.headers } };
}

/** The files of one skill folder, with paths below it. */
export function skillFiles(tree: readonly FileEntry[], folder: string): FileEntry[] {
  return tree.filter((file) => file.path.startsWith(`${folder}/`)).map((file) => ({ ...file, path: file.path.slice(folder.length + 1) }));
}
