import type { JsonObject, Policy as PolicyValue } from '@ambit/contracts';
import { Policy } from '@ambit/contracts';
import type {
  BuiltinRegistration,
  CompositionInput,
  EffectiveSkill,
  PluginState,
  ServerCatalogue,
  Source,
  WorkerToolset,
} from '../src/compose-input.js';
import type { GateInput, RunAuthority, TargetFacts } from '../src/gate-input.js';
import { RESERVED_TABLE } from '../src/reserved.js';
import type { SnapshotTool } from '../src/snapshot.js';

export const SCHEMA: JsonObject = { type: 'object', properties: { id: { type: 'string' } } };
export const hex = (seed: string | number) =>
  String(seed)
    .padStart(64, '0')
    .replace(/[^0-9a-f]/g, 'a')
    .slice(-64);
export const uuid = (seed: number) => `0190f000-0000-7000-8000-${String(seed).padStart(12, '0')}`;
export const ok = <T>(...items: readonly T[]): Source<T> => ({ state: 'ok', items });

export const policy = (part: Partial<PolicyValue> = {}): PolicyValue => Policy.parse(part);
export const openPolicy = (part: Partial<PolicyValue> = {}): PolicyValue => policy({ servers: null, plugins: null, skills: null, ...part });

export const builtin = (name: string, part: Partial<BuiltinRegistration> = {}): BuiltinRegistration => ({
  name,
  version: 1,
  exposure: RESERVED_TABLE.get(name)?.exposure ?? 'user-configurable',
  description: `the tool ${name}`,
  inputSchema: SCHEMA,
  effect: 'read',
  access: 'session',
  parallel: false,
  ...part,
});

export const server = (seed: number, part: Partial<ServerCatalogue> & { readonly names?: readonly string[] } = {}): ServerCatalogue => {
  const { names = ['echo'], ...rest } = part;
  return {
    serverId: uuid(seed),
    slug: `server-${seed}`,
    owner: 'user',
    configGeneration: 1,
    bindingHash: hex(seed),
    catalogHash: hex(seed),
    enabled: true,
    state: 'connected',
    stale: false,
    tools: names.map((name) => ({ definition: { name, description: `${name} of ${seed}`, inputSchema: SCHEMA }, readOnly: false })),
    prompts: [],
    toolPolicy: null,
    ...rest,
  };
};

export const toolset = (part: Partial<WorkerToolset> & { readonly names?: readonly string[] } = {}): WorkerToolset => {
  const { names = ['deploy'], ...rest } = part;
  return {
    agentId: 'support',
    digest: hex(7),
    live: true,
    epoch: 1,
    tools: names.map((name) => ({
      name,
      description: name,
      inputSchema: SCHEMA,
      effect: 'write',
      access: 'other',
      parallel: false,
    })),
    ...rest,
  };
};

export const skill = (name: string, part: Partial<EffectiveSkill> = {}): EffectiveSkill => ({
  name,
  origin: 'owned',
  owner: 'user',
  digest: hex(name.length),
  description: name,
  enabled: true,
  ...part,
});
export const plugin = (id: string, part: Partial<PluginState> = {}): PluginState => ({ id, version: '1.0.0', state: 'enabled', ...part });

export const world = (part: Partial<CompositionInput> = {}): CompositionInput => ({
  agent: { id: 'support', kind: 'sdk' },
  policies: [openPolicy()],
  project: { id: 'default', workspaceId: null },
  model: { name: 'a-model', vision: false },
  switches: { skills: true, mcp: true, mcpSkills: true },
  session: { kind: 'regular', selectedSkills: null, activeSkills: [] },
  subject: null,
  builtins: ok(builtin('question'), builtin('tape_search', { parallel: true }), builtin('tape_info'), builtin('tape_handoff')),
  servers: ok(server(1, { names: ['echo', 'add'] }), server(2)),
  toolsets: ok(toolset()),
  skills: ok(skill('triage')),
  plugins: ok<PluginState>(),
  knownAgents: ['reader'],
  ...part,
});

export const mcpTool = (part: Partial<SnapshotTool> = {}): SnapshotTool => ({
  name: 'mcp__github__merge',
  qualifiedName: 'mcp__github__merge',
  exposure: 'user-configurable',
  description: '',
  inputSchema: SCHEMA,
  outputSchema: null,
  effect: 'write',
  access: 'mcp',
  parallel: false,
  owner: 'user',
  target: { kind: 'mcp', serverId: uuid(1), configGeneration: 1, bindingHash: hex(1), tool: 'merge' },
  ...part,
});

export const authority = (part: Partial<RunAuthority> = {}): RunAuthority => ({
  runId: uuid(10),
  sessionId: uuid(11),
  agentId: 'support',
  agentKind: 'sdk',
  sessionKind: 'regular',
  principal: 'user:alice',
  fingerprint: hex('f'),
  status: 'running',
  token: 'current',
  mode: 'full_access',
  chain: [{ agentId: 'support', version: 1, enabled: true, policy: openPolicy({ mode: 'full_access' }) }],
  fences: { user: 5, builtin: 0, 'worker:support': 0 },
  knownAgents: ['reader'],
  ...part,
});

export const facts = (tool: SnapshotTool, part: Partial<TargetFacts> = {}): TargetFacts => ({
  target: tool.target,
  effect: tool.effect,
  access: tool.access,
  requiresConfirmation: false,
  pluginVerdict: null,
  server: tool.target.kind === 'mcp' ? { id: tool.target.serverId, slug: 'github' } : null,
  ownerFence: 0,
  readAtFence: 0,
  ownerLeaseUntil: null,
  ...part,
});

export const gateInput = (part: Partial<GateInput> = {}): GateInput => {
  const tool = part.tool === undefined ? mcpTool() : part.tool;
  return {
    agentId: 'support',
    fingerprint: hex('f'),
    aborted: false,
    run: authority(),
    tool,
    current: tool === null ? null : facts(tool),
    call: { operationId: hex(99), callId: 'call-1', name: tool?.name ?? 'mcp__github__merge', arguments: '{"id":"7"}' },
    usage: { callsInRun: 0, windows: [] },
    now: 1_000_000,
    validate: () => [],
    ...part,
  };
};
