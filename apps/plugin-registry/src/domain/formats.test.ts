import type { SourceFormat } from '@ambit/contracts';
import { expect, it } from '@jest/globals';
import { BUNDLE, DEEPCHAT, filesOf, REGISTRY_SERVER } from '../../../../test/system/packages.js';
import { PackageRefused } from './package-files.js';
import { readManifest } from './read-manifest.js';

const HERE = { platform: 'linux', arch: 'x64', version: '0.1.0' };
const read = (format: SourceFormat, change: Readonly<Record<string, unknown>>, more: Readonly<Record<string, string>> = {}) => {
  const files = { ...filesOf(format, change), ...more };
  return readManifest({ paths: Object.keys(files), texts: new Map(Object.entries(files)), here: HERE });
};
const transports = (manifest: ReturnType<typeof readManifest>) => manifest.servers.map(({ transport }) => transport);

it('DeepChat: finds the program that the package brings for this system, and leaves its server out where it brings none', () => {
  const detect = ['app-helper:x', 'plugin:runtime/win32/${arch}/driver.exe', 'plugin:runtime/linux/${arch}/driver'];
  const capabilities = [...DEEPCHAT.capabilities, 'runtime.manage'];
  const change = {
    ...{ capabilities, runtime: { id: 'driver', type: 'external-helper', detect } },
    mcpServers: [{ id: 'notes', transport: 'stdio', command: '${runtime.driver.command}', args: ['mcp'] }],
  };
  expect(transports(read('deepchat', change, { 'runtime/linux/x64/driver': '' }))).toMatchObject([
    { command: './runtime/linux/x64/driver' },
  ]);
  const without = read('deepchat', change, { 'runtime/win32/x64/driver.exe': '' });
  expect(without.servers).toEqual([]);
  expect(without.warnings.join()).toContain('${runtime.driver.command}');
  expect(read('deepchat', { ...change, capabilities: DEEPCHAT.capabilities }).undeclared).toEqual(['runtime.manage']);
  const source = { ...DEEPCHAT.source, publisher: 'Another' };
  expect(() => read('deepchat', { source })).toThrow(PackageRefused);
  expect(() => read('deepchat', { toolPolicies: [{ serverId: 'absent', tools: {} }] })).toThrow('absent');
});

it('MCP bundles: take what is said for this system, and what a person has to give as a secret where one can stand', () => {
  const server = (config: object, type = 'node') => ({ server: { ...BUNDLE.server, type, mcp_config: config } });
  const overrides = {
    command: 'node',
    args: ['a'],
    env: { A: '1', B: '1' },
    platform_overrides: { linux: { args: ['b'], env: { B: '2' } } },
  };
  expect(transports(read('mcpb', server(overrides)))).toMatchObject([{ command: 'node', args: ['b'], env: { A: '1', B: '2' } }]);
  expect(transports(read('mcpb', server({ command: '${__dirname}/server/index.js' }, 'binary')))).toMatchObject([
    { command: './server/index.js' },
  ]);
  const { mcp_config: _said, ...bare } = BUNDLE.server;
  for (const [type, command] of [
    ['node', 'node'],
    ['python', 'python3'],
    ['uv', 'uv'],
    ['binary', './server/index.js'],
  ])
    expect(transports(read('mcpb', { server: { ...bare, type } }))).toMatchObject([{ command }]);
  const user_config = { key: { type: 'string', title: 'Key', required: true, sensitive: true }, size: { type: 'number', title: 'Size' } };
  const asked = read('mcpb', {
    user_config,
    ...server({ command: 'node', env: { KEY: '${user_config.key}', SIZE: '${user_config.size}' } }),
  });
  expect(transports(asked)).toMatchObject([{ env: { KEY: { secret: asked.settings[0]?.secret }, SIZE: '' } }]);
  for (const args of [['${user_config.key}'], ['--key=${user_config.key}']])
    expect(read('mcpb', { user_config, ...server({ command: 'node', args }) })).toMatchObject({ servers: [], settings: [] });
  expect(read('mcpb', { compatibility: { platforms: ['win32'] } }).platforms).toEqual(['win32']);
  expect(read('mcpb', { name: 'Weather Now!' }).id).toMatch(/^weather-now-[0-9a-f]{8}$/);
  expect(() => read('mcpb', { manifest_version: '9.0' })).toThrow(PackageRefused);
});

it('MCP registry: takes the first way that works, and says of the others why not', () => {
  const [npm] = REGISTRY_SERVER.packages;
  const packages = (...list: object[]) => ({ packages: list.map((one) => ({ ...npm, ...one })) });
  const remote = {
    type: 'streamable-http',
    url: 'https://search.example.com/mcp',
    headers: [{ name: 'X-Key', isSecret: true, isRequired: true }],
  };
  const both = read('mcp-registry', { remotes: [remote] });
  expect(transports(both)).toMatchObject([
    { type: 'streamable-http', headers: { 'X-Key': { secret: expect.stringMatching(/^plugin-io-example-search/) } } },
  ]);
  expect(both.warnings.join()).toContain('packages.0: another way is taken');
  for (const [list, command] of [
    [{ registryType: 'pypi' }, ['uvx', '@example/search==3.1.0', '--depth', '2']],
    [
      { registryType: 'oci', identifier: 'ghcr.io/example/search' },
      ['docker', 'run', '-i', '--rm', 'ghcr.io/example/search:3.1.0', '--depth', '2'],
    ],
    [{ registryType: 'nuget' }, ['dnx', '@example/search@3.1.0', '--yes', '--', '--depth', '2']],
  ] as const) {
    const [transport] = transports(read('mcp-registry', packages(list)));
    expect(transport).toMatchObject({ command: command[0], args: command.slice(1) });
  }
  for (const [list, reason] of [
    [{ version: 'latest' }, 'exact version'],
    [{ version: '^3.0.0' }, 'exact version'],
    [{ registryType: 'mcpb' }, 'not fetched'],
    [{ transport: { type: 'streamable-http', url: 'http://localhost:3000' } }, 'of its own'],
    [{ packageArguments: [{ type: 'positional', isRequired: true }] }, 'no value'],
    [{ identifier: '--evil' }, 'without spaces'],
  ] as const) {
    const found = read('mcp-registry', packages(list));
    expect(found.servers).toEqual([]);
    expect(found.warnings.join()).toContain(reason);
  }
  for (const url of ['http://search.example.com/mcp', 'https://a:b@search.example.com/mcp', 'https://search.example.com/{tenant}'])
    expect(read('mcp-registry', { packages: [], remotes: [{ ...remote, url }] }).servers).toEqual([]);
});

it('Claude Code: reads servers from where they lie, and leaves out what Ambit does not speak', () => {
  const named = read(
    'claude-code',
    { mcpServers: ['./more.json', { ws: { type: 'ws', url: 'wss://x.example.com' } }] },
    { 'more.json': '{"plain":{"command":"node"}}' },
  );
  expect(named.servers.map(({ id }) => id)).toEqual(['status', 'plain']);
  expect(named.warnings.join()).toContain('"ws" is not one that Ambit speaks');
  expect(() => read('claude-code', { mcpServers: './absent.json' })).toThrow('absent.json');
  const skills = read('claude-code', { skills: ['./custom/', './extra/one'] }, { 'custom/a/SKILL.md': '', 'extra/one/SKILL.md': '' });
  expect(skills.skills).toEqual(['custom/a', 'extra/one', 'skills/deploying']);
});
