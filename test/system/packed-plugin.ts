import { mcpBroker, pluginRegistry, type Server } from '@ambit/contracts';
import { readFile } from 'node:fs/promises';
import { installFiles } from './helper-plugin.js';
import type { Scene } from './scene.js';

/** A plugin whose package lists the tools of its server, and how their names begin. */
export const PACKED = 'packed';
export const PACKED_TOOL = 'mcp__packed-tools__';
const SCHEMAS = 'https://agent-plugins.org/schemas/1.0.0';

const properties = { ms: { type: 'integer' }, name: { type: 'string' }, bytes: { type: 'integer' } };
/** `count` is as the server has it, with other keys first; `look` has another schema there, and `gone` is not there at all. */
const listed = [
  { inputSchema: { required: ['name'], properties, type: 'object' }, description: 'Counts a name', name: 'count' },
  { name: 'look', description: 'Looks', inputSchema: { type: 'object', properties: { name: { type: 'string' } } } },
  { name: 'gone', description: 'Goes', inputSchema: { type: 'object' } },
  { name: 'no schema' },
];

/** Installed and switched on; gives its server as it stands then. */
export async function enablePacked(scene: Scene): Promise<Server> {
  const text = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
  await installFiles(scene, {
    'plugin.json': text({ $schema: `${SCHEMAS}/plugin.schema.json`, name: PACKED, version: '1.0.0' }),
    'mcp.json': text({
      $schema: `${SCHEMAS}/mcp.schema.json`,
      mcpServers: { tools: { type: 'stdio', command: './server.mjs', env: { ...scene.counting.environment, SERVER: PACKED } } },
    }),
    'mcp-catalogues/tools.json': text({ tools: listed }),
    'mcp-catalogues/absent.json': text({ tools: [] }),
    'server.mjs': await readFile(new URL('../fixtures/counting-server.mjs', import.meta.url)),
  });
  await scene.bus.call(pluginRegistry.enablePlugin, { id: PACKED });
  const { items } = await scene.bus.call(mcpBroker.listServers, { owner: `plugin:${PACKED}` });
  const [server] = items;
  if (server === undefined) throw new Error('the plugin contributed no server');
  return server;
}
