import { pluginRegistry, type Plugin } from '@ambit/contracts';
import { readFile } from 'node:fs/promises';
import { installFiles } from './helper-plugin.js';
import type { Scene } from './scene.js';

const SCHEMAS = 'https://agent-plugins.org/schemas/1.0.0';

export interface SmallPlugin {
  readonly id: string;
  /** @default 1.0.0 */
  readonly version?: string;
  /** Names of skills. */
  readonly skills?: readonly string[];
  /** Names of servers that nobody answers for. */
  readonly remote?: readonly string[];
  /** Tools of a counting server named `tools`, beside those it always has. Its lines are signed `<id> <version>`. */
  readonly tools?: readonly string[];
  /** More files, and other texts of those it has. */
  readonly files?: Readonly<Record<string, string>>;
}

/** Installs a package of a few parts. */
export async function installSmall(
  scene: Scene,
  { id, version = '1.0.0', skills = [], remote = [], tools, files = {} }: SmallPlugin,
): Promise<void> {
  const env = { ...scene.counting.environment, SERVER: `${id}-${version}`, TOOLS: JSON.stringify(tools ?? []) };
  const servers = {
    ...Object.fromEntries(remote.map((name) => [name, { type: 'streamable-http', url: 'http://127.0.0.1:9/mcp' }])),
    ...(tools === undefined ? {} : { tools: { type: 'stdio', command: './server.mjs', env } }),
  };
  const texts: Readonly<Record<string, string>> = {
    'plugin.json': JSON.stringify({ $schema: `${SCHEMAS}/plugin.schema.json`, name: id, version }),
    'mcp.json': JSON.stringify({ $schema: `${SCHEMAS}/mcp.schema.json`, mcpServers: servers }),
    ...(tools === undefined ? {} : { 'server.mjs': await readFile(new URL('../fixtures/counting-server.mjs', import.meta.url), 'utf8') }),
    ...Object.fromEntries(
      skills.map((name) => [`skills/${name}/SKILL.md`, `---\nname: ${name}\ndescription: Of ${id}.\n---\n\nOf ${id}.\n`]),
    ),
    ...files,
  };
  await installFiles(scene, Object.fromEntries(Object.entries(texts).map(([path, text]) => [path, Buffer.from(text)])));
}

export const enableSmall = (scene: Scene, id: string): Promise<Plugin> => scene.bus.call(pluginRegistry.enablePlugin, { id });
