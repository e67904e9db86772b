import { splitFrontmatter } from '@ambit/capability';
import { CATALOGUE_BYTES, catalogueFile, listedServer, readCatalogue } from './catalogue.js';
import { agentPlugins } from './agent-plugins.format.js';
import { claudeCode } from './claude-code.format.js';
import { deepChat } from './deepchat.format.js';
import type { PackageFormat } from './format.js';
import { mcpBundle } from './mcp-bundle.format.js';
import { registryServer } from './registry-server.format.js';
import { Manifest, type Draft } from './manifest.js';
import { once, PackageRefused, parsed, type PackageFiles } from './package-files.js';

/** In the order in which a package is tried; the native format comes last again for what it says of a package that is none. */
const FORMATS: readonly PackageFormat[] = [agentPlugins, deepChat, claudeCode, mcpBundle, registryServer];
/** Files by which a package shows what it is; the archive’s root is where one of them lies. */
const MARKS: readonly string[] = ['plugin.json', '.claude-plugin/plugin.json', 'manifest.json', 'server.json'];
/** What is known and not read. */
const UNREAD: ReadonlyMap<string, string> = new Map([
  ['.claude-plugin/marketplace.json', 'it is a marketplace, which lists plugins; install one of them'],
  ['.codex-plugin/plugin.json', 'it is a Codex plugin, a format that is not read'],
  ['.cursor-plugin/plugin.json', 'it is a Cursor plugin, a format that is not read'],
  ['gemini-extension.json', 'it is a Gemini extension, a format that is not read'],
]);

/** Finds out a package’s format and reads it. Throws {@link PackageRefused} with the file that is to blame. */
export function readManifest(files: PackageFiles): Manifest {
  const format = FORMATS.find(({ isOne }) => isOne(files)) ?? agentPlugins;
  for (const path of files.paths) {
    const reason = UNREAD.get(path);
    if (reason !== undefined && !files.paths.some((one) => MARKS.includes(one))) throw new PackageRefused(path, reason);
  }
  const draft = format.read(files);
  const mark = format.mark;
  const warnings = [...draft.warnings];
  const skills = [...draft.skills].sort();
  once(
    draft.servers.map(({ id }) => id),
    mark,
    'server',
  );
  once(skills, mark, 'skill folder');
  once(skillNames(files, skills), 'skills', 'skill');
  const servers = withCatalogues(draft.servers, files, warnings);
  return parsed(Manifest, { ...draft, sourceFormat: format.name, servers, skills, warnings: warnings.slice(0, 200).map(cut) }, mark);
}

const cut = (text: string): string => text.slice(0, 500);

/** The names that skills give themselves; a skill without one is for the skill store to judge. */
function skillNames(files: PackageFiles, folders: readonly string[]): string[] {
  return folders.flatMap((folder) => {
    const text = files.texts.get(`${folder}/SKILL.md`);
    const cutOff = typeof text === 'string' ? splitFrontmatter(text) : undefined;
    const name = cutOff !== undefined && 'yaml' in cutOff ? /^name:\s*["']?([^"'\n#]+?)["']?\s*$/m.exec(cutOff.yaml)?.[1] : undefined;
    return name === undefined ? [] : [name];
  });
}

/** Joins servers with the lists of their tools that the package has. */
function withCatalogues(servers: Draft['servers'], { paths, texts }: PackageFiles, warnings: string[]): Draft['servers'] {
  const used = new Set<string>();
  const joined = servers.map((server) => {
    const file = catalogueFile(server.id);
    const text = texts.get(file);
    used.add(file);
    if (text === undefined) return server;
    if (server.transport.type !== 'stdio') {
      warnings.push(`${file}: only a server that is started as a process has its tools listed by its package; it is ignored`);
      return server;
    }
    const { tools, problems } =
      text === null
        ? { tools: undefined, problems: [`it is larger than ${CATALOGUE_BYTES} bytes; the server is started to be listed`] }
        : readCatalogue(text);
    for (const problem of problems.slice(0, 20)) warnings.push(`${file}: ${problem}`);
    return tools === undefined ? server : { ...server, catalogue: file };
  });
  for (const path of paths)
    if (listedServer(path) !== undefined && !used.has(path)) warnings.push(`${path}: the plugin has no server of this name; it is ignored`);
  return joined;
}

/** Whether a folder of an archive is where its package begins. */
export const isRoot = (paths: readonly string[], root: string): boolean => MARKS.some((mark) => paths.includes(`${root}${mark}`));
