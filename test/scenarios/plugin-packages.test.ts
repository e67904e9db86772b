import type { Bus } from '@ambit/bus';
import { pluginRegistry, type FileEntry, type Plugin } from '@ambit/contracts';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import fc from 'fast-check';
import { createHash } from 'node:crypto';
import { startSystem, type System } from '../system/system.js';
import { verifies } from '../verifies.js';

jest.setTimeout(120_000);
let system: System;
let bus: Bus;
beforeAll(async () => {
  system = await startSystem({ services: ['plugin-registry'] });
  bus = system.bus;
});
afterAll(() => system?.stop());

const MANIFEST = { $schema: 'https://agent-plugins.org/schemas/1.0.0/plugin.schema.json', name: 'packed', version: '1.0.0' };
const SERVERS = 'https://agent-plugins.org/schemas/1.0.0/mcp.schema.json';

async function install(files: Readonly<Record<string, string>>): Promise<Plugin> {
  const entries: FileEntry[] = [];
  for (const [path, text] of Object.entries(files)) {
    const bytes = Buffer.from(text);
    const digest = createHash('sha256').update(bytes).digest('hex');
    await bus.call(pluginRegistry.putBlob, { digest, bytes: bytes.byteLength, offset: 0, data: bytes.toString('base64') });
    entries.push({ path, mode: 'file', bytes: bytes.byteLength, digest });
  }
  return bus.call(pluginRegistry.installPlugin, { files: entries, unsigned: 'allow' });
}
const installed = async (): Promise<string[]> => (await bus.call(pluginRegistry.listPlugins, {})).items.map(({ id }) => id);

verifies('R-PLUGIN-1#1', 'no malformed manifest is installed, and the registry goes on after each', async () => {
  const field = fc.oneof(
    fc.constant(undefined),
    fc.jsonValue(),
    fc.string(),
    fc.constantFrom('../x', 'a--b', 'A', '', '.', 'x'.repeat(65)),
  );
  const manifest = fc.record({
    $schema: fc.oneof(fc.constant(MANIFEST.$schema), field),
    name: field,
    version: field,
    description: field,
    extensions: field,
    author: field,
  });
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        manifest.map((value) => JSON.stringify(value)),
        fc.string(),
      ),
      async (text) => {
        const outcome = await install({ 'plugin.json': text }).catch((error: unknown) => error);
        if (outcome instanceof Error)
          expect(outcome).toMatchObject({ code: 'PLUGIN_INVALID', data: { path: expect.any(String), reason: expect.any(String) } });
        else expect((outcome as Plugin).id).toMatch(/^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/);
      },
    ),
    { numRuns: 60 },
  );
  for (const name of ['../x', 'Upper', 'a--b', '', 'x'.repeat(65), '-a', 7, null]) {
    await expect(install({ 'plugin.json': JSON.stringify({ ...MANIFEST, name }) })).rejects.toMatchObject({ code: 'PLUGIN_INVALID' });
  }
  expect(await install({ 'plugin.json': JSON.stringify(MANIFEST) })).toMatchObject({ id: 'packed', state: 'disabled' });
});

verifies('R-PLUGIN-1#2', 'unknown fields are ignored, and told', async () => {
  const plugin = await install({ 'plugin.json': JSON.stringify({ ...MANIFEST, name: 'extra', surprise: true }) });
  expect(plugin.warnings.join()).toMatch(/unknown field "surprise" is ignored/);
});

verifies('R-PLUGIN-1#3', 'a path that leaves the package is refused', async () => {
  const plugin = JSON.stringify({ ...MANIFEST, name: 'leaving' });
  for (const path of ['../x', 'a/../../x', '/etc/x', 'a\\..\\..\\x', './x/../../y']) {
    await expect(install({ 'plugin.json': plugin, [path]: 'x' })).rejects.toMatchObject({
      code: expect.stringMatching(/^(PLUGIN_INVALID|INVALID_INPUT)$/),
    });
  }
  expect(await installed()).not.toContain('leaving');
  const mcp = JSON.stringify({
    $schema: SERVERS,
    mcpServers: { out: { command: './../../bin/sh' }, up: { command: '../sh' }, root: { command: '/bin/sh' } },
  });
  const kept = await install({ 'plugin.json': plugin, 'mcp.json': mcp });
  expect(kept.warnings.filter((warning) => /server "(out|up|root)".*left out/.test(warning))).toHaveLength(3);
});
