import { Bus } from '@ambit/bus';
import { mcpBroker, pluginRegistry, sessionService, skillStore } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { AccessRepository } from './access.repository.js';
import { accessName, agentState, serverState } from './domain/desired.js';
import { notifyState } from './domain/notify.js';
import type { Found } from './domain/plan.js';
import type { Caller } from './http/caller.js';
import { NotifyRepository } from './notify.repository.js';
import { allPages } from './paging.js';

export interface FoundThing extends Found {
  /** What its owner knows it by. */
  readonly id: string;
}
const LIMIT = 200;

/** What is there of the kinds that a desired state speaks of. */
@Injectable()
export class WorldService {
  constructor(
    private readonly bus: Bus,
    private readonly access: AccessRepository,
    private readonly notify: NotifyRepository,
  ) {}

  /** `urls`: addresses of webhooks that the caller knows already. */
  async read(
    projectId: string,
    asking: { readonly caller: Caller; readonly signal: AbortSignal; readonly urls: ReadonlySet<string> },
  ): Promise<FoundThing[]> {
    const options = { ...asking.caller.identity, signal: asking.signal };
    const [projects, secrets, servers, plugins, agents, skills, grants, sinks] = await Promise.all([
      allPages((cursor) => this.bus.call(sessionService.listProjects, { cursor, limit: LIMIT }, options)),
      allPages((cursor) => this.bus.call(mcpBroker.listSecrets, { projectId, cursor, limit: LIMIT }, options)),
      allPages((cursor) => this.bus.call(mcpBroker.listServers, { projectId, cursor, limit: LIMIT }, options)),
      allPages((cursor) => this.bus.call(pluginRegistry.listPlugins, { projectId, cursor, limit: LIMIT }, options)),
      allPages((cursor) => this.bus.call(sessionService.listAgents, { projectId, cursor, limit: LIMIT }, options)),
      allPages((cursor) => this.bus.call(skillStore.listSkills, { projectId, cursor, limit: LIMIT }, options)),
      this.access.listGrants({}, { limit: 10_000 }),
      this.notify.list({ projectId }, { limit: 10_000 }),
    ]);
    // Their URLs may hold secrets, and a plan is also for those who only read: they see of webhooks what they asked about.
    const mayKnow = asking.caller.may('administer', { projectId });
    return [
      ...projects.map((project): FoundThing => ({
        kind: 'project',
        name: project.id,
        id: project.id,
        state: {},
        set: null,
        version: project.version,
      })),
      ...secrets.map((secret): FoundThing => ({
        kind: 'secret',
        name: secret.name,
        id: secret.name,
        state: { from: secret.from, key: secret.key },
        set: secret.set,
        version: secret.version,
      })),
      // A plugin's servers are the plugin's to change.
      ...servers
        .filter(({ owner }) => owner === 'user')
        .map((server): FoundThing => ({
          kind: 'server',
          name: server.slug,
          id: server.id,
          state: serverState(server),
          set: server.set,
          version: server.version,
        })),
      ...plugins.map((plugin): FoundThing => ({
        kind: 'plugin',
        name: plugin.id,
        id: plugin.id,
        state: { digest: plugin.digest, wanted: plugin.wanted, publisher: plugin.signedBy },
        set: plugin.set,
        version: plugin.revision,
      })),
      ...agents.map((agent): FoundThing => ({
        kind: 'agent',
        name: agent.id,
        id: agent.id,
        state: agentState(agent),
        set: agent.set,
        version: agent.version,
      })),
      ...skills.map((skill): FoundThing => ({
        kind: 'skill',
        name: `${skill.agentId}/${skill.name}`,
        id: skill.name,
        state: { digest: skill.digest, scripts: [...skill.scripts].sort() },
        set: skill.set,
        version: skill.version,
      })),
      ...grants.map((grant): FoundThing => ({
        kind: 'access',
        name: accessName(grant),
        id: grant.id,
        state: {},
        set: grant.set,
        version: 1,
      })),
      ...sinks
        .filter(({ webhook }) => mayKnow || asking.urls.has(webhook.url))
        .map((sink): FoundThing => ({
          kind: 'notify',
          name: sink.webhook.url,
          id: sink.id,
          state: notifyState(sink),
          set: sink.set,
          version: sink.version,
        })),
    ];
  }
}
