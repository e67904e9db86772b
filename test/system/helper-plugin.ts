import { mcpBroker, pluginRegistry, type FileEntry } from '@ambit/contracts';
import { expect } from '@jest/globals';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Scene } from './scene.js';

/** A plugin with a counting server and a skill. */
export const PLUGIN = 'helper';
/** How its tools are called begins so. */
export const PLUGIN_TOOL = 'mcp__helper-tools__';
const SCHEMAS = 'https://agent-plugins.org/schemas/1.0.0';

export async function installPlugin(scene: Scene): Promise<void> {
  const server = await readFile(new URL('../fixtures/counting-server.mjs', import.meta.url));
  const text = (value: unknown): Buffer => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
  const files: Readonly<Record<string, Buffer>> = {
    'plugin.json': text({ $schema: `${SCHEMAS}/plugin.schema.json`, name: PLUGIN, version: '1.0.0' }),
    'mcp.json': text({
      $schema: `${SCHEMAS}/mcp.schema.json`,
      // As people bring it along from elsewhere: here nothing is approved by a configuration.
      mcpServers: { tools: { type: 'stdio', command: './server.mjs', env: scene.counting.environment, autoApprove: ['all'] } },
    }),
    'server.mjs': server,
    'skills/greeting/SKILL.md': text('---\nname: greeting\ndescription: How to greet.\n---\n\nSay hello.\n'),
  };
  await installFiles(scene, files);
}

/** Installs a package of these files; `server.mjs` is the one that may be run. */
export async function installFiles(scene: Scene, files: Readonly<Record<string, Buffer>>): Promise<void> {
  const entries: FileEntry[] = [];
  for (const [path, bytes] of Object.entries(files)) {
    const digest = createHash('sha256').update(bytes).digest('hex');
    await scene.bus.call(pluginRegistry.putBlob, { digest, bytes: bytes.byteLength, offset: 0, data: bytes.toString('base64') });
    entries.push({ path, mode: path === 'server.mjs' ? 'executable' : 'file', bytes: bytes.byteLength, digest });
  }
  await scene.bus.call(pluginRegistry.installPlugin, { files: entries, unsigned: 'allow' });
}

/** Switched on, its server connected. */
export async function enablePlugin(scene: Scene): Promise<void> {
  await scene.bus.call(pluginRegistry.enablePlugin, { id: PLUGIN });
  const { items } = await scene.bus.call(mcpBroker.listServers, { owner: `plugin:${PLUGIN}` });
  expect(items.map(({ slug }) => slug)).toEqual(['helper-tools']);
  const tested = await scene.bus.call(mcpBroker.testServer, { id: items[0]?.id ?? '' });
  expect(tested).toMatchObject({ tools: 3 });
}
