import { z } from 'zod';
import { looseServer, type LooseServer } from './loose-server.js';
import type { Draft } from './manifest.js';
import { jsonOf, parsed, peek, sentence, unknownFields, type PackageFiles } from './package-files.js';
import { pluginIdOf } from './plugin-id.js';
import type { PackageFormat } from './format.js';

const MARK = 'server.json';
const SCHEMA = /^https:\/\/static\.modelcontextprotocol\.io\/schemas\/\d{4}-\d{2}-\d{2}\/server\.schema\.json$/;
const Text = z.string().max(8_192);
const Input = { value: Text.optional(), default: Text.optional(), isRequired: z.boolean().optional(), isSecret: z.boolean().optional() };
const Named = z.looseObject({ name: z.string().min(1).max(128), description: z.string().max(2_000).optional(), ...Input });
const Argument = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('positional'), ...Input }),
  z.looseObject({ type: z.literal('named'), name: z.string().min(1).max(200), valueHint: z.string().optional(), ...Input }),
]);
type Argument = z.output<typeof Argument>;
const Version = z
  .string()
  .min(1)
  .max(255)
  .refine((version) => version !== 'latest' && !/[\^~<>|*\s]|\.x(?:\.|$)/.test(version), 'one exact version');
const Package = z.looseObject({
  registryType: z.string().max(20),
  identifier: z
    .string()
    .min(1)
    .max(1_024)
    .regex(/^[^\s-][^\s]*$/, 'a name without spaces'),
  version: Version.optional(),
  transport: z.looseObject({ type: z.string().max(40) }),
  runtimeArguments: z.array(Argument).max(100).default([]),
  packageArguments: z.array(Argument).max(100).default([]),
  environmentVariables: z.array(Named).max(100).default([]),
});
type Package = z.output<typeof Package>;
const Remote = z.looseObject({
  type: z.enum(['streamable-http', 'sse']),
  url: z.string().max(2_048),
  headers: z.array(Named).max(100).default([]),
});
const ServerJson = z.looseObject({
  $schema: z.string().regex(SCHEMA, 'the address of a schema of the MCP registry'),
  name: z
    .string()
    .min(3)
    .max(200)
    .regex(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/, 'as io.example/name'),
  title: z.string().max(100).optional(),
  description: z.string().min(1).max(100),
  version: Version,
  packages: z.array(z.unknown()).max(50).default([]),
  remotes: z.array(z.unknown()).max(50).default([]),
});
const KNOWN = [...Object.keys(ServerJson.shape), 'repository', 'websiteUrl', 'icons', '_meta'];

/** A server of the MCP registry: one server and the ways to have it, of which the first that works here is taken. */
export const registryServer: PackageFormat = { name: 'mcp-registry', mark: MARK, isOne: (files) => isServerJson(files), read };

function isServerJson(files: PackageFiles): boolean {
  const json = peek(files, MARK);
  return json !== undefined && (SCHEMA.test(String(json['$schema'])) || 'packages' in json || 'remotes' in json);
}

function read(files: PackageFiles): Draft {
  const json = parsed(ServerJson, jsonOf(files, MARK), MARK);
  const id = pluginIdOf(json.name);
  const warnings = unknownFields(json, KNOWN, MARK);
  const ways = [
    ...json.remotes.map((one, index) => ({ what: `remotes.${index}`, read: () => remoteOf(id, one) })),
    ...json.packages.map((one, index) => ({ what: `packages.${index}`, read: () => packageOf(id, one) })),
  ];
  let taken: Exclude<LooseServer, { readonly problem: string }> | undefined;
  for (const { what, read: readWay } of ways) {
    const way = taken === undefined ? readWay() : { problem: 'another way is taken' };
    if ('problem' in way) warnings.push(`${MARK}: ${what}: ${way.problem}; it is left out`);
    else {
      taken = way;
      for (const told of way.told) warnings.push(`${MARK}: ${what}: ${told}`);
    }
  }
  return {
    id,
    version: json.version,
    display: json.title ?? json.name,
    description: json.description,
    publisher: json.name.split('/')[0] ?? null,
    servers: taken === undefined ? [] : [{ id: 'server', transport: taken.transport }],
    skills: [],
    settings: taken === undefined ? [] : [...taken.settings],
    warnings,
  };
}

function remoteOf(pluginId: string, value: unknown): LooseServer {
  const remote = Remote.safeParse(value);
  if (!remote.success) return { problem: sentence(remote.error) };
  const { type, url, headers } = remote.data;
  if (/[{}]/.test(url)) return { problem: 'its address has variables' };
  return looseServer({ type, url, headers: valuesOf(headers) }, { pluginId, words: new Map() });
}

function packageOf(pluginId: string, value: unknown): LooseServer {
  const found = Package.safeParse(value);
  if (!found.success) return { problem: sentence(found.error) };
  if (found.data.transport.type !== 'stdio') return { problem: 'it listens on an address of its own once it runs' };
  const command = commandOf(found.data);
  if (typeof command === 'string') return { problem: command };
  const server = looseServer({ type: 'stdio', ...command, env: valuesOf(found.data.environmentVariables) }, { pluginId, words: new Map() });
  if ('problem' in server) return server;
  return { ...server, told: [...server.told, `${command.command} fetches it when it starts; what it fetches is not verified`] };
}

function commandOf(found: Package): { readonly command: string; readonly args: readonly string[] } | string {
  const { registryType, identifier, version } = found;
  const [before, after] = [wordsOf(found.runtimeArguments), wordsOf(found.packageArguments)];
  if (before === undefined || after === undefined) return 'an argument has no value';
  if (registryType !== 'oci' && version === undefined) return 'it has no version';
  switch (registryType) {
    case 'npm':
      return { command: 'npx', args: ['-y', ...before, `${identifier}@${version}`, ...after] };
    case 'pypi':
      return { command: 'uvx', args: [...before, `${identifier}==${version}`, ...after] };
    case 'nuget':
      return { command: 'dnx', args: [...before, `${identifier}@${version}`, '--yes', ...(after.length === 0 ? [] : ['--', ...after])] };
    case 'oci':
      return /[:@]/.test(identifier) || version !== undefined
        ? {
            command: 'docker',
            args: ['run', '-i', '--rm', ...before, version === undefined ? identifier : `${identifier}:${version}`, ...after],
          }
        : 'the image has no tag';
    default:
      return `packages of "${registryType}" are not fetched`;
  }
}

/** Arguments as words; undefined where one that is required has no value. Optional ones without a value are left out. */
function wordsOf(list: readonly Argument[]): string[] | undefined {
  const words: string[] = [];
  for (const argument of list) {
    const value = argument.value ?? argument.default;
    const isGiven = value !== undefined && !/\{[^}]+\}/.test(value);
    if (!isGiven && (argument.isRequired === true || value !== undefined)) return undefined;
    // Without a value and without a hint at one, a named argument is a flag.
    if (argument.type === 'named' && (isGiven || argument.valueHint === undefined)) words.push(argument.name);
    if (isGiven) words.push(value);
  }
  return words;
}

/** Values by name: what is said, or a word that only a person can fill. */
function valuesOf(list: readonly z.output<typeof Named>[]): Record<string, string> {
  return Object.fromEntries(
    list.flatMap(({ name, value, default: fallback, isRequired, isSecret }) => {
      const said = value ?? fallback;
      if (said !== undefined && isSecret !== true && !/\{[^}]+\}/.test(said)) return [[name, said]];
      return isRequired === true || isSecret === true || said !== undefined ? [[name, `\${${name}}`]] : [];
    }),
  );
}
