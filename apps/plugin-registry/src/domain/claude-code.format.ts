import { isObject } from '@ambit/capability';
import { z } from 'zod';
import { looseServer } from './loose-server.js';
import type { Draft, Setting } from './manifest.js';
import { inside, jsonOf, PackageRefused, parsed, unknownFields, type PackageFiles } from './package-files.js';
import { pluginIdOf } from './plugin-id.js';
import { ServerId, type PluginServer } from './server-transport.js';
import { skillFoldersBelow, type PackageFormat } from './format.js';

const MARK = '.claude-plugin/plugin.json';
const Paths = z.union([
  z
    .string()
    .max(1_024)
    .transform((path) => [path]),
  z.array(z.string().max(1_024)).max(50),
]);
const UserConfig = z.record(
  z.string().max(100),
  z.looseObject({
    type: z.string().max(20).optional(),
    title: z.string().max(200).optional(),
    sensitive: z.boolean().optional(),
    default: z.unknown().optional(),
  }),
);
const PluginJson = z.looseObject({
  name: z.string().min(1).max(200),
  version: z.string().min(1).max(100).default('0.0.0'),
  description: z.string().max(2_000).default(''),
  author: z
    .union([
      z.looseObject({ name: z.string().max(200).optional() }),
      z
        .string()
        .max(200)
        .transform((name) => ({ name })),
    ])
    .optional(),
  skills: Paths.optional(),
  commands: z.unknown().optional(),
  agents: z.unknown().optional(),
  hooks: z.unknown().optional(),
  mcpServers: z.unknown().optional(),
  userConfig: UserConfig.default({}),
});
const KNOWN = [
  ...Object.keys(PluginJson.shape),
  ...['$schema', 'displayName', 'homepage', 'repository', 'license', 'keywords'],
  ...['lspServers', 'outputStyles', 'monitors', 'settings', 'channels', 'dependencies', 'defaultEnabled'],
];
/** What lies in a plugin beside skills and servers: it is shown, and none of it is run. */
const INERT = [
  ['command', /^commands\/.+\.md$/],
  ['agent', /^agents\/.+\.md$/],
  ['hook', /^hooks\/hooks\.json$/],
  ['monitor', /^monitors\/monitors\.json$/],
  ['language-server', /^\.lsp\.json$/],
] as const;

/** A Claude Code plugin: `.claude-plugin/plugin.json`, and the rest by where it lies. */
export const claudeCode: PackageFormat = {
  name: 'claude-code',
  mark: MARK,
  isOne: (files) => files.paths.includes(MARK),
  read,
};

function read(files: PackageFiles): Draft {
  const json = parsed(PluginJson, jsonOf(files, MARK), MARK);
  const warnings = unknownFields(json, KNOWN, MARK);
  const settings: Setting[] = [];
  const id = pluginIdOf(json.name);
  return {
    id,
    version: json.version,
    display: json.name,
    description: json.description,
    publisher: json.author?.name ?? null,
    servers: serversOf(files, { id, json }, { warnings, settings }),
    skills: skillsOf(files, json.skills ?? []),
    settings,
    inert: files.paths.flatMap((path) => INERT.flatMap(([kind, shape]) => (shape.test(path) ? [{ kind, path }] : []))).slice(0, 200),
    warnings,
  };
}

function skillsOf(files: PackageFiles, more: readonly string[]): string[] {
  const folders = more.flatMap((written) => {
    const folder = inside(written, MARK);
    if (files.paths.includes(`${folder}/SKILL.md`)) return [folder];
    const below = skillFoldersBelow(files.paths, folder);
    if (below.length === 0) throw new PackageRefused(MARK, `there is no skill in "${written.slice(0, 200)}"`);
    return below;
  });
  return [...new Set([...skillFoldersBelow(files.paths, 'skills'), ...folders])];
}

/** Servers of `.mcp.json`, and those that the manifest has in itself or in files that it names. */
function serversOf(
  files: PackageFiles,
  { id: pluginId, json }: { readonly id: string; readonly json: z.output<typeof PluginJson> },
  to: { readonly warnings: string[]; readonly settings: Setting[] },
): PluginServer[] {
  const words = new Map([
    ['CLAUDE_PLUGIN_ROOT', '${PLUGIN_ROOT}'],
    ['CLAUDE_PLUGIN_DATA', '${PLUGIN_DATA}'],
  ]);
  for (const [key, one] of Object.entries(json.userConfig))
    if (one.sensitive !== true && ['string', 'number', 'boolean'].includes(typeof one.default))
      words.set(`user_config.${key}`, String(one.default));
  const titles = new Map(Object.entries(json.userConfig).map(([key, { title }]) => [`user_config.${key}`, title ?? key]));
  return listed(files, json.mcpServers).flatMap(({ path, id, server }) => {
    const say = (what: string) => to.warnings.push(`${path}: server "${id.slice(0, 64)}": ${what}`);
    const read = ServerId.safeParse(id).success ? looseServer(server, { pluginId, words, titles }) : { problem: 'its id is not one' };
    if ('problem' in read) {
      say(`${read.problem}; it is left out`);
      return [];
    }
    for (const sentence of read.told) say(sentence);
    to.settings.push(...read.settings);
    return [{ id, transport: read.transport }];
  });
}

interface Listed {
  readonly path: string;
  readonly id: string;
  readonly server: unknown;
}

function listed(files: PackageFiles, named: unknown): Listed[] {
  const all = Array.isArray(named) ? named.slice(0, 50) : named === undefined ? [] : [named];
  const texts = all.filter((one) => typeof one === 'string').map((one) => inside(one, MARK));
  const absent = texts.find((path) => !files.paths.includes(path));
  if (absent !== undefined) throw new PackageRefused(MARK, `mcpServers: "${absent.slice(0, 200)}" is not in the package`);
  return [
    ...[...new Set(['.mcp.json', ...texts])].flatMap((path) => entries(jsonOf(files, path), path)),
    ...all.flatMap((one) => (typeof one === 'string' ? [] : entries(one, MARK))),
  ];
}

function entries(json: unknown, path: string): Listed[] {
  if (json === undefined) return [];
  const servers = isObject(json) ? (json['mcpServers'] ?? json) : json;
  if (!isObject(servers)) throw new PackageRefused(path, 'servers are an object, by their ids');
  return Object.entries(servers).map(([id, server]) => ({ path, id, server }));
}
