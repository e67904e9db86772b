import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AmbitClient } from '@ambit/client';
import { loadManifest, ManifestInvalid, manifestJsonSchema, uploadManifest } from '@ambit/client/manifest';
import { DesiredState, httpApi } from '@ambit/contracts';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { ApiServer } from './api-server.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ambit-manifest-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const HEAD = 'apiVersion: ambit/v1\nset: support\n';
async function write(text: string): Promise<string> {
  const path = join(folder, 'ambit.yaml');
  await writeFile(path, text);
  return path;
}
async function problems(text: string, environment = {}): Promise<readonly string[]> {
  const path = await write(text);
  const error: unknown = await loadManifest(path, { environment }).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ManifestInvalid)) throw new Error(`taken: ${String(error)}`);
  return error.problems.map((line) => line.replace(`${path}:`, ''));
}

it('reads the quickstart, files and all', async () => {
  const { desired, blobs } = await loadManifest(fileURLToPath(new URL('../../../examples/quickstart/ambit.yaml', import.meta.url)), {
    environment: {},
  });
  expect(DesiredState.parse(desired)).toEqual(desired);
  expect(Object.keys(desired.servers)).toEqual(['everything', 'memory', 'calculator']);
  expect(desired.agentSkills).toEqual({ guide: ['house-rules'] });
  expect(desired.agents['guide']?.policy).toMatchObject({ servers: 'all', plugins: ['greeter'], mode: 'default' });
  expect(desired.plugins['greeter']?.files.map(({ path }) => path)).toEqual(['mcp.json', 'plugin.json', 'skills/greeting/SKILL.md']);
  expect(blobs).toHaveLength(4);
});

it('turns short forms into the stored ones', async () => {
  const { desired } = await loadManifest(
    await write(`${HEAD}
secrets:
  jira-token: { from: file, path: /run/secrets/jira }
  hook-key: { from: store }
servers:
  jira:
    command: npx
    args: [-y, jira]
    env: { JIRA_TOKEN: { secret: jira-token }, HOME_PAGE: '\${PAGE:-https://x.example}', KEPT: '$\${PAGE}' }
    instances: { scope: per-agent, idleStop: 10m, memory: 512Mi }
    timeouts: { start: 45s, call: 2m, onProgress: extend }
  wiki: { url: '\${WIKI}', type: sse, headers: { authorization: { secret: jira-token } } }
  github: { url: 'https://mcp.github.example/mcp', auth: { type: oauth, credentials: user, clientId: Iv1.8a61, clientSecret: { secret: jira-token }, scopes: [repo] } }
agents:
  support:
    servers: [jira]
    skills: all
    rules: [{ ask: mcp__jira__update_*, approvers: [requester], expires: 30m }]
notify:
  - { events: [interaction.requested, call.parked], webhook: { url: 'https://hooks.example/\${PATH_OF_IT:-ambit}', sign: { secret: hook-key } } }
`),
    { environment: { WIKI: 'https://wiki.example/mcp' } },
  );
  expect(desired.secrets).toEqual({ 'jira-token': { from: 'file', key: '/run/secrets/jira' }, 'hook-key': { from: 'store', key: null } });
  expect(desired.servers['jira']).toMatchObject({
    transport: { type: 'stdio', env: { JIRA_TOKEN: { secret: 'jira-token' }, HOME_PAGE: 'https://x.example', KEPT: '${PAGE}' } },
    instances: { scope: 'per-agent', idleStopMs: 600_000, memoryBytes: 536_870_912, max: 16 },
    timeouts: { startMs: 45_000, callMs: 120_000, onProgress: 'extend' },
  });
  expect(desired.servers['wiki']?.transport).toEqual({
    type: 'sse',
    url: 'https://wiki.example/mcp',
    headers: { authorization: { secret: 'jira-token' } },
  });
  expect(desired.servers['github']?.transport).toMatchObject({
    type: 'http',
    authorization: {
      type: 'interactive',
      credentials: 'user',
      clientId: 'Iv1.8a61',
      clientSecret: { secret: 'jira-token' },
      scopes: ['repo'],
    },
  });
  expect(desired.notify).toEqual([
    {
      events: ['interaction.requested', 'call.parked'],
      webhook: { url: 'https://hooks.example/ambit', sign: { secret: 'hook-key' } },
    },
  ]);
  expect(desired.agents['support']?.policy).toMatchObject({ servers: ['jira'], plugins: 'none', skills: 'all' });
});

it('names the place of everything that is wrong, and what would be right', async () => {
  expect(
    await problems(`${HEAD}
servers:
  jira: { command: npx, url: 'http://x', autoApprove: [a] }
  wiki: { url: '\${WIKI}' }
agents:
  support:
    servers:
    skills: some
    rules: [{ ask: '*', allow: '*' }]
    limits: { runsAtOnce: many, callsPerDay: 3 }
access:
  - { who: 'dana', role: boss }
`),
  ).toEqual([
    expect.stringMatching(/^5: servers\.jira\.autoApprove: there is no such field; it takes url, type, headers, auth, command, /),
    '5: servers.jira: a server has either url or command',
    '6: servers.wiki.url: the environment has no WIKI; set it, or write ${WIKI:-a default}',
    '9: agents.support.servers: this is blank; write all, none or a list of names; leaving it out means none',
    '10: agents.support.skills: write all, none or a list of names; null and a blank are errors, and leaving it out means none',
    '11: agents.support.rules.0: a rule has exactly one of deny, ask and allow',
    '12: agents.support.limits.runsAtOnce: write a number',
    '12: agents.support.limits.callsPerDay: there is no such field; it takes runsAtOnce, callsPerRun, callsPerMinute',
    '14: access.0.who: user:<id>, app:<id>, worker:<id> or group:<id>',
    '14: access.0.role: write admin or operator or approver or viewer or auditor or client',
  ]);
});

