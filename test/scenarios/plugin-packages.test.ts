import type { Bus } from '@ambit/bus';
import { mcpBroker, pluginRegistry, skillStore, SourceFormat, type Plugin } from '@ambit/contracts';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { zipSync } from 'fflate';
import {
  AGENT_PLUGIN,
  BUNDLE,
  CLAUDE,
  DEEPCHAT,
  filesOf,
  installOn,
  manyFiles,
  MCP_SCHEMA,
  REGISTRY_SERVER,
  SAMPLES,
  uploadTo,
  withChecksums,
  type Files,
} from '../system/packages.js';
import { startSystem, type System } from '../system/system.js';
import { verifies } from '../verifies.js';

jest.setTimeout(120_000);
let system: System;
let bus: Bus;
beforeAll(async () => {
  system = await startSystem({
    services: ['skill-store', 'mcp-broker', 'mcp-runner', 'session-service', 'plugin-registry'],
    environment: { AMBIT_PLUGIN_PLATFORM: 'linux/x64' },
  });
  bus = system.bus;
});
afterAll(() => system?.stop());

const install = (files: Files, how?: Parameters<typeof installOn>[2]): Promise<Plugin> => installOn(bus, files, how);
const enable = (id: string): Promise<Plugin> => bus.call(pluginRegistry.enablePlugin, { id });
const uninstall = (id: string) => bus.call(pluginRegistry.uninstallPlugin, { id });
const installed = async (): Promise<string[]> => (await bus.call(pluginRegistry.listPlugins, {})).items.map(({ id }) => id);
const serversOf = async (id: string) => (await bus.call(mcpBroker.listServers, { owner: `plugin:${id}` })).items;
const invalid = (path: string, reason: string) => ({
  code: 'PLUGIN_INVALID',
  data: { path: expect.stringContaining(path), reason: expect.stringContaining(reason) },
});

const installArchive = async (files: Files): Promise<Plugin> => {
  const archive = zipSync(Object.fromEntries(Object.entries(files).map(([path, text]) => [`folder/${path}`, Buffer.from(text)])));
  return bus.call(pluginRegistry.installPlugin, { archive: await uploadTo(bus, archive), unsigned: 'allow' });
};
/** How each server of a plugin is reached, once those that are processes were started and listed. */
async function started(id: string): Promise<object[]> {
  const servers = await serversOf(id);
  for (const server of servers)
    if (server.transport.type === 'stdio')
      expect(await bus.call(mcpBroker.testServer, { id: server.id })).toMatchObject({ state: 'connected', reason: null, tools: 1 });
  return servers.map(({ transport }) => transport);
}

it('installs and switches on one plugin of each format, and its servers start', async () => {
  const notes = await installArchive(filesOf('deepchat'));
  expect(notes).toMatchObject({ id: DEEPCHAT.id, sourceFormat: 'deepchat', publisher: 'Example', inert: [{ kind: 'settings-page' }] });
  expect(notes.warnings.join()).toContain('autoApprove');
  await enable(notes.id);
  expect(await started(notes.id)).toMatchObject([{ type: 'stdio', command: './bin/notes', args: ['serve'] }]);

  const deploy = await installArchive(filesOf('claude-code'));
  const inert = [
    { kind: 'command', path: 'commands/ship.md' },
    { kind: 'hook', path: 'hooks/hooks.json' },
  ];
  expect(deploy.inert).toEqual(expect.arrayContaining(inert));
  const [setting] = deploy.settings;
  expect(setting).toMatchObject({ key: 'user_config.token', title: 'Token', secret: expect.stringMatching(/^plugin-deploy-kit-/) });
  const withoutSecret = { code: 'ACTIVATION_FAILED', data: { reason: expect.stringContaining('SECRET_UNKNOWN') } };
  await expect(enable(deploy.id)).rejects.toMatchObject(withoutSecret);
  await bus.call(mcpBroker.putSecret, { name: setting?.secret ?? '', from: 'store', value: 'a token of a person' });
  await enable(deploy.id);
  const transports = await started(deploy.id);
  const env = { TOKEN: { secret: setting?.secret } };
  expect(transports).toContainEqual(expect.objectContaining({ args: ['${PLUGIN_ROOT}/server.mjs', '--region', 'eu'], env }));
  expect(transports).toContainEqual(expect.objectContaining({ type: 'http', headers: { 'X-Key': 'none' } }));

  const weather = await installArchive({ ...filesOf('mcpb'), ...manyFiles() });
  expect(weather).toMatchObject({ id: 'weather', display: 'Weather', sourceFormat: 'mcpb' });
  await enable(weather.id);
  const args = ['${PLUGIN_ROOT}/server/index.js', '--unit=celsius'];
  expect(await started(weather.id)).toMatchObject([{ command: 'node', args, env: { UNIT: 'celsius' } }]);

  const search = await install(filesOf('mcp-registry'));
  expect(search).toMatchObject({ sourceFormat: 'mcp-registry', display: REGISTRY_SERVER.name, publisher: 'io.example' });
  expect(search.warnings.join()).toContain('not verified');
  await enable(search.id);
  const [server] = await serversOf(search.id);
  expect(server?.transport).toMatchObject({ command: 'npx', args: ['-y', '@example/search@3.1.0', '--depth', '2'] });

  const packed = await installArchive(filesOf('agent-plugins-1.0.0'));
  expect(await enable(packed.id)).toMatchObject({ state: 'enabled', contributes: { servers: ['packed-main'], skills: ['packing'] } });
  await started(packed.id);
  for (const { id } of [notes, deploy, weather, search, packed]) await uninstall(id);
});

