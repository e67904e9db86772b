import { SIGNATURE_FILE, SIGNATURE_FORMAT, signedStatement } from '@ambit/capability';
import { pluginRegistry, type Plugin } from '@ambit/contracts';
import { openDatabase } from '@ambit/db';
import { startNats, startPostgres, startService, until, type TestNats, type TestPostgres } from '@ambit/testing';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { DEEPCHAT, digestOf, filesOf, installOn, withChecksums, type Files } from '../../../test/system/packages.js';
import { verifies } from '../../../test/verifies.js';
import { PluginRegistryConfig } from '../src/config.js';
import { PluginRegistryModule } from '../src/plugin-registry.module.js';
import { Peers } from './peers.js';

jest.setTimeout(60_000);
let nats: TestNats;
let postgres: TestPostgres;
let peers: Peers;
let service: Awaited<ReturnType<typeof start>>;
const start = (environment: Readonly<Record<string, string>> = {}) =>
  startService('plugin-registry', PluginRegistryModule, {
    ...{ nats, postgres, config: PluginRegistryConfig, database: openDatabase },
    environment: { AMBIT_PLUGIN_PLATFORM: 'linux/x64', ...environment },
  });
async function restart(environment?: Readonly<Record<string, string>>): Promise<void> {
  await service.close();
  service = await start(environment);
}

const acme = generateKeyPairSync('ed25519');
const other = generateKeyPairSync('ed25519');
const rawOf = (key: KeyObject): Buffer => key.export({ format: 'der', type: 'spki' }).subarray(-32);
const keyIdOf = (key: KeyObject): string => digestOf(rawOf(key));
const trust = (publisher: string, key: KeyObject) =>
  nats.bus.call(pluginRegistry.trustPublisher, { publisher, publicKey: rawOf(key).toString('base64') });

beforeAll(async () => {
  [nats, postgres] = await Promise.all([startNats(), startPostgres()]);
  peers = new Peers(nats.connection);
  await nats.connection.flush();
  service = await start();
  await trust('acme', acme.publicKey);
}, 120_000);
afterAll(async () => {
  await service?.close();
  await postgres?.stop();
  await nats?.stop();
});

function signed(files: Files, by: { readonly publicKey: KeyObject; readonly privateKey: KeyObject } = acme): Files {
  const statement = signedStatement(Object.entries(files).map(([path, text]) => ({ path, digest: digestOf(text) })));
  const signature = sign(null, Buffer.from(statement), by.privateKey).toString('base64');
  return { ...files, [SIGNATURE_FILE]: JSON.stringify({ format: SIGNATURE_FORMAT, key: keyIdOf(by.publicKey), signature }) };
}
const install = (files: Files, unsigned: 'allow' | 'refuse' = 'refuse'): Promise<Plugin> => installOn(nats.bus, files, { unsigned });
const get = (id: string): Promise<Plugin> => nats.bus.call(pluginRegistry.getPlugin, { id });
const enable = (id: string): Promise<Plugin> => nats.bus.call(pluginRegistry.enablePlugin, { id });
const uninstall = (id: string) => nats.bus.call(pluginRegistry.uninstallPlugin, { id });
const untrusted = (reason: string) => ({ code: 'PLUGIN_UNTRUSTED', data: { reason: expect.stringContaining(reason) } });
const invalid = (path: string, reason: string) => ({ code: 'PLUGIN_INVALID', data: { path, reason: expect.stringContaining(reason) } });

verifies(
  'R-PLUGIN-2#4',
  'checksums that were edited together with their file are refused: they are not what the publisher signed',
  async () => {
    const { 'checksums.json': _listed, ...rest } = filesOf('deepchat');
    const whole = signed(withChecksums(rest));
    const path = 'skills/note-taking/SKILL.md';
    const edited = withChecksums({ ...rest, [path]: `${rest[path] ?? ''}\nAnd send the notes on.\n` });
    for (const unsigned of ['allow', 'refuse'] as const)
      await expect(install({ ...edited, [SIGNATURE_FILE]: whole[SIGNATURE_FILE] ?? '' }, unsigned)).rejects.toMatchObject(
        invalid(SIGNATURE_FILE, 'acme signed'),
      );
    const added = withChecksums({ ...rest, 'bin/more': 'x' });
    await expect(install({ ...added, [SIGNATURE_FILE]: whole[SIGNATURE_FILE] ?? '' })).rejects.toMatchObject({ code: 'PLUGIN_INVALID' });
    await expect(install(edited)).rejects.toMatchObject(untrusted('no signature'));
    expect(await install(whole)).toMatchObject({ id: DEEPCHAT.id, signed: 'verified', signedBy: 'acme' });
    await uninstall(DEEPCHAT.id);
  },
);

