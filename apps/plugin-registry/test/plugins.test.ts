import { createHash } from 'node:crypto';
import { buckets, epochKey, mcpBroker, pluginRegistry, sessionService, skillStore, subject, type FileEntry } from '@ambit/contracts';
import { openDatabase } from '@ambit/db';
import { startNats, startPostgres, startService, type TestNats, type TestPostgres } from '@ambit/testing';
import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { Kvm } from '@nats-io/kv';
import { headers } from '@nats-io/transport-node';
import { PluginRegistryModule } from '../src/plugin-registry.module.js';
import { serverOf } from './peers.js';

let nats: TestNats;
let postgres: TestPostgres;
let service: Awaited<ReturnType<typeof startService>>;

/** The other owners, as far as a plugin needs them: they write down what they are asked, in order. */
const asked: { readonly who: string; readonly input: Record<string, unknown> }[] = [];
let brokerRefuses = false;

beforeAll(async () => {
  [nats, postgres] = await Promise.all([startNats(), startPostgres()]);
  peer(mcpBroker.putServer, (input) =>
    brokerRefuses ? { fault: { code: 'SLUG_TAKEN', message: 'taken', data: { owner: 'user' } } } : serverOf(input),
  );
  peer(mcpBroker.revokeOwner, () => ({ closed: 1 }));
  peer(sessionService.revokeOwner, () => ({ runs: 0 }));
  peer(skillStore.revokeOwner, () => ({ withdrawn: 1 }));
  peer(skillStore.putBlob, (input) => ({ have: Number(input.bytes), complete: true }));
  peer(skillStore.putContribution, () => ({ names: ['greeting'] }));
  await nats.connection.flush();
  service = await startService('plugin-registry', PluginRegistryModule, { nats, postgres, database: openDatabase });
}, 120_000);
afterAll(async () => {
  await service?.close();
  await postgres?.stop();
  await nats?.stop();
});
beforeEach(() => {
  asked.length = 0;
  brokerRefuses = false;
});

function peer(contract: { readonly subject: string }, answer: (input: Record<string, unknown>) => unknown): void {
  nats.connection.subscribe(subject(contract, {}), {
    callback: (_error, message) => {
      const input = message.json<Record<string, unknown>>();
      asked.push({ who: contract.subject, input });
      const answered = answer(input);
      if (typeof answered !== 'object' || answered === null || !('fault' in answered)) message.respond(JSON.stringify(answered));
      else message.respond(JSON.stringify(answered.fault), { headers: faultHeaders() });
    },
  });
}
const faultHeaders = () => {
  const header = headers();
  header.set('Nats-Service-Error-Code', '409');
  header.set('Nats-Service-Error', 'taken');
  return header;
};

const MANIFEST = { $schema: 'https://agent-plugins.org/schemas/1.0.0/plugin.schema.json', name: 'greeter', version: '1.0.0' };
const SERVERS = {
  $schema: 'https://agent-plugins.org/schemas/1.0.0/mcp.schema.json',
  mcpServers: { hello: { type: 'stdio', command: './server.mjs' }, bad: { command: 'two words' } },
};
const greeter = (version = '1.0.0') => ({
  'plugin.json': JSON.stringify({ ...MANIFEST, version }),
  'mcp.json': JSON.stringify(SERVERS),
  'server.mjs': '// a server',
  'skills/greeting/SKILL.md': '---\nname: greeting\ndescription: d\n---\n',
});

async function upload(files: Readonly<Record<string, string>>): Promise<FileEntry[]> {
  const entries: FileEntry[] = [];
  for (const [path, text] of Object.entries(files)) {
    const bytes = Buffer.from(text);
    const digest = createHash('sha256').update(bytes).digest('hex');
    await nats.bus.call(pluginRegistry.putBlob, { digest, bytes: bytes.byteLength, offset: 0, data: bytes.toString('base64') });
    entries.push({ path, mode: 'file', bytes: bytes.byteLength, digest });
  }
  return entries;
}
const install = async (files: Readonly<Record<string, string>>, unsigned: 'allow' | 'refuse' = 'allow') =>
  nats.bus.call(pluginRegistry.installPlugin, { files: await upload(files), unsigned });
const slots = () => nats.bus.call(pluginRegistry.pluginSlots, { projectId: 'default' });
const fence = async () =>
  Number(
    (await (await new Kvm(nats.connection).open(buckets.epochs.name)).get(epochKey.fence('plugin-registry', 'plugin:greeter')))?.string(),
  );

it('installs off, contributes when switched on, and takes everything away when switched off', async () => {
  const installed = await install(greeter());
  expect(installed).toMatchObject({ id: 'greeter', state: 'disabled', signed: 'unsigned' });
  expect(installed.warnings.join()).toContain('server "bad"');
  expect((await slots()).plugins).toMatchObject([{ state: 'disabled', servers: [], skills: [] }]);

  const enabled = await nats.bus.call(pluginRegistry.enablePlugin, { id: 'greeter' });
  expect(enabled).toMatchObject({ state: 'enabled', contributes: { servers: ['greeter-hello'], skills: ['greeting'] } });
  expect(asked.find(({ who }) => who === mcpBroker.putServer.subject)?.input).toMatchObject({
    owner: 'plugin:greeter',
    transport: { command: './server.mjs', package: { pluginId: 'greeter', digest: installed.digest } },
  });
  const before = await fence();

  asked.length = 0;
  const disabled = await nats.bus.call(pluginRegistry.disablePlugin, { id: 'greeter' });
  expect(disabled.state).toBe('disabled');
  expect(await fence()).toBeGreaterThan(before);
  expect(new Set(asked.map(({ who }) => who))).toEqual(
    new Set([sessionService.revokeOwner, mcpBroker.revokeOwner, skillStore.revokeOwner].map((contract) => contract.subject)),
  );
  expect((await slots()).plugins).toMatchObject([{ state: 'disabled', servers: [], skills: [] }]);
});

