import type { Bus } from '@ambit/bus';
import { pluginRegistry, type FileEntry, type Input, type Plugin, type SourceFormat } from '@ambit/contracts';
import { createHash } from 'node:crypto';

/** Files of a package, by path. */
export type Files = Readonly<Record<string, string>>;

const PART_BYTES = 256 * 1024;
const json = (value: unknown): string => JSON.stringify(value, null, 2);
const skill = (name: string): string => `---\nname: ${name}\ndescription: How to ${name}.\n---\n\nDo it.\n`;
/** A server over stdio that initializes and lists one tool. */
const SERVER = `#!/usr/bin/env node
import { createInterface } from 'node:readline';
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'sample', version: '1.0.0' } }),
  'tools/list': () => ({ tools: [{ name: 'say', description: 'Says', inputSchema: { type: 'object' } }] }),
};
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method];
  const reply = answer === undefined ? { error: { code: -32601, message: 'unknown' } } : { result: answer(params) };
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...reply }) + '\\n');
});
`;
export const digestOf = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex');

export const AGENT_PLUGIN = { $schema: 'https://agent-plugins.org/schemas/1.0.0/plugin.schema.json', name: 'packed', version: '1.0.0' };
export const MCP_SCHEMA = 'https://agent-plugins.org/schemas/1.0.0/mcp.schema.json';

export const DEEPCHAT = {
  id: 'com.example.plugins.notes',
  name: 'Notes',
  version: '1.2.0',
  publisher: 'Example',
  engines: { deepchat: '>=1.0.0', platforms: ['darwin', 'linux', 'win32'] },
  activationEvents: ['onEnable'],
  capabilities: ['mcp.register', 'skills.register', 'settings.contribute'],
  source: { type: 'deepchat-official', url: 'https://example.com/notes.dcplugin', publisher: 'Example' },
  mcpServers: [
    { id: 'notes', displayName: 'Notes', transport: 'stdio', command: '${plugin.root}/bin/notes', args: ['serve'], autoApprove: ['all'] },
  ],
  skills: [{ id: 'note-taking', path: 'skills/note-taking/SKILL.md', scope: 'agent' }],
  settingsContributions: [{ id: 'notes-settings', title: 'Notes', placement: 'plugins', entry: 'settings/index.html' }],
  toolPolicies: [{ serverId: 'notes', tools: { list_notes: 'allow', remove_note: 'ask' } }],
};
export const CLAUDE = {
  name: 'deploy-kit',
  version: '2.0.0',
  description: 'Deploys',
  author: { name: 'Example' },
  mcpServers: {
    deploy: {
      command: 'node',
      args: ['${CLAUDE_PLUGIN_ROOT}/server.mjs', '--region', '${user_config.region}'],
      env: { TOKEN: '${user_config.token}' },
    },
  },
  userConfig: {
    region: { type: 'string', title: 'Region', default: 'eu' },
    token: { type: 'string', title: 'Token', required: true, sensitive: true },
  },
};
export const BUNDLE = {
  manifest_version: '0.3',
  name: 'weather',
  display_name: 'Weather',
  version: '0.4.1',
  description: 'Says the weather',
  author: { name: 'Example' },
  server: {
    type: 'node',
    entry_point: 'server/index.js',
    mcp_config: {
      command: 'node',
      args: ['${__dirname}/server/index.js', '--unit=${user_config.unit}'],
      env: { UNIT: '${user_config.unit}' },
    },
  },
  user_config: { unit: { type: 'string', title: 'Unit', description: 'Of temperatures', default: 'celsius' } },
  compatibility: { platforms: ['darwin', 'win32', 'linux'] },
};
export const REGISTRY_SERVER = {
  $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
  name: 'io.example/search',
  description: 'Searches',
  version: '3.1.0',
  packages: [
    {
      registryType: 'npm',
      identifier: '@example/search',
      version: '3.1.0',
      transport: { type: 'stdio' },
      packageArguments: [{ type: 'named', name: '--depth', value: '2' }],
      environmentVariables: [{ name: 'MODE', default: 'fast' }],
    },
  ],
};

