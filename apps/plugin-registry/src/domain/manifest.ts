import { z } from 'zod';
import { CATALOGUE_BYTES, catalogueFile, readCatalogue } from './catalogue.js';

/** Agent Plugins 1.0.0, the native format: `plugin.json`, `skills/<name>/SKILL.md` and `mcp.json` at the root. */
const PLUGIN_SCHEMA = 'https://agent-plugins.org/schemas/1.0.0/plugin.schema.json';
const MCP_SCHEMA = 'https://agent-plugins.org/schemas/1.0.0/mcp.schema.json';

const PluginName = z
  .string()
  .max(64)
  .regex(/^(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/, 'lower-case letters, digits, dots and single hyphens');
const Person = z.looseObject({
  name: z.string().max(200).optional(),
  email: z.string().max(200).optional(),
  url: z.string().max(2_000).optional(),
});
const KNOWN = ['$schema', 'name', 'version', 'description', 'author', 'homepage', 'repository', 'license', 'keywords', 'extensions'];

const PluginJson = z.looseObject({
  $schema: z.literal(PLUGIN_SCHEMA),
  name: PluginName,
  version: z.string().min(1).max(100).default('0.0.0'),
  description: z.string().max(2_000).default(''),
  author: Person.optional(),
  homepage: z.string().max(2_000).optional(),
  repository: z.unknown().optional(),
  license: z.string().max(200).optional(),
  keywords: z.array(z.string().max(100)).max(100).optional(),
  extensions: z.record(z.string(), z.record(z.string(), z.unknown())).optional(),
});

/** One token: a bare name looked up on PATH, or `./path` inside the package. */
const Command = z
  .string()
  .min(1)
  .max(1_024)
  .refine(
    (command) => !/\s/.test(command) && (!command.includes('/') || (command.startsWith('./') && !command.split('/').includes('..'))),
    'a bare name, or ./path inside the package',
  );
const Stdio = z.strictObject({
  type: z.literal('stdio').optional(),
  command: Command,
  args: z.array(z.string().max(8_192)).max(256).default([]),
  env: z
    .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/), z.string().max(16 * 1024))
    .default({})
    .refine((env) => !('PLUGIN_ROOT' in env) && !('PLUGIN_DATA' in env), 'env may not set PLUGIN_ROOT or PLUGIN_DATA'),
  cwd: z.string().max(1_024).optional(),
});
const Remote = z.strictObject({
  type: z.enum(['streamable-http', 'sse']),
  url: z.url().max(2_048),
  headers: z.record(z.string().max(128), z.string().max(16 * 1024)).default({}),
});
const McpJson = z.looseObject({ $schema: z.literal(MCP_SCHEMA), mcpServers: z.record(z.string().min(1).max(64), z.unknown()) });

export const PluginServer = z.object({
  id: z.string(),
  transport: z.union([Stdio.extend({ type: z.literal('stdio') }), Remote]),
  /** The file of the package that lists its tools; such a server is started at its first call. */
  catalogue: z.string().optional(),
});
export type PluginServer = z.output<typeof PluginServer>;

/** A package as we understood it, whatever its format; `warnings` say what was left out and why. */
export const Manifest = z.object({
  id: PluginName,
  version: z.string(),
  display: z.string(),
  description: z.string(),
  publisher: z.string().nullable(),
  servers: z.array(PluginServer).max(64),
  /** Folders that hold a SKILL.md, below the root. */
  skills: z.array(z.string()).max(200),
  warnings: z.array(z.string()).max(200),
});
export type Manifest = z.output<typeof Manifest>;

/** What is wrong with a package, and where. */
export interface ManifestProblem {
  readonly path: string;
  readonly reason: string;
}

export interface PackageTexts {
  readonly plugin: string | undefined;
  readonly mcp: string | undefined;
  readonly paths: readonly string[];
  /** Texts of the files that list a server’s tools, by path; null where one is too large. */
  readonly catalogues?: ReadonlyMap<string, string | null>;
}

