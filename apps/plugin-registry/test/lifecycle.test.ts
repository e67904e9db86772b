import { pluginRegistry, type FileEntry, type Plugin } from '@ambit/contracts';
import { openDatabase } from '@ambit/db';
import { startNats, startPostgres, startService, until, withClient, type TestNats, type TestPostgres } from '@ambit/testing';
import { afterAll, beforeAll, beforeEach, expect, jest } from '@jest/globals';
import { createHash } from 'node:crypto';
import { verifies } from '../../../test/verifies.js';
import { PluginRegistryConfig } from '../src/config.js';
import { PluginRegistryModule } from '../src/plugin-registry.module.js';
import { Peers } from './peers.js';

jest.setTimeout(60_000);
let nats: TestNats;
let postgres: TestPostgres;
let peers: Peers;
let service: Awaited<ReturnType<typeof start>>;
const start = () =>
  startService('plugin-registry', PluginRegistryModule, { nats, postgres, config: PluginRegistryConfig, database: openDatabase });

beforeAll(async () => {
  [nats, postgres] = await Promise.all([startNats(), startPostgres()]);
  peers = new Peers(nats.connection);
  await nats.connection.flush();
  service = await start();
}, 120_000);
afterAll(async () => {
  await service?.close();
  await postgres?.stop();
  await nats?.stop();
});
beforeEach(() => peers.reset());

/** One that was not there for a moment looks after everything anew. */
async function restart(): Promise<void> {
  await service.close();
  service = await start();
}

const SCHEMAS = 'https://agent-plugins.org/schemas/1.0.0';
const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');
const program = (name: string, version: string) => `// ${name} ${version}`;
/** One skill and two servers. */
async function install(name: string, version = '1.0.0', more: Record<string, string> = {}): Promise<Plugin> {
  const files: Record<string, string> = {
    'plugin.json': JSON.stringify({ $schema: `${SCHEMAS}/plugin.schema.json`, name, version }),
    'mcp.json': JSON.stringify({
      $schema: `${SCHEMAS}/mcp.schema.json`,
      mcpServers: { one: { type: 'stdio', command: './server.mjs' }, two: { type: 'stdio', command: './server.mjs' } },
    }),
    'server.mjs': program(name, version),
    'skills/greeting/SKILL.md': '---\nname: greeting\ndescription: d\n---\n',
    ...more,
  };
  const entries: FileEntry[] = [];
  for (const [path, text] of Object.entries(files)) {
    const bytes = Buffer.from(text);
    await nats.bus.call(pluginRegistry.putBlob, {
      digest: digestOf(text),
      bytes: bytes.byteLength,
      offset: 0,
      data: bytes.toString('base64'),
    });
    entries.push({ path, mode: 'file', bytes: bytes.byteLength, digest: digestOf(text) });
  }
  return nats.bus.call(pluginRegistry.installPlugin, { files: entries, unsigned: 'allow' });
}
const get = (id: string) => nats.bus.call(pluginRegistry.getPlugin, { id });
const enable = (id: string) => nats.bus.call(pluginRegistry.enablePlugin, { id });
const disable = (id: string) => nats.bus.call(pluginRegistry.disablePlugin, { id });
const uninstall = (id: string) => nats.bus.call(pluginRegistry.uninstallPlugin, { id });
const slotOf = async (id: string) =>
  (await nats.bus.call(pluginRegistry.pluginSlots, { projectId: 'default' })).plugins.find((plugin) => plugin.id === id);
const isOf =
  (id: string) =>
  ({ input }: { readonly input: Record<string, unknown> }) =>
    input['owner'] === `plugin:${id}`;

/** A file of the package is lost, or is there again. */
const keepFile = (name: string, isThere: boolean) =>
  withClient(postgres.url, async (client) => {
    const changed = await client.query('UPDATE plugin_registry.blob SET complete = $2 WHERE digest = $1', [
      digestOf(program(name, '1.0.0')),
      isThere,
    ]);
    expect(changed.rowCount).toBe(1);
  });