verifies('R-PLUGIN-1#1', 'no malformed manifest is installed, and the registry goes on after each', async () => {
  const before = new Set(await installed());
  const field = fc.oneof(
    fc.constant(undefined),
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom('../x', 'a--b', 'A', '', '.', 'x'.repeat(300), '\u0000', '${PLUGIN_ROOT}/../..', { __proto__: null, constructor: 1 }),
  );
  const mutated = fc.constantFrom(...SourceFormat.options).chain((format) => {
    const { manifest } = SAMPLES[format];
    const changed = fc.dictionary(fc.constantFrom(...Object.keys(manifest), 'surprise'), field, { minKeys: 1, maxKeys: 3 });
    const whole = changed.map((change) => filesOf(format, change));
    const cut = fc.tuple(whole, fc.double({ min: 0, max: 1, noNaN: true })).map(([files, part]) => {
      const text = files[SAMPLES[format].mark] ?? '';
      return { ...files, [SAMPLES[format].mark]: text.slice(0, Math.floor(text.length * part)) };
    });
    return fc.oneof({ weight: 3, arbitrary: whole }, { weight: 1, arbitrary: cut });
  });
  await fc.assert(
    fc.asyncProperty(mutated, async (files) => {
      const outcome = await install(files).catch((error: unknown) => error);
      if (outcome instanceof Error)
        expect(outcome).toMatchObject({ code: 'PLUGIN_INVALID', data: { path: expect.any(String), reason: expect.any(String) } });
      else {
        const plugin = outcome as Plugin;
        expect(plugin).toMatchObject({
          id: expect.stringMatching(/^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/),
          state: expect.not.stringMatching('enabled'),
        });
        if (!before.has(plugin.id)) await uninstall(plugin.id);
      }
    }),
    { numRuns: 60 },
  );
  for (const name of ['../x', 'Upper', 'a--b', '', 'x'.repeat(65), '-a', 7, null])
    await expect(install({ 'plugin.json': JSON.stringify({ ...AGENT_PLUGIN, name }) })).rejects.toMatchObject(
      invalid('plugin.json', 'name'),
    );
  await expect(install({ '.codex-plugin/plugin.json': '{}' })).rejects.toMatchObject(invalid('.codex-plugin', 'Codex'));
  expect(await install({ 'plugin.json': JSON.stringify(AGENT_PLUGIN) })).toMatchObject({ id: 'packed', state: 'disabled' });
  expect(await uninstall('packed')).toEqual({ uninstalled: true });
});

verifies('R-PLUGIN-1#2', 'unknown fields are ignored and told, and refused where the format is closed', async () => {
  for (const format of ['agent-plugins-1.0.0', 'deepchat', 'claude-code', 'mcp-registry'] as const) {
    const plugin = await install(filesOf(format, { surprise: true }));
    expect(plugin.warnings.join()).toMatch(/unknown field "surprise" is ignored/);
    await uninstall(plugin.id);
  }
  await expect(install(filesOf('mcpb', { surprise: true }))).rejects.toMatchObject(invalid('manifest.json', 'surprise'));
});

