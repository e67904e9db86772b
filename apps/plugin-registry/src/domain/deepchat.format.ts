import { isObject } from '@ambit/capability';
import { PluginId } from '@ambit/contracts';
import { z } from 'zod';
import { looseServer } from './loose-server.js';
import type { Draft, Setting } from './manifest.js';
import { inside, jsonOf, once, PackageRefused, parsed, peek, unknownFields, type Here, type PackageFiles } from './package-files.js';
import { ServerId, type PluginServer } from './server-transport.js';
import type { PackageFormat } from './format.js';

const MARK = 'plugin.json';
const Id = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'letters, digits, dots, hyphens and underscores, at most 64');
const Runtime = z.looseObject({ id: Id, type: z.string().max(100), detect: z.array(z.string().max(1_024)).max(50).default([]) });
const PluginJson = z.looseObject({
  id: PluginId,
  name: z.string().min(1).max(200),
  version: z.string().min(1).max(100),
  description: z.string().max(2_000).default(''),
  publisher: z.string().min(1).max(200),
  engines: z.looseObject({
    deepchat: z.string().min(1).max(200),
    platforms: z
      .array(z.enum(['darwin', 'win32', 'linux']))
      .min(1)
      .max(10),
    targets: z
      .array(z.string().regex(/^[a-z0-9]+\/[a-z0-9]+$/, 'as linux/x64'))
      .min(1)
      .max(50)
      .optional(),
  }),
  activationEvents: z.array(z.literal('onEnable')).max(10),
  capabilities: z.array(z.string().max(100)).max(50),
  source: z.looseObject({ type: z.literal('deepchat-official'), url: z.string().max(2_048), publisher: z.string().max(200) }),
  runtime: Runtime.optional(),
  mcpServers: z
    .array(z.looseObject({ id: ServerId }))
    .max(64)
    .default([]),
  skills: z
    .array(z.looseObject({ id: Id, path: z.string().max(1_024), scope: z.literal('agent').optional() }))
    .max(200)
    .default([]),
  settingsContributions: z
    .array(z.looseObject({ id: Id, entry: z.string().max(1_024).optional() }))
    .max(50)
    .default([]),
  toolPolicies: z
    .array(z.looseObject({ serverId: ServerId, tools: z.record(z.string().max(128), z.enum(['allow', 'ask', 'deny'])) }))
    .max(64)
    .default([]),
});
type PluginJson = z.output<typeof PluginJson>;
const KNOWN = Object.keys(PluginJson.shape);

/** A DeepChat plugin: `plugin.json` that lists what it contributes, and `checksums.json`. */
export const deepChat: PackageFormat = {
  name: 'deepchat',
  mark: MARK,
  isOne: (files) => {
    const json = peek(files, MARK);
    const engines = json?.['engines'];
    return json !== undefined && 'id' in json && 'publisher' in json && isObject(engines) && 'deepchat' in engines;
  },
  read,
};

function read(files: PackageFiles): Draft {
  const json = parsed(PluginJson, jsonOf(files, MARK), MARK);
  if (json.source.publisher !== json.publisher) throw new PackageRefused(MARK, 'source.publisher is another one than publisher');
  if (!files.paths.includes('checksums.json'))
    throw new PackageRefused('checksums.json', 'a DeepChat plugin lists the checksums of its files');
  once(
    json.skills.map(({ id }) => id),
    MARK,
    'skill',
  );
  const warnings = unknownFields(json, KNOWN, MARK);
  const settings: Setting[] = [];
  return {
    id: json.id,
    version: json.version,
    display: json.name,
    description: json.description,
    publisher: json.publisher,
    servers: serversOf(json, files.here, { files, warnings, settings }),
    skills: json.skills.map(({ path }) => skillFolder(path, files)),
    undeclared: undeclared(json),
    platforms: json.engines.targets ?? json.engines.platforms,
    settings,
    toolPolicies: policiesOf(json),
    inert: json.settingsContributions.map(({ id, entry }) => ({
      kind: 'settings-page',
      path: entry === undefined ? id : inside(entry, MARK),
    })),
    warnings,
  };
}

function undeclared({ capabilities, mcpServers, skills, settingsContributions, runtime }: PluginJson): string[] {
  const contributed = [
    ['mcp.register', mcpServers.length > 0],
    ['skills.register', skills.length > 0],
    ['settings.contribute', settingsContributions.length > 0],
    ['runtime.manage', runtime !== undefined],
  ] as const;
  return contributed.flatMap(([capability, isThere]) => (isThere && !capabilities.includes(capability) ? [capability] : []));
}

function skillFolder(written: string, files: PackageFiles): string {
  const path = inside(written, MARK);
  const folder = path.replace(/(?:^|\/)SKILL\.md$/, '');
  if (folder === '' || !files.paths.includes(`${folder}/SKILL.md`))
    throw new PackageRefused(MARK, `the skill "${written.slice(0, 200)}" is not in the package`);
  return folder;
}

function policiesOf({ toolPolicies, mcpServers }: PluginJson): NonNullable<Draft['toolPolicies']> {
  const foreign = toolPolicies.find(({ serverId }) => mcpServers.every(({ id }) => id !== serverId));
  if (foreign !== undefined) throw new PackageRefused(MARK, `toolPolicies: the plugin has no server "${foreign.serverId}"`);
  return toolPolicies.map(({ serverId, tools }) => ({ server: serverId, tools }));
}

function serversOf(
  { id: pluginId, mcpServers, runtime }: PluginJson,
  here: Here,
  to: { readonly files: PackageFiles; readonly warnings: string[]; readonly settings: Setting[] },
): PluginServer[] {
  const words = new Map([
    ['plugin.root', '${PLUGIN_ROOT}'],
    ['arch', here.arch],
    ['platform', here.platform],
  ]);
  const program = runtime === undefined ? undefined : bundled(runtime.detect, here, to.files.paths);
  if (runtime !== undefined && program !== undefined) words.set(`runtime.${runtime.id}.command`, `\${PLUGIN_ROOT}/${program}`);
  return mcpServers.flatMap((server) => {
    const read = looseServer(server, { pluginId, words });
    if ('problem' in read) {
      to.warnings.push(`${MARK}: server "${server.id}": ${read.problem}; it is left out`);
      return [];
    }
    for (const sentence of read.told) to.warnings.push(`${MARK}: server "${server.id}": ${sentence}`);
    to.settings.push(...read.settings);
    return [{ id: server.id, transport: read.transport }];
  });
}

/** The program of the package’s own that its runtime would be found at on this system. */
function bundled(detect: readonly string[], here: Here, paths: readonly string[]): string | undefined {
  return detect
    .flatMap((one) => (one.startsWith('plugin:') ? [one.slice('plugin:'.length)] : []))
    .map((path) => path.replaceAll('${arch}', here.arch).replaceAll('${platform}', here.platform))
    .find((path) => path.includes(`/${here.platform}/`) && paths.includes(path));
}