/** DeepChat's list of checksums of a package's files. */
export const withChecksums = (files: Files): Files => ({
  ...files,
  'checksums.json': json(Object.fromEntries(Object.entries(files).map(([path, text]) => [path, digestOf(text)]))),
});

/** One package of each format: the file that says what it is, and the rest. */
export const SAMPLES: Readonly<
  Record<SourceFormat, { readonly mark: string; readonly manifest: Readonly<Record<string, unknown>>; readonly rest: Files }>
> = {
  'agent-plugins-1.0.0': {
    mark: 'plugin.json',
    manifest: AGENT_PLUGIN,
    rest: {
      'mcp.json': json({ $schema: MCP_SCHEMA, mcpServers: { main: { command: './server.mjs' } } }),
      'server.mjs': SERVER,
      'skills/packing/SKILL.md': skill('packing'),
    },
  },
  deepchat: {
    mark: 'plugin.json',
    manifest: DEEPCHAT,
    rest: { 'bin/notes': SERVER, 'settings/index.html': '<p>', 'skills/note-taking/SKILL.md': skill('note-taking') },
  },
  'claude-code': {
    mark: '.claude-plugin/plugin.json',
    manifest: CLAUDE,
    rest: {
      'server.mjs': SERVER,
      'skills/deploying/SKILL.md': skill('deploying'),
      'hooks/hooks.json': json({ hooks: {} }),
      'commands/ship.md': 'Ship it.',
      '.mcp.json': json({
        mcpServers: { status: { type: 'http', url: 'https://status.example.com/mcp', headers: { 'X-Key': '${STATUS_KEY:-none}' } } },
      }),
    },
  },
  mcpb: { mark: 'manifest.json', manifest: BUNDLE, rest: { 'server/index.js': SERVER } },
  'mcp-registry': { mark: 'server.json', manifest: REGISTRY_SERVER, rest: {} },
};

/** What a server may bring along of what it is made of: more entries than one message takes. */
export const manyFiles = (): Files => {
  const folder = `node_modules/${'d'.repeat(200)}/${'e'.repeat(200)}`;
  return Object.fromEntries(Array.from({ length: 600 }, (_, index) => [`${folder}/${index}.json`, `{"name":"part-${index}"}`]));
};

/** A sample’s files, with its manifest changed. */
export function filesOf(format: SourceFormat, change: Readonly<Record<string, unknown>> = {}): Files {
  const { mark, manifest, rest } = SAMPLES[format];
  const files = { ...rest, [mark]: json({ ...manifest, ...change }) };
  return format === 'deepchat' ? withChecksums(files) : files;
}

/** Uploads bytes as the registry takes them: in parts. */
export async function uploadTo(bus: Bus, bytes: Uint8Array): Promise<string> {
  const digest = digestOf(bytes);
  for (let offset = 0, done = false; !done;) {
    const data = Buffer.from(bytes.subarray(offset, offset + PART_BYTES)).toString('base64');
    const { have, complete } = await bus.call(pluginRegistry.putBlob, { digest, bytes: bytes.byteLength, offset, data });
    [offset, done] = [have, complete];
  }
  return digest;
}

/** Uploads files and installs them as a package; unsigned ones are allowed unless `how` says otherwise. */
export async function installOn(bus: Bus, files: Files, how: Partial<Input<typeof pluginRegistry.installPlugin>> = {}): Promise<Plugin> {
  const entries: FileEntry[] = [];
  for (const [path, text] of Object.entries(files)) {
    const bytes = Buffer.from(text);
    entries.push({ path, mode: 'file', bytes: bytes.byteLength, digest: await uploadTo(bus, bytes) });
  }
  return bus.call(pluginRegistry.installPlugin, { files: entries, unsigned: 'allow', ...how });
}