verifies('R-PLUGIN-5#1', 'whichever owner refuses its part of an activation, and however, nothing is left of the plugin', async () => {
  await install('whole');
  const steps = [
    ['skills', 'BLOB_DIGEST'],
    ['skills', 'NAME_TAKEN'],
    ['servers', 'SLUG_TAKEN'],
    ['servers', 'SLUG_TAKEN'],
  ] as const;
  for (const how of ['as declared', 'away'] as const) {
    for (const [index, [step, code]] of steps.entries()) {
      peers.refuseHanded(index + 1, how);
      const reason = expect.stringContaining(how === 'away' ? 'UNAVAILABLE' : code);
      await expect(enable('whole')).rejects.toMatchObject({ code: 'ACTIVATION_FAILED', data: { step, reason } });
      expect(peers.partsOf('whole')).toBe(0);
      expect(await slotOf('whole')).toMatchObject({ state: 'disabled', servers: [], skills: [] });
      expect(await get('whole')).toMatchObject({
        state: 'disabled',
        wanted: 'disabled',
        quarantined: false,
        contributes: { servers: [], skills: [] },
      });
    }
  }
  peers.reset();
  expect(await enable('whole')).toMatchObject({
    state: 'enabled',
    contributes: { servers: ['whole-one', 'whole-two'], skills: ['greeting'] },
  });
  expect(peers.partsOf('whole')).toBe(3);
  await uninstall('whole');
  expect(peers.partsOf('whole')).toBe(0);
});

verifies('R-PLUGIN-5#2', 'of many operations on one plugin, on two replicas, each is whole before the next begins', async () => {
  const replica = await start();
  try {
    await install('busy');
    peers.reset();
    await enable('busy');
    const done = await Promise.all([
      install('busy', '2.0.0'),
      disable('busy'),
      enable('busy'),
      install('busy', '3.0.0'),
      enable('busy'),
      disable('busy'),
      enable('busy'),
    ]);
    expect(peers.log).toMatch(/^(rrr|bcss)*$/);
    expect(peers.log).toContain('bcss');
    const digests = peers.asked.flatMap(
      ({ input: { transport } }) => (transport as { package?: { digest: string } } | undefined)?.package?.digest ?? [],
    );
    // The two servers of each activation are of one package.
    for (let index = 0; index < digests.length; index += 2) expect(digests[index]).toBe(digests[index + 1]);
    expect(done.map(({ state }) => state)).toContain((await get('busy')).state);
    const { state } = await get('busy');
    expect(peers.partsOf('busy')).toBe(state === 'enabled' ? 3 : 0);
    await uninstall('busy');
  } finally {
    await replica.close();
  }
});

verifies(
  ['R-PLUGIN-7#1', 'R-PLUGIN-7#2'],
  'unavailable, disabled and uninstalled are told apart; what is available again is as people want it',
  async () => {
    for (const id of ['chosen-off', 'gone', 'left-on', 'off'])
      await install(id, '1.0.0', { 'skills/greeting/SKILL.md': `---\nname: greeting-${id}\ndescription: d\n---\n` });
    await enable('chosen-off');
    await enable('left-on');
    await uninstall('gone');
    await keepFile('chosen-off', false);
    await keepFile('left-on', false);
    await restart();
    await until(async () => (await get('left-on')).state === 'unavailable');
    for (const id of ['chosen-off', 'left-on']) {
      expect(await get(id)).toMatchObject({ state: 'unavailable', wanted: 'enabled', reason: expect.stringContaining('server.mjs') });
      expect(await slotOf(id)).toMatchObject({ state: 'unavailable', servers: [], skills: [] });
      expect(peers.partsOf(id)).toBe(0);
    }
    expect(await get('off')).toMatchObject({ state: 'disabled', wanted: 'disabled', reason: null });
    expect(await slotOf('off')).toMatchObject({ state: 'disabled' });
    await expect(get('gone')).rejects.toMatchObject({ code: 'PLUGIN_UNKNOWN' });
    expect(await slotOf('gone')).toBeUndefined();

    // A choice is taken down while it cannot be carried out.
    expect(await disable('chosen-off')).toMatchObject({ state: 'unavailable', wanted: 'disabled' });
    expect(await enable('left-on')).toMatchObject({ state: 'unavailable', wanted: 'enabled' });
    peers.reset();
    await keepFile('chosen-off', true);
    await keepFile('left-on', true);
    await restart();
    await until(async () => (await get('left-on')).state === 'enabled');
    expect(await get('chosen-off')).toMatchObject({ state: 'disabled', wanted: 'disabled', reason: null });
    expect(peers.asked.filter(isOf('chosen-off'))).toEqual([]);
    expect(peers.partsOf('left-on')).toBe(3);
    expect(await enable('chosen-off')).toMatchObject({ state: 'enabled' });
    for (const id of ['chosen-off', 'left-on', 'off']) await uninstall(id);
  },
);

