// What stands behind the edge while the suite runs, and a way in for it: the suite cannot send a token, so that one is put in here.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('./upstream.mjs', import.meta.url));
/** Every tool may be called, and servers may ask for completions: the client is the suite. */
const policyOf = (servers) => ({
  servers,
  skills: 'all',
  rules: [{ allow: 'mcp__*' }],
  serverRequests: { sampling: 'ask' },
  limits: { callsPerMinute: 1_000_000 },
});

/** What an agent's session has to know; the suite looks into folders of the first by name. */
const SKILLS = [
  {
    'SKILL.md':
      '---\nname: abacus\ndescription: How to count on an abacus.\nlicense: MIT\n---\n\nBegin on the right; see references/BEADS.md.\n',
    'references/BEADS.md': '# Beads\n\nOnes and fives.\n',
    'references/more/FRAME.md': '# Frame\n\nOf wood.\n',
  },
  { 'SKILL.md': '---\nname: roasting\ndescription: How to roast coffee.\nmetadata:\n  level: "2"\n---\n\nSlowly.\n' },
];

async function giveSkills(send, agentId) {
  for (const skill of SKILLS) {
    const files = [];
    for (const [path, text] of Object.entries(skill)) {
      const bytes = Buffer.from(text);
      const digest = createHash('sha256').update(bytes).digest('hex');
      await send('PUT', '/v1/blob/skill', { digest, bytes: bytes.length, offset: 0, data: bytes.toString('base64') });
      files.push({ path, mode: 'file', bytes: bytes.length, digest });
    }
    await send('PUT', `/v1/skill/${agentId}`, { files });
  }
}

export class Behind {
  constructor(name, url, stop) {
    this.name = name;
    this.url = url;
    this.stop = stop;
  }

  /** One server, and three whose tools, prompts and resources have the same names; those of the first are shown plain. */
  static async all(stack) {
    const token = readFileSync(stack.tokenFile, 'utf8').trim();
    const send = async (method, path, body) => {
      const answer = await fetch(`${stack.apiUrl}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const said = await answer.json();
      if (!answer.ok) throw new Error(`${method} ${path}: ${said.detail ?? answer.status}`);
      return said;
    };
    const slugs = ['conformance-one', 'conformance-two', 'conformance-three'];
    for (const slug of slugs) {
      const transport = { type: 'stdio', command: process.execPath, args: [PROGRAM] };
      const { id } = await send('PUT', `/v1/server/${slug}`, { transport, sampling: true });
      const { state, reason } = await send('POST', `/v1/server/${id}/test`);
      if (state !== 'connected') throw new Error(`${slug} is ${state}: ${reason}`);
    }
    const all = [];
    for (const [name, servers] of [
      ['one server', slugs.slice(0, 1)],
      ['three servers', slugs],
    ]) {
      const agentId = `conformance-${servers.length}`;
      await send('PUT', `/v1/agent/${agentId}`, { model: 'none', policy: policyOf(servers) });
      await giveSkills(send, agentId);
      const edge = await send('POST', '/v1/edge-token', { name: 'conformance', agentId, principal: 'user:conformance', names: 'plain' });
      const door = await openDoor(`${stack.edgeUrl}?first=${slugs[0]}`, edge.token);
      all.push(new Behind(name, door.url, door.close));
    }
    return all;
  }
}

/** Hands on every request as it is, with a token. */
function openDoor(target, token) {
  const to = new URL(target);
  const door = createServer((incoming, outgoing) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${token}` };
    const path = incoming.url === '/mcp' ? to.pathname + to.search : incoming.url;
    const sent = request({ host: to.hostname, port: to.port, method: incoming.method, path, headers, setHost: false }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    sent.on('error', () => outgoing.destroy());
    outgoing.on('close', () => sent.destroy());
    incoming.pipe(sent);
  });
  return new Promise((resolve) => {
    door.listen(0, '127.0.0.1', () => {
      const close = () =>
        new Promise((done) => {
          door.closeAllConnections();
          door.close(done);
        });
      resolve({ url: `http://localhost:${door.address().port}/mcp`, close });
    });
  });
}
