import type { AmbitClient } from '@ambit/client';
import { httpApi } from '@ambit/contracts';
import type { Column } from './table.js';

/** What a list may be narrowed to. */
export interface Filters {
  readonly agentId?: string;
  readonly projectId?: string;
  readonly set?: string;
  readonly sessionId?: string;
}
export interface Noun {
  readonly columns: readonly Column[];
  /** Fields that a person may name one by. */
  readonly names: readonly string[];
  readonly list: (client: AmbitClient, filters: Filters) => AsyncIterable<unknown>;
  /** Where one has a route of its own that takes the name. */
  readonly one?: (client: AmbitClient, name: string) => Promise<unknown>;
}

async function* only<T>(items: Promise<readonly T[]>): AsyncGenerator<T> {
  yield* await items;
}
const byId = { names: ['id'] } as const;
const params = (id: string) => ({ params: { id } });

/** The nouns of `ambit get`, by the name that people type. */
export const nouns: Readonly<Record<string, Noun>> = {
  project: {
    ...byId,
    columns: [
      ['PROJECT', 'id'],
      ['DISPLAY', 'display'],
      ['VERSION', 'version'],
    ],
    list: (client) => client.pages(httpApi.listProjects),
  },
  agent: {
    ...byId,
    columns: [
      ['AGENT', 'id'],
      ['KIND', 'kind'],
      ['ENABLED', 'enabled'],
      ['MODE', 'policy.mode'],
      ['SERVERS', 'policy.servers'],
      ['SKILLS', 'policy.skills'],
      ['SET', 'set'],
      ['VERSION', 'version'],
    ],
    list: (client, query) => client.pages(httpApi.listAgents, { query }),
    one: (client, id) => client.request(httpApi.getAgent, params(id)),
  },
  server: {
    names: ['slug', 'id'],
    columns: [
      ['SERVER', 'slug'],
      ['TYPE', 'transport.type'],
      ['STATE', 'state'],
      ['SIGN-IN', 'authorization.state'],
      ['TOOLS', 'tools'],
      ['OWNER', 'owner'],
      ['SET', 'set'],
      ['ID', 'id'],
      ['REASON', 'reason'],
    ],
    list: (client, query) => client.pages(httpApi.listServers, { query }),
  },
  secret: {
    names: ['name'],
    columns: [
      ['SECRET', 'name'],
      ['FROM', 'from'],
      ['KEY', 'key'],
      ['SET', 'set'],
      ['UPDATED', 'updatedAt'],
    ],
    list: (client, query) => client.pages(httpApi.listSecrets, { query }),
  },
  skill: {
    names: ['name'],
    columns: [
      ['AGENT', 'agentId'],
      ['SKILL', 'name'],
      ['ENABLED', 'enabled'],
      ['VALID', 'valid'],
      ['ORIGIN', 'origin'],
      ['OWNER', 'owner'],
      ['DESCRIPTION', 'description'],
    ],
    list: (client, query) => client.pages(httpApi.listSkills, { query }),
  },
  plugin: {
    ...byId,
    columns: [
      ['PLUGIN', 'id'],
      ['VERSION', 'version'],
      ['STATE', 'state'],
      ['SIGNED', 'signed'],
      ['SERVERS', 'contributes.servers'],
      ['SKILLS', 'contributes.skills'],
      ['SET', 'set'],
    ],
    list: (client, query) => client.pages(httpApi.listPlugins, { query }),
    one: (client, id) => client.request(httpApi.getPlugin, params(id)),
  },
  session: {
    ...byId,
    columns: [
      ['SESSION', 'id'],
      ['AGENT', 'agentId'],
      ['FOR', 'principal.id'],
      ['ADAPTER', 'adapter'],
      ['UPDATED', 'updatedAt'],
    ],
    list: (client, { agentId, projectId }) => client.pages(httpApi.listSessions, { query: { agentId, projectId } }),
    one: (client, id) => client.request(httpApi.getSession, params(id)),
  },
  run: {
    ...byId,
    columns: [
      ['RUN', 'id'],
      ['AGENT', 'agentId'],
      ['STATUS', 'status'],
      ['FOR', 'principal.id'],
      ['ATTEMPT', 'attempt'],
      ['RESUMES', 'resumes'],
      ['CREATED', 'createdAt'],
    ],
    list: (client, { agentId, projectId, sessionId }) => client.pages(httpApi.listRuns, { query: { agentId, projectId, sessionId } }),
    one: (client, id) => client.request(httpApi.getRun, params(id)),
  },
  interaction: {
    ...byId,
    columns: [
      ['INTERACTION', 'id'],
      ['STATUS', 'status'],
      ['AGENT', 'agentId'],
      ['TOOL', 'tool'],
      ['FOR', 'principal.id'],
      ['DECIDED BY', 'decidedBy.id'],
    ],
    list: (client, { projectId, sessionId }) => client.pages(httpApi.listInteractions, { query: { projectId, sessionId } }),
    one: (client, id) => client.request(httpApi.getInteraction, params(id)),
  },
  tool: {
    names: ['name'],
    columns: [
      ['TOOL', 'name'],
      ['EXPOSURE', 'exposure'],
      ['EFFECT', 'effect'],
      ['REACHES', 'access'],
      ['DESCRIPTION', 'description'],
    ],
    list: (client, { agentId }) => only(client.request(httpApi.listTools, { query: { agentId } }).then(({ tools }) => tools)),
  },
  access: {
    ...byId,
    columns: [
      ['WHO', 'who'],
      ['ROLE', 'role'],
      ['AGENTS', 'agents'],
      ['FOR', 'onBehalfOf'],
      ['SET', 'set'],
      ['ID', 'id'],
    ],
    list: (client, { set }) => client.pages(httpApi.listAccess, { query: { set } }),
  },
  publisher: {
    names: ['keyId', 'publisher'],
    columns: [
      ['PUBLISHER', 'publisher'],
      ['KEY', 'keyId'],
      ['ADDED', 'addedAt'],
    ],
    list: (client) => client.pages(httpApi.listPublishers),
  },
  notify: {
    ...byId,
    columns: [
      ['WEBHOOK', 'webhook.url'],
      ['EVENTS', 'events'],
      ['SIGNED WITH', 'webhook.sign.secret'],
      ['SET', 'set'],
      ['ID', 'id'],
    ],
    list: (client, { projectId, set }) => client.pages(httpApi.listNotify, { query: { projectId, set } }),
  },
};
