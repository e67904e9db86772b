// The gates about what a plugin brings, through the served path: its package holds a stdio server, which writes down each call it receives.
import { pluginRegistry, sessionService, type FileEntry } from '@ambit/contracts';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import { createHash } from 'node:crypto';
import { intend } from '../system/plain-worker.js';
import { verifies } from '../verifies.js';
import { PLUGIN_PAIRS } from './gate-pairs.js';
import { codes, GateWorld } from './gate-world.js';

jest.setTimeout(300_000);
const TOOL = 'mcp__greeter-hello__greet';
const greet = () => intend(TOOL);
const MANIFEST = { $schema: 'https://agent-plugins.org/schemas/1.0.0/plugin.schema.json', name: 'greeter', version: '1.0.0' };
const SERVERS = {
  $schema: 'https://agent-plugins.org/schemas/1.0.0/mcp.schema.json',
  mcpServers: { hello: { type: 'stdio', command: 'node', args: ['${PLUGIN_ROOT}/server.mjs'] } },
};
const SERVER = `
import { createInterface } from 'node:readline';
const answer = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (method === 'initialize')
    answer(id, { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'greeter', version: '1' } });
  else if (method === 'tools/list') answer(id, { tools: [{ name: 'greet', inputSchema: { type: 'object' } }] });
  else if (method === 'tools/call') answer(id, { content: [{ type: 'text', text: 'hello' }] });
  else if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }) + '\\n');
});
`;

let world: GateWorld;
beforeAll(async () => {
  world = await GateWorld.start(['session-service', 'tool-gateway', 'mcp-broker', 'mcp-runner', 'skill-store', 'plugin-registry']);
  const files: FileEntry[] = [];
  for (const [path, text] of Object.entries({
    'plugin.json': JSON.stringify(MANIFEST),
    'mcp.json': JSON.stringify(SERVERS),
    'server.mjs': SERVER,
  })) {
    const bytes = Buffer.from(text);
    const digest = createHash('sha256').update(bytes).digest('hex');
    await world.system.bus.call(pluginRegistry.putBlob, { digest, bytes: bytes.byteLength, offset: 0, data: bytes.toString('base64') });
    files.push({ path, mode: 'file', bytes: bytes.byteLength, digest });
  }
  await world.system.bus.call(pluginRegistry.installPlugin, { files, unsigned: 'allow' }, { timeoutMs: 60_000 });
}, 300_000);
afterAll(() => world?.stop());

/** Switches the plugin on and waits until its server's tools are known. */
async function enable(): Promise<void> {
  await world.system.bus.call(pluginRegistry.enablePlugin, { id: 'greeter' }, { timeoutMs: 60_000 });
  await world.serverKnown('greeter-hello');
}

verifies('R-SESSION-3#3', 'gate plugin-allowed: a plugin that the policy names no more', async () => {
  await enable();
  const { worker, attempt } = await world.run({ plugins: ['greeter'] });
  expect(codes(await worker.execute(attempt, 0, [greet()]))).toEqual(['completed']);
  await world.put(worker.agentId, { plugins: [] });
  const call = greet();
  const [result] = await worker.execute(attempt, 1, [call]);
  await world.expectRefusal({ attempt, step: 1, call, result }, { code: 'PLUGIN_POLICY_DENIED', gate: 'plugin-allowed' });
});

verifies('R-EXEC-4#1', 'of two gates about a plugin’s tool that would both refuse, the earlier one answers', async () => {
  await enable();
  const ofServer = await world.run({ plugins: ['greeter'] });
  await world.put(ofServer.worker.agentId, { servers: [], plugins: [] });
  const ofPlugin = await world.agent({ plugins: ['greeter'] });
  const job = await world.withSnapshot(await world.job(ofPlugin), (record) => ({
    ...record,
    tools: record.tools.map((tool) => (tool.name === TOOL ? { ...tool, access: 'delegation' } : tool)),
  }));
  const attempt = await ofPlugin.start(job);
  await world.put(ofPlugin.agentId, { plugins: [] });
  const [one, other] = [greet(), greet()];
  const [result] = await ofServer.worker.execute(ofServer.attempt, 0, [one]);
  const [delegating] = await ofPlugin.execute(attempt, 0, [other]);
  const [servers, plugins] = PLUGIN_PAIRS;
  const refusals = [
    { code: 'SERVER_NOT_ALLOWED', gate: servers?.[0] ?? '' },
    { code: 'PLUGIN_POLICY_DENIED', gate: plugins?.[0] ?? '' },
  ] as const;
  await world.expectRefusal({ attempt: ofServer.attempt, step: 0, call: one, result }, refusals[0]);
  await world.expectRefusal({ attempt, step: 0, call: other, result: delegating }, refusals[1]);
});

verifies(['R-PLUGIN-6#1', 'R-PLUGIN-6#5'], 'gate fence: a plugin that was switched off, under the same fingerprint', async () => {
  await enable();
  const { worker, attempt } = await world.run({ plugins: null });
  expect(codes(await worker.execute(attempt, 0, [greet()]))).toEqual(['completed']);
  await world.system.bus.call(pluginRegistry.disablePlugin, { id: 'greeter' }, { timeoutMs: 60_000 });
  const call = greet();
  const [result] = await worker.execute(attempt, 1, [call]);
  await world.expectRefusal({ attempt, step: 1, call, result }, { code: 'TOOL_GONE', gate: 'fence' });
  // The same fence holds for a run that was given the tool before and begins only now; and the next one is given another record.
  const next = await world.job(worker, { sceneId: 'next' });
  expect(next.fingerprint).not.toBe(attempt.ref.fingerprint);
});

verifies('R-NATS-6#1', 'gate owner-lease: nobody vouches for the plugin any more', async () => {
  await enable();
  const { worker, attempt } = await world.run({ plugins: null });
  expect(codes(await worker.execute(attempt, 0, [greet()]))).toEqual(['completed']);
  await world.system.process('plugin-registry').kill();
  await world.endLease('plugin:greeter');
  const call = greet();
  await worker.store(attempt, 1, [call]);
  const [result] = await worker.send(attempt, { step: 1, calls: [call] });
  await world.expectRefusal({ attempt, step: 1, call, result }, { code: 'UNAVAILABLE', gate: 'owner-lease' });
  expect((await world.system.bus.call(sessionService.getRun, { id: attempt.ref.runId })).status).toBe('running');
  await world.system.process('plugin-registry').start();
});