verifies('R-PLUGIN-1#3', 'a path that leaves the package is refused', async () => {
  const plugin = JSON.stringify({ ...AGENT_PLUGIN, name: 'leaving' });
  for (const path of ['../x', 'a/../../x', '/etc/x', 'a\\..\\..\\x', './x/../../y']) {
    await expect(install({ 'plugin.json': plugin, [path]: 'x' })).rejects.toMatchObject({
      code: expect.stringMatching(/^(PLUGIN_INVALID|INVALID_INPUT)$/),
    });
    const skills = [{ id: 'out', path, scope: 'agent' }];
    await expect(install(filesOf('deepchat', { skills }))).rejects.toMatchObject({ code: 'PLUGIN_INVALID' });
    await expect(install(filesOf('claude-code', { skills: path }))).rejects.toMatchObject({ code: 'PLUGIN_INVALID' });
    await expect(install(filesOf('claude-code', { mcpServers: path }))).rejects.toMatchObject({ code: 'PLUGIN_INVALID' });
    await expect(install(filesOf('mcpb', { server: { ...BUNDLE.server, entry_point: path } }))).rejects.toMatchObject({
      code: 'PLUGIN_INVALID',
    });
  }
  expect(await installed()).toEqual([]);
  const mcp = JSON.stringify({
    $schema: MCP_SCHEMA,
    mcpServers: { out: { command: './../../bin/sh' }, up: { command: '../sh' }, root: { command: '/bin/sh' } },
  });
  const kept = await install({ 'plugin.json': plugin, 'mcp.json': mcp });
  expect(kept.warnings.filter((warning) => /server "(out|up|root)".*left out/.test(warning))).toHaveLength(3);
  await uninstall('leaving');
});

verifies(
  ['R-PLUGIN-1#4', 'R-INGRESS-4#1'],
  'ids of servers and skills that stand twice, and folders and ids that two claim, are refused',
  async () => {
    const manifest = { 'plugin.json': JSON.stringify(AGENT_PLUGIN) };
    const twice = `{"$schema":"${MCP_SCHEMA}","mcpServers":{"a":{"command":"one"},"\\u0061":{"command":"two"}}}`;
    await expect(install({ ...manifest, 'mcp.json': twice })).rejects.toMatchObject(invalid('mcp.json', '"a" stands twice'));
    const skill = '---\nname: same\ndescription: d\n---\n';
    await expect(install({ ...manifest, 'skills/one/SKILL.md': skill, 'skills/two/SKILL.md': skill })).rejects.toMatchObject(
      invalid('skills', '"same"'),
    );
    const [server] = DEEPCHAT.mcpServers;
    const [note] = DEEPCHAT.skills;
    await expect(install(filesOf('deepchat', { mcpServers: [server, server] }))).rejects.toMatchObject(invalid('plugin.json', '"notes"'));
    await expect(install(filesOf('deepchat', { skills: [note, note] }))).rejects.toMatchObject(invalid('plugin.json', '"note-taking"'));
    const status = { status: CLAUDE.mcpServers.deploy };
    await expect(install(filesOf('claude-code', { mcpServers: status }))).rejects.toMatchObject(invalid('plugin.json', '"status"'));
    // One folder under two names, and a plugin that another project has.
    await expect(install(filesOf('deepchat', { skills: [note, { ...note, id: 'another' }] }))).rejects.toMatchObject(
      invalid('plugin.json', 'skill folder'),
    );
    expect(await installed()).toEqual([]);
    await install(filesOf('deepchat'));
    await expect(install(filesOf('deepchat', { version: '9.0.0' }), { projectId: 'other' })).rejects.toMatchObject({
      code: 'PLUGIN_TAKEN',
    });
    expect(await bus.call(pluginRegistry.getPlugin, { id: DEEPCHAT.id })).toMatchObject({ version: DEEPCHAT.version, state: 'disabled' });
    await uninstall(DEEPCHAT.id);
  },
);

verifies('R-INGRESS-4#2', 'in whatever order a package is read its slots are the same ones', async () => {
  const plugin = (skills: readonly string[], servers: readonly string[]): Files => ({
    'plugin.json': JSON.stringify({ ...AGENT_PLUGIN, name: 'ordered' }),
    'mcp.json': JSON.stringify({ $schema: MCP_SCHEMA, mcpServers: Object.fromEntries(servers.map((id) => [id, { command: 'node' }])) }),
    ...Object.fromEntries(skills.map((name) => [`skills/${name}/SKILL.md`, `---\nname: ${name}\ndescription: d\n---\n`])),
  });
  const seen = async (files: Files) => {
    const { digest } = await install(files);
    await enable('ordered');
    const slots = (await bus.call(pluginRegistry.pluginSlots, { projectId: 'default' })).plugins.find(({ id }) => id === 'ordered');
    const { skills } = await bus.call(skillStore.effectiveSkills, { agentId: 'nobody', plugins: ['ordered'] });
    const hashes = (await serversOf('ordered')).map(({ slug, owner, transport }) => ({
      slug,
      owner,
      command: 'command' in transport && transport.command,
    }));
    await uninstall('ordered');
    return {
      digest,
      servers: [...(slots?.servers ?? [])].sort(),
      skills: skills
        .filter(({ owner }) => owner === 'plugin:ordered')
        .map(({ name, digest: of }) => `${name} ${of}`)
        .sort(),
      hashes: hashes.sort((left, right) => (left.slug < right.slug ? -1 : 1)),
    };
  };
  const one = await seen(plugin(['a', 'b', 'c'], ['x', 'y']));
  expect(one).toMatchObject({ servers: ['ordered-x', 'ordered-y'] });
  expect(one.skills).toHaveLength(3);
  const reversed = Object.fromEntries(Object.entries(plugin(['a', 'b', 'c'], ['x', 'y'])).reverse());
  expect(await seen(reversed)).toEqual(one);
  const { digest: _digest, ...same } = await seen(plugin(['c', 'a', 'b'], ['y', 'x']));
  expect(same).toEqual({ servers: one.servers, skills: one.skills, hashes: one.hashes });
});