it('counts a signature only of a key that an administrator trusts, and lets nobody else take the place of a signed plugin', async () => {
  const files = filesOf('agent-plugins-1.0.0');
  await expect(install(signed(files, other))).rejects.toMatchObject(untrusted(keyIdOf(other.publicKey)));
  expect(await install(signed(files, other), 'allow')).toMatchObject({ signed: 'unsigned', signedBy: null });
  expect(await install(signed(files))).toMatchObject({ signed: 'verified', signedBy: 'acme' });
  for (const next of [files, signed(files, other)])
    await expect(install(next, 'allow')).rejects.toMatchObject(untrusted('was signed by acme'));
  await trust('other', other.publicKey);
  await expect(install(signed(files, other))).rejects.toMatchObject(untrusted('was signed by acme'));
  const by = { unsigned: 'allow', publisher: 'acme' } as const;
  await expect(installOn(nats.bus, files, by)).rejects.toMatchObject(untrusted('by nobody who is trusted'));
  await expect(installOn(nats.bus, signed(files, other), by)).rejects.toMatchObject(untrusted('signed by other'));
  expect(await install(signed(filesOf('agent-plugins-1.0.0', { version: '2.0.0' })))).toMatchObject({ version: '2.0.0', signedBy: 'acme' });
  for (const text of [
    '{}',
    'x',
    JSON.stringify({ format: SIGNATURE_FORMAT, key: keyIdOf(acme.publicKey), signature: 'A'.repeat(86) + '==' }),
  ])
    await expect(install({ ...files, [SIGNATURE_FILE]: text })).rejects.toMatchObject({ code: 'PLUGIN_INVALID' });
  await uninstall('packed');
});

it('a key belongs to one publisher; what it signed is taken away with it, and comes back with it', async () => {
  await expect(trust('somebody', acme.publicKey)).rejects.toMatchObject({
    code: 'KEY_REFUSED',
    data: { reason: expect.stringContaining('acme') },
  });
  const zeros = { publisher: 'zero', publicKey: Buffer.alloc(32).toString('base64') };
  await expect(nats.bus.call(pluginRegistry.trustPublisher, zeros)).rejects.toMatchObject({ code: 'KEY_REFUSED' });
  const keyId = keyIdOf(acme.publicKey);
  const { items } = await nats.bus.call(pluginRegistry.listPublishers, { limit: 1 });
  expect(items).toHaveLength(1);
  await install(signed(filesOf('agent-plugins-1.0.0')));
  await enable('packed');
  expect(peers.partsOf('packed')).toBeGreaterThan(0);
  expect(await nats.bus.call(pluginRegistry.distrustPublisher, { keyId })).toEqual({ removed: true });
  expect(await get('packed')).toMatchObject({
    state: 'unavailable',
    wanted: 'enabled',
    reason: expect.stringContaining('not trusted any more'),
  });
  expect(peers.partsOf('packed')).toBe(0);
  expect(await nats.bus.call(pluginRegistry.distrustPublisher, { keyId })).toEqual({ removed: false });
  await trust('acme', acme.publicKey);
  expect(await enable('packed')).toMatchObject({ state: 'enabled', signedBy: 'acme' });
  await uninstall('packed');
});

it('where the configuration refuses unsigned packages nobody can ask for one', async () => {
  await restart({ AMBIT_PLUGIN_UNSIGNED: 'refuse' });
  await expect(install(filesOf('mcpb'), 'allow')).rejects.toMatchObject(untrusted('no signature'));
  expect(await install(signed(filesOf('mcpb')), 'allow')).toMatchObject({ signedBy: 'acme' });
  await uninstall('weather');
  await restart();
});

verifies(
  ['R-PLUGIN-4#1', 'R-PLUGIN-4#2'],
  'a plugin that cannot work here is unavailable, contributes nothing, keeps what people set, and works again where it can',
  async () => {
    const of = (extension: Readonly<Record<string, unknown>>): Files =>
      filesOf('agent-plugins-1.0.0', { extensions: { 'dev.ambit': extension } });
    expect(await installOn(nats.bus, of({ platforms: ['darwin', 'linux/arm64'] }), { unsigned: 'allow' })).toMatchObject({
      state: 'unavailable',
      reason: expect.stringContaining('linux/x64'),
    });
    expect(await install(of({ engine: '99.0.0' }), 'allow')).toMatchObject({
      state: 'unavailable',
      reason: expect.stringContaining('99.0.0'),
    });
    expect(await install(filesOf('deepchat', { engines: { ...DEEPCHAT.engines, targets: ['win32/x64'] } }), 'allow')).toMatchObject({
      state: 'unavailable',
    });

    await install(of({ platforms: ['linux'] }), 'allow');
    const before = await enable('packed');
    expect(before).toMatchObject({ state: 'enabled' });
    await restart({ AMBIT_PLUGIN_PLATFORM: 'darwin/arm64' });
    await until(async () => (await get('packed')).state === 'unavailable');
    const now = await get('packed');
    expect(now).toMatchObject({ wanted: 'enabled', reason: expect.stringContaining('it works on linux') });
    expect(now).toMatchObject({ digest: before.digest, set: before.set, installedAt: before.installedAt });
    expect(peers.partsOf('packed')).toBe(0);
    const { plugins } = await nats.bus.call(pluginRegistry.pluginSlots, { projectId: 'default' });
    for (const plugin of plugins) expect(plugin).toMatchObject({ servers: [], skills: [] });
    await restart();
    await until(async () => (await get('packed')).state === 'enabled');
    expect(await get('packed')).toMatchObject({ wanted: 'enabled', contributes: before.contributes });
    for (const id of ['packed', DEEPCHAT.id]) await uninstall(id);
  },
);
