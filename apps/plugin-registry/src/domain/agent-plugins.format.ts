import { isObject } from '@ambit/capability';
import { PluginId } from '@ambit/contracts';
import { z } from 'zod';
import { withoutPermissions } from './loose-server.js';
import type { Draft } from './manifest.js';
import { jsonOf, KeyTwice, PackageRefused, parsed, peek, sentence, unknownFields, type PackageFiles } from './package-files.js';
import { readPresets } from './presets.js';
import { ServerTransport, type PluginServer } from './server-transport.js';
import { skillFoldersBelow, type PackageFormat } from './format.js';

const PLUGIN_SCHEMA = 'https://agent-plugins.org/schemas/1.0.0/plugin.schema.json';
const MCP_SCHEMA = 'https://agent-plugins.org/schemas/1.0.0/mcp.schema.json';
/** Under `extensions`: what Ambit reads beyond the format. */
const EXTENSION = 'dev.ambit';

const Person = z.looseObject({
  name: z.string().max(200).optional(),
  email: z.string().max(200).optional(),
  url: z.string().max(2_000).optional(),
});
const KNOWN = ['$schema', 'name', 'version', 'description', 'author', 'homepage', 'repository', 'license', 'keywords', 'extensions'];

const PluginJson = z.looseObject({
  $schema: z.literal(PLUGIN_SCHEMA),
  name: PluginId,
  version: z.string().min(1).max(100).default('0.0.0'),
  description: z.string().max(2_000).default(''),
  author: Person.optional(),
  homepage: z.string().max(2_000).optional(),
  repository: z.unknown().optional(),
  license: z.string().max(200).optional(),
  keywords: z.array(z.string().max(100)).max(100).optional(),
  extensions: z.record(z.string(), z.record(z.string(), z.unknown())).optional(),
});
const Ours = z.strictObject({
  capabilities: z
    .array(z.enum(['servers', 'skills', 'agents']))
    .max(10)
    .optional(),
  platforms: z
    .array(z.string().regex(/^[a-z0-9]+(?:\/[a-z0-9]+)?$/, 'as linux or linux/x64'))
    .min(1)
    .max(50)
    .optional(),
  engine: z
    .string()
    .regex(/^\d+\.\d+\.\d+$/, 'the oldest version of Ambit, as 0.1.0')
    .optional(),
});
const McpJson = z.looseObject({ $schema: z.literal(MCP_SCHEMA), mcpServers: z.record(z.string().min(1).max(64), z.unknown()) });

/** Agent Plugins 1.0.0, the native format: `plugin.json`, `skills/<name>/SKILL.md` and `mcp.json` at the root. */
export const agentPlugins: PackageFormat = {
  name: 'agent-plugins-1.0.0',
  mark: 'plugin.json',
  isOne: (files) => peek(files, 'plugin.json')?.['$schema'] === PLUGIN_SCHEMA,
  read,
};

/** A bad plugin.json refuses the package, a bad mcp.json costs it all servers, a bad server only itself. */
function read(files: PackageFiles): Draft {
  const json = jsonOf(files, 'plugin.json');
  if (json === undefined) throw new PackageRefused('plugin.json', 'there is no plugin.json at the root');
  const { name, version, description, author, extensions, ...rest } = parsed(PluginJson, json, 'plugin.json');
  const ours = parsed(Ours, extensions?.[EXTENSION] ?? {}, `plugin.json: extensions.${EXTENSION}`);
  const warnings = unknownFields(rest, KNOWN, 'plugin.json');
  const servers = readServers(files, warnings);
  const skills = skillFoldersBelow(files.paths, 'skills');
  const agents = readPresets(files, warnings);
  for (const path of files.paths)
    if (/^skills\/.+\/SKILL\.md$/.test(path) && !skills.includes(path.slice(0, -'/SKILL.md'.length)))
      warnings.push(`${path}: skills lie one level below skills/; this one is ignored`);
  return {
    id: name,
    version,
    display: name,
    description,
    publisher: author?.name ?? null,
    servers,
    skills: skills.slice(0, 200),
    agents,
    undeclared: Object.entries({ servers, skills, agents }).flatMap(([kind, found]) =>
      found.length > 0 && ours.capabilities?.every((one) => one !== kind) === true ? [kind] : [],
    ),
    platforms: ours.platforms ?? null,
    engine: ours.engine ?? null,
    warnings,
  };
}

function readServers(files: PackageFiles, warnings: string[]): PluginServer[] {
  const json = jsonOrWarning(files, warnings);
  if (json === undefined) return [];
  const mcp = McpJson.safeParse(json);
  if (!mcp.success) {
    warnings.push(`mcp.json: ${sentence(mcp.error)}; the plugin contributes no servers`);
    return [];
  }
  return Object.entries(mcp.data.mcpServers).flatMap(([id, value]) => {
    const say = (what: string) => warnings.push(`mcp.json: server "${id}": ${what}`);
    const taken = withoutPermissions(value, say);
    const server = ServerTransport.safeParse(isObject(taken) ? { type: 'stdio', ...taken } : taken);
    if (!server.success) say(`${sentence(server.error)}; it is left out`);
    else if (Object.values('env' in server.data ? server.data.env : server.data.headers).some((one) => typeof one !== 'string'))
      say('its values are texts; it is left out');
    else return [{ id, transport: server.data }];
    return [];
  });
}

/** A file that is no JSON costs the plugin its servers; one that names a server twice is not taken at all. */
function jsonOrWarning(files: PackageFiles, warnings: string[]): unknown {
  try {
    return jsonOf(files, 'mcp.json');
  } catch (error) {
    if (!(error instanceof PackageRefused) || error instanceof KeyTwice) throw error;
    warnings.push(`mcp.json: ${error.reason}; the plugin contributes no servers`);
    return undefined;
  }
}
