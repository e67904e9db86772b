import { z } from 'zod';
import { looseServer } from './loose-server.js';
import type { Draft } from './manifest.js';
import { inside, jsonOf, PackageRefused, parsed, peek, type PackageFiles } from './package-files.js';
import { pluginIdOf } from './plugin-id.js';
import type { PackageFormat } from './format.js';

const MARK = 'manifest.json';
const Config = z.strictObject({
  command: z.string().max(1_024).optional(),
  args: z.array(z.string().max(8_192)).max(256).optional(),
  env: z.record(z.string().max(128), z.string().max(16 * 1024)).optional(),
});
const Setting = z.strictObject({
  type: z.enum(['string', 'number', 'boolean', 'directory', 'file']),
  title: z.string().max(200),
  sensitive: z.boolean().optional(),
  required: z.boolean().optional(),
  description: z.string().max(2_000).optional(),
  multiple: z.boolean().optional(),
  min: z.number().optional(),
  max: z.number().optional(),
  default: z.unknown().optional(),
});
const Versions = z.enum(['0.1', '0.2', '0.3', '0.4']);
const shown = z.unknown().optional();
const ManifestJson = z.strictObject({
  manifest_version: Versions.optional(),
  dxt_version: Versions.optional(),
  name: z.string().min(1).max(200),
  display_name: z.string().max(200).optional(),
  version: z.string().min(1).max(100),
  description: z.string().max(2_000),
  author: z.looseObject({ name: z.string().min(1).max(200) }),
  server: z.strictObject({
    type: z.enum(['python', 'node', 'binary', 'uv']),
    entry_point: z.string().min(1).max(1_024),
    mcp_config: Config.extend({ platform_overrides: z.record(z.string().max(20), Config).optional() }).optional(),
  }),
  compatibility: z
    .strictObject({
      claude_desktop: shown,
      runtimes: shown,
      platforms: z
        .array(z.enum(['darwin', 'win32', 'linux']))
        .min(1)
        .max(10)
        .optional(),
    })
    .optional(),
  user_config: z.record(z.string().max(100), Setting).default({}),
  ...{ $schema: shown, long_description: shown, repository: shown, homepage: shown, documentation: shown, support: shown, license: shown },
  ...{ icon: shown, icons: shown, screenshots: shown, keywords: shown, privacy_policies: shown, localization: shown, _meta: shown },
  ...{ tools: shown, tools_generated: shown, prompts: shown, prompts_generated: shown },
});
type ManifestJson = z.output<typeof ManifestJson>;

/** An MCP bundle (`.mcpb`, once `.dxt`): one server, and how it is started. */
export const mcpBundle: PackageFormat = {
  name: 'mcpb',
  mark: MARK,
  isOne: (files) => {
    const json = peek(files, MARK);
    return json !== undefined && ('manifest_version' in json || 'dxt_version' in json);
  },
  read,
};

function read(files: PackageFiles): Draft {
  const json = parsed(ManifestJson, jsonOf(files, MARK), MARK);
  const entry = inside(json.server.entry_point.replace(/^\$\{__dirname\}\//, ''), MARK);
  if (!files.paths.includes(entry)) throw new PackageRefused(MARK, `server.entry_point: "${entry.slice(0, 200)}" is not in the package`);
  const id = pluginIdOf(json.name);
  const server = looseServer(configOf(json, entry, files.here.platform), {
    pluginId: id,
    words: wordsOf(json),
    titles: new Map(Object.entries(json.user_config).map(([key, { title }]) => [`user_config.${key}`, title])),
  });
  const where = `${MARK}: server`;
  return {
    id,
    version: json.version,
    display: json.display_name ?? json.name,
    description: json.description,
    publisher: json.author.name,
    servers: 'problem' in server ? [] : [{ id: 'server', transport: server.transport }],
    skills: [],
    platforms: json.compatibility?.platforms ?? null,
    settings: 'problem' in server ? [] : [...server.settings],
    warnings:
      'problem' in server ? [`${where}: ${server.problem}; it is left out`] : server.told.map((sentence) => `${where}: ${sentence}`),
  };
}

/** How the server is started on this system; where the manifest does not say, by its kind. */
function configOf({ server }: ManifestJson, entry: string, platform: string): Readonly<Record<string, unknown>> {
  const { platform_overrides: overrides, ...config } = server.mcp_config ?? {};
  const own = overrides?.[platform] ?? {};
  const byKind = {
    node: { command: 'node', args: [`\${__dirname}/${entry}`] },
    python: { command: 'python3', args: [`\${__dirname}/${entry}`] },
    uv: { command: 'uv', args: ['run', '--directory', '${__dirname}', entry] },
    binary: { command: `\${__dirname}/${entry}` },
  }[server.type];
  const { command, args } = { ...(config.command === undefined ? byKind : config), ...own };
  return { type: 'stdio', command, args, env: { ...config.env, ...own.env } };
}

function wordsOf({ user_config: settings }: ManifestJson): Map<string, string> {
  const words = new Map([
    ['__dirname', '${PLUGIN_ROOT}'],
    ['HOME', '${PLUGIN_DATA}'],
    ['/', '/'],
    ['pathSeparator', '/'],
  ]);
  for (const [key, { sensitive, required, default: value }] of Object.entries(settings)) {
    if (sensitive === true) continue;
    if (['string', 'number', 'boolean'].includes(typeof value))
      words.set(`user_config.${key}`, String(value).replaceAll('${HOME}', '${PLUGIN_DATA}'));
    else if (required !== true) words.set(`user_config.${key}`, '');
  }
  return words;
}