it('a failed activation leaves nothing: what was contributed is revoked before the failure is told', async () => {
  brokerRefuses = true;
  await expect(nats.bus.call(pluginRegistry.enablePlugin, { id: 'greeter' })).rejects.toMatchObject({
    code: 'ACTIVATION_FAILED',
    data: { step: 'servers' },
  });
  expect(asked.map(({ who }) => who)).toContain(skillStore.revokeOwner.subject);
  expect(await nats.bus.call(pluginRegistry.getPlugin, { id: 'greeter' })).toMatchObject({
    state: 'disabled',
    reason: expect.stringContaining('SLUG_TAKEN'),
  });
});

it('an update of an enabled plugin revokes the old one before the new one contributes', async () => {
  await nats.bus.call(pluginRegistry.enablePlugin, { id: 'greeter' });
  asked.length = 0;
  const updated = await install(greeter('2.0.0'));
  expect(updated).toMatchObject({ version: '2.0.0', state: 'enabled', wanted: 'enabled' });
  const order = asked.map(({ who }) => who);
  expect(order.indexOf(mcpBroker.revokeOwner.subject)).toBeLessThan(order.indexOf(mcpBroker.putServer.subject));
});

it('two switches at once are one after the other', async () => {
  const both = await Promise.all([
    nats.bus.call(pluginRegistry.disablePlugin, { id: 'greeter' }),
    nats.bus.call(pluginRegistry.enablePlugin, { id: 'greeter' }),
  ]);
  const now = await nats.bus.call(pluginRegistry.getPlugin, { id: 'greeter' });
  expect(both.map(({ state }) => state)).toContain(now.state);
});

it.each([
  ['no plugin.json', { 'mcp.json': '{}' }, 'plugin.json'],
  ['another schema', { 'plugin.json': JSON.stringify({ ...MANIFEST, $schema: 'x' }) }, '$schema'],
  ['a name that climbs', { 'plugin.json': JSON.stringify({ ...MANIFEST, name: '../x' }) }, 'name'],
  ['a path that leaves', { 'plugin.json': JSON.stringify(MANIFEST), '../x': 'y' }, 'inside'],
])('refuses a package with %s', async (_what, files, reason) => {
  await expect(install(files)).rejects.toMatchObject({ code: 'PLUGIN_INVALID', data: { reason: expect.stringContaining(reason) } });
});

it('refuses an unsigned package where that is asked', async () => {
  await expect(install(greeter(), 'refuse')).rejects.toMatchObject({ code: 'PLUGIN_UNTRUSTED' });
});

it('hands a package to runners, and forgets an uninstalled plugin', async () => {
  const { digest } = await nats.bus.call(pluginRegistry.getPlugin, { id: 'greeter' });
  const { tree } = await nats.bus.call(pluginRegistry.readPackage, { id: 'greeter', digest });
  const server = tree?.find(({ path }) => path === 'server.mjs');
  const { data } = await nats.bus.call(pluginRegistry.readPackage, { id: 'greeter', digest, file: server?.digest ?? '' });
  expect(Buffer.from(data ?? '', 'base64').toString()).toBe('// a server');
  expect(await nats.bus.call(pluginRegistry.uninstallPlugin, { id: 'greeter' })).toEqual({ uninstalled: true });
  await expect(nats.bus.call(pluginRegistry.getPlugin, { id: 'greeter' })).rejects.toMatchObject({ code: 'PLUGIN_UNKNOWN' });
});

it('offers the presets of agents/*.md of a plugin that is on, and leaves out what is none', async () => {
  const presets = {
    'agents/reviewer.md':
      '---\nname: reviewer\ndescription: "Reviews code"\ntools: [read, "mcp__*"]\npermissions: role(owner, master)\n---\n\nYou review.\n',
    'agents/plain.md': '---\ndescription: Plain\n---\nDo.',
    'agents/exec.md': '---\ndescription: Takes a name of the platform\n---\nDo.',
    'agents/nobody.md': '---\npermissions: user()\n---\nDo.',
    'agents/none.md': 'No front matter.',
  };
  const { warnings } = await install({ 'plugin.json': JSON.stringify({ ...MANIFEST, name: 'staffed' }), ...presets });
  for (const left of ['exec', 'nobody', 'none']) expect(warnings.join('\n')).toContain(`agents/${left}.md`);
  const agents = async () => (await slots()).plugins.find(({ id }) => id === 'staffed')?.agents;
  expect(await agents()).toEqual([]);
  expect(await nats.bus.call(pluginRegistry.enablePlugin, { id: 'staffed' })).toMatchObject({
    contributes: { agents: ['plain', 'reviewer'] },
  });
  expect(await agents()).toEqual([
    { name: 'plain', description: 'Plain', instructions: 'Do.', tools: null },
    {
      name: 'reviewer',
      description: 'Reviews code',
      instructions: 'You review.',
      tools: ['read', 'mcp__*'],
      permissions: ['role(owner, master)'],
    },
  ]);
  await nats.bus.call(pluginRegistry.disablePlugin, { id: 'staffed' });
  expect(await agents()).toEqual([]);
});