verifies('R-PLUGIN-7#3', 'a package that failed here is not tried again by itself: by a person, or when another one comes', async () => {
  await install('shaky');
  await enable('shaky');
  const fails = (version: string) => {
    peers.refuse = ({ who, input }) =>
      who.includes('server.put') && input['slug'] === 'shaky-two' ? { code: 'URL_REFUSED', data: { reason: 'no' } } : undefined;
    return install('shaky', version);
  };
  const failed = await fails('2.0.0');
  expect(failed).toMatchObject({
    version: '2.0.0',
    state: 'unavailable',
    wanted: 'enabled',
    quarantined: true,
    reason: expect.stringContaining('URL_REFUSED'),
  });
  expect(peers.partsOf('shaky')).toBe(0);

  // From now on it would be taken; yet neither a start of the registry nor the same package again is a reason to try.
  await install('yes', '1.0.0', { 'skills/greeting/SKILL.md': '---\nname: greeting-yes\ndescription: d\n---\n' });
  await enable('yes');
  await keepFile('yes', false);
  await restart();
  await until(async () => (await get('yes')).state === 'unavailable');
  await keepFile('yes', true);
  peers.reset();
  await restart();
  // In the order of their names: the other's turn has been.
  await until(async () => (await get('yes')).state === 'enabled');
  expect(await install('shaky', '2.0.0')).toMatchObject({ state: 'unavailable', quarantined: true });
  expect(peers.asked.filter(isOf('shaky'))).toEqual([]);

  expect(await enable('shaky')).toMatchObject({ version: '2.0.0', state: 'enabled', quarantined: false, reason: null });
  expect(await fails('3.0.0')).toMatchObject({ state: 'unavailable', quarantined: true });
  peers.reset();
  expect(await install('shaky', '4.0.0')).toMatchObject({ version: '4.0.0', state: 'enabled', quarantined: false });
  expect(peers.partsOf('shaky')).toBe(3);
});

verifies('R-INGRESS-6#3', 'a package that is refused leaves the one before it switched on, and untouched', async () => {
  await install('steady');
  await enable('steady');
  const [before, slot] = [await get('steady'), await slotOf('steady')];
  peers.reset();
  const packages: Record<string, string>[] = [
    { 'mcp.json': '{"mcpServers":{},"mcpServers":{}}' },
    { 'checksums.json': '{}' },
    { 'skills/other/SKILL.md': '---\nname: greeting\ndescription: d\n---\n' },
  ];
  for (const broken of packages) await expect(install('steady', '2.0.0', broken)).rejects.toMatchObject({ code: 'PLUGIN_INVALID' });
  expect(peers.asked.filter(isOf('steady'))).toEqual([]);
  expect([await get('steady'), await slotOf('steady')]).toEqual([before, slot]);
  expect(peers.partsOf('steady')).toBe(3);
  await uninstall('steady');
});

verifies('R-PLUGIN-9#1', 'a plugin’s id is one project’s: another one cannot put its own package in its place', async () => {
  await install('mine');
  const { digest } = await get('mine');
  const { tree } = await nats.bus.call(pluginRegistry.readPackage, { id: 'mine', digest });
  const elsewhere = nats.bus.call(pluginRegistry.installPlugin, { projectId: 'other', files: tree?.slice(0, 1) ?? [], unsigned: 'allow' });
  await expect(elsewhere).rejects.toMatchObject({ code: 'PLUGIN_TAKEN', data: { projectId: 'default' } });
  expect(await get('mine')).toMatchObject({ digest, projectId: 'default' });
});
