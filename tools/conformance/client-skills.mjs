// Views the skills of a server as a model does whose agent may use it: with the tools for skills, which have them from the broker.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

/** A server's skills are looked for after it is connected, and seen by whoever asks then. */
const FOUND_WITHIN_MS = 30_000;
const LOOK_MS = 250;
/** The one that all scenarios have. */
const SKILL = 'pdf-processing';

/** Lists the skills and, where the scenario is about reading, views the first one file after another, until one is refused. */
export async function readSkills(stack, slug, scenario) {
  const agentId = slug;
  const send = sender(stack);
  await send('PUT', `/v1/agent/${agentId}`, { model: 'none', policy: { servers: [slug], skills: 'all' } });
  const { token } = await send('POST', '/v1/edge-token', { name: 'conformance', agentId, principal: 'user:conformance' });
  const client = new Client({ name: 'conformance', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(stack.edgeUrl), { requestInit }));
  const call = (name, values) => client.callTool({ name, arguments: values });
  try {
    const name = await firstOf(async () => (await call('skill_list', {})).structuredContent.skills);
    if (name === undefined || scenario.endsWith('no-prefetch')) return { name };
    const said = [];
    for (const path of ['SKILL.md', 'references/FORMS.md']) {
      const { isError, content } = await call('skill_view', { name, path });
      said.push({ path, isError, content });
      if (isError === true) break;
    }
    return { name, said };
  } finally {
    await client.close();
  }
}

async function firstOf(list) {
  for (const until = performance.now() + FOUND_WITHIN_MS; performance.now() < until; await pause(LOOK_MS)) {
    // Beside it there are those of the platform.
    const found = (await list()).find(({ name }) => name.includes(SKILL));
    if (found !== undefined) return found.name;
  }
  return undefined;
}

function sender({ apiUrl, tokenFile }) {
  const token = readFileSync(tokenFile, 'utf8').trim();
  return async (method, path, body) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const answer = await fetch(`${apiUrl}${path}`, { method, headers, body: JSON.stringify(body) });
    const said = await answer.json();
    if (!answer.ok) throw new Error(`${method} ${path}: ${said.detail ?? answer.status}`);
    return said;
  };
}