verifies(
  ['R-PLUGIN-1#5', 'R-INGRESS-5#3'],
  'a server name that another plugin or a person owns is refused, and its owner keeps it',
  async () => {
    const plugin = (name: string, server: string): Files => ({
      'plugin.json': JSON.stringify({ ...AGENT_PLUGIN, name }),
      'mcp.json': JSON.stringify({ $schema: MCP_SCHEMA, mcpServers: { [server]: { command: 'node' } } }),
    });
    await install(plugin('one-two', 'three'));
    await enable('one-two');
    // Both would be called one-two-three.
    await install(plugin('one', 'two-three'));
    await bus.call(mcpBroker.putServer, { slug: 'alone-mine', transport: { type: 'stdio', command: 'node' } });
    await install(plugin('alone', 'mine'));
    for (const [id, owner] of [
      ['one', 'plugin:one-two'],
      ['alone', 'user'],
    ] as const) {
      await expect(enable(id)).rejects.toMatchObject({ code: 'ACTIVATION_FAILED', data: { reason: expect.stringContaining(owner) } });
      expect(await serversOf(id)).toEqual([]);
    }
    expect(await serversOf('one-two')).toMatchObject([{ slug: 'one-two-three' }]);
    const { items } = await bus.call(mcpBroker.listServers, { owner: 'user' });
    expect(items).toMatchObject([{ slug: 'alone-mine' }]);
    for (const id of ['one-two', 'one', 'alone']) await uninstall(id);
  },
);

verifies(['R-PLUGIN-2#1', 'R-PLUGIN-2#2', 'R-PLUGIN-2#3'], 'a flipped byte, a file too many and a missing file are refused', async () => {
  const files = filesOf('deepchat');
  const path = 'skills/note-taking/SKILL.md';
  const text = files[path] ?? '';
  await expect(install({ ...files, [path]: text.replace('Do it', 'Do_it') })).rejects.toMatchObject(invalid(path, 'not the file'));
  await expect(install({ ...files, 'bin/more': 'x' })).rejects.toMatchObject(invalid('bin/more', 'not in checksums.json'));
  const { 'bin/notes': _gone, ...fewer } = files;
  await expect(install(fewer)).rejects.toMatchObject(invalid('bin/notes', 'does not have it'));
  const { 'checksums.json': _none, ...bare } = files;
  await expect(install(bare)).rejects.toMatchObject(invalid('checksums.json', 'lists the checksums'));
  expect(await installed()).toEqual([]);
  await install(withChecksums(bare));
  await uninstall(DEEPCHAT.id);
});

verifies('R-PLUGIN-3#1', 'a plugin that contributes what it did not declare is not switched on at all', async () => {
  const declared = DEEPCHAT.capabilities;
  for (const capability of declared) {
    await install(filesOf('deepchat', { capabilities: declared.filter((one) => one !== capability) }));
    await expect(enable(DEEPCHAT.id)).rejects.toMatchObject({
      code: 'ACTIVATION_FAILED',
      data: { step: 'capabilities', reason: expect.stringContaining(capability) },
    });
    expect(await serversOf(DEEPCHAT.id)).toEqual([]);
    expect((await bus.call(pluginRegistry.pluginSlots, { projectId: 'default' })).plugins).toMatchObject([{ servers: [], skills: [] }]);
  }
  const extensions = (capabilities: readonly string[]) => ({ extensions: { 'dev.ambit': { capabilities } } });
  for (const capability of ['servers', 'skills']) {
    await install(filesOf('agent-plugins-1.0.0', extensions([capability])));
    await expect(enable('packed')).rejects.toMatchObject({ code: 'ACTIVATION_FAILED', data: { step: 'capabilities' } });
  }
  await install(filesOf('agent-plugins-1.0.0', extensions(['servers', 'skills'])));
  expect(await enable('packed')).toMatchObject({ state: 'enabled' });
  for (const id of ['packed', DEEPCHAT.id]) await uninstall(id);
});
