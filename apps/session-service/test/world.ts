import { randomUUID } from 'node:crypto';
import { Responder, silentLog } from '@ambit/bus';
import { sha256Hex } from '@ambit/capability';
import { mcpBroker, pluginRegistry, skillStore, toolGateway, type Output, type ServerHead, type ToolDefinition } from '@ambit/contracts';
import type { NatsConnection } from '@nats-io/nats-core';

type Registration = Output<typeof toolGateway.listTools>['tools'][number];
type Toolset = Output<typeof toolGateway.listTools>['toolsets'][number];
type EffectiveSkill = Output<typeof skillStore.effectiveSkills>['skills'][number];
type Plugin = Output<typeof pluginRegistry.pluginSlots>['plugins'][number];

/** The owners that session-service asks at ingress, as peers on the bus; a test changes what they hold. */
export interface World {
  tools: Registration[];
  /** What workers of agents brought. */
  toolsets: Toolset[];
  servers: { head: ServerHead; tools: ToolDefinition[] }[];
  skills: EffectiveSkill[];
  plugins: Plugin[];
  /** What the gateway was asked to drop, the sessions of which it cannot, and runs that have an open call with it. */
  readonly cleared: Output<{ output: typeof toolGateway.clearSession.input }>[];
  readonly broken: Set<string>;
  readonly open: Set<string>;
  /** Moves the epoch of everything, as each owner would with a change. */
  changed(): void;
  /** What plugins contribute is told only after this. */
  held: Promise<unknown>;
  /** Requests answered so far, by subject. */
  readonly asked: Map<string, number>;
  /** Has the skill store fall silent, until it is found again. */
  loseSkills(): Promise<void>;
  findSkills(): void;
  close(): Promise<void>;
}

export const registration = (name: string, more: Partial<Registration> = {}): Registration => ({
  name,
  exposure: 'user-configurable',
  description: `The tool ${name}`,
  inputSchema: { type: 'object' },
  effect: 'read',
  access: 'session',
  parallel: false,
  version: 1,
  requiresConfirmation: false,
  ...more,
});

/** What an agent's worker brings: tools of any name, with whatever they demand. */
export const toolset = (agentId: string, tools: readonly Registration[]): World['toolsets'][number] => ({
  ...{ agentId, pool: 'shared', live: true },
  digest: sha256Hex(JSON.stringify(tools)),
  tools: tools.map((tool) => ({ ...tool, access: 'other' as const })),
});

export function server(slug: string, toolNames: readonly string[], more: Partial<ServerHead> = {}): World['servers'][number] {
  const tools = toolNames.map((name): ToolDefinition => ({ name, description: `${name} of ${slug}`, inputSchema: { type: 'object' } }));
  const head: ServerHead = {
    serverId: randomUUID(),
    slug,
    projectId: 'default',
    owner: 'user',
    enabled: true,
    configGeneration: 1,
    bindingHash: sha256Hex(slug),
    catalogHash: sha256Hex(JSON.stringify(tools)),
    state: 'connected',
    reason: null,
    stale: false,
    readOnly: [],
    scope: 'shared',
    ...more,
  };
  return { head, tools };
}

export function startWorld(connection: NatsConnection): World {
  const responder = new Responder({ connection, log: silentLog });
  const asked = new Map<string, number>();
  let epoch = 1;
  const count = (subject: string): void => void asked.set(subject, (asked.get(subject) ?? 0) + 1);
  const world: World = {
    cleared: [],
    broken: new Set(),
    open: new Set(),
    tools: [registration('question')],
    toolsets: [],
    servers: [],
    skills: [],
    plugins: [],
    changed: () => void epoch++,
    held: Promise.resolve(),
    asked,
    loseSkills: () => skills.close(),
    findSkills: () => void (skills = answerSkills()),
    close: () => responder.close(),
  };
  responder.answer(toolGateway.listTools, ({ agentId }) => {
    count('tools');
    const toolsets = world.toolsets.filter((one) => one.agentId === agentId);
    return { epoch, reservedTableVersion: 1, tools: world.tools, toolsets };
  });
  responder.answer(toolGateway.clearSession, (input) => {
    world.cleared.push(input);
    if (world.broken.has(input.sessionId)) throw new Error('nothing can be cleared here');
    return { open: input.runs.filter(({ runId }) => world.open.has(runId)).length };
  });
  responder.answer(mcpBroker.catalogueHeads, () => (count('heads'), { epoch, servers: world.servers.map(({ head }) => head) }));
  responder.answer(
    mcpBroker.cataloguePage,
    ({ serverId }) => (count('pages'), { tools: world.servers.find(({ head }) => head.serverId === serverId)?.tools ?? [], next: null }),
  );
  const answerSkills = () => {
    const answering = [
      responder.answer(skillStore.effectiveSkills, () => (count('skills'), { epoch, skills: world.skills })),
      responder.answer(skillStore.removeScope, ({ agentId }) => (count(`scope ${agentId}`), { removed: 0 })),
    ];
    return { close: async () => void (await Promise.all(answering.map((one) => one.close()))) };
  };
  let skills = answerSkills();
  responder.answer(pluginRegistry.pluginSlots, async () => {
    count('slots');
    await world.held;
    return { epoch, plugins: world.plugins };
  });
  return world;
}

/** A skill and a plugin as their owners tell of them. */
export const SKILL: World['skills'][number] = {
  name: 'triage',
  description: 'Sorts',
  allowedTools: null,
  platforms: null,
  disableModelInvocation: false,
  userInvocable: true,
  metadata: {},
  agentId: 'any',
  owner: 'user',
  origin: 'owned',
  digest: 'a'.repeat(64),
  scripts: [],
  shadows: null,
};
export const PLUGIN = {
  id: 'kit',
  version: '1.0.0',
  digest: '0'.repeat(64),
  state: 'enabled' as const,
  servers: [],
  skills: [],
  agents: [],
};
