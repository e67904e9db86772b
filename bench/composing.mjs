// What ingress costs beside asking its sources: composing a world of 1,000 tools, and finding an unchanged one again.
import { cacheKey, canonicalRecord, compose, policyFromDocument, PolicyDocument, sha256Hex } from '@ambit/capability';
import { median } from './load.mjs';

const SERVERS = 20;
const TOOLS = 50;
const TIMES = 41;
const WARM_UP = 10;

const policy = policyFromDocument(PolicyDocument.parse({ servers: 'all' }));
const frame = {
  agent: { id: 'bench', kind: 'sdk' },
  project: { id: 'default' },
  model: { name: 'none', vision: false },
  switches: { skills: true, mcp: true, mcpSkills: false },
  session: { kind: 'regular', selectedSkills: null, activeSkills: [] },
};
const subject = null;
const none = { state: 'ok', items: [] };

/** A tool as servers describe them: a paragraph, and a schema of eight fields. */
const toolOf = (server, tool) => ({
  readOnly: tool % 2 === 0,
  definition: {
    name: `tool_${tool}`,
    description: `Reads record ${tool} of system ${server} and gives back its fields. `.repeat(4),
    inputSchema: {
      type: 'object',
      properties: Object.fromEntries(
        Array.from({ length: 8 }, (_, index) => [`field_${index}`, { type: 'string', description: `What field ${index} is for` }]),
      ),
      required: ['field_0'],
    },
  },
});

const input = {
  ...frame,
  policies: [policy],
  subject,
  builtins: none,
  toolsets: none,
  skills: none,
  plugins: none,
  knownAgents: [],
  servers: {
    state: 'ok',
    items: Array.from({ length: SERVERS }, (_, server) => ({
      serverId: `00000000-0000-7000-8000-${String(server).padStart(12, '0')}`,
      slug: `server-${server}`,
      owner: 'user',
      configGeneration: 1,
      bindingHash: sha256Hex(`server ${server}`),
      catalogHash: sha256Hex(`catalogue ${server}`),
      enabled: true,
      state: 'connected',
      stale: false,
      tools: Array.from({ length: TOOLS }, (_, tool) => toolOf(server, tool)),
      prompts: [],
      toolPolicy: null,
    })),
  },
};

const versions = {
  ...frame,
  policies: [{ agentId: 'bench', version: 1 }],
  epochs: {
    'tool-gateway.builtin.tools': 1,
    'mcp-broker.user.servers': 2,
    'skill-store.user.skills': 3,
    'plugin-registry.user.plugins': 4,
  },
  agentsVersion: 0,
  failed: [],
};

export function measureComposing() {
  let consulted = [];
  const composeMs = timeOf(() => {
    const composition = compose(input);
    consulted = composition.consulted;
    if (composition.record.tools.length !== SERVERS * TOOLS) throw new Error(`${composition.record.tools.length} tools were composed`);
    return sha256Hex(canonicalRecord(composition.record));
  });
  const known = new Map([[cacheKey(versions, subject, consulted), 'projection']]);
  const hitMs = timeOf(() => {
    if (known.get(cacheKey(versions, subject, consulted)) === undefined) throw new Error('an unchanged world was not found again');
  });
  return { tools: SERVERS * TOOLS, composeMs, hitMs };
}

function timeOf(work) {
  for (let index = 0; index < WARM_UP; index++) work();
  return median(
    Array.from({ length: TIMES }, () => {
      const began = performance.now();
      work();
      return performance.now() - began;
    }),
  );
}