/** Reads a package: a bad plugin.json refuses it, a bad mcp.json costs it all servers, a bad server only itself. */
export function readManifest(texts: PackageTexts): { readonly manifest: Manifest } | { readonly problem: ManifestProblem } {
  if (texts.plugin === undefined) return { problem: { path: 'plugin.json', reason: 'there is no plugin.json at the root' } };
  const json = parseJson(texts.plugin);
  const parsed = PluginJson.safeParse(json);
  if (!parsed.success) return { problem: { path: 'plugin.json', reason: json === undefined ? 'it is not JSON' : sentence(parsed.error) } };
  const { name, version, description, author } = parsed.data;
  const warnings = Object.keys(parsed.data)
    .filter((key) => !KNOWN.includes(key))
    .map((key) => `plugin.json: unknown field "${key.slice(0, 80)}" is ignored`);
  const servers = withCatalogues(texts.mcp === undefined ? [] : readServers(texts.mcp, warnings), texts.catalogues ?? new Map(), warnings);
  const skills = texts.paths.flatMap((path) => /^(skills\/[^/]+)\/SKILL\.md$/.exec(path)?.[1] ?? []).sort();
  for (const path of texts.paths.filter(
    (one) => /^skills\/.+\/SKILL\.md$/.test(one) && !skills.includes(one.slice(0, -'/SKILL.md'.length)),
  ))
    warnings.push(`${path}: skills lie one level below skills/; this one is ignored`);
  return {
    manifest: {
      id: name,
      version,
      display: name,
      description,
      publisher: author?.name ?? null,
      servers,
      skills: skills.slice(0, 200),
      warnings: warnings.slice(0, 200),
    },
  };
}

function readServers(text: string, warnings: string[]): PluginServer[] {
  const json = parseJson(text);
  const parsed = McpJson.safeParse(json);
  if (!parsed.success) {
    warnings.push(`mcp.json: ${json === undefined ? 'it is not JSON' : sentence(parsed.error)}; the plugin contributes no servers`);
    return [];
  }
  return Object.entries(parsed.data.mcpServers).flatMap(([id, value]) => {
    const server = readServer(withoutPermissions(value, (field) => warnings.push(`mcp.json: server "${id}": ${field}: ${NO_PERMISSION}`)));
    if (server.success) return [{ id, transport: server.data }];
    warnings.push(`mcp.json: server "${id}": ${sentence(server.error)}; it is left out`);
    return [];
  });
}

/** Joins servers with the lists of their tools that the package has. */
function withCatalogues(
  servers: readonly PluginServer[],
  catalogues: ReadonlyMap<string, string | null>,
  warnings: string[],
): PluginServer[] {
  const used = new Set<string>();
  const joined = servers.map((server) => {
    const file = catalogueFile(server.id);
    const text = catalogues.get(file);
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
  for (const file of catalogues.keys())
    if (!used.has(file)) warnings.push(`${file.slice(0, 200)}: the plugin has no server of this name; it is ignored`);
  return joined;
}

const NO_PERMISSION = 'what may be called without asking is for an agent’s rules to say; it is left out';
/** What others write into a server’s configuration to have its tools called without asking. */
const PERMISSIONS: ReadonlySet<string> = new Set(['autoApprove', 'alwaysAllow', 'trust']);

/** A server’s configuration has no say in permissions: it is taken without what it says of them. */
function withoutPermissions(value: unknown, leftOut: (field: string) => void): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const kept = Object.entries(value).filter(([field]) => !PERMISSIONS.has(field));
  for (const field of Object.keys(value)) if (PERMISSIONS.has(field)) leftOut(field);
  return Object.fromEntries(kept);
}

function readServer(value: unknown) {
  const type = typeof value === 'object' && value !== null && 'type' in value ? value.type : 'stdio';
  return type === 'streamable-http' || type === 'sse'
    ? Remote.safeParse(value)
    : Stdio.transform((server) => ({ ...server, type: 'stdio' as const })).safeParse(value);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function sentence(error: z.ZodError): string {
  const [issue] = error.issues;
  return issue === undefined
    ? 'it does not have the right shape'
    : `${issue.path.map(String).join('.') || 'it'}: ${issue.message}`.slice(0, 500);
}