it.each([
  ['servers:\n', '3: servers: this is blank; write a map of names, or leave it out'],
  ['agents: { a: { match: } }\n', '3: agents.a.match: this is blank; write a list, or leave it out'],
  ['agents: { a: { match: [{}] } }\n', '3: agents.a.match.0: a match rule needs at least one field'],
  ['agents: { a: { match: [[{}]] } }\n', '3: agents.a.match.0: a match rule needs at least one field'],
  [
    'agents: { a: { match: [{ scene: group, colour: red }] } }\n',
    '3: agents.a.match.0.colour: there is no such field; it takes adapter, endpoint, scene, sceneId, hasMedia, contentContains',
  ],
  [
    'agents: { a: { match: [{ sceneId: 1.5 }] } }\n',
    '3: agents.a.match.0.sceneId: write a text of at most 200 characters, or a whole number',
  ],
  ['agents: { a: { match: [{ scene: room }] } }\n', '3: agents.a.match.0.scene: write private or group or channel'],
  ['agents: { a: { match: [chat] } }\n', '3: agents.a.match.0: write a map of fields'],
  ['servers: { s: { command: x, timeouts: { call: 30 } } }\n', '3: servers.s.timeouts.call: a whole number and s, m, h or d, as in 30m'],
  [
    'servers: { s: { command: x, instances: { memory: 1MB } } }\n',
    '3: servers.s.instances.memory: a whole number and Ki, Mi or Gi, as in 512Mi',
  ],
  ['secrets: { s: { from: env } }\n', '3: secrets.s.key: this is missing; it takes a text'],
  ['secrets: { s: { from: vault } }\n', '3: secrets.s.from: { from: env, key: NAME }, { from: file, path: /a/path } or { from: store }'],
  [
    'servers: { Big: { command: x } }\n',
    '3: servers.Big: the name is not one that may stand here: lower-case letters, digits and hyphens, a letter or digit first, at most 63',
  ],
  [
    'notify: [{ events: [server.needs-auth], webhook: { url: "https://x", sign: { secret: s } } }]\n',
    '3: notify.0.events.0: no such event can be told; write interaction.requested or call.parked',
  ],
  [
    'notify: [{ events: [call.parked], webhook: { url: "ftp://x", sign: { secret: s } } }]\n',
    '3: notify.0.webhook.url: an address that begins with http:// or https://',
  ],
  ['notify: [{ events: [call.parked], webhook: { url: "https://x", sign: key } }]\n', '3: notify.0.webhook.sign: { secret: <name> }'],
  ['retention: { audit: 400d }\n', '3: retention: retention rules are not supported by this version of Ambit; take the section out'],
  [
    'servers: { s: { command: npx, auth: { type: oauth } } }\n',
    '3: servers.s: headers, type and auth belong to url; a command takes args and env',
  ],
  ['set: again\n', '3: this is not YAML: Map keys must be unique'],
  ['skills: { x: { source: ./gone } }\n', expect.stringContaining('skills.x.source: ') as unknown as string],
])('%j is told as it should be', async (text, sentence) => {
  expect(await problems(HEAD + text)).toEqual([sentence]);
});

it('follows no link, and takes no pipe', async () => {
  const skill = join(folder, 'skill');
  await mkdir(join(skill, 'references'), { recursive: true });
  await writeFile(join(skill, 'SKILL.md'), '---\nname: x\n---\n');
  await symlink('/etc/hostname', join(skill, 'references', 'host'));
  await symlink(skill, join(folder, 'linked'));
  execFileSync('mkfifo', [join(folder, 'pipe')]);
  expect(
    await problems(`${HEAD}skills: { x: { source: ./skill }, y: { source: ./linked } }\nagents: { a: { instructions: ./pipe } }\n`),
  ).toEqual([
    `3: skills.x.source: ${join(skill, 'references', 'host')} is a link, and links are not followed; put a copy there`,
    expect.stringContaining('linked is no folder'),
    `4: agents.a.instructions: ${join(folder, 'pipe')} is no plain file`,
  ]);
});

it('uploads each file to the service that keeps it', async () => {
  await mkdir(join(folder, 'skill'));
  await writeFile(join(folder, 'skill', 'SKILL.md'), 'words');
  const manifest = await loadManifest(await write(`${HEAD}skills: { x: { source: ./skill } }\nplugins: { p: { source: ./skill } }\n`));
  const api = await ApiServer.start();
  try {
    for (const route of [httpApi.putSkillBlob, httpApi.putPluginBlob]) api.on(route, () => ({ have: 5, complete: true }));
    await uploadManifest(new AmbitClient({ url: api.url, token: 't' }), manifest);
    expect(api.received.map(({ route }) => route.path).sort()).toEqual(['/v1/blob/plugin', '/v1/blob/skill']);
  } finally {
    await api.stop();
  }
});

it('has a JSON Schema that closes every map', () => {
  expect(manifestJsonSchema()).toMatchObject({ additionalProperties: false, required: ['apiVersion', 'set'] });
});
